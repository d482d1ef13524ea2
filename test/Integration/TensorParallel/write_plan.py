#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes plans for two CPUs of this machine into FOLDER.

    write_plan.py FOLDER
"""
import json
import os
import sys

first, second = sorted(os.sched_getaffinity(0))[:2]
plans = {
    "narrow": ([[first]], [[first]]),
    "one": ([[first, second]], [[first]]),
    "wide": ([[first, second]], [[first, second]]),
    "two": ([[first], [second]], [[first], [second]]),
    "swapped": ([[second], [first]], [[second], [first]]),
    "elsewhere": ([[60000, 60001]], [[60000]]),
}
os.makedirs(sys.argv[1])
for name, (prefill, decode) in plans.items():
    with open(os.path.join(sys.argv[1], name + ".json"), "w",
              encoding="utf-8") as file:
        json.dump({"configurations": [
            {"prefill_cores": prefill, "decode_cores": decode}]}, file)
