# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports the texts of a file, each behind the error that it must give.

    check_errors.py FOLDER TEXTS

A case begins with a line `=== LINE:COLUMN: MESSAGE`, and goes on to the next.
"""
import os
import subprocess
import sys


def main():
    folder, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        cases = file.read().split("=== ")[1:]
    wrong = 0
    for case in cases:
        expected, text = case.split("\n", 1)
        source = os.path.join(folder, "case.kernel")
        output = os.path.join(folder, "out.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text.replace("<TAB>", "\t"))
        result = subprocess.run(
            ["sandwich-import", source, "-o", output], capture_output=True, text=True)
        where, _, message = expected.partition(": ")
        if (result.returncode != 1 or os.path.exists(output)
                or result.stderr.strip() != f"{source}:{where}: error: {message}"):
            print(f"expected {expected}\ngot {result.returncode} {result.stderr}")
            wrong += 1
    if wrong or not cases:
        sys.exit(f"{wrong} of {len(cases)} cases are wrong")


if __name__ == "__main__":
    main()
