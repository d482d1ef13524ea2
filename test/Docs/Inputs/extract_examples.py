#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the complete examples of IR in Markdown files, as modules that
sandwich-opt takes with -split-input-file. Examples that leave something out or
use values of their surroundings are not complete.

    extract_examples.py FILE...
"""
import re
import sys

modules = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for example in re.findall(r"^```mlir\n(.*?)^```", text,
                              re.MULTILINE | re.DOTALL):
        if "..." in example or "%" in example:
            continue
        if example.startswith("!"):
            example = f"func.func private @type({example})\n"
        elif example.startswith("#"):
            example = f"module attributes {{test.attribute = {example}}} {{}}\n"
        modules.append(f"// {path.rsplit('/', 1)[-1]}\n{example}")
print("// -----\n".join(modules))
