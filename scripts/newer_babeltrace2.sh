#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian 12's babeltrace2 reads CTF 1.8 only. This unpacks the next Debian's, which reads CTF 2 too, with
# the libraries it needs, into a cache, and prints the path of a program that runs it from there. Installs
# nothing and leaves apt's own lists alone. Fails, with one line, where it cannot be had: tests of CTF 2 are
# skipped then, unless WEFT_BABELTRACE2 names one.
set -euo pipefail

suite=trixie
packages=(babeltrace2 libbabeltrace2-0 libatomic1 libbz2-1.0 libc6 libdw1t64 libelf1t64 libffi8 libgcc-s1
  libglib2.0-0t64 liblzma5 libpcre2-8-0 libpython3.13 libexpat1 zlib1g libstdc++6 libzstd1)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weft/babeltrace2-$suite
program=$folder/babeltrace2

fail() {
  echo "newer_babeltrace2: $1" >&2
  exit 1
}

works() { [[ -x $program ]] && "$program" --version 2>/dev/null | grep -q ' 2\.[1-9]'; }

# Adds the machine's first Debian source, for the other suite, in lists of its own.
fetch() {
  local apt=$1/apt site
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,sources,preferences}
  site=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 !~ /security/ && !found {print $1; found = 1}')
  [[ -n $site ]] || { echo "E: apt has no Debian source"; return 1; }
  echo "deb [signed-by=$keys] $site $suite main" >"$apt/sources/newer.list"
  : >"$apt/status"
  local options=(-q -o Dir::State="$apt" -o Dir::State::lists="$apt/lists"
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList=/dev/null
    -o Dir::Etc::SourceParts="$apt/sources" -o Dir::Etc::PreferencesParts="$apt/preferences"
    -o Debug::NoLocking=true -o APT::Sandbox::User=root -o Acquire::Languages=none)
  apt-get "${options[@]}" update && cd "$apt" && apt-get "${options[@]}" download "${packages[@]}"
}

works && { echo "$program"; exit 0; }
[[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]] || fail "only for amd64"
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
(fetch "$work") >"$work/log" 2>&1 || fail "not to be had from $suite: $(grep -m1 '^E:' "$work/log")"
for package in "$work"/apt/*.deb; do dpkg-deb -x "$package" "$work/root"; done
rm -rf "$work/apt" "$work/log"
cat >"$work/babeltrace2" <<'END'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
libraries=$root/usr/lib/x86_64-linux-gnu
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$root/usr/bin/babeltrace2" \
  --plugin-path="$libraries/babeltrace2/plugins" "$@"
END
chmod +x "$work/babeltrace2"
rm -rf "$folder"
mv "$work" "$folder"
trap - EXIT
works || fail "what was fetched from $suite does not run here"
echo "$program"
