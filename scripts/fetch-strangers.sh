#!/usr/bin/env bash
# Puts the tests of CPython and of glibc, as Debian packages them, into BUILD/strangers for tests/programs/strangers: nothing is installed.
# Quick when they are there; where no archive can be reached one line says so, and their tests are left out.
#
#   scripts/fetch-strangers.sh [BUILD]
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fetch-common.sh"

# Tests and what they stand on have to be of one version, which need not be the interpreter's own to the last digit.
fetch() {
  local python
  python=lib$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])') &&
    unpack . "$python-testsuite" "$python-stdlib" glibc-source &&
    mkdir ../python ../glibc && mv usr/lib/python3.*/test ../python/ &&
    tar -xJf usr/src/glibc/glibc-*.tar.xz -C ../glibc --strip-components=1 --wildcards '*/version.h' '*/test-skeleton.c' \
      '*/support' '*/stdio-common' '*/libio' '*/io' '*/posix' '*/rt' '*/dirent' '*/misc' '*/stdlib' '*/malloc' '*/include' '*/localedata'
}

fetch_into "${1:-build}/strangers" "the tests of CPython and glibc go" "CPython's and glibc's tests"
