# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each sandwich-run command of a page on another server, at rates and with
numbers of requests that take no time.

    run_page.py PAGE URL
"""
import re
import shlex
import subprocess
import sys

page, url = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    text = file.read()
commands = [command.replace("\\\n", " ")
            for block in re.findall(r"^```\n(.*?)^```", text,
                                    re.MULTILINE | re.DOTALL)
            for command in re.split(r"(?<!\\)\n", block)
            if command.startswith("sandwich-run")]
for command in commands:
    command = re.sub(r"http://127.0.0.1:\d+(/v\d+)?", url, command)
    command = re.sub(r"(?<=--rate=)[\d,]+", lambda rates: ",".join(
        str(1000 * int(rate)) for rate in rates.group().split(",")), command)
    command = command.replace("--burst-period=1 ", "--burst-period=0.01 ")
    if "--requests" not in command:
        command += " --requests=3"
    result = subprocess.run(shlex.split(command), capture_output=True,
                            text=True, timeout=120)
    if result.returncode != 0 or not result.stdout:
        sys.exit(f"{command}: status {result.returncode}: {result.stderr}")
print(len(commands), "commands")
