#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds packaging/Containerfile on a Debian that debootstrap makes of this
machine's package sources, and serves from it.

    container.py ARTIFACT

Needs root, buildah, debootstrap and minutes: it installs and compiles all that
sandwich-run needs.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (PACKAGING, SOURCE, OperationTest, Program, ask,
                       completion, wait_until)


class Container(OperationTest):
    def buildah(self, *words):
        return ["buildah", "--storage-driver", "vfs", "--root",
                self.path("store"), "--runroot", self.path("run"), *words]

    def run_buildah(self, *words):
        return subprocess.run(self.buildah(*words), check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()

    def make_base(self):
        root = self.path("debian")
        subprocess.run(["debootstrap", "--variant=minbase",
                        "--include=ca-certificates", "bookworm", root],
                       check=True, stdout=subprocess.DEVNULL)
        sources = os.path.join(root, "etc/apt/sources.list")
        if os.path.exists(sources):
            os.remove(sources)
        for path in ["/etc/apt/sources.list",
                     *glob.glob("/etc/apt/sources.list.d/*.sources"),
                     *glob.glob("/etc/apt/sources.list.d/*.list"),
                     *glob.glob("/etc/apt/apt.conf.d/*")]:
            if os.path.exists(path):
                shutil.copy(path, root + path)
        container = self.run_buildah("from", "scratch")
        self.run_buildah("copy", "-q", container, root, "/")
        self.run_buildah("commit", "-q", "--format", "docker", container,
                         "localhost/debian:12")
        self.run_buildah("rm", container)

    def test_serves(self):
        self.make_base()
        self.run_buildah("bud", "--isolation", "chroot", "--format", "docker",
                         "--build-arg", "BASE=localhost/debian:12", "-f",
                         os.path.join(PACKAGING, "Containerfile"), "-t",
                         "sandwich", SOURCE)
        container = self.run_buildah("from", "localhost/sandwich")
        config = json.loads(self.run_buildah("inspect", container))
        config = config["Docker"]["config"]
        self.assertEqual(config["StopSignal"], "SIGTERM")
        server = self.keep(Program(self.buildah(
            "run", "--isolation", "chroot", "-v",
            self.artifact + ":/models/long.sandwich:ro", container,
            *config["Entrypoint"], "/models/long.sandwich", "--port=0",
            "--kv-memory=128MiB"), end=signal.SIGTERM))
        port = server.wait_for(r"^info: listening at http://0.0.0.0:(\d+)$")[1]
        server.wait_for("^info: ready at ")
        self.assertEqual(self.check_health(container, config, port), 0)
        address = "http://127.0.0.1:" + port
        self.check_complete(ask(address, "/v1/completions", completion(5)), 5)
        process = self.find_server(port)
        self.assertNotEqual(os.stat(f"/proc/{process}").st_uid, 0)
        os.kill(process, signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())
        self.assertIsNotNone(server.find("^info: ended"))
        self.assertNotEqual(self.check_health(container, config, port), 0)

    def check_health(self, container, config, port):
        kind, *command = config["Healthcheck"]["Test"]
        self.assertEqual(kind, "CMD")
        return subprocess.run(self.buildah(
            "run", "--isolation", "chroot", container,
            *(word.replace("8080", port) for word in command)),
            stderr=subprocess.DEVNULL).returncode

    @staticmethod
    def find_server(port):
        """Who listens at the port."""
        def found():
            lines = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"],
                                   check=True, stdout=subprocess.PIPE,
                                   text=True).stdout
            return "pid=" in lines and int(
                lines.split("pid=")[1].split(",")[0])
        return wait_until(found, "somebody listens")


OperationTest.main()
