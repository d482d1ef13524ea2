#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is in packaging/, by the programs it is for, where they are installed.

    packaging.py ARTIFACT
"""
import ctypes
import mmap
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (PACKAGING, OperationTest, ask, completion, find_program)

NOBODY = 65534
SERVICE = os.path.join(PACKAGING, "sandwich.service")
REFUSE_EXECUTABLE_MEMORY = 65  # PR_SET_MDWE


def needs(program):
    return unittest.skipUnless(find_program(program), f"needs {program}")


def refuse_executable_memory():
    """From here on, as MemoryDenyWriteExecute= has it."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return prctl(REFUSE_EXECUTABLE_MEMORY, 1, 0, 0, 0) == 0


class Service(OperationTest):
    @needs("systemd-analyze")
    def test_unit(self):
        with open(SERVICE, encoding="utf-8") as file:
            unit = file.read()
        program = os.path.join(os.environ["SANDWICH_BIN"], "sandwich-run")
        path = self.write("sandwich.service", unit.replace(
            "/usr/local/bin/sandwich-run", program))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        said = [line for line in done.stdout.splitlines()
                if "sandwich.service" in line]
        self.assertEqual((done.returncode, said), (0, []), done.stdout)

    def test_time_to_stop(self):
        """More than requests have by default, and then ends that hang."""
        with open(SERVICE, encoding="utf-8") as file:
            seconds = int(re.search(r"TimeoutStopSec=(\d+)s", file.read())[1])
        text = subprocess.run(["sandwich-run", "serve", "--help"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        drain = float(re.search(r"--drain-seconds .*=(\d+)\n", text)[1])
        self.assertGreater(seconds, drain + 30)

    def start_confined(self, confine):
        """A server, after `confine` in its process; it has to serve and end."""
        server = self.start(preexec_fn=confine, cwd="/")
        self.check_complete(ask(server.address, "/v1/completions",
                                completion(5)), 5)
        chat = ask(server.address, "/v1/chat/completions",
                   {"messages": [{"role": "user", "content": "hacker"}],
                    "max_tokens": 3})
        self.assertEqual(chat.status, 200, chat.describe())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_no_executable_memory(self):
        """The code of artifacts is mapped, and never written where it runs."""
        child = os.fork()
        if child == 0:
            possible = refuse_executable_memory()
            try:
                mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)
                possible = False
            except PermissionError:
                pass
            os._exit(not possible)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            self.skipTest("the kernel does not refuse it")
        self.start_confined(refuse_executable_memory)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_nobody(self):
        """Without any right, but to read what everybody may."""
        def confine():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        for folder, _, files in os.walk(self.artifact):
            for name in [folder, *(os.path.join(folder, f) for f in files)]:
                if not os.stat(name).st_mode & 0o004:
                    self.skipTest(name + " is not for everybody")
        child = os.fork()
        if child == 0:
            confine()
            os._exit(not os.access(os.path.join(self.artifact, "manifest.pb"),
                                   os.R_OK))
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            self.skipTest("the artifact is where others cannot come")
        self.start_confined(confine)


class Proxies(OperationTest):
    def check(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotRegex(done.stdout, r"(?i)warn")

    @needs("haproxy")
    def test_haproxy(self):
        certificate, key = self.make_certificate()
        with open(key, encoding="utf-8") as file:
            private = file.read()
        with open(certificate, "a", encoding="utf-8") as file:
            file.write(private)
        self.check([find_program("haproxy"), "-c", "-f", self.adapt(
            "haproxy.cfg", {"/etc/haproxy/sandwich.pem": certificate})])

    @needs("nginx")
    def test_nginx(self):
        certificate, key = self.make_certificate()
        self.check([find_program("nginx"), "-t", "-q", "-e", "stderr", "-c",
                    self.adapt("nginx.conf", {
                        "/etc/nginx/sandwich.crt": certificate,
                        "/etc/nginx/sandwich.key": key,
                        "/run/nginx.pid": self.path("nginx.pid")})])


OperationTest.main()
