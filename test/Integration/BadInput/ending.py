#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a compilation ends that is interrupted or short of memory: with one line
of error, and with nothing left of what it began."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

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
    # Only what hangs takes so long.
    PATIENCE = 300

    def run_and_interrupt(self, command, begin, wait, *signals, output=None):
        """Runs `command`, and sends it `signals`, `wait` seconds after it wrote
        a line to standard error that begins with `begin`. Returns its exit
        status and what it wrote there since; standard output goes to the file
        `output`."""
        with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE,
                              env=self.environment) as process:
            watch = threading.Timer(self.PATIENCE, process.kill)
            watch.start()
            try:
                before = []
                for line in process.stderr:
                    before.append(line)
                    if line.startswith(begin.encode()):
                        break
                else:
                    self.fail(f"{begin} was never begun: {before}")
                time.sleep(wait)
                for number in signals:
                    process.send_signal(number)
                errors = process.stderr.read()
                status = process.wait()
            finally:
                watch.cancel()
        return status, errors

    def progress_command(self, *options):
        return [option for option in self.compile_command(list(options))
                if option != "-q"]

    def interrupt(self, stage, number, message, *options):
        """Interrupts compilations by the signal `number` until one was in the
        stage that says `stage` and not beyond: each must end with `message`, or
        must have been over."""
        wait = 0.1
        for _ in range(30):
            status, errors = self.run_and_interrupt(
                self.progress_command(*options), stage,
                random.uniform(0, wait), number)
            if status == 0:
                shutil.rmtree(self.path("out.sandwich"))
            else:
                self.assertEqual(status, 1, errors)
                self.assertEqual(errors.count(b"error"), 1, errors)
                self.assertTrue(errors.endswith(b"\n"), errors)
                self.assertRegex(errors.splitlines(True)[-1], message)
            left = [path for path in listing(self.folder) if "partial" in path]
            self.assertEqual(left, [])
            self.assertEqual(os.listdir(self.temporary), [])
            self.assertFalse(os.path.exists(self.path("out.sandwich")))
            if status == 1 and len(errors.splitlines()) == 1:
                return
            # Sooner, then.
            wait /= 2
        self.fail(f"'{stage}' was over before every interrupt")

    def test_every_stage(self):
        self.config["vocab_size"] = 32768
        self.config["hidden_size"] = 256
        self.write_model()
        before = listing(self.folder)
        for stage in self.STAGES:
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(stage=stage, signal=number):
                    self.interrupt(stage, number, b"^" + self.MESSAGE + b"$")
                    self.assertEqual(listing(self.folder), before)

    def test_done(self):
        """The artifact is told, and replaces the one before."""
        self.write_model()
        for _ in range(5):
            # The process may be faster.
            self.assertIn(
                self.run_and_interrupt(self.progress_command(), "clearing up",
                                       0, signal.SIGINT, signal.SIGINT),
                ((0, b""), (1, b"error: interrupted; all was written\n")))
            subprocess.run(["sandwich-run", "inspect",
                            self.path("out.sandwich")], check=True,
                           stdout=subprocess.DEVNULL, timeout=self.PATIENCE)
            self.assertEqual([path for path in listing(self.folder)
                              if "partial" in path], [])

    TUNE = ("--tune=full", "--target=host", "--threads=1",
            "--max-tokens-per-step=1")
    TUNED = (b"^error: interrupted; what was tuned is in .*schedules.txt, and "
             b"the same command goes on\n$")

    def test_tuning(self):
        """What was tuned is kept, and whole: later runs find it."""
        self.write_model()
        schedules = self.path("cache/sandwich/schedules.txt")
        for _ in range(3):
            # Nothing is left to measure otherwise.
            shutil.rmtree(self.path("cache"), ignore_errors=True)
            self.interrupt("tuning", signal.SIGINT, self.TUNED, *self.TUNE)
            self.assertTrue(os.path.exists(schedules))
        done = subprocess.run(self.progress_command(*self.TUNE),
                              stderr=subprocess.PIPE, env=self.environment,
                              timeout=self.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.path("out.sandwich"))
        # All that was tuned is told wherever the compilation is by then.
        self.interrupt("lowering to loops", signal.SIGINT, self.TUNED,
                       *self.TUNE)
        done = subprocess.run(self.progress_command(*self.TUNE),
                              stderr=subprocess.PIPE, env=self.environment,
                              timeout=self.PATIENCE)
        self.assertRegex(done.stderr, b"tuned 0 matmuls .* 0 measurements")

    def plan_until_second(self, *options, signals=(signal.SIGINT,)):
        """Interrupts a search that runs configurations when the first was
        measured. Returns the plan that is printed, and the last line."""
        found = subprocess.run(
            ["sandwich-compile", self.model, "--plan-only", "--json"],
            stdout=subprocess.PIPE, check=True, timeout=self.PATIENCE)
        if len(json.loads(found.stdout)["configurations"]) < 2:
            self.skipTest("this machine has one configuration only")
        with open(self.path("plan.json"), "w+b") as output:
            status, errors = self.run_and_interrupt(
                ["sandwich-compile", self.model, "--plan-only", "--json",
                 *options], "configuration 2: ", 0, *signals, output=output)
            output.seek(0)
            text = output.read()
        self.assertEqual(status, 1, errors)
        self.assertEqual(os.listdir(self.temporary), [])
        return json.loads(text), errors.splitlines(True)[-1]

    def test_measured_plan(self):
        """What was measured is printed wherever the search is: the second
        signal ends it at once."""
        self.write_model()
        plan, errors = self.plan_until_second(
            "--evaluator=measured", signals=(signal.SIGTERM, signal.SIGINT))
        self.assertEqual(errors,
                         b"error: interrupted; what was found is printed\n")
        self.assertTrue(plan["interrupted"])
        self.assertEqual(len(plan["configurations"]), 1)
        self.assertGreater(plan["configurations"][0]["predicted_ms"], 0)

    def test_measured_machine(self):
        """The file is told that a search has written before."""
        self.write_model()
        machine = self.path("machine.json")
        plan, errors = self.plan_until_second("--evaluator=both",
                                              "--measure-machine=" + machine)
        self.assertEqual(
            errors.decode(),
            f"error: interrupted; what was measured of the machine is in "
            f"{machine}; what was found is printed\n")
        self.assertTrue(plan["interrupted"])
        self.assertEqual(len(plan["configurations"]), 1)
        with open(machine) as file:
            self.assertIn("core_gflops", json.load(file))


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
            size += random.randint(4, 10)
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
        self.assertGreater(refusals, 1)


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

    def test_schedules(self):
        """They are written with --tune only."""
        schedules = self.path("model/schedules.txt")
        subprocess.run(
            self.compile_command(["--tune=quick", "--tuning-seconds=0.01",
                                  "--target=host", "--schedules=" +
                                  self.path("schedules.txt")]), check=True,
            timeout=300)
        shutil.copy(self.path("schedules.txt"), schedules)
        self.compile("--schedules=" + schedules)
        self.refuse_compile("schedules.txt: is read as well", "--emit=asm",
                            "--schedules=" + self.path("schedules.txt"),
                            output="schedules.txt")

    def test_words_for_no_files(self):
        for word in ("auto", "host", "sharegpt"):
            with self.subTest(word=word):
                self.write(word, "to be replaced")
                subprocess.run(
                    ["sandwich-compile", self.model, "-q", "--emit=model-ir",
                     "--plan=auto", "--trace=sharegpt", "-o", word],
                    check=True, timeout=300)
                self.assertGreater(os.path.getsize(self.path(word)), 100)

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
