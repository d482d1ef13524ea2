#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a server ends, and what it does where the machine gives it too little.

    ending.py ARTIFACT
"""
import os
import resource
import signal
import socket
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (Connection, OperationTest, Program, Request, ask,
                       completion, metric, wait_until)

# More than can be generated before a test ends.
ENDLESS = 30000


class Signals(OperationTest):
    def test_what_runs_is_finished(self):
        server = self.start("--drain-seconds=300")
        streams = [self.stream(server.address, 1500) for _ in range(2)]
        for stream in streams:
            stream.wait_for_tokens()
        plain = Request(server.address, body=completion(1500))
        wait_until(lambda: server.running() == 3, "all run")
        server.signal(signal.SIGTERM)
        server.wait_for("shutting down")
        ready = ask(server.address, "/ready")
        self.assertEqual((ready.status, ready.json()["status"]),
                         (503, "draining"))
        self.assertEqual(ask(server.address, "/health").status, 200)
        late = ask(server.address, "/v1/completions", completion(1))
        self.check_error(late, 503, "shutting down")
        self.assertIn("retry-after", late.headers)
        for request in [*streams, plain]:
            self.check_complete(request.wait(), 1500)
        self.assertEqual(server.wait(), 0, server.log())
        self.assertIn("info: ended", server.lines)

    def test_idle(self):
        """One that has nothing to do, and connections that wait for nothing."""
        for number in signal.SIGTERM, signal.SIGINT:
            with self.subTest(number=number):
                server = self.start()
                idle = Connection(server.address)
                idle.request("GET", "/health")
                idle.getresponse().read()
                server.signal(number)
                self.assertEqual(server.wait(), 0, server.log())
                idle.close()

    def test_requests_get_an_error_after_a_while(self):
        server = self.start("--drain-seconds=0.5")
        stream = self.stream(server.address, ENDLESS).wait_for_tokens()
        plain = Request(server.address, body=completion(ENDLESS))
        wait_until(lambda: server.running() == 2, "both run")
        server.signal(signal.SIGTERM)
        answer = stream.wait()
        self.assertTrue(answer.has_failed_visibly(), answer.describe())
        self.assertEqual(len(answer.errors), 1, answer.describe())
        self.assertIsNone(answer.broken, answer.describe())
        self.check_error(plain.wait(), 503, "shut|end")
        self.assertEqual(server.wait(), 0, server.log())
        self.assertIsNotNone(server.find("^warning: .*did not end in time"))

    def test_second_signal(self):
        """Ends at once, whichever of those that end it comes."""
        for second in signal.SIGTERM, signal.SIGINT:
            with self.subTest(second=second):
                server = self.start("--drain-seconds=300")
                stream = self.stream(server.address, ENDLESS).wait_for_tokens()
                server.signal(signal.SIGTERM)
                server.wait_for("shutting down")
                server.signal(second)
                self.assertEqual(server.wait(), -second, server.log())
                self.assertTrue(stream.wait().has_failed_visibly())

    def test_second_signal_of_the_first_process(self):
        """In a container nobody dies of a signal by default: it is process 1
        there."""
        server = self.start(
            "--drain-seconds=300",
            prefix=["unshare", "--pid", "--fork", "--kill-child"])
        stream = self.stream(server.address, ENDLESS).wait_for_tokens()
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}"
                  "/children", encoding="utf-8") as file:
            first = int(file.read())
        os.kill(first, signal.SIGTERM)
        server.wait_for("shutting down")
        os.kill(first, signal.SIGTERM)
        self.assertEqual(server.wait(), 128 + signal.SIGTERM, server.log())
        self.assertTrue(stream.wait().has_failed_visibly())

    def test_while_loading(self):
        server = self.start(ready=False)
        ready = ask(server.address, "/ready")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())
        # Else it had loaded before, which the other tests are for.
        if ready.status == 503:
            self.assertEqual(ready.json()["status"], "loading")

    def test_socket_of_the_file_system(self):
        path = self.path("socket")
        server = self.keep(UnixServer(self.artifact, path))
        self.check_complete(ask("unix:" + path, "/v1/completions",
                                completion(3)), 3)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())
        self.assertFalse(os.path.exists(path))


class UnixServer(Program):
    """One at a socket of the file system."""

    def __init__(self, artifact, path):
        super().__init__(["sandwich-run", "serve", artifact,
                          "--unix-socket=" + path, "--kv-memory=128MiB"])
        self.wait_for("^info: ready at unix:")


class Shortage(OperationTest):
    def test_full_disk(self):
        """Requests are served; the log is what there is no room for."""
        server = self.start("--log-file=/dev/full", "--log-format=json")
        for _ in range(3):
            self.check_complete(ask(server.address, "/v1/completions",
                                    completion(3)), 3)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_limit_of_the_log_file(self):
        """What could not be written is told when there is room again."""
        path = self.write("log", "")
        server = self.start("--log-file=" + path)

        def limit(size):
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE,
                             (size, resource.RLIM_INFINITY))

        def serve():
            self.check_complete(ask(server.address, "/v1/completions",
                                    completion(3)), 3)

        def log():
            with open(path, encoding="utf-8") as file:
                return file.read()

        serve()
        wait_until(lambda: log().count("status=200") == 1, "a line is there")
        limit(len(log()))
        serve()
        serve()
        # Lines are written after answers are sent.
        wait_until(lambda: metric(server.address,
                                  "sandwich_lost_log_lines_total") == 2,
                   "both lines are lost")
        self.assertEqual(log().count("status=200"), 1)
        limit(resource.RLIM_INFINITY)
        serve()
        wait_until(lambda: "could not be written" in log(), "losses are told")
        self.assertRegex(log(), "(?m)^warning: 2 lines before this one could "
                         "not be written$")
        self.assertEqual(log().count("status=200"), 2)

    def test_no_file_descriptors(self):
        """Who is served goes on being served; others are when some leave."""
        server = self.start()
        stream = self.stream(server.address, 2000).wait_for_tokens()
        process = server.process.pid
        used = len(os.listdir(f"/proc/{process}/fd"))
        resource.prlimit(process, resource.RLIMIT_NOFILE, (used + 4, used + 4))
        host, port = server.address[len("http://"):].rsplit(":", 1)
        connections = [socket.create_connection((host, int(port)))
                       for _ in range(32)]
        server.wait_for("^warning: cannot accept connections: .*; trying again")
        self.check_complete(stream.wait(), 2000)
        for connection in connections:
            connection.close()
        self.check_complete(ask(server.address, "/v1/completions",
                                completion(3)), 3)
        # Once for each time that it happens, not once for each connection.
        lines = [l for l in server.lines if "cannot accept" in l]
        self.assertLess(len(lines), 8, server.log())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.log())

    def test_too_many_connections(self):
        server = self.start("--max-connections=2")
        waiting = [Connection(server.address) for _ in range(2)]
        for connection in waiting:
            connection.request("GET", "/health")
            connection.getresponse().read()
        answer = ask(server.address, "/health")
        self.check_error(answer, 503, "connections")
        self.assertIn("retry-after", answer.headers)
        waiting[0].close()
        wait_until(lambda: ask(server.address, "/health").status == 200,
                   "there is room again")
        waiting[1].close()

    def test_overload(self):
        """Refused at once, while others wait."""
        server = self.start("--batch=1", "--max-waiting=1")
        running = self.stream(server.address, ENDLESS).wait_for_tokens()
        waiting = self.stream(server.address, ENDLESS)
        wait_until(lambda: metric(server.address,
                                  "vllm:num_requests_waiting") == 1, "one waits")
        answer = ask(server.address, "/v1/completions", completion(1))
        self.check_error(answer, 429, "wait")
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        waiting.leave()
        running.leave()
        wait_until(lambda: not server.running(), "nothing runs for nobody")


OperationTest.main()
