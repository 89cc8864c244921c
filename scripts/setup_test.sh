#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests what ./dev setup prints and does: with nothing to do, if it may not install, and if
# installing fails. It installs nothing and asks no server. scripts/fresh.sh runs it after a ./dev
# setup that worked.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'echo "setup_test: failed in line $LINENO" >&2' ERR
chmod 755 "$folder"

# Makes a copy that wants a package which no machine has, and its tools. Neither sudo nor, for now,
# apt-get is among them.
mkdir -p "$folder/scripts" "$folder/bin" "$folder/lists/partial" "$folder/cache/archives/partial"
cp scripts/setup.sh "$folder/scripts"
printf 'bash\nweft-no-such-package  # why\n' >"$folder/scripts/packages.txt"
for tool in bash chmod comm dirname dpkg-query echo env find mktemp readlink rm sed sh sort tail tee tr xargs; do
  ln -s "$(type -P $tool)" "$folder/bin/$tool"
done

# expect WHAT STATUS TEXT...: `said` and `status` are of the last run; what it said has each text.
expect() {
  local what=$1 wanted=$2 text
  shift 2
  for text in "$@"; do
    [[ $said == *"$text"* && $status == "$wanted" ]] && continue
    printf 'setup_test: failed: %s\nstatus %s, not %s; it said:\n%s\nnot: %s\n' "$what" "$status" "$wanted" "$said" \
      "$text" >&2
    exit 1
  done
  echo "setup_test: $what"
}

run() {
  status=0
  said=$(env -i "$@" 2>&1 </dev/null) || status=$?
}

other_user=()
((EUID != 0)) || other_user=("$(type -P setpriv)" --reuid=65534 --regid=65534 --clear-groups)

run PATH="$PATH" ./dev setup
expect "nothing is to do: it says so and does nothing" 0 "setup: all packages are installed"
[[ $said == "setup: all packages are installed" ]]

run PATH="$folder/bin" "${other_user[@]}" "$folder/scripts/setup.sh"
expect "it may not install: what is missing, and the command" 1 "needs root" \
  "sudo apt-get install --no-install-recommends weft-no-such-package"
[[ $said != *bash* ]]  # that one is there

# One that asks for no password, and installs nothing.
touch "$folder/asked"
chmod 666 "$folder/asked"
cat >"$folder/bin/sudo" <<END
#!/bin/bash
echo "\$*" >>"$folder/asked"
END
chmod 755 "$folder/bin/sudo"
run PATH="$folder/bin" "${other_user[@]}" "$folder/scripts/setup.sh"
expect "another user with sudo: apt-get by it" 0 "setup: installing weft-no-such-package" "setup: done"
grep -q "apt-get .* install --no-install-recommends weft-no-such-package$" "$folder/asked"
rm "$folder/bin/sudo"

if ((EUID == 0)); then
  # An apt-get whose package has a service: it asks whether to start it, and enables it.
  wants="$folder/root/etc/systemd/system/multi-user.target.wants"
  policy="$folder/root/usr/sbin/policy-rc.d"
  mkdir -p "$wants" "$folder/root/usr/sbin"
  ln -s /dev/null "$wants/old.service"
  cat >"$folder/bin/apt-get" <<END
#!/bin/bash
[[ " \$* " == *" install "* ]] || exit 0
status=0
"$policy" new start || status=\$?
echo "\$status" >"$folder/asked"
"$(type -P ln)" -s /dev/null "$wants/new.service"
END
  chmod 755 "$folder/bin/apt-get"
  run PATH="$folder/bin" WEFT_SETUP_ROOT="$folder/root" "$folder/scripts/setup.sh"
  expect "services of packages are neither started nor enabled" 0 "setup: done"
  [[ $(<"$folder/asked") == 101 && ! -e $policy && -L $wants/old.service && ! -L $wants/new.service ]]
  printf '#!/bin/sh\nexit 104\n' >"$policy"
  chmod 755 "$policy"
  run PATH="$folder/bin" WEFT_SETUP_ROOT="$folder/root" "$folder/scripts/setup.sh"
  expect "a policy of the machine's own holds, and stays" 0 "setup: done"
  [[ $(<"$folder/asked") == 104 && -e $policy ]]
  rm "$folder/bin/apt-get"

  # Adds apt-get itself, with no source and no list of packages.
  ln -s "$(type -P apt-get)" "$folder/bin/apt-get"
  cat >"$folder/apt.conf" <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$folder/lists";
Dir::Cache "$folder/cache";
END
  run PATH="$folder/bin:/usr/sbin:/sbin" APT_CONFIG="$folder/apt.conf" "$folder/scripts/setup.sh"
  expect "apt-get fails: why, and what is still missing" 1 "setup: installing weft-no-such-package" \
    "Unable to locate package weft-no-such-package" "still missing: weft-no-such-package"
fi

rm "$folder/bin/dpkg-query"
run PATH="$folder/bin" "$folder/scripts/setup.sh"
expect "not on Debian: all that is needed" 1 "not a Debian system" "bash weft-no-such-package"
