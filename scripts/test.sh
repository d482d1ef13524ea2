#!/bin/bash
# Installs what is missing, builds and runs every test. Ends with the line
# `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh
# What is optional is tested, too.
cmake --preset release -DSANDWICH_ENABLE_MPI=ON --log-level=WARNING >&2
scripts/build.sh release
build=build/release
# What runs on 64-bit ARM is tested under an emulator.
emulated=
if [ "$(uname -m)" != aarch64 ]; then
  if scripts/install-deps.sh --aarch64; then
    emulated=build/runtime-aarch64
    scripts/build.sh runtime-aarch64
  else
    echo "warning: nothing is tested for 64-bit ARM, as its libraries could" \
      "not be unpacked" >&2
    export SANDWICH_TEST_AARCH64=
  fi
fi
status=0
rm -f $build/*-tests.xml
# What is neither committed nor ignored; nothing where git does not know.
list_strays() { git ls-files --others --exclude-standard 2>/dev/null || true; }
before=$(list_strays)
# Output is cut after a kilobyte by default, and the count is taken from it. A
# test that hangs is named, instead of holding up everything for ever.
ctest --test-dir $build --output-on-failure --parallel 2 --timeout 900 \
  --test-output-size-passed 10000000 --test-output-size-failed 10000000 \
  --output-junit "$PWD/$build/unit-tests.xml" || status=1
if [ -n "$emulated" ]; then
  ctest --test-dir $emulated --output-on-failure --parallel 2 --timeout 900 \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 \
    --output-junit "$PWD/$build/emulated-tests.xml" || status=1
fi
lit=$(sed -n 's/^LIT:[A-Z]*=//p' $build/CMakeCache.txt)
"$lit" --verbose --max-time 3000 --xunit-xml-output "$build/lit-tests.xml" $build/test ||
  status=1

# Tests leave nothing behind.
left=$(comm -13 <(sort <<<"$before") <(list_strays | sort))

# GoogleTest binaries are one ctest test each; count their cases instead.
python3 - $build "$left" <<'PYTHON' || status=1
import glob, sys, xml.etree.ElementTree as tree
build, left = sys.argv[1:]
passed = failed = skipped = 0
if left:
    print("error: the tests left files behind:", left, sep="\n",
          file=sys.stderr)
    failed += 1
for path in glob.glob(f"{build}/*-tests.xml"):
    for case in tree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        cases = [line for line in output.splitlines()
                 if line.startswith(("[       OK ]", "[  FAILED  ]",
                                     "[  SKIPPED ]")) and " ms)" in line]
        if cases:
            passed += sum("[       OK ]" in line for line in cases)
            failed += sum("[  FAILED  ]" in line for line in cases)
            skipped += sum("[  SKIPPED ]" in line for line in cases)
            if case.find("failure") is not None and not any(
                    "[  FAILED  ]" in line for line in cases):
                failed += 1
        elif case.find("failure") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed > 0 or passed == 0)
PYTHON
exit $status
