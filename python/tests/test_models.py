# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Loading models, their text, and logits."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
from hash_model import VOCABULARY, HashModelTest

import sandwich


class ModelTest(HashModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.write("model.sandwich")
        cls.model = sandwich.Model(cls.path)
        cls.addClassCleanup(cls.model.close)

    def test_tells_about_the_model(self):
        self.assertEqual(self.model.name, "hash-model")
        self.assertEqual(self.model.vocab_size, VOCABULARY)
        self.assertEqual(self.model.context_length, 4096)

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

    def test_bad_options_are_one_exception(self):
        with self.assertRaisesRegex(sandwich.Error, "/absent"):
            sandwich.Model("/absent.sandwich")
        for options in (
            {"max_sequences": 0},
            {"max_sequences": 2**64 + 1},
            {"max_waiting_requests": 0},
            {"kv_memory": 0},
            {"first_token_objective": 0},
            {"token_objective": -1.0},
            {"first_token_objective": float("nan")},
            {"weights": "somewhere"},
        ):
            with self.subTest(options), self.assertRaises(sandwich.InvalidArgumentError):
                sandwich.Model(self.path, **options)
        with self.assertRaisesRegex(sandwich.Error, "ended before it was told"):
            sandwich.Model(self.write("ranks.sandwich", "ranks=2"), rank_program="/bin/true")
        with self.assertRaisesRegex(sandwich.Error, "kv-memory"):
            sandwich.Model(self.path, kv_memory=2**60)
        with self.assertRaisesRegex(ValueError, "zero character"):
            sandwich.Model(f"{self.path}\0x")

    def test_verifies_weights_if_asked(self):
        changed = self.write("changed.sandwich")
        weights = changed / "weights.bin"
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")
        sandwich.Model(changed).close()
        with self.assertRaisesRegex(sandwich.Error, "has a wrong checksum"):
            sandwich.Model(changed, verify_weights=True)

    def test_a_closed_model_is_unavailable(self):
        with sandwich.Model(self.path) as model:
            self.assertEqual(model.tokenize("a"), [97])
        model.close()
        self.assertEqual(model.name, "hash-model")
        for call in (
            lambda: model.tokenize("a"),
            lambda: model.detokenize([1]),
            lambda: model.generate("a"),
            lambda: model.stream("a"),
            lambda: model.stream_async("a"),
            lambda: model.statistics(),
        ):
            with self.assertRaisesRegex(sandwich.UnavailableError, "is closed"):
                call()

    def test_statistics(self):
        with sandwich.Model(self.path, kv_memory=64 * 128) as model:
            model.generate(["a", "b"], max_tokens=3)
            with self.assertRaises(sandwich.CacheFullError):
                model.generate([1] * 2000)
            statistics = model.statistics()
        self.assertEqual(statistics.requests, 2)
        self.assertEqual(statistics.refused_requests, 1)
        self.assertEqual(statistics.generated_tokens, 6)
        self.assertEqual(statistics.blocks, 64)
        self.assertEqual(statistics.running_requests, 0)


class EvaluatorTest(HashModelTest):
    def test_logits_are_those_of_sandwich_run(self):
        tokens = list(range(50))
        path = self.write("model.sandwich")
        with sandwich.Evaluator(path) as evaluator:
            self.assertEqual(evaluator.tokenize("ab"), [97, 98])
            logits = evaluator.logits(tokens)
        with self.assertRaises(sandwich.UnavailableError):
            evaluator.logits(tokens)
        self.assertEqual(logits.shape, (50, VOCABULARY))
        self.assertEqual(logits.dtype, numpy.float32)
        out = self.folder / "logits.bin"
        subprocess.run(
            [
                os.environ["SANDWICH_RUN"],
                "logits",
                path,
                "--token-ids=" + ",".join(map(str, tokens)),
                f"--out={out}",
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        expected = numpy.fromfile(out, "<f4").reshape(50, VOCABULARY)
        numpy.testing.assert_array_equal(logits, expected)
        with sandwich.Evaluator(self.write("two.sandwich", "ranks=2")) as ranks:
            numpy.testing.assert_array_equal(ranks.logits(tokens), expected)

    def test_bad_input_is_one_exception(self):
        with sandwich.Evaluator(self.write("bad.sandwich")) as evaluator:
            for tokens in ([VOCABULARY], [-1], [1 << 40]):
                with self.assertRaisesRegex(
                    sandwich.InvalidArgumentError, "outside the vocabul"
                ):
                    evaluator.logits(tokens)
            with self.assertRaisesRegex(sandwich.InvalidArgumentError, "no tokens"):
                evaluator.logits([])
            with self.assertRaisesRegex(
                sandwich.ContextExceededError, "context of 4096"
            ):
                evaluator.logits([1] * 4097)
            for tokens in ([0.5], [[1]], ["x"]):
                with self.assertRaises(ValueError):
                    evaluator.logits(tokens)
