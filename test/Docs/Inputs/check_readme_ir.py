# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the README's command that prints IR, and looks for the IR the README
shows in what it prints. Line breaks and indentation are the README's own."""
import os
import re
import shlex
import subprocess
import sys

readme = open(sys.argv[1], encoding="utf-8").read()
command = re.search(r"^sandwich-compile .*--emit=schedule-ir.*$", readme, re.M)
shown = re.search(r"```mlir\n(.*?)```", readme, re.S)
arguments = shlex.split(command[0])
arguments[arguments.index("-o") + 1] = "-"
printed = subprocess.run(arguments + ["-q"], check=True, text=True,
                         stdout=subprocess.PIPE,
                         cwd=os.path.dirname(sys.argv[1])).stdout


def compact(text):
    return re.sub(r"\s+", "", text)


if compact(shown[1]) not in compact(printed):
    sys.exit(f"{sys.argv[1]}: the IR shown is not what this prints:\n"
             f"{command[0]}")
