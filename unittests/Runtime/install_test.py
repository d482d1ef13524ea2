#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime, installed elsewhere, and programs that find it there.

SANDWICH_BUILD names the folder of the build, CMAKE the program, WRITE_HASH_MODEL
what writes the tests' model, and CAPI_EXAMPLE_SOURCE the program of docs/CAPI.md.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

CMAKE = os.environ["CMAKE"]
EXAMPLE = os.environ["CAPI_EXAMPLE_SOURCE"]

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(Example C)
find_package(Sandwich 0.1 REQUIRED)
add_executable(example example.c)
target_link_libraries(example PRIVATE Sandwich::Sandwich)
"""


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} failed:\n{result.stdout}")
    return result.stdout


class InstallTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        built = cls.folder / "built"
        for component in ("runtime", "development"):
            run(CMAKE, "--install", os.environ["SANDWICH_BUILD"], "--prefix",
                built, "--component", component)
        # Nothing in it knows where it was installed.
        cls.prefix = cls.folder / "moved"
        built.rename(cls.prefix)
        cls.models = [cls.folder / "one.sandwich", cls.folder / "two.sandwich"]
        run(os.environ["WRITE_HASH_MODEL"], cls.models[0])
        run(os.environ["WRITE_HASH_MODEL"], cls.models[1], "ranks=2")

    def check_program(self, program, **environment):
        outputs = {
            subprocess.run([program, model, "Hello"], check=True,
                           env={**os.environ, **environment},
                           stdout=subprocess.PIPE).stdout
            for model in self.models
        }
        self.assertEqual(len(outputs), 1)

    def library_folder(self):
        return next(self.prefix.rglob("libsandwich.so")).parent

    def test_find_package(self):
        source = self.folder / "project"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(EXAMPLE, source / "example.c")
        run(CMAKE, "-S", source, "-B", source / "build",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", source / "build")
        self.check_program(source / "build/example")

    @unittest.skipUnless(shutil.which("pkg-config"), "needs pkg-config")
    def test_pkg_config(self):
        search = str(self.library_folder() / "pkgconfig")
        flags = run("pkg-config", "--cflags", "--libs", "sandwich",
                    env={**os.environ, "PKG_CONFIG_PATH": search}).split()
        program = self.folder / "example"
        run("cc", "-std=c11", EXAMPLE, *flags, "-o", program)
        self.check_program(program, LD_LIBRARY_PATH=str(self.library_folder()))

    def test_the_runtime_needs_no_llvm(self):
        for binary in (self.library_folder() / "libsandwich.so",
                       self.prefix / "bin/sandwich-run"):
            needed = run("objdump", "-p", binary)
            self.assertIn("NEEDED", needed)
            self.assertNotIn("LLVM", needed)
            self.assertNotIn("RUNPATH", needed)


if __name__ == "__main__":
    unittest.main()
