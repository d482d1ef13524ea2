#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what holds for the fields of one JSON object.

    check_json.py FILE EXPRESSION...

Each field is a variable in the expressions. FILE must hold the object and
nothing else, in valid UTF-8.
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8", errors="strict") as file:
        fields = json.load(file)
    for expression in sys.argv[2:]:
        # As globals, so that the fields are seen inside of comprehensions.
        if not eval(expression, dict(fields)):
            sys.exit(f"{expression} does not hold for {fields}")


main()
