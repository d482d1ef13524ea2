# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The tests' model.

SANDWICH_LIBRARY names libsandwich.so; WRITE_HASH_MODEL, SANDWICH_RUN and
CAPI_EXAMPLE name programs of the build, PYTHON_PAGE the page docs/Python.md.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs numpy") from None

VOCABULARY = 260

#: After this token the model computes no numbers.
SPOILING = VOCABULARY - 1


class HashModelTest(unittest.TestCase):
    """Writes models into a folder of its own."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    @classmethod
    def write(cls, name, *options):
        path = cls.folder / name
        subprocess.run([os.environ["WRITE_HASH_MODEL"], path, *options], check=True)
        return path
