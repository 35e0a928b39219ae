#!/usr/bin/env bash
# Puts the tests of CPython and of glibc, as Debian packages them, into BUILD/strangers for tests/programs/strangers: nothing is installed.
# Quick when they are there; where no archive can be reached one line says so, and their tests are left out.
#
#   scripts/fetch-strangers.sh [BUILD]
set -uo pipefail
place=${1:-build}/strangers
# The mark is written last: what was interrupted has none and is fetched anew.
[[ -e $place/.complete ]] && exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "fetch-strangers: this is not a Debian system; CPython's and glibc's tests are left out" >&2
  exit 0
fi

# Tests and what they stand on have to be of one version, which need not be the interpreter's own to the last digit.
fetch() {
  local python
  python=lib$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])') &&
    rm -rf "$place" && mkdir -p "$place/packages" && cd "$place/packages" &&
    apt-get -o APT::Sandbox::User=root download "$python-testsuite" "$python-stdlib" glibc-source &&
    for package in *.deb; do
      dpkg-deb -x "$package" . || return 1
    done &&
    mkdir ../python ../glibc && mv usr/lib/python3.*/test ../python/ &&
    tar -xJf usr/src/glibc/glibc-*.tar.xz -C ../glibc --strip-components=1 --wildcards '*/version.h' '*/test-skeleton.c' \
      '*/support' '*/stdio-common' '*/libio' '*/io' '*/posix' '*/rt' '*/dirent' '*/misc' '*/stdlib' '*/malloc' '*/include' '*/localedata' &&
    cd .. && rm -rf packages
}

echo "fetch-strangers: the tests of CPython and glibc go to $place"
mkdir -p "$(dirname "$place")"
log=$(mktemp)
if (fetch) >"$log" 2>&1; then
  touch "$place/.complete"
else
  rm -rf "$place"
  echo "fetch-strangers: could not be had, so CPython's and glibc's tests are left out: $(tail -1 "$log")" >&2
fi
rm -f "$log"
