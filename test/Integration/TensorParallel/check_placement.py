#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that `bench --json` on standard input ran on the cores of PLAN.

    check_placement.py PLAN
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)["configurations"][0]
ranks = json.load(sys.stdin)["ranks"]
for phase in "prefill_cores", "decode_cores":
    placed = [[cpu for thread in rank[phase] for cpu in thread]
              for rank in ranks]
    assert placed == plan[phase], (phase, placed, plan[phase])
