#!/bin/bash
# Installs what is missing, configures a preset and builds it.
#
#   scripts/build.sh [PRESET [TARGET...]]     PRESET is release by default
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
shift || true
if [ "$preset" = runtime-only ]; then
  scripts/install-deps.sh --runtime
else
  scripts/install-deps.sh
fi
cmake --preset "$preset" --log-level=WARNING >&2
cmake --build --preset "$preset" --target "${@:-all}" >&2
