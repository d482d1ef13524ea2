# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command, sends it SIGINT when a file is there, and ends with its
status.

    interrupt.py FILE COMMAND...
"""
import os
import signal
import subprocess
import sys
import time

file, *command = sys.argv[1:]
process = subprocess.Popen(command)
deadline = time.monotonic() + 60
while not os.path.exists(file):
    if process.poll() is not None or time.monotonic() > deadline:
        process.kill()
        sys.exit(f"{file} did not come")
    time.sleep(0.01)
process.send_signal(signal.SIGINT)
sys.exit(process.wait(timeout=60))
