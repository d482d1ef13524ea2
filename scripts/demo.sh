#!/bin/bash
# From a clone to text: installs what is missing, builds, compiles the bundled
# model for this machine and generates with it.
#
#   scripts/demo.sh [PROMPT]
set -euo pipefail
cd "$(dirname "$0")/.."

prompt=${1:-"magic cookie:"}
bin=build/release/bin
artifact=build/jargon-llama.sandwich

echo "== Building" >&2
scripts/build.sh release sandwich-compile sandwich-run
echo "== Compiling models/jargon-llama for this machine" >&2
$bin/sandwich-compile models/jargon-llama -o "$artifact"
echo "== The plan" >&2
$bin/sandwich-run inspect "$artifact" >&2
echo "== Generating" >&2
$bin/sandwich-run generate "$artifact" --prompt "$prompt" --max-tokens 200 \
  --temperature 0.55 --seed 7
