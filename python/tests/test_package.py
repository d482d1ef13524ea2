# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Compiling, finding the library, and the programs in the docs."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import hash_model  # noqa: F401, which skips without numpy

import sandwich


class CompileTest(unittest.TestCase):
    """With a script in place of sandwich-compile, which shows its arguments."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        before = os.environ.get("SANDWICH_BIN")
        os.environ["SANDWICH_BIN"] = folder.name

        def restore():
            del os.environ["SANDWICH_BIN"]
            if before is not None:
                os.environ["SANDWICH_BIN"] = before

        self.addCleanup(restore)

    def write_compiler(self, body):
        script = self.folder / "sandwich-compile"
        script.write_text("#!/bin/sh\n" + body)
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def test_passes_options(self):
        self.write_compiler(f'for a in "$@"; do echo "$a"; done > {self.folder}/seen\n')
        sandwich.compile_model(
            pathlib.Path("in"), "o.sandwich", dtype="f32", threads=2, plan_only=True,
            json=False,
        )  # fmt: skip
        self.assertEqual(
            (self.folder / "seen").read_text().splitlines(),
            [
                "--output=o.sandwich",
                "--dtype=f32",
                "--threads=2",
                "--plan-only",
                "--",
                "in",
            ],
        )

    def test_paths_are_never_options(self):
        self.write_compiler(f'for a in "$@"; do echo "$a"; done > {self.folder}/seen\n')
        sandwich.compile_model("--help", "-o")
        self.assertEqual(
            (self.folder / "seen").read_text().splitlines(),
            ["--output=-o", "--", "--help"],
        )
        for paths in (("a\0b", "out"), (b"in", b"a\0b")):
            with self.assertRaisesRegex(sandwich.Error, "zero character"):
                sandwich.compile_model(*paths)

    def test_raises_what_the_compiler_says(self):
        self.write_compiler("echo 'info: x' >&2; echo 'error: bad head_dim' >&2; exit 1\n")
        with self.assertRaisesRegex(sandwich.Error, "^bad head_dim$"):
            sandwich.compile_model("in", "out")
        self.write_compiler("exit 3\n")
        with self.assertRaisesRegex(sandwich.Error, "status 3"):
            sandwich.compile_model("in", "out")
        self.write_compiler("printf 'error: no\\377\\n' >&2; exit 1\n")
        with self.assertRaisesRegex(sandwich.Error, "^no\ufffd$"):
            sandwich.compile_model("in", "out")


class LibraryTest(unittest.TestCase):
    """Where the library is found, each time in a Python of its own."""

    def load(self, environment, package=None):
        environment = {**os.environ, **environment}
        if package:
            environment["PYTHONPATH"] = str(package)
        result = subprocess.run(
            [sys.executable, "-c", "import sandwich; sandwich.Model('/absent')"],
            env=environment,
            capture_output=True,
            text=True,
        )
        return result.stderr.splitlines()[-1]

    def test_another_library_is_one_error(self):
        libc = next(
            line.split()[-1]
            for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
            if "libc.so" in line or "libc-" in line
        )
        self.assertIn(
            f"Error: {libc} is not the library",
            self.load({"SANDWICH_LIBRARY": libc}),
        )

    def test_its_name_has_the_version_of_the_interface(self):
        file = pathlib.Path(os.environ["SANDWICH_LIBRARY"]).resolve().name
        self.assertEqual(file, f"libsandwich.so.{sandwich._library.API_VERSION}")

    def test_an_installed_package_finds_it_beside_the_tools(self):
        with tempfile.TemporaryDirectory() as folder:
            installed = pathlib.Path(folder, "site-packages")
            shutil.copytree(
                pathlib.Path(sandwich.__file__).parent, installed / "sandwich"
            )
            tools = str(pathlib.Path(os.environ["SANDWICH_RUN"]).parent)
            nowhere = {"SANDWICH_LIBRARY": "", "PATH": folder}
            found = "Error: /absent: cannot open"
            for settings in ({"SANDWICH_BIN": tools}, {"PATH": tools}):
                self.assertIn(found, self.load({**nowhere, **settings}, installed))
            self.assertIn("set SANDWICH_LIBRARY", self.load(nowhere, installed))


class DocumentationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name, "tiny.sandwich")
        subprocess.run([os.environ["WRITE_HASH_MODEL"], self.model], check=True)

    def test_the_programs_in_python_md_run(self):
        page = pathlib.Path(os.environ["PYTHON_PAGE"]).read_text()
        programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertGreaterEqual(len(programs), 2)
        for program in programs:
            # Compiling is the compiler's to test; the model is there.
            program = re.sub(r"^sandwich\.compile_model\(.*\)$", "", program, flags=re.M)
            result = subprocess.run(
                [sys.executable, "-c", program],
                cwd=self.model.parent,
                capture_output=True,
            )
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertTrue(result.stdout)

    def test_the_program_in_capi_md_runs(self):
        example = os.environ["CAPI_EXAMPLE"]
        result = subprocess.run([example, self.model, "Hello"], capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        with sandwich.Model(self.model) as model:
            expected = "".join(
                model.generate(
                    "Hello", max_tokens=40, temperature=0.8, top_p=0.95, seed=seed
                ).text
                + "\n"
                for seed in (7, 8)
            )
        self.assertEqual(result.stdout.decode(), expected)
        self.assertIn(b"5 prompt tokens, 40 generated", result.stderr)
        result = subprocess.run([example, "/absent", "Hello"], capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"error: /absent", result.stderr)


if __name__ == "__main__":
    unittest.main()
