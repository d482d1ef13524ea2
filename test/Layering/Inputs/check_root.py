# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the committed root of the repository with what belongs there.

    check_root.py SOURCE_DIR
"""
import subprocess
import sys

EXPECTED = {
    ".ci", ".clang-format", ".clang-tidy", ".containerignore", ".gitignore",
    "CMakeLists.txt",
    "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md",
    "benchmarks", "cmake", "docs", "fuzz", "include", "kernels", "lib", "models",
    "packaging", "proto", "python", "scripts", "test", "tools", "unittests",
}

source = sys.argv[1]
# The folder may lie in a checkout of something else.
root = subprocess.run(["git", "-C", source, "rev-parse", "--show-prefix"],
                      capture_output=True, text=True)
if root.returncode != 0 or root.stdout.strip():
    print("this is no checkout of its own; nothing is compared")
    sys.exit(0)
actual = set(subprocess.run(["git", "-C", source, "ls-tree", "--name-only",
                             "HEAD"], capture_output=True, text=True,
                            check=True).stdout.splitlines())
for name in sorted(actual - EXPECTED):
    print(f"error: {name} does not belong into the root of the repository")
for name in sorted(EXPECTED - actual):
    print(f"error: {name} is expected in the root of the repository")
sys.exit(actual != EXPECTED)
