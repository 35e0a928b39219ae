#!/usr/bin/env bash
# Installs the Debian packages that building, the tests and the benchmarks need; quick when everything is there.
#
#   scripts/install-deps.sh            all of them
#   scripts/install-deps.sh --list     prints their names
#   scripts/install-deps.sh --ceph     those of `make test-ceph` instead
set -euo pipefail

required=(
  build-essential cmake ninja-build pkg-config            # the build
  mpich libmpich-dev openmpi-bin libopenmpi-dev gfortran  # both MPIs, C and Fortran
  libisal-dev libxxhash-dev                               # coding, checksums
  libsodium-dev                                           # greetings between processes
  zlib1g-dev                                              # logs of jobs
  libcli11-dev libfmt-dev libtomlplusplus-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  libfuse3-dev fuse3                                      # targets that fail on purpose
  xfsprogs e2fsprogs                                      # file systems whose power is cut
  python3 python3-venv attr
)
# The tests of unmodified programs use these; where one is not to be had, its tests say so and are skipped.
wanted=(
  mold                                                    # links the tests in a tenth of the time
  clang-format                                            # the sources' form is tested
  libhdf5-openmpi-dev libhdf5-mpich-dev libpnetcdf-dev    # parallel HDF5, PnetCDF
  zsh fish                                                # completion of commands in these shells
  chromium-headless-shell                                 # the page of `holdfast report --html` is looked at
  python3-mpi4py python3-h5py-mpi lammps hpcc             # mpi4py, h5py, LAMMPS and HPC Challenge on Open MPI
  linux-perf                                              # benchmarks that count samples
)

if [[ ${1:-} == --ceph ]]; then
  required=(ceph-common ceph-fuse ceph-mds ceph-mgr ceph-mon ceph-osd)
  wanted=()
fi

if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${required[@]}" "${wanted[@]}"
  exit 0
fi

# Prints those of the packages named that are not installed.
missing() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

if ! command -v dpkg-query >/dev/null; then
  echo "install-deps: this is not a Debian system; install what corresponds to: ${required[*]}" >&2
  exit 1
fi
mapfile -t lacking < <(missing "${required[@]}")
mapfile -t optional < <(missing "${wanted[@]}")
if ((${#lacking[@]} + ${#optional[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif ((${#lacking[@]} == 0)); then
    echo "install-deps: not installed, so their tests are skipped: ${optional[*]}" >&2
    exit 0
  else
    echo "install-deps: these Debian packages are missing, and installing needs root; run:" >&2
    echo "  apt-get install --no-install-recommends ${lacking[*]}" >&2
    exit 1
  fi
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@" </dev/null
}

echo "install-deps: installing ${lacking[*]} ${optional[*]}"
apt update || echo "install-deps: could not refresh the package lists; trying with those that are here" >&2
if ! apt install -y --no-install-recommends "${lacking[@]}" "${optional[@]}" >/dev/null; then
  # One package that is not to be had must not keep the others away.
  if ((${#lacking[@]})); then
    apt install -y --no-install-recommends "${lacking[@]}" >/dev/null
  fi
  for package in "${optional[@]}"; do
    apt install -y --no-install-recommends "$package" >/dev/null ||
      echo "install-deps: $package could not be installed; its tests are skipped" >&2
  done
fi
mapfile -t lacking < <(missing "${required[@]}")
if ((${#lacking[@]})); then
  echo "install-deps: could not install: ${lacking[*]}" >&2
  exit 1
fi
