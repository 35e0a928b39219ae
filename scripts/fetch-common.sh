# What fetch-slurm.sh and fetch-strangers.sh share: Debian's packages unpacked below the build, nothing installed.
# Source it, define `fetch` (it begins in an empty directory of PLACE for packages), then: fetch_into PLACE TITLE WHO, with what is fetched and whose tests want it.
fetch_into() {
  local place=$1 title=$2 who=$3 name log
  name=$(basename "$0" .sh)
  # The mark is written last: what was interrupted has none and is fetched anew.
  [[ -e $place/.complete ]] && exit 0
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "$name: this is not a Debian system; $who are left out" >&2
    exit 0
  fi
  echo "$name: $title to $place"
  mkdir -p "$(dirname "$place")"
  log=$(mktemp)
  if (rm -rf "$place" && mkdir -p "$place/packages" && cd "$place/packages" && fetch) >"$log" 2>&1; then
    rm -rf "$place/packages"
    touch "$place/.complete"
  else
    rm -rf "$place"
    echo "$name: could not be had, so $who are left out: $(tail -1 "$log")" >&2
  fi
  rm -f "$log"
}

# Gets packages and unpacks them in DIRECTORY: unpack DIRECTORY PACKAGE...
unpack() {
  local directory=$1 package
  shift
  apt-get -o APT::Sandbox::User=root download "$@" || return 1
  for package in *.deb; do
    dpkg-deb -x "$package" "$directory" || return 1
  done
}
