#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server whose two ranks MPI connects, here both on this machine.

    mpi.py ARTIFACT
"""
import os
import re
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import OperationTest, ask, completion

ENDLESS = 30000
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2",
          "--bind-to", "none", "--mca", "btl", "self,vader,tcp", "--mca",
          "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]


class Mpi(OperationTest):
    def start(self, *options):
        # For the sockets of mpirun.
        environment = dict(os.environ, TMPDIR=self.folder)
        return super().start("--mpi", *options, env=environment, prefix=MPIRUN)

    def test_answers_and_ends(self):
        server = self.start("--drain-seconds=300")
        self.check_complete(ask(server.address, "/v1/completions",
                                completion(20)), 20)
        # Longer than it takes to ask a server that ends.
        stream = self.stream(server.address, 1500).wait_for_tokens()
        # What mpirun does with its own signals is not to wait for requests.
        os.kill(find_process(server, 0), signal.SIGTERM)
        server.wait_for("shutting down")
        self.assertEqual(ask(server.address, "/ready").status, 503)
        self.check_complete(stream.wait(), 1500)
        self.assertEqual(server.wait(), 0, server.log())

    def test_another_process_is_killed(self):
        server = self.start()
        stream = self.stream(server.address, ENDLESS).wait_for_tokens()
        os.kill(find_process(server, 1), signal.SIGKILL)
        answer = stream.wait()
        self.assertTrue(answer.has_failed_visibly(), answer.describe())
        self.assertNotEqual(server.wait(), 0, server.log())


def find_process(server, number):
    """The one that mpirun numbers so."""
    path = f"/proc/{server.process.pid}/task"
    for task in os.listdir(path):
        with open(f"{path}/{task}/children", encoding="utf-8") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/environ", "rb") as variables:
                    if re.search(rb"(^|\0)OMPI_COMM_WORLD_RANK=%d(\0|$)"
                                 % number, variables.read()):
                        return int(child)
    return None


OperationTest.main()
