#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies the bundled model, with a context that takes a minute to fill.

    long_model.py MODEL OUT_DIR

So what a test does to a server meets texts that are being written.
"""
import json
import os
import shutil
import sys

model, folder = sys.argv[1:]
shutil.copytree(model, folder)
path = os.path.join(folder, "config.json")
with open(path, encoding="utf-8") as file:
    config = json.load(file)
config["max_position_embeddings"] = 32768
with open(path, "w", encoding="utf-8") as file:
    json.dump(config, file)
