#!/bin/bash
# Installs what is missing, configures a preset and builds it.
#
#   scripts/build.sh [PRESET [TARGET...]]     PRESET is release by default
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
shift || true
case $preset in
  runtime-only) scripts/install-deps.sh --runtime ;;
  runtime-aarch64) scripts/install-deps.sh --aarch64 ;;
  *) scripts/install-deps.sh ;;
esac
cmake --preset "$preset" --log-level=WARNING >&2
cmake --build --preset "$preset" --target "${@:-all}" >&2
