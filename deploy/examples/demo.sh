#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh [INSTALL TREE]: records the shop in local mode and shows what came of it. ./dev demo builds
# first and calls this. The trace stays in a folder of its own under $TMPDIR.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
install=${1:-$top/build/install}
weft=$install/bin/weft
shop=$install/share/weft/examples/shop
for program in "$weft" "$shop"; do
  [[ -x $program ]] || { echo "demo: there is no $program: run ./dev demo" >&2; exit 1; }
done

trace=$(mktemp -d "${TMPDIR:-/tmp}/weft-demo.XXXXXX")/trace

echo "== weft record --event 'shop:*' -o $trace -- shop --orders 1000 --threads 2"
"$weft" record --event 'shop:*' -o "$trace" -- "$shop" --orders 1000 --threads 2

events=$(dirname "$trace")/events.txt
"$weft" view "$trace" >"$events"

echo
echo "== weft view: the first events"
head -n 10 "$events"

echo
echo "== how many of each, as recorded (the shop's own counts are above)"
grep -o 'shop:[a-z_]*' "$events" | sort | uniq -c

if [[ $(uname -m) == x86_64 ]]; then
  examples=$install/share/weft/examples
  echo
  echo "== weft record -f mylib-trace.yaml -- sample_app 1000: functions of a library that knows no tracing"
  "$weft" record -f "$examples/mylib-trace.yaml" -o "$trace-mylib" -- "$examples/sample_app" 1000
  "$weft" view "$trace-mylib" >"$events"
  sed -n '403,406p' "$events"
  echo
  echo "== weft report: how often the functions were called, and how long they took"
  "$weft" report "$trace-mylib"
fi

echo
echo "The trace is CTF, in $trace; try: babeltrace2 $trace"
