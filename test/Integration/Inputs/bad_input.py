# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of bad input share: a small checkpoint to spoil, and the
check that a tool refuses its input the way the command line promises.

SANDWICH_TEST_TARGET names what is compiled for instead of x86-64; what is for
aarch64 runs as SANDWICH_RUN_AARCH64 tells."""
import copy
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import make_checkpoint

TARGET = os.environ.get("SANDWICH_TEST_TARGET", "x86-64-avx2")
RUN = (os.environ.get("SANDWICH_RUN_AARCH64", "sandwich-run")
       if TARGET.startswith("aarch64") else "sandwich-run")


def listing(folder):
    return sorted(os.path.join(where, name)
                  for where, folders, files in os.walk(folder)
                  for name in folders + files)


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.model = self.path("model")
        self.config = copy.deepcopy(make_checkpoint.DEFAULTS)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes)
                       else content.encode())
        return self.path(name)

    def write_model(self, entries=None, shards=1):
        if entries is None:
            entries = make_checkpoint.random_tensors(self.config, "BF16", 0)
        shutil.rmtree(self.model, ignore_errors=True)
        make_checkpoint.write_checkpoint(self.model, self.config, entries,
                                         shards)

    def refuse(self, command, pattern, status=1, before=None):
        """`command` must end with `status`, one line of error that contains
        the regular expression `pattern`, and no new file."""
        files = listing(self.folder)
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, preexec_fn=before)
        errors = done.stderr.decode("utf-8", "backslashreplace")
        shown = f"{' '.join(map(str, command))}: {done.returncode}\n{errors}"
        self.assertEqual(done.returncode, status, shown)
        self.assertEqual(done.stdout, b"", shown)
        lines = [line for line in errors.splitlines()
                 if not line.startswith(("info: ", "warning: "))]
        self.assertTrue(lines and lines[0].startswith("error: "), shown)
        # Wrong usage also says where help is.
        self.assertEqual(len(lines), 1 if status == 1 else 2, shown)
        self.assertRegex(lines[0], pattern)
        self.assertEqual(listing(self.folder), files, shown)

    def compile_command(self, options, output="out.sandwich"):
        """A quick compilation of the model; what `options` set is theirs."""
        given = {option.split("=")[0] for option in options}
        command = ["sandwich-compile", self.model, "-q", *options]
        for option in ("--threads=2", f"--target={TARGET}"):
            if option.split("=")[0] not in given:
                command.append(option)
        return command + (["-o", self.path(output)] if output else [])

    def refuse_compile(self, pattern, *options, status=1, before=None,
                       output="out.sandwich"):
        """Like `refuse`, for a compilation of the model."""
        self.refuse(self.compile_command(options, output), pattern, status,
                    before)

    def compile(self, *options, output="out.sandwich"):
        subprocess.run(self.compile_command(options, output), check=True,
                       timeout=300)
        return self.path(output)
