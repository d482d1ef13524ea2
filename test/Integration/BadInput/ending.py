#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a compilation ends that is interrupted or short of memory: with one line
of error, and with nothing left of what it began."""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../Inputs"))
from bad_input import BadInputTest, listing, unittest


class Ending(BadInputTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        # Where temporary files are seen, too.
        self.temporary = self.path("temporary")
        os.mkdir(self.temporary)
        self.environment = dict(os.environ, TMPDIR=self.temporary,
                                XDG_CACHE_HOME=self.path("cache"))


class Interrupts(Ending):
    STAGES = ("reading the checkpoint", "building model IR", "scheduling",
              "lowering to loops", "lowering to LLVM", "optimizing",
              "generating code", "packing weights")
    MESSAGE = b"error: interrupted; nothing was written\n"

    def interrupt(self, stage, number, *options):
        """Sends signal `number` somewhere in the stage that says `stage` and
        returns what was written to standard error since, or None if the
        compilation was faster."""
        command = [option for option in self.compile_command(list(options))
                   if option != "-q"]
        with subprocess.Popen(command, stderr=subprocess.PIPE,
                              env=self.environment) as process:
            for line in process.stderr:
                if line.decode().strip() == stage:
                    break
            try:
                # Any moment will do.
                process.wait(random.uniform(0, 0.2))
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            errors = process.stderr.read()
        if process.returncode == 0:
            return None
        self.assertEqual(process.returncode, 1, errors)
        return errors

    def test_every_stage(self):
        self.config["vocab_size"] = 8192
        self.config["hidden_size"] = 256
        self.write_model()
        before = listing(self.folder)
        for stage in self.STAGES:
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(stage=stage, signal=number):
                    errors = self.interrupt(stage, number)
                    if errors is None:
                        shutil.rmtree(self.path("out.sandwich"))
                    else:
                        self.assertTrue(errors.endswith(self.MESSAGE), errors)
                        self.assertEqual(errors.count(b"error"), 1, errors)
                    self.assertEqual(listing(self.folder), before)

    def test_tuning(self):
        """What was tuned is kept, and whole."""
        self.write_model()
        for _ in range(3):
            errors = self.interrupt("tuning", signal.SIGINT, "--tune=full",
                                    "--target=host", "--threads=1")
            self.assertRegex(errors, b"error: interrupted; what was tuned is "
                             b"in .*schedules.txt, and the same command goes "
                             b"on\n$")
            left = [path for path in listing(self.folder) if "partial" in path]
            self.assertEqual(left, [])
            self.assertEqual(os.listdir(self.temporary), [])


class Memory(Ending):
    def compile_within(self, mebibytes, *arguments):
        size = mebibytes << 20
        return subprocess.run(
            ["sandwich-compile", *arguments], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=self.environment, timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                  (size, size)))

    def test_few_addresses(self):
        """From the least that libraries can be loaded within, to enough."""
        self.config["vocab_size"] = 32768
        self.write_model()
        before = listing(self.folder)
        size = 64
        while self.compile_within(size, "--help").returncode != 0:
            size += 16
        output = self.path("out.sandwich")
        refusals = 0
        while True:
            size += 5
            done = self.compile_within(
                size, self.model, "-q", "--dtype=f32", "--threads=1",
                "--target=x86-64-avx2", "-o", output)
            if done.returncode == 0:
                break
            with self.subTest(mebibytes=size):
                refusals += 1
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, b"^error: [^\n]+\n$")
                self.assertEqual(listing(self.folder), before)
            self.assertLess(size, 1 << 15, done.stderr)
        self.assertGreater(refusals, 3)


class Places(Ending):
    """Nothing is written into models and artifacts, or over what is read."""

    def setUp(self):
        super().setUp()
        self.write_model()

    def contents(self):
        found = {}
        for path in listing(self.folder):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[path] = file.read()
        return found

    def refuse_compile(self, pattern, *options, **others):
        before = self.contents()
        super().refuse_compile(pattern, *options, **others)
        self.assertEqual(self.contents(), before)

    def test_model(self):
        lies = "lies in the folder of the model"
        os.mkdir(self.path("model/inner"))
        os.symlink("model", self.path("link"))
        for output in ("model/config.json", "model/new", "model/inner/new",
                       "link/config.json", "link/../model/new"):
            with self.subTest(output=output):
                self.refuse_compile(lies, "--emit=model-ir", output=output)
        self.refuse_compile(lies, output="model/out.sandwich")
        tune = ("--tune=quick", "--target=host")
        self.refuse_compile(
            lies, *tune, "--tuning-report=" + self.path("model/config.json"))
        self.refuse_compile(
            lies, *tune, "--schedules=" + self.path("model/schedules.txt"))
        self.refuse(["sandwich-compile", self.model, "--plan-only",
                     "--measure-machine", self.path("model/config.json")],
                    lies)

    def test_links_to_the_model(self):
        """Downloaded checkpoints are links to files elsewhere."""
        os.rename(self.path("model/config.json"), self.path("blob"))
        os.symlink("../blob", self.path("model/config.json"))
        self.refuse_compile("is the model's config.json", "--emit=model-ir",
                            output="blob")

    def test_artifact(self):
        artifact = self.compile("--dtype=f32")
        for name in ("manifest.pb", "phases.so", "new"):
            with self.subTest(name=name):
                self.refuse_compile("lies in the artifact", "--emit=asm",
                                    output=f"out.sandwich/{name}")
        self.refuse_compile("lies in the artifact",
                            output="out.sandwich/out.sandwich")
        self.refuse(["sandwich-run", "logits", artifact, "--token-ids", "1",
                     "--out", artifact + "/weights.bin"],
                    "lies in the artifact")
        self.refuse(["sandwich-run", "topology", "--svg",
                     artifact + "/weights.bin"], "lies in the artifact")

    def test_inputs(self):
        subprocess.run(self.compile_command(["--emit=model-ir"], "model.mlir"),
                       check=True)
        self.refuse_compile("model.mlir: is read as well",
                            "--ir=" + self.path("model.mlir"),
                            "--emit=schedule-ir", output="model.mlir")

    def test_one_place_for_two(self):
        self.refuse_compile("x: is written twice", "--tune=quick",
                            "--target=host", "--emit=asm",
                            "--tuning-report=" + self.path("x"), output="x")

    def test_names_of_options(self):
        looks = "looks like an option"
        for options in (["-o", "--help"], ["-o", "-q"], ["--output=--help"],
                        ["-o", self.path("x"), "--tune=quick",
                         "--tuning-report", "--json"],
                        ["-o", self.path("x"), "--schedules", "-o"],
                        ["--plan-only", "--measure-machine", "--json"]):
            with self.subTest(options=options):
                self.refuse(["sandwich-compile", self.model, *options], looks,
                            status=2)
        self.refuse(["sandwich-compile", self.model, "-o", "-"],
                    "an artifact is a folder", status=2)
        self.refuse(["sandwich-run", "logits", "x", "--token-ids", "1",
                     "--out", "--json"], looks, status=2)
        self.refuse(["sandwich-run", "topology", "--svg", "--full"], looks,
                    status=2)


unittest.main()
