#!/bin/bash
# Builds the fuzzers with sanitizers and runs each for a while, then the
# compiler's passes on random modules.
#
#   scripts/fuzz.sh [SECONDS]     60 by default
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
if [ $# -gt 1 ] || ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0"
  exit 2
fi
build=build/asan
scripts/build.sh asan
for fuzzer in $build/fuzz/*Fuzzer; do
  name=$(basename "$fuzzer")
  echo "== $name, $seconds s" >&2
  corpus=$(mktemp -d)
  seeds=$build/fuzz/seeds/$name
  [ -d "$seeds" ] && cp "$seeds"/* "$corpus"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -report_slow_units=1 \
    -rss_limit_mb=4096 -artifact_prefix="$build/" -print_final_stats=1 "$corpus"
  rm -rf "$corpus"
done

scripts/build.sh release
first=$(($(od -An -N4 -tu4 /dev/urandom) * 1000000))
echo "== RandomModules, from $first on, $seconds s" >&2
timeout "$seconds" build/release/fuzz/RandomModules --first="$first" \
  --count=1000000000 || [ $? -eq 124 ]
