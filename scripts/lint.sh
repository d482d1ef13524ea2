#!/bin/bash
# Checks formatting, and with --tidy also runs clang-tidy on the release build's
# compile commands. --fix formats in place.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=/usr/lib/llvm-22/bin
mapfile -t files < <(git ls-files '*.h' '*.cpp' '*.c')
case "${1:-}" in
  --fix) "$tools/clang-format" -i "${files[@]}" ;;
  "" | --tidy) "$tools/clang-format" --dry-run --Werror "${files[@]}" ;;
  *) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
if [ "${1:-}" = --tidy ]; then
  mapfile -t sources < <(git ls-files 'lib/*.cpp' 'tools/*.cpp')
  "$tools/run-clang-tidy" -quiet -p build/release -j 2 "${sources[@]}"
fi
