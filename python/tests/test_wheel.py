# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The package as pip installs it, from the build that is tested: SANDWICH_BUILD."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

from hash_model import HashModelTest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent

PROGRAM = """
import sys
import sandwich
from sandwich import _library
print(_library.library_path())
for path in sys.argv[1:]:
    with sandwich.Model(path) as model:
        print(model.generate("Hello", max_tokens=5).token_ids)
"""


@unittest.skipUnless(importlib.util.find_spec("pip"), "needs pip")
class WheelTest(HashModelTest):
    def test_the_installed_package_carries_the_runtime(self):
        installed = self.folder / "installed"
        result = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", PACKAGE),
                *("--target", installed, "--no-deps", "--no-index"),
                *("--config-settings", f"build={os.environ['SANDWICH_BUILD']}"),
                *("--no-cache-dir", "--disable-pip-version-check"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(result.returncode, 0, result.stdout)
        models = [self.write("one.sandwich"), self.write("two.sandwich", "ranks=2")]
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, *models],
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(installed),
            },
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        library, *texts = result.stdout.splitlines()
        self.assertEqual(pathlib.Path(library).parent, installed / "sandwich/lib")
        self.assertEqual(len(texts), 2)
        self.assertEqual(texts[0], texts[1])
