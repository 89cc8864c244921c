#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The part `fresh` of ./dev test. It checks that the committed files alone build in a clone, as a whole and as
# ./dev demo builds them, that the build leaves no file outside build/, and that the demo's install tree works after
# it was moved. Before that it checks what ./dev setup prints, and what a signal to ./dev test leaves. The clone is
# always in one place, so the compiler cache helps the next run.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

folder=$PWD/build/fresh
rm -rf "$folder"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
checks=0

check() {
  local what=$1
  shift
  if ! "$@"; then
    echo "fresh: $checks checks passed, 1 failed: $what"
    exit 1
  fi
  echo "fresh: $what"
  checks=$((checks + 1))
}

clone_is_clean() { [[ -z $(git -C "$folder/clone" status --porcelain) ]]; }

check "setup says what it does, and what is missing where it cannot" scripts/setup_test.sh
check "./dev test that is ended by a signal leaves nothing running" python3 -B scripts/test_test.py
check "HEAD can be cloned" git clone -q . "$folder/clone"
check "the clone builds" "$folder/clone/dev" build
rm -rf "$folder/clone/build/install"
check "the clone builds what the demo needs" "$folder/clone/dev" build --local
check "the build leaves no file outside build/" clone_is_clean
check "the install tree can be moved" mv "$folder/clone/build/install" "$folder/moved"
rm -rf "$folder/clone/build"
check "the demo runs from the moved tree" "$folder/clone/deploy/examples/demo.sh" "$folder/moved"
echo "fresh: $checks checks passed, 0 failed"
