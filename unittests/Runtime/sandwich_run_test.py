# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""sandwich-run as its users run it, on the tests' model.

SANDWICH_RUN and WRITE_HASH_MODEL name the programs, SANDWICH_SHARED_LIBRARY
names libsandwich.so.
"""

import array
import ctypes
import errno
import json
import math
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE / "test/Integration/Inputs"))
import leftovers

RUN = os.environ["SANDWICH_RUN"]
WRITE_HASH_MODEL = os.environ["WRITE_HASH_MODEL"]
LIBRARY = os.environ["SANDWICH_SHARED_LIBRARY"]
VOCABULARY = 260

# The least that hwloc reads.
MACHINE = """<topology version="2.0">
  <object type="Machine" cpuset="0x1" complete_cpuset="0x1" allowed_cpuset="0x1"
          nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1"
            nodeset="0x1" complete_nodeset="0x1" gp_index="2"
            local_memory="1073741824"/>
    <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1"
            nodeset="0x1" complete_nodeset="0x1" gp_index="3">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1"
              nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
    </object>
  </object>
</topology>
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def model(self, *options, name="model.sandwich"):
        path = self.folder / name
        subprocess.run([WRITE_HASH_MODEL, path, *options], check=True)
        return str(path)

    def run_tool(self, *arguments, status=0, **options):
        result = subprocess.run(
            [RUN, *map(str, arguments)], capture_output=True, timeout=120, **options
        )
        self.assertEqual(
            result.returncode, status, f"{arguments}: {result.stderr.decode()}"
        )
        return result

    def assert_error(self, expected, *arguments, status=1, **options):
        """The tool ends with `status` and one error line holding `expected`."""
        result = self.run_tool(*arguments, status=status, **options)
        lines = result.stderr.decode().splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, lines)
        self.assertIn(expected, errors[0])
        self.assertEqual(result.stdout, b"")

    def logits(self, model, tokens, *options):
        out = self.folder / "logits.bin"
        ids = ",".join(map(str, tokens))
        self.run_tool("logits", model, "--token-ids", ids, "--out", out, *options)
        numbers = array.array("f", out.read_bytes())
        self.assertEqual(len(numbers), len(tokens) * VOCABULARY)
        return [
            numbers[i * VOCABULARY : (i + 1) * VOCABULARY] for i in range(len(tokens))
        ]


class GenerateTest(RunTest):
    def test_takes_the_most_probable_token(self):
        model = self.model()
        prompt = [72, 105]
        result = self.run_tool(
            "generate", model, "--token-ids", "72,105", "--max-tokens", 6, "--json"
        )
        answer = json.loads(result.stdout)
        self.assertEqual(answer["prompt_tokens"], 2)
        self.assertEqual(len(answer["tokens"]), 6)
        self.assertGreater(answer["ttft_ms"], 0)
        self.assertGreater(answer["tpot_ms"], 0)
        rows = self.logits(model, prompt + answer["tokens"][:-1])[1:]
        for row, token in zip(rows, answer["tokens"], strict=True):
            self.assertEqual(token, max(range(VOCABULARY), key=row.__getitem__))

    def test_text_streams_and_equals_the_text_of_all_tokens(self):
        model = self.model()
        arguments = ("generate", model, "--prompt", "Grüße", "--max-tokens", 200)
        answer = json.loads(self.run_tool(*arguments, "--json").stdout)
        self.assertEqual(answer["prompt_tokens"], len("Grüße".encode()))
        tokens = bytes(token for token in answer["tokens"] if token < 256)
        self.assertEqual(answer["text"], tokens.decode(errors="replace"))
        result = self.run_tool(*arguments)
        self.assertEqual(result.stdout.decode(), answer["text"] + "\n")
        self.assertIn(b"tokens/s", result.stderr)

    def test_sampling_follows_the_seed(self):
        model = self.model()
        arguments = ("generate", model, "--prompt", "x", "--max-tokens", 30)
        arguments += ("--temperature", 1.5, "--top-k", 40, "--top-p", 0.9)
        outputs = [
            self.run_tool(*arguments, "--seed", seed).stdout for seed in (1, 1, 2)
        ]
        self.assertEqual(outputs[0], outputs[1])
        self.assertNotEqual(outputs[0], outputs[2])

    def generate(self, model, *options):
        arguments = ("generate", model, "--token-ids", "72,105", "--json", *options)
        return json.loads(self.run_tool(*arguments).stdout)

    def test_continuations_have_seeds_of_their_own(self):
        model = self.model()
        sampled = ("--max-tokens", 12, "--temperature", 1)
        answer = self.generate(model, *sampled, "-n", 3, "--seed", 5)
        self.assertEqual(len(answer["continuations"]), 3)
        for i, continuation in enumerate(answer["continuations"]):
            alone = self.generate(model, *sampled, "--seed", 5 + i)
            self.assertEqual(continuation["tokens"], alone["tokens"])
            self.assertEqual(continuation["text"], alone["text"])
            self.assertNotIn("continuations", alone)
        self.assertEqual(answer["tokens"], answer["continuations"][0]["tokens"])
        text = self.run_tool("generate", model, "--token-ids", "72,105", *sampled,
                             "-n", 2, "--seed", 5).stdout.decode()  # fmt: skip
        first, second = (c["text"] for c in answer["continuations"][:2])
        self.assertEqual(text, f"{first}\n--- continuation 2\n{second}\n")

    def test_ends_at_stop_strings_and_tokens(self):
        model = self.model()
        plain = self.generate(model, "--max-tokens", 60)
        tokens, text = plain["tokens"], plain["text"]
        self.assertEqual(plain["stop_reason"], "max-tokens")
        token = tokens[10]
        at = tokens.index(token)
        answer = self.generate(model, "--stop-token", f"3,{token}")
        self.assertEqual(answer["tokens"], tokens[: at + 1])
        self.assertEqual(answer["stop_reason"], "stop-token")
        answer = self.generate(model, "--stop-token", token, "--min-tokens", at + 2)
        self.assertNotIn(token, answer["tokens"][: at + 2])
        letters = [c for c in text[8:] if c.isascii() and c.isalnum()]
        answer = self.generate(model, "--stop", "never said", "--stop", letters[0])
        self.assertEqual(answer["text"], text[: text.index(letters[0])])
        self.assertEqual(answer["stop_reason"], "stop-string")

    def test_adjusts_logits(self):
        model = self.model()
        first = self.generate(model, "--max-tokens", 1)["tokens"][0]
        barred = self.generate(model, "--max-tokens", 1, "--logit-bias", f"{first}=-inf")
        self.assertNotEqual(barred["tokens"][0], first)
        forced = self.generate(model, "--max-tokens", 3, "--logit-bias", "65=100",
                               "--logit-bias", "66=50")  # fmt: skip
        self.assertEqual(forced["tokens"], [65, 65, 65])
        varied = self.generate(model, "--max-tokens", 3, "--logit-bias", "65=20",
                               "--logit-bias", "66=19", "--presence-penalty", 2,
                               "--frequency-penalty", 2)  # fmt: skip
        self.assertIn(66, varied["tokens"])
        self.assertEqual(
            self.generate(model, "--temperature", 2, "--min-p", 1)["tokens"],
            self.generate(model)["tokens"],
        )
        self.generate(model, "--repetition-penalty", 1.3)

    def test_log_probabilities(self):
        model = self.model()
        answer = self.generate(model, "--max-tokens", 4, "--logprobs", 3)
        told = answer["log_probabilities"]
        self.assertEqual([each["token"] for each in told], answer["tokens"])
        rows = self.logits(model, [72, 105, *answer["tokens"][:-1]])[1:]
        for each, row in zip(told, rows, strict=True):
            largest = max(row)
            total = math.log(sum(math.exp(logit - largest) for logit in row))
            self.assertEqual(len(each["top"]), 3)
            for top in (each, *each["top"]):
                self.assertAlmostEqual(
                    top["log_probability"], row[top["token"]] - largest - total, 4
                )
        self.assert_error("--json", "generate", model, "--prompt", "x", "--logprobs",
                          "1", status=2)  # fmt: skip

    def test_special_tokens_in_the_prompt_are_text_unless_asked(self):
        model = self.model()
        arguments = ("generate", model, "--max-tokens", 1, "--json")
        typed = self.run_tool(*arguments, "--prompt", "a</s>b").stdout
        self.assertEqual(json.loads(typed)["prompt_tokens"], len("a</s>b"))
        arguments += ("--parse-special",)
        parsed = self.run_tool(*arguments, "--prompt", "a</s>b").stdout
        self.assertEqual(json.loads(parsed)["prompt_tokens"], 3)

    def test_reads_the_prompt_from_a_file(self):
        model = self.model()
        prompt = self.folder / "prompt.txt"
        prompt.write_text("some text")
        from_file = self.run_tool("generate", model, "--prompt-file", prompt)
        direct = self.run_tool("generate", model, "--prompt", "some text")
        self.assertEqual(from_file.stdout, direct.stdout)

    def test_reads_the_prompt_from_standard_input(self):
        model = self.model()
        arguments = ("generate", model, "--prompt-file", "-")
        from_input = self.run_tool(*arguments, input=b"some text")
        direct = self.run_tool("generate", model, "--prompt", "some text")
        self.assertEqual(from_input.stdout, direct.stdout)
        self.assert_error("the prompt is empty", *arguments, input=b"")

    def test_without_a_tokenizer_prints_ids(self):
        model = self.model("no-tokenizer")
        arguments = ("generate", model, "--token-ids", "1,2", "--max-tokens", 3)
        answer = json.loads(self.run_tool(*arguments, "--json").stdout)
        self.assertEqual(answer["text"], "")
        ids = [int(word) for word in self.run_tool(*arguments).stdout.split()]
        self.assertEqual(ids, answer["tokens"])
        self.assert_error("has no tokenizer.json", "generate", model, "--prompt", "x")

    def test_stops_at_the_end_of_the_text(self):
        plain = self.model(name="plain.sandwich")
        arguments = ("--prompt", "abc", "--json", "--max-tokens", 50)
        tokens = json.loads(self.run_tool("generate", plain, *arguments).stdout)
        end = tokens["tokens"][20]
        first = tokens["tokens"].index(end)
        model = self.model(f"end={end}")
        answer = json.loads(self.run_tool("generate", model, *arguments).stdout)
        self.assertEqual(answer["tokens"], tokens["tokens"][:first])
        self.assertEqual(answer["stop_reason"], "end-of-text")
        answer = json.loads(
            self.run_tool("generate", model, *arguments, "--ignore-eos").stdout
        )
        self.assertEqual(answer["tokens"], tokens["tokens"])

    def test_control_c_stops_cleanly(self):
        model = self.model("context=4194304")
        process = subprocess.Popen(
            [RUN, "generate", model, "--prompt", "x", "--max-tokens", "4000000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # The first text shows that it generates.
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"info: interrupted", log)
        self.assertIn(b"(stopped)", log)

    def test_a_reader_that_goes_away_is_no_error(self):
        model = self.model("context=4194304")
        process = subprocess.Popen(
            [RUN, "generate", model, "--prompt", "x", "--max-tokens", "4000000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.assertTrue(process.stdout.read(1))
        process.stdout.close()
        log = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertNotIn(b"error", log)

    def test_bad_input_is_one_error(self):
        model = self.model("context=20")
        generate = ("generate", model)
        self.assert_error("longer than the model's context of 20", *generate,
                          "--prompt", "x" * 21)  # fmt: skip
        self.assert_error("token id 260", *generate, "--token-ids", "1,260")
        self.assert_error("token id -1", *generate, "--token-ids", "1,-1")
        for huge in ("9" * 30, "-" + "9" * 20):
            self.assert_error(f"token id {huge} (number 0", *generate,
                              f"--token-ids={huge}")  # fmt: skip
        self.assert_error("token 0 is nan", *generate, "--token-ids",
                          f"1,{VOCABULARY - 1}")  # fmt: skip
        for option in ("--stop-token=260", "--logit-bias=260=1"):
            self.assert_error("260", *generate, "--prompt", "x", option)
        self.assert_error("continuations", *generate, "--prompt", "x", "-n", "500")
        self.assert_error("the prompt is empty", *generate, "--prompt", "")
        self.assert_error("prompt", *generate, "--prompt", b"\xff\xfe".decode(
            errors="surrogateescape"))  # fmt: skip
        missing = self.folder / "missing"
        self.assert_error(str(missing), *generate, "--prompt-file", missing)
        self.assert_error(str(missing), "generate", missing, "--prompt", "x")
        self.assert_error("No such file", *generate, "--prompt-file", "")

    def test_wrong_usage_is_status_2(self):
        model = self.model()
        for arguments in (
            (),
            ("frobnicate",),
            ("generate",),
            ("generate", model),
            ("generate", model, "--prompt", "x", "--token-ids", "1"),
            ("generate", model, "--token-ids", ""),
            ("generate", model, "--token-ids", "1,,2"),
            ("generate", model, "--token-ids", "1,x"),
            ("generate", model, "--prompt", "x", "--max-tokens", "0"),
            ("generate", model, "--prompt", "x", "--max-tokens", "-1"),
            ("generate", model, "--prompt", "x", "--max-tokens", "many"),
            ("generate", model, "--prompt", "x", "--temperature", "-1"),
            ("generate", model, "--prompt", "x", "--temperature", "nan"),
            ("generate", model, "--prompt", "x", "--top-p", "1.1"),
            ("generate", model, "--prompt", "x", "--top-k", "-3"),
            ("generate", model, "--prompt", "x", "--min-p", "2"),
            ("generate", model, "--prompt", "x", "--repetition-penalty", "0"),
            ("generate", model, "--prompt", "x", "--presence-penalty", "3"),
            ("generate", model, "--prompt", "x", "--frequency-penalty", "nan"),
            ("generate", model, "--prompt", "x", "--logit-bias", "7"),
            ("generate", model, "--prompt", "x", "--logit-bias", "7=x"),
            ("generate", model, "--prompt", "x", "--logit-bias", "7=101"),
            ("generate", model, "--prompt", "x", "--json", "--logprobs", "21"),
            ("generate", model, "--prompt", "x", "--stop", ""),
            ("generate", model, "--prompt", "x", "--stop-token", "x"),
            ("generate", model, "--prompt", "x", "--stop-token", str(1 << 32)),
            ("generate", model, "--prompt", "x", "-n", "0"),
            ("generate", model, "--prompt", "x", "--seed", "1.5"),
            ("generate", model, "--prompt", "x", "--seed=-1"),
            ("generate", model, "--prompt", "x", "--seed", str(1 << 64)),
            ("generate", model, "--prompt", "x", "--weights", "nowhere"),
            ("generate", model, "--prompt", "x", "--kv-memory=0"),
            ("generate", model, "--prompt", "x", "--kv-memory=-1"),
            ("generate", model, "--prompt", "x", "--kv-memory=2G"),
            ("logits", model, "--token-ids", "1", "--out", "x", "--kv-memory="),
            ("bench", model, "--kv-memory=much"),
            ("bench", model, "-p", "16,x"),
            ("bench", model, "-r", "0"),
            ("bench", model, "-p", "0", "-n", "0"),
            ("bench", model, "-p", str(1 << 64)),
            ("characterize",),
            ("characterize", model, "-p", "0", "-n", "0"),
            ("characterize", model, "-r", "0"),
            ("logits", model, "--token-ids", "1"),
            ("logits", model, "--token-ids", "1", "--out", "x", "--chunk", "0"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_error("", *arguments, status=2)

    def test_wrong_usage_names_what_is_wrong(self):
        model = self.model()
        for expected, arguments in (
            ("'frobnicate' is not a command", ("frobnicate", model)),
            ("'--frobnicate' is not", ("--frobnicate",)),
            ("A subcommand is required", ()),
            ("'-1' is not an integer from 0 to", ("generate", model, "--seed=-1")),
            ("'2G' is not a size above 0 such as 512MiB, 1.5GiB or a number of "
             "bytes", ("bench", model, "--kv-memory=2G")),
            ("nothing to measure", ("bench", model, "-p", "0", "-n", "0")),
        ):
            with self.subTest(arguments=arguments):
                self.assert_error(expected, *arguments, status=2)

    def test_the_largest_seed_is_one(self):
        self.run_tool("generate", self.model(), "--prompt", "x", "--temperature", 1,
                      "--max-tokens", 1, "--seed", (1 << 64) - 1)  # fmt: skip

    def test_a_full_disk_is_an_error(self):
        model = self.model()
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                [RUN, "generate", model, "--prompt", "x", "--json"],
                stdout=full,
                stderr=subprocess.PIPE,
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"error: cannot write to standard output", result.stderr)

    def test_closed_standard_output_is_an_error(self):
        model = self.model()
        tokenizer = self.folder / "model.sandwich/tokenizer.json"
        prompt = self.folder / "prompt"
        prompt.write_text("text")
        bench = ("bench", model, "-p", 4, "-n", 1, "-r", 1)
        replay = ("replay", model, "--trace=sharegpt", "--requests", 1, "--batch", 1)
        for arguments in (
            ("generate", model, "--prompt", "x", "--max-tokens", 2),
            ("generate", model, "--prompt", "x", "--max-tokens", 2, "--json"),
            bench,
            (*bench, "--json"),
            (*replay, "--json"),
            ("inspect", model),
            ("inspect", model, "--json"),
            ("tokenize", "--tokenizer", tokenizer, "--file", prompt),
            ("topology",),
            ("topology", "--json"),
            ("--help",),
            ("generate", "--help"),
            ("--version",),
        ):
            with self.subTest(arguments=arguments):
                self.assert_error(
                    "cannot write to standard output: Bad file descriptor",
                    *arguments,
                    preexec_fn=lambda: os.close(1),
                )
                with open("/dev/full", "wb") as full:
                    result = subprocess.run(
                        [RUN, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE
                    )
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"error: cannot write to standard output", result.stderr)

    def test_closed_standard_input_is_no_empty_prompt(self):
        self.assert_error(
            "cannot read standard input: Bad file descriptor",
            *("generate", self.model(), "--prompt-file", "-"),
            preexec_fn=lambda: os.close(0),
        )

    def test_changed_weights_are_found_if_asked_for(self):
        model = self.model()
        weights = self.folder / "model.sandwich/weights.bin"
        contents = bytearray(weights.read_bytes())
        contents[100] ^= 1
        out = ("--out", self.folder / "logits.bin")
        for arguments in (
            ("generate", model, "--token-ids", 1, "--max-tokens", 2),
            ("logits", model, "--token-ids", 1, *out),
            ("bench", model, "-p", 4, "-n", 1, "-r", 1),
            ("replay", model, "--trace=sharegpt", "--requests", 1, "--batch", 1),
            ("characterize", model, "-p", 4, "-n", 1, "-r", 1),
        ):
            with self.subTest(arguments=arguments):
                self.run_tool(*arguments, "--verify")
                original = weights.read_bytes()
                weights.write_bytes(contents)
                self.assert_error(
                    "weights.bin: has a wrong checksum", *arguments, "--verify"
                )
                weights.write_bytes(original)

    def test_help_teaches(self):
        text = self.run_tool("--help").stdout.decode()
        for command in (
            "generate",
            "logits",
            "bench",
            "characterize",
            "cost",
            "inspect",
            "topology",
            "tokenize",
        ):
            self.assertIn(command, text)
            help_text = self.run_tool(command, "--help").stdout.decode()
            self.assertIn(f"  sandwich-run {command} ", help_text)
        self.run_tool("--version")


class LogitsTest(RunTest):
    def test_pieces_and_threads_agree(self):
        tokens = [i * 37 % 256 for i in range(70)]
        expected = self.logits(self.model("threads=1"), tokens)
        for threads in (1, 2, 3):
            model = self.model(f"threads={threads}")
            for options in (
                (),
                ("--chunk", 1),
                ("--chunk", 7),
                ("--chunk", 64),
                ("--weights", "mapped"),
                ("--weights", "huge-pages"),
            ):
                with self.subTest(threads=threads, options=options):
                    self.assertEqual(self.logits(model, tokens, *options), expected)

    def test_warns_about_more_threads_than_cpus(self):
        model = self.model("threads=3")
        cpu = min(os.sched_getaffinity(0))
        result = self.run_tool(
            *("generate", model, "--token-ids", "1", "--max-tokens", "4"),
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        warnings = [
            line
            for line in result.stderr.decode().splitlines()
            if line.startswith("warning: ")
        ]
        self.assertEqual(len(warnings), 1)
        self.assertIn("compiled for 3 threads", warnings[0])
        if os.cpu_count() > 1:
            self.assertIn("the CPU affinity mask", warnings[0])

    def test_control_c_leaves_no_file(self):
        model = self.model("context=65536")
        out = self.folder / "out.bin"
        process = subprocess.Popen(
            [RUN, "logits", model, "--token-ids", "1" + ",1" * 60000, "--out", out],
            stderr=subprocess.PIPE,
        )
        # The partial file shows that it catches interrupts.
        while process.poll() is None and not list(self.folder.glob("out.bin*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"error: interrupted", log)
        self.assertEqual(list(self.folder.glob("out.bin*")), [])

    def test_bad_input_leaves_no_file(self):
        model = self.model("context=20")
        out = self.folder / "out.bin"
        logits = ("logits", model, "--out", out, "--token-ids")
        self.assert_error("token id 300", *logits, "300")
        self.assert_error("longer than the model's context", *logits, "1," * 20 + "1")
        self.assertEqual(list(self.folder.glob("out.bin*")), [])
        nan = ("2", VOCABULARY - 1, "3")
        for chunk in (1, 2, 3):
            self.assert_error(
                "the logit of token 0 at position 1 is nan; the model computed no "
                "finite number",
                *(*logits, ",".join(map(str, nan)), "--chunk", chunk),
            )
        self.assertEqual(list(self.folder.glob("out.bin*")), [])
        self.assert_error("/absent/out", "logits", model, "--token-ids", "1",
                          "--out", "/absent/out")  # fmt: skip
        self.assert_error("/dev/full: cannot write", "logits", model,
                          "--token-ids", "1", "--out", "/dev/full")  # fmt: skip
        self.assert_error("Is a directory", "logits", model, "--token-ids", "1",
                          "--out", self.folder)  # fmt: skip


class MemoryTest(RunTest):
    """A token takes 8 bytes of the model's KV cache, a block has 16 of them."""

    def memory_lines(self, *arguments, **options):
        log = self.run_tool(*arguments, **options).stderr.decode().splitlines()
        (line,) = [line for line in log if line.startswith("info: memory: ")]
        return line, [line for line in log if line.startswith("warning: ")]

    def test_the_cache_has_room_for_the_run(self):
        model = self.model("threads=1")
        generate = ("generate", model, "--prompt", "x" * 20, "--max-tokens", 13)
        line, warnings = self.memory_lines(*generate)
        self.assertIn("KV cache 384 B for 48 tokens, workspace ", line)
        self.assertEqual(warnings, [])
        line, warnings = self.memory_lines(*generate, "--kv-memory=1.5KiB")
        self.assertIn("KV cache 1.5 KiB for 192 tokens, ", line)
        self.assertEqual(warnings, [])
        line, _ = self.memory_lines(*generate, "--weights", "huge-pages")
        self.assertIn("memory: weights 1.016 KiB copied, ", line)

    def test_a_cache_that_is_too_small_is_an_error(self):
        model = self.model("threads=1")
        generate = ("generate", model, "--prompt", "x" * 20, "--ignore-eos")
        self.assert_error("--kv-memory of 127 B is too small for one block of the KV "
                          "cache; give at least 256 (256 B)",
                          *generate, "--kv-memory=127")  # fmt: skip
        self.assert_error("--kv-memory of 255 B holds 16 tokens, but 20 are needed; "
                          "give at least 256 (256 B)",
                          *generate, "--kv-memory=255")  # fmt: skip
        out = self.folder / "logits.bin"
        ids = ",".join(["1"] * 17)
        self.assert_error("holds 16 tokens, but 17 are needed", "logits", model,
                          "--token-ids", ids, "--out", out,
                          "--kv-memory=128")  # fmt: skip
        self.assertFalse(out.exists())
        self.assert_error("holds 16 tokens, but 512 are needed", "bench", model,
                          "--kv-memory=128")  # fmt: skip
        self.assert_error(" that are available ", *generate, "--kv-memory=1000TiB")
        self.assert_error("; give --kv-memory at most ", *generate,
                          "--kv-memory=16777215TiB")  # fmt: skip
        # Text comes as far as the cache reaches.
        result = self.run_tool(*generate, "--kv-memory=256")
        self.assertIn(b"the KV cache holds 32 tokens instead of 160, as", result.stderr)
        # The last token needs no room.
        self.assertIn(b"; 13 tokens generated, ", result.stderr)
        self.assertIn(b"(cache-full)", result.stderr)

    def test_bench_tells_what_was_taken(self):
        result = self.run_tool("bench", self.model(), "-p", "16", "-n", "0", "--json",
                               "--kv-memory=1MiB")  # fmt: skip
        memory = json.loads(result.stdout)["memory"]
        self.assertEqual(memory["kv_cache"]["bytes"], 1 << 20)
        self.assertEqual(memory["weights"], {"bytes": 1040, "huge_page_bytes": 0})
        self.assertEqual({*memory}, {"weights", "kv_cache", "workspace", "logits"})

    def test_a_cgroup_limits_the_cache(self):
        model = self.model("threads=1")
        name = f"sandwich-test-{os.getpid()}"
        for hierarchy, file in (("memory", "memory.limit_in_bytes"),
                                ("", "memory.max")):  # fmt: skip
            cgroup = pathlib.Path("/sys/fs/cgroup") / hierarchy / name
            try:
                cgroup.mkdir()
            except OSError:
                continue
            self.addCleanup(cgroup.rmdir)
            try:
                (cgroup / file).write_text(str(64 << 20))
                break
            except OSError:
                continue
        else:
            self.skipTest("no cgroup can be made here")

        def enter():
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))

        self.assert_error(
            f"of memory that are available in the cgroup limit of {cgroup / file}: ",
            *("generate", model, "--prompt", "x", "--kv-memory=100MiB"),
            preexec_fn=enter,
        )
        self.run_tool("generate", model, "--prompt", "x", "--kv-memory=10MiB",
                      preexec_fn=enter)  # fmt: skip

    def test_too_few_addresses_are_one_error(self):
        """Whatever `ulimit -v` is: an error, never a signal."""
        model = self.model()

        def limited(limit, *arguments):
            return subprocess.run(
                ["prlimit", f"--as={limit}", RUN, *arguments],
                capture_output=True, timeout=120)  # fmt: skip

        if shutil.which("prlimit") is None:
            self.skipTest("there is no prlimit")
        # Below, the system cannot even load the program.
        megabytes = (
            n for n in range(16, 256, 4)
            if limited(n << 20, "--version").returncode == 0
        )  # fmt: skip
        least = next(megabytes, 0) << 20
        if least == 0:
            self.skipTest("this build of the program needs very many addresses")
        statuses = set()
        for limit in range(least, least + (80 << 20), 4 << 20):
            done = limited(limit, "generate", model, "--prompt", "Hi",
                           "--max-tokens", "4")  # fmt: skip
            log = done.stderr.decode()
            with self.subTest(limit=limit, log=log):
                statuses.add(done.returncode)
                self.assertIn(done.returncode, (0, 1))
                self.assertEqual(log.count("error: "), done.returncode)
        self.assertIn(0, statuses)


def forbid_pinning():
    """From here on sched_setaffinity fails in this process and its children."""

    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8),
                    ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]  # fmt: skip

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]

    number = {"x86_64": 203, "aarch64": 122}[platform.machine()]
    filters = (Filter * 4)(
        Filter(0x20, 0, 0, 0),  # load the number of the system call
        Filter(0x15, 0, 1, number),  # if it is that of sched_setaffinity,
        Filter(0x06, 0, 0, 0x00050000 | errno.EPERM),  # return EPERM,
        Filter(0x06, 0, 0, 0x7FFF0000),  # else allow it
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(filters), filters)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(
        set_seccomp, filter_mode, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


class RanksTest(RunTest):
    """A model of several processes where the system gives less than they want.
    Each run ends clearly and leaves nothing."""

    def setUp(self):
        super().setUp()
        self.mark = leftovers.mark_processes()
        self.addCleanup(self.leaves_nothing)

    def leaves_nothing(self):
        # Which includes those that would keep the memory that ranks share.
        self.assertEqual(leftovers.marked_processes(self.mark), [])

    def generate(self, model, *options):
        return ("generate", model, "--prompt", "abcdefgh", "--max-tokens", 8, *options)

    def warnings_of(self, result):
        log = result.stderr.decode().splitlines()
        return [line for line in log if line.startswith("warning: ")]

    def expected(self):
        """What one process answers."""
        model = self.model("threads=1", name="one.sandwich")
        return self.run_tool(*self.generate(model)).stdout

    def cgroup(self, controller, file, value):
        """A function that moves the process that calls it to a new cgroup."""
        cgroup = pathlib.Path("/sys/fs/cgroup") / controller
        cgroup /= f"sandwich-test-{os.getpid()}-{self.id().split('.')[-1]}"
        try:
            cgroup.mkdir()
        except OSError:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(cgroup.rmdir)
        try:
            (cgroup / file).write_text(str(value))
        except OSError:
            self.skipTest(f"there is no {file} here")

        def enter():
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))

        return enter, cgroup / file

    def test_more_threads_than_cpus(self):
        model = self.model("threads=3", "ranks=4")
        result = self.run_tool(*self.generate(model))
        self.assertEqual(result.stdout, self.expected())
        if len(os.sched_getaffinity(0)) < 12:
            (warning,) = self.warnings_of(result)
            self.assertIn("was compiled for 12 threads, but this process", warning)

    def test_pinning_is_forbidden(self):
        if not {0, 1} <= os.sched_getaffinity(0):
            self.skipTest("the CPUs of the tests' plan are not there")
        model = self.model("threads=1", "ranks=2", "plan")
        try:
            result = self.run_tool(*self.generate(model),
                                   preexec_fn=forbid_pinning)  # fmt: skip
        except subprocess.SubprocessError:
            self.skipTest("system calls cannot be filtered here")
        self.assertEqual(result.stdout, self.expected())
        (warning,) = self.warnings_of(result)
        self.assertIn("the system does not keep threads on the CPUs they are put on: "
                      "thread 0 of prefill runs on ", warning)  # fmt: skip

    def test_cores_of_the_plan_are_not_allowed(self):
        if not {0, 1} <= os.sched_getaffinity(0):
            self.skipTest("the CPUs of the tests' plan are not there")
        model = self.model("threads=1", "ranks=2", "plan")
        result = self.run_tool(
            *self.generate(model),
            preexec_fn=lambda: os.sched_setaffinity(0, {0}),
        )
        self.assertEqual(result.stdout, self.expected())
        fallback, slow = self.warnings_of(result)
        self.assertIn("its plan uses CPU 1, which this process may not; threads run "
                      "on other cores", fallback)  # fmt: skip
        self.assertIn("but this process may use 1 (limited by the CPU", slow)

    def test_a_quota_of_cpu_time(self):
        enter, file = self.cgroup("cpu", "cpu.cfs_quota_us", 100000)
        model = self.model("threads=2", "ranks=2")
        result = self.run_tool(*self.generate(model), preexec_fn=enter)
        self.assertEqual(result.stdout, self.expected())
        (warning,) = self.warnings_of(result)
        self.assertIn("was compiled for 4 threads, but this process may use 1 "
                      f"(limited by the cgroup quota in {file})", warning)  # fmt: skip

    def test_a_limit_of_memory(self):
        enter, file = self.cgroup("memory", "memory.limit_in_bytes", 96 << 20)
        model = self.model("threads=1", "ranks=2")
        # Two programs of 16 MiB each are counted, and one piece of memory that
        # both exchange data in.
        self.assert_error(
            f"memory that are available in the cgroup limit of {file}: weights 6 MiB, "
            "KV cache 80 MiB ",
            *self.generate(model, "--kv-memory=80MiB"), preexec_fn=enter)  # fmt: skip
        self.assert_error(", program 32 MiB, exchange between ranks ",
                          *self.generate(model, "--kv-memory=80MiB"),
                          preexec_fn=enter)  # fmt: skip
        self.assert_error("; give --kv-memory at most ",
                          *self.generate(model, "--kv-memory=80MiB"),
                          preexec_fn=enter)  # fmt: skip
        result = self.run_tool(*self.generate(model, "--kv-memory=20MiB"),
                               preexec_fn=enter)  # fmt: skip
        self.assertEqual(result.stdout, self.expected())

    def test_too_little_memory_to_exchange_data_in(self):
        enter, file = self.cgroup("memory", "memory.limit_in_bytes", 8 << 20)
        model = self.model("threads=1", "ranks=4")
        self.assert_error(f"available in the cgroup limit of {file}: ",
                          *self.generate(model), preexec_fn=enter)  # fmt: skip

    def test_files_may_not_be_as_large_as_what_ranks_share(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

        model = self.model("threads=1", "ranks=2")
        self.assert_error("the memory that ranks share, ", *self.generate(model),
                          preexec_fn=limit)  # fmt: skip
        self.assert_error("is more than the 64 KiB that files may have (ulimit -f)",
                          *self.generate(model), preexec_fn=limit)  # fmt: skip

    def test_a_limit_of_addresses_is_of_each_process(self):
        model = self.model("threads=1", "ranks=2", "shard=8")

        def limited(limit, *options):
            def enter():
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

            # Whether a thread gets addresses of its own to allocate from, 64 MiB,
            # is chance.
            return subprocess.run([RUN, *map(str, self.generate(model, *options))],
                                  capture_output=True, timeout=120,
                                  env={**os.environ, "MALLOC_ARENA_MAX": "1"},
                                  preexec_fn=enter)  # fmt: skip

        least = next((n << 20 for n in range(16, 512, 4)
                      if limited(n << 20, "--help").returncode == 0), 0)  # fmt: skip
        if least == 0:
            self.skipTest("this build of the program needs very many addresses")
        for limit in range(least, least + (96 << 20), 16 << 20):
            done = limited(limit)
            log = done.stderr.decode()
            with self.subTest(limit=limit, log=log):
                self.assertIn(done.returncode, (0, 1))
                self.assertEqual(log.count("error: "), done.returncode)
            self.leaves_nothing()
        self.assertEqual(done.returncode, 0, log)
        # What two ranks need together is more than what each may have.
        done = limited(least + (96 << 20), "--kv-memory=60MiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = limited(least + (96 << 20), "--kv-memory=600MiB")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"below the address space limit (ulimit -v) for each rank: ",
                      done.stderr)  # fmt: skip


class BenchTest(RunTest):
    def test_reports_every_test(self):
        model = self.model()
        result = self.run_tool(
            "bench", "-p", "16,100", "-n", "8", "-r", "4", model, "--json"
        )
        results = json.loads(result.stdout)["results"]
        self.assertEqual([r["test"] for r in results], ["pp16", "pp100", "tg8"])
        for test in results:
            self.assertGreater(test["tokens_per_second"], 0)
            self.assertGreaterEqual(test["stddev"], 0)
            self.assertEqual(len(test["samples"]), 4)
        self.assertGreater(results[2]["weights_gb_per_second"], 0)
        self.assertGreater(results[2]["read_gb_per_second"], 0)
        lines = self.run_tool("bench", model, "-p", "0", "-n", "4").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines],
                         [b"prefill", b"decode", b"tg4"])  # fmt: skip

    def test_profiles_add_up(self):
        result = self.run_tool("bench", self.model(), "-p", "8", "-n", "3", "-r", "2",
                               "--context", "5", "--profile", "--json")  # fmt: skip
        results = json.loads(result.stdout)["results"]
        self.assertEqual([r["test"] for r in results], ["pp8", "tg3@5"])
        for test, phase, steps in zip(results, ("prefill", "decode"), (2, 6)):
            (profile,) = test["profile"]
            self.assertEqual((profile["phase"], profile["steps"]), (phase, steps))
            self.assertEqual({o["operation"] for o in profile["operations"]},
                             {"append", "barrier", "attend", "logits"})  # fmt: skip
            for key, whole in (("ms", profile["ms"]), ("share", 100)):
                parts = sum(o[key] for o in profile["operations"])
                self.assertAlmostEqual(parts + profile["other"][key], whole)
        without = self.run_tool("bench", self.model(), "-p", "8", "-n", "0", "--json")
        self.assertNotIn("profile", json.loads(without.stdout)["results"][0])

    def test_bad_input_is_one_error(self):
        model = self.model("context=100")
        self.assert_error("context of 100", "bench", model, "-p", "101")
        self.assert_error("tg32@69 is longer than the model's context of 100", "bench",
                          model, "-p", "1", "--context", "69")  # fmt: skip

    def start(self, *arguments):
        """Starts to measure for hours; returns once the model is loaded."""
        process = subprocess.Popen(
            [RUN, "bench", *arguments, "-p", "16", "-n", "4000", "-r", "1000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.kill)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        caught = 0
        while process.poll() is None and not caught >> (signal.SIGTERM - 1) & 1:
            time.sleep(0.01)
            caught = int(re.search("SigCgt:\\s*(\\w+)", status.read_text())[1], 16)
        return process

    def test_interrupts_leave_what_was_measured(self):
        model = self.model("context=4096")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(model)
            for begin in (b"prefill ", b"decode ", b"pp16 "):
                self.assertTrue(process.stdout.readline().startswith(begin))
            process.send_signal(number)
            output, log = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 1, log)
            self.assertEqual(output, b"")
            self.assertIn(b"error: interrupted; these tests were not run: tg4000\n", log)

    def test_an_interrupted_object_says_so(self):
        model = self.model("context=4096")
        process = self.start(model, "--json")
        process.send_signal(signal.SIGTERM)
        output, log = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, log)
        answer = json.loads(output)
        self.assertIs(answer["interrupted"], True)
        self.assertNotIn("tg4000", [result["test"] for result in answer["results"]])
        result = self.run_tool("bench", model, "-p", "4", "-n", "0", "--json")
        self.assertIs(json.loads(result.stdout)["interrupted"], False)

    def test_weights_that_are_cut_meanwhile_are_one_error(self):
        model = self.model()
        process = self.start(model)
        os.truncate(os.path.join(model, "weights.bin"), 0)
        _, log = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, log)
        errors = [e for e in log.decode().splitlines() if e.startswith("error: ")]
        self.assertEqual(len(errors), 1, log)
        self.assertIn("weights.bin: cannot be read any more", errors[0])

    def test_code_that_is_cut_meanwhile_was_copied(self):
        model = self.model()
        process = self.start(model)
        os.truncate(os.path.join(model, "phases.so"), 0)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=120)
        self.assertIn(b"error: interrupted", log)


class ReplayTest(RunTest):
    def setUp(self):
        super().setUp()
        self.trace = self.folder / "trace"
        self.trace.write_text("20 4\n5 3\n12 1\n")

    def replay(self, *options):
        # Prompts are random tokens, any of them.
        model = self.model("never-spoils")
        result = self.run_tool("replay", model, "--trace", self.trace,
                               *options, "--json")  # fmt: skip
        return json.loads(result.stdout), result.stderr.decode()

    def test_serves_each_rate(self):
        answer, log = self.replay("--rate=200,400", "--ttft-slo=5000")
        self.assertEqual([r["requests_per_second"] for r in answer["rates"]],
                         [200, 400])  # fmt: skip
        for rate in answer["rates"]:
            self.assertEqual(rate["requests"], 3)
            self.assertEqual(rate["kept"], 3)
            self.assertEqual(rate["attainment_percent"], 100)
            self.assertEqual(rate["interval_percent"][1], 100)
            self.assertEqual(rate["ttft_ms"].keys(), {"mean", "median", "p90", "p99"})
        self.assertIs(answer["interrupted"], False)
        self.assertIn("400 requests/s: 3 of 3 kept the SLO, 100.0%", log)

    def test_compares_with_several_scales(self):
        answer, _ = self.replay("--ttft-slo=0.001", "--slo-scale=1,1000")
        self.assertEqual([s["scale"] for s in answer["scales"]], [1, 1000])
        self.assertEqual(answer["scales"][0]["attainment_percent"], 0)
        # The scheduler refuses nobody for the sake of one of them.
        self.assertEqual(answer["refused"], 0)
        alone, _ = self.replay("--ttft-slo=1000", "--slo-scale=5")
        self.assertEqual(alone["scales"], [{"scale": 5, "attainment_percent": 100}])

    def test_finds_the_goodput(self):
        # A first token within 1 ns is for nobody; each of those is refused.
        answer, log = self.replay("--ttft-slo=0.000001", "--find-goodput",
                                  "--requests=3", "--rate=50000")  # fmt: skip
        self.assertIsNone(answer["goodput_requests_per_second"])
        self.assertEqual(answer["too_high_requests_per_second"], 50000 / 256)
        answer, log = self.replay("--ttft-slo=100000", "--find-goodput",
                                  "--requests=40", "--rate=50000")  # fmt: skip
        self.assertEqual(answer["goodput_requests_per_second"], 50000 * 256)
        self.assertIsNone(answer["too_high_requests_per_second"])
        self.assertEqual(len(answer["rates"]), 9)
        for rate in answer["rates"]:
            self.assertIs(rate["attained"], True)
            self.assertEqual(rate["requests"], 40)
            self.assertEqual(rate["kept"], 40)
        self.assertEqual(log.count(" of 40 kept the SLO"), 9)

    def page(self, *options):
        path = self.folder / "page.html"
        answer, _ = self.replay("--html", path, *options)
        text = path.read_text()
        # Nothing is fetched.
        self.assertNotRegex(text, r"https?:|src=|href=|url\(")
        return answer, xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])

    def test_draws_a_page(self):
        trace = self.folder / "a<&>'\"trace"
        trace.write_text("20 4\n5 3\n12 9\n")
        self.trace = trace
        answer, page = self.page()
        texts = ["".join(p.itertext()) for p in page.iter("p")]
        self.assertIn(f"Trace: {trace}", texts)
        captions = [caption.text for caption in page.iter("figcaption")]
        self.assertEqual(captions, ["Time to first token", "Time per output token",
                                    "Latency of requests"])  # fmt: skip
        data = json.loads(page.find(".//script").text)
        self.assertEqual(data["ttft_ms"], answer["ttft_ms"])
        self.assertEqual(sorted(os.listdir(self.folder)),
                         sorted(["model.sandwich", "page.html", "trace", trace.name]))
        answer, page = self.page("--rate=300,600", "--ttft-slo=5000")
        captions = [caption.text for caption in page.iter("figcaption")]
        self.assertEqual(captions[3:], [
            "Attainment by scale of the SLO",
            "Attainment by rate, with 95% intervals",
            "TTFT by rate",
            "TPOT by rate",
        ])  # fmt: skip
        for svg in page.iter("svg"):
            self.assertTrue(svg.find("title").text)
            self.assertTrue(svg.find("desc").text)
            for line in svg.iter("polyline"):
                points = [point.split(",") for point in line.get("points").split()]
                self.assertGreater(len(points), 1)
                for x, y in points:
                    self.assertTrue(0 <= float(x) <= 640 and 0 <= float(y) <= 360)

    def test_a_page_is_not_written_over_what_is_read(self):
        replay = ("replay", self.model(), "--trace", self.trace)
        self.assert_error("trace", *replay, "--html", self.trace)
        self.assert_error("absent", *replay, "--html", self.folder / "absent/page")
        self.assert_error("", *replay, "--html", "", status=2)

    def test_wrong_usage(self):
        replay = ("replay", self.model(), "--trace", self.trace)
        for expected, options in (
            ("--seed is for", ("--seed=1",)),
            ("needs --ttft-slo", ("--find-goodput",)),
            ("one --rate", ("--find-goodput", "--ttft-slo=1", "--rate=1,2")),
            ("several are for", ("--slo-scale=1,2",)),
            ("--attainment", ("--attainment=0.5",)),
            ("--attainment", ("--find-goodput", "--ttft-slo=1", "--attainment=2")),
            ("--rate", ("--rate=0",)),
            ("--rate", ("--rate=1,x",)),
            ("--rate", ("--rate=1,nan",)),
            ("--slo-scale", ("--ttft-slo=1", "--slo-scale=1,nan")),
            ("--slo-scale", ("--ttft-slo=1", "--slo-scale=-NaN,1")),
            ("--ttft-slo", ("--ttft-slo=nan",)),
            ("--tpot-slo", ("--tpot-slo=nan",)),
            ("--attainment",
             ("--find-goodput", "--ttft-slo=1", "--attainment=nan")),
        ):
            with self.subTest(options=options):
                self.assert_error(expected, *replay, *options, status=2)


class CharacterizeTest(RunTest):
    """Machines differ in which counters they have; none is a result too."""

    FIGURES = {
        "ipc",
        "l3lpki",
        "llc_miss_ratio",
        "dtlb_miss_ratio",
        "remote_access_ratio",
        "mclpki",
        "mcipki",
        "buspki",
    }

    def test_has_a_number_or_a_reason_for_everything(self):
        result = self.run_tool(
            "characterize", self.model(), "-p", "40", "-n", "8", "-r", "2", "--json"
        )
        answer = json.loads(result.stdout)
        self.assertEqual(answer["repetitions"], 2)
        self.assertIs(answer["interrupted"], False)
        tests = answer["results"]
        self.assertEqual([t["test"] for t in tests], ["pp40", "tg8"])
        self.assertEqual([t["phase"] for t in tests], ["prefill", "decode"])
        for test in tests:
            self.assertEqual(set(test["figures"]), self.FIGURES)
            for name, value in (test["figures"] | test["events"]).items():
                if value is None:
                    self.assertTrue(test["unavailable"][name])
                else:
                    self.assertGreaterEqual(value, 0)
                    self.assertNotIn(name, test["unavailable"])
            for event, share in test["running_share"].items():
                self.assertIsNotNone(test["events"][event])
                self.assertLessEqual(share, 1)
            self.assertGreater(test["tokens_per_second"], 0)
            self.assertGreater(test["seconds"], 0)
            self.assertGreaterEqual(test["page_faults"], test["major_page_faults"])
        hardware = [
            value
            for test in tests
            for event, value in test["events"].items()
            if event != "cpu-migrations"
        ]
        self.assertIs(answer["hardware_counters"], any(v is not None for v in hardware))

    def test_prints_a_table(self):
        model = self.model()
        arguments = ("-p", "0", "-n", "4,6", "-r", "1")
        text = self.run_tool("characterize", model, *arguments).stdout.decode()
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["tg4", "tg6"])
        for row in ("tokens per second", "CPUs busy", "page faults", "MCIPKI"):
            self.assertIn(row, text)
        (memory,) = [line for line in lines if "MCIPKI: " in line]
        self.assertTrue(memory.startswith("not available: "))
        if "no hardware counter can be read here" in text:
            (cycles,) = [line for line in lines if re.search("cycles, .*: ", line)]
            self.assertTrue(cycles.startswith("not available: instructions, "))

    def test_bad_input_is_one_error(self):
        model = self.model("context=100")
        self.assert_error("context of 100", "characterize", model)
        self.assert_error("/absent", "characterize", "/absent")
        self.assert_error("nothing to measure", "characterize", model, "-p", "0",
                          "-n", "0", status=2)  # fmt: skip


class InspectTest(RunTest):
    def test_shows_the_artifact(self):
        model = self.model()
        text = self.run_tool("inspect", model).stdout.decode()
        for expected in ("hash-model", "prefill", "decode", "2 threads", "weights.bin"):
            self.assertIn(expected, text)
        answer = json.loads(self.run_tool("inspect", model, "--json").stdout)
        self.assertEqual(answer["model"]["vocab_size"], VOCABULARY)
        self.assertEqual([p["name"] for p in answer["phases"]], ["prefill", "decode"])

    def test_verify_reads_the_weights(self):
        model = self.model()
        self.run_tool("inspect", model, "--verify")
        weights = pathlib.Path(model, "weights.bin")
        changed = bytearray(weights.read_bytes())
        changed[100] ^= 1
        weights.write_bytes(changed)
        self.run_tool("inspect", model)
        self.assert_error("weights.bin", "inspect", model, "--verify")

    def test_damage_is_one_error(self):
        model = self.model()
        weights = pathlib.Path(model, "weights.bin")
        weights.write_bytes(weights.read_bytes()[:-1])
        self.assert_error("weights.bin", "inspect", model)
        self.assert_error("weights.bin", "generate", model, "--prompt", "x")
        pathlib.Path(model, "manifest.pb").unlink()
        self.assert_error("manifest.pb", "inspect", model)


class TopologyTest(RunTest):
    def test_draws_this_machine(self):
        text = self.run_tool("topology").stdout.decode()
        self.assertIn("core x ", text)
        self.assertIn("default threads: ", text)
        answer = json.loads(self.run_tool("topology", "--json").stdout)
        self.assertEqual(answer["topology"]["kind"], "machine")
        self.assertGreaterEqual(answer["default_threads"], 1)

    def test_draws_another_machine(self):
        synthetic = "synthetic:package:2 numa:2 l2:3 core:1 pu:2"
        arguments = ("topology", "--topology", synthetic)
        text = self.run_tool(*arguments).stdout.decode()
        self.assertIn("package x 2, numa x 4, core x 12, cpu x 24\n", text)
        answer = json.loads(self.run_tool(*arguments, "--json").stdout)
        packages = answer["topology"]["children"]
        self.assertEqual([p["kind"] for p in packages], ["package"] * 2)
        self.assert_error("synthetic", "topology", "--topology", "synthetic:pear:2")
        self.assert_error("/absent", "topology", "--topology", "/absent.xml")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, "/dev/zero", self.folder):
            self.assert_error("not a regular file", "topology", "--topology", path)
        machine = self.folder / "machine.xml"
        machine.write_text(MACHINE)
        text = self.run_tool("topology", "--topology", machine).stdout.decode()
        self.assertIn("\nnuma x 1, core x 1, cpu x 1\n", text)
        machine.write_text("<topology>")
        self.assert_error("machine.xml: line 1: <topology> is never closed",
                          "topology", "--topology", machine)  # fmt: skip

    def test_large_machines_are_drawn_in_a_few_lines(self):
        arguments = ("topology", "--topology", "synthetic:package:4 l3:8 core:8 pu:1")
        text = self.run_tool(*arguments).stdout.decode()
        self.assertLess(len(text.splitlines()), 8)
        self.assertIn("8 x core 0-7 to 248-255, cpu 0-255\n", text)
        text = self.run_tool(*arguments, "--full").stdout.decode()
        self.assertIn("core 255, cpu 255\n", text)

    def test_says_what_is_left_out(self):
        machine = self.folder / "machine.xml"
        cpus = "".join(
            f'''<object type="Package" os_index="{package}" cpuset="{1 << first:#x}"
            complete_cpuset="{1 << first:#x}" nodeset="0x1"
            complete_nodeset="0x1" gp_index="{100 + package}">'''
            + "".join(
                f'''<object type="PU" os_index="{cpu}" cpuset="{1 << cpu:#x}"
                complete_cpuset="{1 << cpu:#x}" nodeset="0x1"
                complete_nodeset="0x1" gp_index="{200 + cpu}"/>'''
                for cpu in range(first, last)
            )
            + "</object>"
            for package, first, last in ((0, 0, 3), (1, 3, 4))
        ).replace('cpuset="0x1"\n            complete_cpuset="0x1"',
                  'cpuset="0x7"\n            complete_cpuset="0x7"')  # fmt: skip
        start = MACHINE.index("<object type=\"Core\"")
        end = MACHINE.index("</object>", start) + len("</object>")
        text = MACHINE[:start] + cpus + MACHINE[end:]
        for name in ("cpuset", "complete_cpuset", "allowed_cpuset"):
            head, tail = text.split("<object type=\"Package\"", 1)
            head = head.replace(f'{name}="0x1"', f'{name}="0xf"')
            text = head + '<object type="Package"' + tail
        machine.write_text(text)
        arguments = ("topology", "--topology", machine)
        text = self.run_tool(*arguments).stdout.decode()
        sentence = "package 1 (CPU 3): only 1 core, each package used has 3"
        self.assertIn(f"left out of plans: {sentence}\n", text)
        answer = json.loads(self.run_tool(*arguments, "--json").stdout)
        self.assertEqual(
            answer["symmetric_part"], {"cores": 3, "left_out": [sentence]}
        )
        machine.write_text(machine.read_text().replace(
            'allowed_cpuset="0xf"', 'allowed_cpuset="0x0"'))  # fmt: skip
        self.assert_error("the cpuset leaves none", *arguments)

    def test_svg(self):
        path = self.folder / "machine.svg"
        synthetic = "synthetic:package:2 core:2 pu:1"
        arguments = ("topology", "--topology", synthetic, "--svg", path)
        self.run_tool(*arguments)
        svg = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
        texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn(synthetic, texts)
        self.assertEqual([t for t in texts if t.startswith("cpu ")],
                         [f"cpu {i}" for i in range(4)])  # fmt: skip
        self.assertEqual(os.listdir(self.folder), ["machine.svg"])
        absent = self.folder / "absent" / "machine.svg"
        self.assert_error("machine.svg", "topology", "--svg", absent)

    def test_colours_only_on_a_terminal(self):
        def on_terminal(**environment):
            reader, writer = os.openpty()
            subprocess.run(
                [RUN, "topology"],
                check=True,
                stdout=writer,
                env={**os.environ, "TERM": "xterm", **environment},
            )
            os.close(writer)
            text = os.read(reader, 1 << 16)
            os.close(reader)
            return text

        os.environ.pop("NO_COLOR", None)
        self.assertNotIn(b"\033", self.run_tool("topology").stdout)
        self.assertIn(b"\033[", on_terminal())
        self.assertNotIn(b"\033", on_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\033", on_terminal(TERM="dumb"))


class TokenizeTest(RunTest):
    def test_one_line_for_each_text(self):
        tokenizer = pathlib.Path(self.model(), "tokenizer.json")
        texts = self.folder / "texts"
        arguments = ("tokenize", "--tokenizer", tokenizer, "--file", texts)
        texts.write_text("ab\n---\n\n---\n---\n\n\nc\n---\n")
        lines = self.run_tool(*arguments, "--separator", "---").stdout.decode()
        self.assertEqual(lines, "97 98\n\n\n10 10 99\n\n")
        lines = self.run_tool(*arguments, "--separator", "--").stdout.decode()
        self.assertEqual(len(lines.splitlines()), 1)
        texts.write_text("ab\n")
        self.assertEqual(self.run_tool(*arguments).stdout, b"97 98 10\n")
        arguments_of_input = (*arguments[:-1], "-")
        result = self.run_tool(*arguments_of_input, input=b"ab\n")
        self.assertEqual(result.stdout, b"97 98 10\n")
        texts.write_bytes(b"\xff")
        self.assert_error(str(texts), *arguments)
        tokenizer.write_text("{}")
        self.assert_error("tokenizer.json", *arguments)


    def test_special_tokens_are_parsed_unless_turned_off(self):
        tokenizer = pathlib.Path(self.model(), "tokenizer.json")
        texts = self.folder / "texts"
        texts.write_text("a</s>")
        arguments = ("tokenize", "--tokenizer", tokenizer, "--file", texts)
        self.assertEqual(self.run_tool(*arguments).stdout, b"97 257\n")
        as_text = self.run_tool(*arguments, "--no-parse-special").stdout
        self.assertEqual(as_text, b"97 60 47 115 62\n")


class LinkageTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("readelf"), "needs readelf")
    def test_nothing_of_llvm_is_linked(self):
        for path in (RUN, LIBRARY):
            dynamic = subprocess.run(
                ["readelf", "-d", path], capture_output=True, check=True, text=True
            ).stdout
            self.assertIn("(NEEDED)", dynamic)
            for name in ("LLVM", "MLIR", "clang"):
                self.assertNotIn(name.lower(), dynamic.lower())

    @unittest.skipUnless(shutil.which("readelf"), "needs readelf")
    def test_the_library_shows_the_c_interface_only(self):
        symbols = subprocess.run(
            ["readelf", "--dyn-syms", "--wide", LIBRARY],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        rows = [line.split() for line in symbols.splitlines()]
        shown = [
            row[7].split("@")[0]
            for row in rows
            if len(row) >= 8 and row[6].isdigit() and row[4] in ("GLOBAL", "WEAK")
        ]
        self.assertIn("sandwich_model_load", shown)
        for name in shown:
            self.assertTrue(name.startswith("sandwich_"), name)


if __name__ == "__main__":
    unittest.main()
