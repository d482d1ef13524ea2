# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each example of 'cost --help', with the file that the help shows as
service.json in a folder, where the file stays.

    run_cost_help.py PROGRAM FOLDER
"""
import json
import shlex
import subprocess
import sys

program, folder = sys.argv[1:]
text = subprocess.run([program, "cost", "--help"], check=True,
                      capture_output=True, text=True).stdout
begin = text.index('{"slo_seconds"')
description, _ = json.JSONDecoder().raw_decode(text[begin:])
with open(f"{folder}/service.json", "w", encoding="utf-8") as file:
    json.dump(description, file)
examples = text.partition("Examples:\n")[2].partition("\n\n")[0]
commands = examples.replace("\\\n", " ").splitlines()
for command in commands:
    words = shlex.split(command)
    result = subprocess.run([program] + words[1:], cwd=folder,
                            capture_output=True, text=True, timeout=60)
    if result.returncode != 0 or not result.stdout:
        sys.exit(f"{command}: status {result.returncode}: {result.stderr}")
print(len(commands), "examples")
