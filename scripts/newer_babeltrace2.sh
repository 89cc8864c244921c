#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian 12's babeltrace2 reads CTF 1.8 only. This takes the next Debian's, which reads CTF 2 too, with the
# libraries it needs (debian_root.sh), and prints the path of a program that runs it from there. Fails, with
# one line, where it cannot be had: tests of CTF 2 are skipped then, unless WEFT_BABELTRACE2 names one.
set -euo pipefail

packages=(babeltrace2 libbabeltrace2-0 libatomic1 libbz2-1.0 libc6 libdw1t64 libelf1t64 libffi8 libgcc-s1
  libglib2.0-0t64 liblzma5 libpcre2-8-0 libpython3.13 libexpat1 zlib1g libstdc++6 libzstd1)
# Sets `program` to the one of the cache, which is fetched if it is not there.
fetch() {
  local root
  root=$("$(dirname "$(readlink -f "$0")")/debian_root.sh" trixie "${packages[@]}")
  program=$root/babeltrace2
  [[ -x $program ]] && return
  cat >"$program.$$" <<'END'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")
libraries=$root/usr/lib/x86_64-linux-gnu
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$root/usr/bin/babeltrace2" \
  --plugin-path="$libraries/babeltrace2/plugins" "$@"
END
  chmod +x "$program.$$"
  mv "$program.$$" "$program"
}

works() {
  "$program" --version 2>/dev/null | grep -q ' 2\.[1-9]'
}

fetch
if ! works; then
  # What lies in the cache may be damaged.
  rm -rf "${program%/*}"
  fetch
fi
if ! works; then
  echo "newer_babeltrace2: what was fetched from trixie does not run here" >&2
  exit 1
fi
echo "$program"
