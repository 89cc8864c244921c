#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# debian_root.sh SUITE PACKAGE...
# Unpacks packages of another suite of Debian into a folder of the cache, and prints the folder. Installs
# nothing and leaves apt's own lists alone. Fails, with one line, where they cannot be had.
set -euo pipefail

suite=$1
shift
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weft/debian-$suite-$(printf '%s\n' "$@" | cksum | cut -d ' ' -f 1)

fail() {
  echo "debian_root: $1" >&2
  exit 1
}

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
    -o Acquire::http::Timeout=30 -o Acquire::Retries=1 -o Debug::NoLocking=true -o APT::Sandbox::User=root -o Acquire::Languages=none)
  shift
  apt-get "${options[@]}" update && cd "$apt" && apt-get "${options[@]}" download "$@"
}

[[ -d $folder ]] && { echo "$folder"; exit 0; }
[[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]] || fail "only for amd64"
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
(fetch "$work" "$@") >"$work/log" 2>&1 || fail "not to be had from $suite: $(grep -m1 '^E:' "$work/log")"
mkdir "$work/root"
for package in "$work"/apt/*.deb; do dpkg-deb -x "$package" "$work/root"; done
for name in bin lib lib64 sbin; do
  [[ -e $work/root/$name ]] || ln -s "usr/$name" "$work/root/$name"
done
# Links to the root of the file system lead into the folder.
find "$work/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfr "$work/root$(readlink "$link")" "$link"
done
# Another run may have been faster.
mv -T "$work/root" "$folder" 2>/dev/null || [[ -d $folder ]]
echo "$folder"
