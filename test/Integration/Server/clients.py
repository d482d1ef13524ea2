#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What clients that others wrote get of a server.

    clients.py ARTIFACT

Each is skipped where it is not installed: curl, and the packages `openai` of
PyPI and of npm, and `lm_eval` of PyPI. SANDWICH_TEST_CLIENTS may be a folder with an environment of
Python, `python`, that has the one, and a `node_modules` that has the other.
"""
import os
import shutil
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
from serving import ARTIFACT, PATIENCE, Server, ServerTest, main

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs")
CLIENTS = os.environ.get("SANDWICH_TEST_CLIENTS", "")
KEY = "sk-of-the-test"


class Clients(ServerTest):
    @classmethod
    def setUpClass(cls):
        with ServerTest().folder() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w", encoding="ascii") as file:
                file.write(KEY)
            cls.server = Server(ARTIFACT, options=(
                "--batch=4", "--kv-memory=64MiB", "--no-log-requests",
                "--api-key-file", path))
        cls.environment = dict(os.environ, OPENAI_API_KEY=KEY,
                               OPENAI_BASE_URL=cls.server.url + "/v1",
                               NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")

    def run_client(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment, timeout=PATIENCE)
        text = done.stdout.decode("utf-8", "backslashreplace")
        self.assertEqual(done.returncode, 0, text)
        return text

    def python_with(self, *modules):
        python = os.path.join(CLIENTS, "python/bin/python3")
        if not CLIENTS or not os.path.exists(python):
            python = sys.executable
        if subprocess.run([python, "-c", "import " + ", ".join(modules)],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("there is no " + modules[0])
        return python

    def test_openai_of_pypi(self):
        self.run_client(self.python_with("openai"), "-B",
                        os.path.join(INPUTS, "openai_client.py"))

    def test_lm_eval(self):
        python = self.python_with("lm_eval", "openai", "transformers")
        with self.folder() as folder:
            self.run_client(python, "-B",
                            os.path.join(INPUTS, "lm_eval_client.py"),
                            ARTIFACT, folder)

    def test_openai_of_npm(self):
        modules = os.path.join(CLIENTS, "node_modules")
        if not CLIENTS or not os.path.isdir(modules) or \
                not shutil.which("node"):
            self.skipTest("there is no openai")
        # Modules are looked for beside the script.
        with self.folder() as folder:
            shutil.copy(os.path.join(INPUTS, "openai_client.mjs"), folder)
            os.symlink(modules, os.path.join(folder, "node_modules"))
            self.run_client("node", os.path.join(folder, "openai_client.mjs"))

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("there is no curl")
        curl = ("curl", "-sS", "--fail-with-body", "--noproxy", "*",
                "-H", f"Authorization: Bearer {KEY}")
        self.assertIn('"object":"list"',
                      self.run_client(*curl, self.server.url + "/v1/models"))
        text = self.run_client(
            *curl, "-N", self.server.url + "/v1/completions",
            "--json", '{"prompt": "A", "max_tokens": 5, "stream": true}')
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text)
        # A body that is sent in chunks, and one that asks whether it may be.
        for option in ("Transfer-Encoding: chunked", "Expect: 100-continue"):
            self.assertIn('"choices"', self.run_client(
                *curl, self.server.url + "/v1/completions", "-H", option,
                "--json", '{"prompt": "A", "max_tokens": 5}'))


main()
