#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh [PURPOSE...]: installs the packages of scripts/packages.txt that the PURPOSEs need (without one:
# all) and this machine lacks. Called by ./dev. Asks nothing, changes nothing when all are installed,
# and prints the command to run when it may not install.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# The sections of packages.txt that each purpose needs.
sections=""
for purpose in "${@:-all}"; do
  case $purpose in
    demo) sections+=" build" ;;
    test) sections+=" build test" ;;
    lint | vm | cluster) sections+=" build test $purpose" ;;
    all) sections+=" build test lint vm cluster" ;;
    *)
      echo "setup: unknown purpose '$purpose'; there are: demo test lint vm cluster" >&2
      exit 2
      ;;
  esac
done

# Lines before the first section belong to every purpose.
wanted=""
section=build
while read -r line; do
  line=${line%%#*}
  if [[ $line == \[*\]* ]]; then
    section=${line#\[}
    section=${section%%\]*}
  elif [[ " $sections " == *" $section "* ]]; then
    wanted+=" $line"
  fi
done <scripts/packages.txt
wanted=$(xargs <<<"$wanted")

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system. weft is built on Debian 12 and needs there: $wanted" >&2
  exit 1
fi

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null |
  sed -n 's/ installed$//p' | sort -u)
missing=$(comm -23 <(tr ' ' '\n' <<<"$wanted" | sort -u) <(echo "$installed") | xargs)
if [[ -z $missing ]]; then
  echo "setup: all packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  # Without a terminal, sudo must not ask for a password.
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    echo "setup: these packages are missing, and installing them needs root:" >&2
    echo "  sudo apt-get install --no-install-recommends $missing" >&2
    exit 1
  fi
fi

echo "setup: installing $missing"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # a list of names
if ! { apt update && apt install --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup: apt-get failed (above); still missing: $missing" >&2
  exit 1
fi
echo "setup: done"
