#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server whose model has two processes, and what happens to the other one.

    ranks.py ARTIFACT
"""
import os
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (OperationTest, Request, ask, completion, metric,
                       wait_until)

ENDLESS = 30000


def find_rank(server):
    """The identifier of the process that the server has started."""
    def found():
        path = f"/proc/{server.process.pid}/task"
        for task in os.listdir(path):
            with open(f"{path}/{task}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    with open(f"/proc/{child}/cmdline", "rb") as words:
                        if b"--rank=1" in words.read().split(b"\0"):
                            return int(child)
        return None
    return wait_until(found, "there is a second rank")


class Ranks(OperationTest):
    def let_fail(self, server, fault):
        """Does `fault` to the other rank under load; what had begun fails
        visibly, and what comes then is served."""
        streams = [self.stream(server.address, ENDLESS) for _ in range(2)]
        plain = Request(server.address, body=completion(ENDLESS))
        for stream in streams:
            stream.wait_for_tokens()
        wait_until(lambda: server.running() == 3, "all run")
        rank = find_rank(server)
        os.kill(rank, fault)
        for stream in streams:
            answer = stream.wait()
            self.assertTrue(answer.has_failed_visibly(), answer.describe())
            self.assertEqual(len(answer.errors), 1, answer.describe())
        self.check_error(plain.wait(), 503, "rank 1")
        self.check_complete(ask(server.address, "/v1/completions",
                                completion(20)), 20)
        self.assertNotEqual(find_rank(server), rank)
        self.assertEqual(ask(server.address, "/ready").status, 200)

    def test_killed(self):
        server = self.start()
        expected = ask(server.address, "/v1/completions", completion(20))
        for _ in range(3):
            self.let_fail(server, signal.SIGKILL)
        again = ask(server.address, "/v1/completions", completion(20))
        self.assertEqual(again.json()["choices"], expected.json()["choices"])
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_hangs(self):
        server = self.start()
        self.let_fail(server, signal.SIGSTOP)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_those_that_wait_are_served(self):
        server = self.start("--batch=1")
        running = self.stream(server.address, ENDLESS).wait_for_tokens()
        waiting = [Request(server.address, body=completion(20, stream=bool(i)))
                   for i in range(2)]
        wait_until(lambda: metric(server.address, "vllm:num_requests_waiting")
                   == 2, "two wait")
        os.kill(find_rank(server), signal.SIGKILL)
        self.assertTrue(running.wait().has_failed_visibly())
        for request in waiting:
            self.check_complete(request.wait(), 20)

    def test_no_restarts(self):
        server = self.start("--restarts=0")
        stream = self.stream(server.address, ENDLESS).wait_for_tokens()
        os.kill(find_rank(server), signal.SIGKILL)
        answer = stream.wait()
        self.assertEqual(len(answer.errors), 1, answer.describe())
        # Whoever has started it is to start it again.
        self.assertEqual(server.wait(), 1, server.log())
        server.wait_for(r"^error: .*rank 1 \(process \d+\) was killed")

    def test_too_many_restarts(self):
        server = self.start("--restarts=2")
        for _ in range(2):
            self.let_fail(server, signal.SIGKILL)
        stream = self.stream(server.address, ENDLESS).wait_for_tokens()
        os.kill(find_rank(server), signal.SIGKILL)
        answer = stream.wait()
        self.assertEqual(len(answer.errors), 1, answer.describe())
        self.assertEqual(server.wait(), 1, server.log())
        server.wait_for(r"^error: .*rank 1 \(process \d+\) was killed")

    def test_another_model_goes_on(self):
        """Then it does not end, but is not healthy any more."""
        server = self.start("other=" + self.artifact, "--restarts=0")
        named = os.path.basename(self.artifact).split(".")[0]

        def body(model, tokens=1, **others):
            return completion(tokens, model=model, **others)

        stream = Request(server.address, body=body(named, ENDLESS, stream=True))
        stream.wait_for_tokens()
        # The first model's ranks were started first.
        os.kill(find_rank(server), signal.SIGKILL)
        self.assertTrue(stream.wait().has_failed_visibly())
        self.check_error(ask(server.address, "/v1/completions", body(named)),
                         503, "rank 1")
        self.check_complete(ask(server.address, "/v1/completions",
                                body("other", 20)), 20)
        for path in "/health", "/ready":
            answer = ask(server.address, path)
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.json(), {"status": "failed",
                                             "model": named})
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_shutdown(self):
        """Signals for the whole group, as systemd and terminals send them."""
        server = self.start("--drain-seconds=300", start_new_session=True)
        stream = self.stream(server.address, 1000).wait_for_tokens()
        os.killpg(server.process.pid, signal.SIGTERM)
        self.check_complete(stream.wait(), 1000)
        self.assertEqual(server.wait(), 0, server.log())


OperationTest.main()
