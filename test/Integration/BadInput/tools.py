#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Usage, outputs and artifacts that the tools must refuse."""
import ctypes
import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "../Inputs"))
import make_checkpoint
from bad_input import RUN, TARGET, BadInputTest, listing, unittest


class Usage(BadInputTest):
    def test_compile(self):
        self.write_model()
        for options, pattern in (
                (["--target=x86-64-avx9"], "target"),
                (["--dtype=f16"], "dtype"),
                (["--dtype=int9"], "dtype"),
                (["--kv-dtype=int7"], "kv-dtype"),
                (["--emit=everything"], "emit"),
                (["--tune=always"], "tune"),
                (["--threads=two"], "threads"),
                (["--frobnicate"], "frobnicate"),
                (["another"], "another")):
            with self.subTest(options=options):
                self.refuse_compile(pattern, *options, status=2)
        self.refuse_compile("output", output=None, status=2)
        self.refuse(["sandwich-compile"], "MODEL_DIR", status=2)
        for options, pattern in (
                (["--threads=0"], "threads .*not 0"),
                (["--threads=-1"], "threads .*not -1"),
                (["--threads=1000000"], "threads .*not 1000000"),
                (["--threads=99999999999999999999"], "threads"),
                (["--tensor-parallel=0"], "0 ranks are not between 1 and 64"),
                (["--tensor-parallel=3"], "3 ranks do not divide"),
                (["--tensor-parallel=9223372036854775807"], "not between"),
                (["--max-tokens-per-step=0"], "step"),
                (["--max-tokens-per-step=9223372036854775807"], "step"),
                (["--context=0"], "context"),
                (["--context=513"], "context of 513 .*512")):
            with self.subTest(options=options):
                self.refuse_compile(pattern, *options)

    def test_run(self):
        out = self.path("out")
        for command in ([], ["fly"], ["generate"], ["generate", "x"],
                        ["logits", "x", "--out", out],
                        ["logits", "x", "--token-ids", "1"],
                        ["logits", "x", "--token-ids", "1,a", "--out", out],
                        ["generate", "x", "--prompt", "a", "--top-p", "2"],
                        ["generate", "x", "--prompt", "a", "--temperature",
                         "-1"],
                        ["generate", "x", "--prompt", "a", "--token-ids",
                         "1"]):
            with self.subTest(command=command):
                self.refuse(["sandwich-run", *command], "error: .", status=2)


class Output(BadInputTest):
    def setUp(self):
        super().setUp()
        self.write_model()

    def test_no_artifact_is_replaced(self):
        self.write("out.sandwich", "precious")
        self.refuse_compile("out.sandwich: exists and is not a Sandwich")
        os.unlink(self.path("out.sandwich"))
        os.mkdir(self.path("out.sandwich"))
        self.write("out.sandwich/precious", "")
        self.refuse_compile("out.sandwich: exists and is not a Sandwich")

    def test_unwritable(self):
        self.refuse_compile("absent/out.sandwich: ",
                            output="absent/out.sandwich")
        self.write("file", "")
        self.refuse_compile("file/out.sandwich: ", output="file/out.sandwich")
        os.symlink("nowhere", self.path("dangling"))
        self.refuse_compile("dangling: ", output="dangling")
        self.refuse_compile("absent/x.mlir: ", "--emit=model-ir",
                            output="absent/x.mlir")
        self.refuse_compile("/proc/x", "-o", "/proc/x", output=None)
        self.refuse_compile("model", "--emit=model-ir", output="model")

    def test_full_disk(self):
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                              (size, size))
        # Within the machine code, the weights and a text.
        self.refuse_compile("cannot write: File too large",
                            before=limit(4096))
        self.config["vocab_size"] = 65536
        self.write_model()
        self.refuse_compile("weights.bin: cannot write: File too large",
                            before=limit(8 << 20))
        self.refuse_compile("out.sandwich: cannot write", "--emit=model-ir",
                            before=limit(1000))
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                ["sandwich-compile", self.model, "-q", "--emit=model-ir"],
                stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr,
                         b"^error: cannot write to standard out[^\n]*\n$")
        for arguments in ([self.model, "-q", "--emit=model-ir"],
                          [self.model, "-q", "--plan-only", "--json"],
                          ["--help"]):
            done = subprocess.run(["sandwich-compile", *arguments],
                                  stderr=subprocess.PIPE,
                                  preexec_fn=lambda: os.close(1))
            self.assertEqual(done.returncode, 1, arguments)
            self.assertRegex(done.stderr,
                             b"^error: cannot write to standard out[^\n]*\n$")

    def test_early(self):
        """A place that cannot be written to is refused before any work."""
        done = subprocess.run(
            ["sandwich-compile", self.model, "-o", "/proc/x.sandwich"],
            stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"error: /proc/x.sandwich: cannot create", done.stderr)
        self.assertNotIn(b"lowering", done.stderr)

    def test_special_files(self):
        """Devices, pipes and links are written through, never replaced."""
        def emit(output):
            subprocess.run(self.compile_command(["--emit=model-ir"], output),
                           check=True, timeout=300)
        emit("plain")
        with open(self.path("plain"), "rb") as file:
            text = file.read()
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", self.path("pipe")],
                              stdout=subprocess.PIPE) as reader:
            emit("pipe")
            self.assertEqual(reader.stdout.read(), text)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))
        os.symlink("target", self.path("link"))
        self.refuse_compile("link: cannot follow", "--emit=model-ir",
                            output="link")
        self.write("target", "old")
        emit("link")
        self.assertEqual(os.readlink(self.path("link")), "target")
        with open(self.path("target"), "rb") as file:
            self.assertEqual(file.read(), text)

    def test_closed_streams(self):
        """What is meant for a person never lands in a file."""
        artifact = self.compile("--dtype=f32")
        out = self.path("logits")
        subprocess.run(
            ["sandwich-run", "logits", artifact, "--token-ids", "1,2",
             "--out", out], check=True, preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(os.path.getsize(out),
                         2 * 4 * self.config["vocab_size"])

    def test_closed_reader(self):
        """`| head` is no error."""
        command = self.compile_command(["--emit=asm"], None)
        with subprocess.Popen(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_interrupt(self):
        """Ctrl-C ends with one line and leaves nothing."""
        before = listing(self.folder)
        process = subprocess.Popen(
            self.compile_command([]), stderr=subprocess.PIPE)
        while listing(self.folder) == before and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(errors, b"error: interrupted; nothing was written\n")
        self.assertEqual(listing(self.folder), before)

    def test_cut_checkpoint(self):
        """A checkpoint that is cut while it is packed is an error, no signal."""
        self.config["vocab_size"] = 32768
        self.write_model()
        # Where temporary files are seen, too.
        temporary = self.path("temporary")
        os.mkdir(temporary)
        before = listing(self.folder)
        process = subprocess.Popen(
            self.compile_command(["--dtype=f32"]), stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=temporary))
        while listing(self.folder) == before and process.poll() is None:
            time.sleep(0.001)
        os.truncate(self.path("model/model.safetensors"), 0)
        _, errors = process.communicate(timeout=300)
        # Packing may have been faster.
        if process.returncode != 0:
            self.assertEqual(process.returncode, 1)
            self.assertRegex(errors, b"^error: [^\n]*model.safetensors: cannot be "
                             b"read any more: [^\n]*\n$")
            self.assertEqual(listing(self.folder), before)

    def test_interrupted(self):
        """SIGKILL at any moment leaves nothing that loads, and the next
        compilation works and clears up."""
        self.config["hidden_size"] = 512
        self.config["intermediate_size"] = 4096
        self.config["vocab_size"] = 8192
        self.write_model()
        before = listing(self.folder)
        for _ in range(2):
            process = subprocess.Popen(
                ["sandwich-compile", self.model, "-q", "--dtype=f32",
                 "--target=x86-64-avx2", "--threads=1", "-o",
                 self.path("out.sandwich")])
            # The partial folder shows that weights are being packed.
            while (listing(self.folder) == before and
                   process.poll() is None):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            killed = process.wait() == -signal.SIGKILL
            if killed:
                self.assertFalse(os.path.exists(self.path("out.sandwich")))
                for name in os.listdir(self.folder):
                    if "partial" in name:
                        self.refuse_files(["sandwich-run", "inspect",
                                           self.path(name)])
            shutil.rmtree(self.path("out.sandwich"), ignore_errors=True)
        self.compile("--threads=1", "--dtype=f32")
        self.assertEqual(
            [name for name in os.listdir(self.folder) if "partial" in name],
            [])

    def refuse_files(self, command):
        self.refuse(command, "partial-[0-9]+: is what an interrupted")


def checksum(content):
    hasher = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    hasher.restype = ctypes.c_uint64
    return struct.pack("<Q", hasher(content, ctypes.c_size_t(len(content))))


class Artifact(BadInputTest):
    def setUp(self):
        super().setUp()
        self.config["max_position_embeddings"] = 48
        self.write_model()
        self.artifact = self.compile("--dtype=f32")

    def refuse_run(self, pattern, *options):
        command = [RUN, "generate", self.artifact, *options]
        if not options:
            command += ["--token-ids", "1"]
        self.refuse(command, pattern)

    def spoil(self, name, change):
        path = os.path.join(self.artifact, name)
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(change(content))
        return lambda: self.write(f"out.sandwich/{name}", content)

    def forge_code(self, offset, content):
        """Changes the code, and whatever tells that it was changed."""
        checksums = []

        def forge(code):
            forged = bytearray(code)
            forged[offset:offset + len(content)] = content
            checksums.extend((checksum(code), checksum(bytes(forged))))
            return bytes(forged)

        def admit(envelope):
            # What is in the envelope ends it: {version, checksum, manifest}.
            for begin in range(11, 20):
                if envelope[3:11] == checksum(envelope[begin:]):
                    manifest = envelope[begin:].replace(*checksums)
                    return (envelope[:3] + checksum(manifest) +
                            envelope[11:begin] + manifest)
            self.fail("manifest.pb is laid out in another way")

        restores = self.spoil("phases.so", forge), self.spoil("manifest.pb",
                                                              admit)
        return lambda: [restore() for restore in restores]

    def test_everything(self):
        """One artifact for all, as making it takes longest."""
        ids = lambda count: ",".join(["1"] * count)
        with self.subTest("tokens"):
            self.refuse_run("token id 320 ", "--token-ids", "1,320")
            self.refuse_run("token id -1 ", "--token-ids", "1,-1")
            self.refuse_run("token id .*outside", "--token-ids", "1" * 30)
            self.refuse_run("prompt of 49 tokens .*context of 48",
                            "--token-ids", ids(49))
            self.refuse_run("tokenizer.json", "--prompt", "text")
            self.refuse([RUN, "logits", self.artifact,
                         "--token-ids", ids(49), "--out", self.path("out")],
                        "prompt of 49 tokens")
            self.refuse([RUN, "logits", self.artifact,
                         "--token-ids", "999", "--out", self.path("out")],
                        "token id 999")
        with self.subTest("memory"):
            one = ("--token-ids", "1", "--max-tokens", "1")
            self.refuse_run("holds [0-9]+ tokens, but 48 are needed; give at "
                            "least ", "--token-ids", ids(48), "--kv-memory=9KiB")
            self.refuse_run("--kv-memory of 1 B is too small for one block", *one,
                            "--kv-memory=1")
            self.refuse_run("memory that are available .*KV cache 1000 TiB .*; "
                            "give --kv-memory at most ", *one,
                            "--kv-memory=1000TiB")
            for size in ("0", "-1", "much", "2G", "1e9", "9999999999TiB"):
                self.refuse([RUN, "generate", self.artifact, *one,
                             f"--kv-memory={size}"],
                            f"--kv-memory: '{size}' is not a size above 0",
                            status=2)
        with self.subTest("outputs"):
            self.refuse([RUN, "logits", self.artifact,
                         "--token-ids", "1", "--out",
                         self.path("absent/out")], "absent/out")
            self.refuse([RUN, "logits", self.artifact,
                         "--token-ids", "1", "--out", self.folder],
                        "cannot open: Is a directory")
            # The code that is loaded is a copy in memory, which counts, too.
            self.refuse([RUN, "logits", self.artifact,
                         "--token-ids", "1", "--out", self.path("out")],
                        "phases.so: cannot copy: File too large",
                        before=lambda: (
                            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                            resource.setrlimit(resource.RLIMIT_FSIZE,
                                               (100, 100))))
        with self.subTest("cut weights"):
            restore = self.spoil("weights.bin", lambda data: data[:-1])
            self.refuse_run("weights.bin")
            restore()
        with self.subTest("changed weights"):
            restore = self.spoil("weights.bin", lambda data: data[:-1] +
                                 bytes([data[-1] ^ 1]))
            self.refuse([RUN, "inspect", "--verify",
                         self.artifact], "weights.bin: .*checksum")
            restore()
        with self.subTest("changed code"):
            restore = self.spoil("phases.so", lambda data: data[:-1] +
                                 bytes([data[-1] ^ 1]))
            self.refuse_run("phases.so: .*checksum")
            restore()
        # In headers of ELF-64: e_machine, e_phoff, and p_filesz of the first
        # segment, behind the program headers' own entry.
        machine, other = ((62, "x86-64") if TARGET.startswith("aarch64")
                          else (183, "aarch64"))
        for offset, content, pattern in (
                (18, struct.pack("<H", machine),
                 f"phases.so: is a shared object for {other}, and this machine"),
                (32, struct.pack("<Q", 1 << 40),
                 "phases.so: .*program headers are outside of it"),
                (64 + 56 + 32, struct.pack("<Q", 1 << 40),
                 "phases.so: .*a segment is outside of it")):
            with self.subTest("forged code", offset=offset):
                restore = self.forge_code(offset, content)
                self.refuse_run(pattern)
                restore()
        for change in (lambda data: b"", lambda data: data[:20],
                       lambda data: data[:-1] + bytes([data[-1] ^ 1]),
                       # format_version is the first field of the envelope.
                       lambda data: data[:1] + b"\x63" + data[2:]):
            with self.subTest("manifest"):
                restore = self.spoil("manifest.pb", change)
                self.refuse_run("manifest.pb")
                restore()
        with self.subTest("missing file"):
            os.rename(os.path.join(self.artifact, "phases.so"),
                      self.path("phases.so"))
            self.refuse_run("phases.so")
            os.rename(self.path("phases.so"),
                      os.path.join(self.artifact, "phases.so"))
        subprocess.run([RUN, "generate", self.artifact,
                        "--token-ids", "1", "--max-tokens", "1"], check=True,
                       stdout=subprocess.DEVNULL)

    def test_no_artifact(self):
        self.artifact = self.path("absent")
        self.refuse_run("absent")
        self.artifact = self.model
        self.refuse_run("manifest.pb")
        self.artifact = self.write("file", "")
        self.refuse_run("file")


class MissingFeatures(BadInputTest):
    def test_another_cpu(self):
        with open("/proc/cpuinfo") as file:
            if "amx_bf16" in file.read():
                self.skipTest("this CPU has AMX")
        self.write_model()
        artifact = self.compile("--target=x86-64-amx")
        self.refuse(["sandwich-run", "generate", artifact, "--token-ids", "1"],
                    "amx")
        subprocess.run(["sandwich-run", "inspect", artifact, "--verify"],
                       check=True, stdout=subprocess.DEVNULL)


unittest.main()
