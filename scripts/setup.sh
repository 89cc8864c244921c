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

# Packages of servers (nginx, postgresql-15, redis-server, ...) start them, and enable them for each
# boot. Tests start servers of their own. So nothing is started while packages are installed, unless
# the machine has a policy of its own, and services that are new are disabled again. Nothing changes
# for services that are there already. WEFT_SETUP_ROOT: another root folder, for setup_test.sh.
policy=${WEFT_SETUP_ROOT:-}/usr/sbin/policy-rc.d
services() { find "${WEFT_SETUP_ROOT:-}/etc/systemd/system/multi-user.target.wants" -type l 2>/dev/null | sort; }
services_before=$(services || true)
own_policy=
clean_up() {
  rm -f "$log"
  [[ -z $own_policy ]] || "${as_root[@]}" rm -f "$own_policy"
}
trap clean_up EXIT
if [[ ! -e $policy ]]; then
  own_policy=$policy
  printf '#!/bin/sh\n# While scripts/setup.sh of weft installs packages.\nexit 101\n' |
    "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

# shellcheck disable=SC2086  # a list of names
if ! { apt update && apt install --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup: apt-get failed (above); still missing: $missing" >&2
  exit 1
fi
for service in $(comm -13 <(echo "$services_before") <(services || true)); do
  "${as_root[@]}" rm -f "$service"
done
echo "setup: done"
