# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The Python package on the tests' model, and the programs in the docs.

SANDWICH_LIBRARY names libsandwich.so; WRITE_HASH_MODEL, SANDWICH_RUN and
CAPI_EXAMPLE name programs of the build, PYTHON_PAGE the page docs/Python.md.
"""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("needs numpy") from None

import sandwich

WRITE_HASH_MODEL = os.environ["WRITE_HASH_MODEL"]
VOCABULARY = 260


class ModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = sandwich.Model(cls.write("model.sandwich"))

    @classmethod
    def write(cls, name, *options):
        path = cls.folder / name
        subprocess.run([WRITE_HASH_MODEL, path, *options], check=True)
        return path

    def test_tells_about_the_model(self):
        self.assertEqual(self.model.name, "hash-model")
        self.assertEqual(self.model.vocab_size, VOCABULARY)
        self.assertEqual(self.model.context_length, 4096)

    def test_runs_ranks(self):
        ranks = sandwich.Model(self.write("two.sandwich", "ranks=2"))
        tokens = [1, 2, 3]
        numpy.testing.assert_array_equal(ranks.logits(tokens), self.model.logits(tokens))

    def test_finds_the_program_of_ranks_where_it_is_installed(self):
        model = self.write("installed.sandwich", "ranks=2")
        library = pathlib.Path(os.environ["SANDWICH_LIBRARY"])
        program = pathlib.Path(os.environ["SANDWICH_RUN"])
        for place, found in (
            ("usr/lib", True),
            ("usr/lib/x86_64-linux-gnu", True),
            ("usr/other/x86_64-linux-gnu", False),
        ):
            with self.subTest(place), tempfile.TemporaryDirectory() as folder:
                installed = pathlib.Path(folder, place, "libsandwich.so")
                installed.parent.mkdir(parents=True)
                installed.symlink_to(library)
                programs = pathlib.Path(folder, "usr/bin")
                programs.mkdir()
                (programs / "sandwich-run").symlink_to(program)
                result = subprocess.run(
                    [
                        sys.executable,
                        "-c",
                        "import sandwich, sys; sandwich.Model(sys.argv[1])",
                        model,
                    ],
                    env={**os.environ, "SANDWICH_LIBRARY": str(installed)},
                    capture_output=True,
                    text=True,
                )
                self.assertEqual(result.returncode == 0, found, result.stderr)
                if not found:
                    self.assertIn("cannot find sandwich-run", result.stderr)

    def test_text_becomes_tokens_and_text_again(self):
        text = "héllo \0 wörld 🥪"
        tokens = self.model.tokenize(text)
        self.assertEqual(tokens, list(text.encode()))
        self.assertEqual(self.model.detokenize(tokens), text)
        self.assertEqual(self.model.detokenize(numpy.array(tokens)), text)
        self.assertEqual(self.model.tokenize(""), [])
        self.assertEqual(self.model.detokenize([]), "")
        self.assertEqual(self.model.tokenize("a</s>"), list(b"a</s>"))
        parsed = self.model.tokenize("a</s>", parse_special_tokens=True)
        self.assertEqual(parsed, [97, 257])
        marked = [256, 65, 257]
        self.assertEqual(self.model.detokenize(marked), "A")
        shown = self.model.detokenize(marked, skip_special_tokens=False)
        self.assertEqual(shown, "<s>A</s>")

    def test_special_tokens_of_a_prompt_are_text_unless_asked(self):
        for parse, prompt in ((False, list(b"a</s>")), (True, [97, 257])):
            tokens = list(self.model.generate_tokens(prompt, max_tokens=9))
            text = "".join(
                self.model.generate("a</s>", max_tokens=9, parse_special_tokens=parse)
            )
            whole = self.model.detokenize(prompt + tokens)
            self.assertEqual(text, whole[len(self.model.detokenize(prompt)) :])

    def test_logits_are_those_of_sandwich_run(self):
        tokens = list(range(50))
        logits = self.model.logits(tokens)
        self.assertEqual(logits.shape, (50, VOCABULARY))
        self.assertEqual(logits.dtype, numpy.float32)
        out = self.folder / "logits.bin"
        subprocess.run(
            [
                os.environ["SANDWICH_RUN"],
                "logits",
                self.folder / "model.sandwich",
                "--token-ids=" + ",".join(map(str, tokens)),
                f"--out={out}",
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        expected = numpy.fromfile(out, "<f4").reshape(50, VOCABULARY)
        numpy.testing.assert_array_equal(logits, expected)

    def test_generates_the_text_of_sandwich_run(self):
        for sampling in ({}, {"temperature": 1.5, "top_k": 50, "top_p": 0.9, "seed": 3}):
            options = {"max_tokens": 60, **sampling}
            command = [
                os.environ["SANDWICH_RUN"],
                "generate",
                self.folder / "model.sandwich",
                "--prompt=Hello",
                "--json",
            ]
            command += [
                f"--{name.replace('_', '-')}={value}" for name, value in options.items()
            ]
            result = subprocess.run(command, check=True, capture_output=True)
            expected = json.loads(result.stdout)
            pieces = list(self.model.generate("Hello", **options))
            self.assertEqual("".join(pieces), expected["text"])
            self.assertGreater(len(pieces), 1)
            tokens = list(self.model.generate_tokens(list(b"Hello"), **options))
            self.assertEqual(tokens, expected["tokens"])

    def test_text_comes_while_it_is_made(self):
        # Far more tokens than could be made in the time of a test.
        model = sandwich.Model(self.write("long.sandwich", "context=4194304"))
        text = model.generate("x", max_tokens=4_000_000)
        self.assertTrue(next(text))

    def test_stops_at_the_end(self):
        tokens = list(self.model.generate_tokens([1, 2], max_tokens=30))
        end = tokens[10]
        model = sandwich.Model(self.write("end.sandwich", f"end={end}"))
        cut = tokens[: tokens.index(end)]
        self.assertEqual(list(model.generate_tokens([1, 2], max_tokens=30)), cut)
        full = model.generate_tokens([1, 2], max_tokens=30, ignore_end_of_text=True)
        self.assertEqual(list(full), tokens)
        model = sandwich.Model(self.write("short.sandwich", "context=8"))
        full_context = model.generate_tokens([1, 2], max_tokens=30)
        self.assertEqual(list(full_context), tokens[:7])

    def test_generations_interleave_and_threads_do_not_mix(self):
        prompts = [[i, i + 1] for i in range(4)]
        expected = [
            list(self.model.generate_tokens(prompt, max_tokens=50)) for prompt in prompts
        ]
        running = [
            self.model.generate_tokens(prompt, max_tokens=50) for prompt in prompts
        ]
        interleaved = [list(step) for step in zip(*running, strict=True)]
        self.assertEqual([list(row) for row in zip(*interleaved)], expected)
        found = [[] for _ in prompts]

        def generate(i):
            found[i] = list(self.model.generate_tokens(prompts[i], max_tokens=50))

        threads = [threading.Thread(target=generate, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, expected)

    def test_bad_input_is_one_exception(self):
        model = self.model
        with self.assertRaisesRegex(sandwich.SandwichError, "/absent"):
            sandwich.Model("/absent.sandwich")
        for tokens in ([VOCABULARY], [-1], [1 << 40]):
            with self.assertRaisesRegex(sandwich.SandwichError, "outside the vocabul"):
                model.logits(tokens)
        with self.assertRaisesRegex(sandwich.SandwichError, "no tokens"):
            model.logits([])
        with self.assertRaisesRegex(sandwich.SandwichError, "context of 4096"):
            model.logits([1] * 4097)
        for tokens in ([0.5], [[1]], ["x"]):
            with self.assertRaises(ValueError):
                model.logits(tokens)
        for options in (
            {"max_tokens": 0},
            {"top_p": 0},
            {"top_k": -1},
            {"top_k": 2**32 + 1},
            {"seed": -1},
            {"seed": 2**64},
        ):
            with self.assertRaises(ValueError):
                model.generate("x", **options)
        path = self.folder / "model.sandwich"
        for options in (
            {"max_sequences": 0},
            {"max_sequences": 2**64 + 1},
            {"kv_memory": 0},
            {"weights": "somewhere"},
        ):
            with self.assertRaises(ValueError):
                sandwich.Model(path, **options)
        with self.assertRaisesRegex(sandwich.SandwichError, "ended before it was told"):
            sandwich.Model(self.write("ranks.sandwich", "ranks=2"), rank_program="/bin/true")
        changed = self.write("changed.sandwich")
        weights = changed / "weights.bin"
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")
        sandwich.Model(changed)
        with self.assertRaisesRegex(sandwich.SandwichError, "has a wrong checksum"):
            sandwich.Model(changed, verify_weights=True)
        with self.assertRaisesRegex(sandwich.SandwichError, "kv-memory"):
            sandwich.Model(path, kv_memory=2**60)
        with self.assertRaisesRegex(sandwich.SandwichError, "zero character"):
            sandwich.Model(f"{path}\0x")
        with self.assertRaisesRegex(sandwich.SandwichError, "temperature"):
            model.generate("x", temperature=-1)
        with self.assertRaisesRegex(sandwich.SandwichError, "is nan"):
            list(model.generate_tokens([VOCABULARY - 1]))
        mute = sandwich.Model(self.write("mute.sandwich", "no-tokenizer"))
        with self.assertRaisesRegex(sandwich.SandwichError, "tokenizer.json"):
            mute.generate("x")
        self.assertEqual(len(list(mute.generate_tokens([1], max_tokens=3))), 3)


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
        sandwich.compile(
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
        sandwich.compile("--help", "-o")
        self.assertEqual(
            (self.folder / "seen").read_text().splitlines(),
            ["--output=-o", "--", "--help"],
        )
        for paths in (("a\0b", "out"), (b"in", b"a\0b")):
            with self.assertRaisesRegex(sandwich.SandwichError, "zero character"):
                sandwich.compile(*paths)

    def test_raises_what_the_compiler_says(self):
        self.write_compiler("echo 'info: x' >&2; echo 'error: bad head_dim' >&2; exit 1\n")
        with self.assertRaisesRegex(sandwich.SandwichError, "^bad head_dim$"):
            sandwich.compile("in", "out")
        self.write_compiler("exit 3\n")
        with self.assertRaisesRegex(sandwich.SandwichError, "status 3"):
            sandwich.compile("in", "out")
        self.write_compiler("printf 'error: no\\377\\n' >&2; exit 1\n")
        with self.assertRaisesRegex(sandwich.SandwichError, "^no\ufffd$"):
            sandwich.compile("in", "out")


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
            f"SandwichError: {libc} is not the library",
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
            found = "SandwichError: /absent: cannot open"
            for settings in ({"SANDWICH_BIN": tools}, {"PATH": tools}):
                self.assertIn(found, self.load({**nowhere, **settings}, installed))
            self.assertIn("set SANDWICH_LIBRARY", self.load(nowhere, installed))


class DocumentationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name, "tiny.sandwich")
        subprocess.run([WRITE_HASH_MODEL, self.model], check=True)

    def test_the_programs_in_python_md_run(self):
        page = pathlib.Path(os.environ["PYTHON_PAGE"]).read_text()
        programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertGreaterEqual(len(programs), 2)
        for program in programs:
            # Compiling is the compiler's to test; the model is there.
            program = re.sub(r"^sandwich\.compile\(.*\)$", "", program, flags=re.M)
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
        model = sandwich.Model(self.model)
        text = model.generate("Hello", max_tokens=40, temperature=0.8, top_p=0.95, seed=7)
        self.assertEqual(result.stdout.decode(), "".join(text) + "\n")
        self.assertIn(b"5 prompt tokens, 40 generated", result.stderr)
        result = subprocess.run([example, "/absent", "Hello"], capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"error: /absent", result.stderr)


if __name__ == "__main__":
    unittest.main()
