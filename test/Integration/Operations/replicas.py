#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Three replicas behind HAProxy with the configuration in packaging/.

    replicas.py ARTIFACT
"""
import collections
import os
import re
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (OperationTest, Request, ask, completion, metric,
                       wait_until)

REPLICAS = 3
EACH = 3


class Replicas(OperationTest):
    # Longer than the time from one comment to the next.
    silence = "30s"

    def setUp(self):
        super().setUp()
        self.servers = [self.start("--drain-seconds=300")
                        for _ in range(REPLICAS)]
        self.names = [server.name for server in self.servers]
        self.front = self.start_haproxy(self.servers, self.silence)
        # Where replicas are checked, they are taken to be there at first.
        self.check_complete(self.ask(5), 5)

    def ask(self, tokens, **others):
        return ask(path="/v1/completions", body=completion(tokens), **others,
                   **self.front)

    def begin_streams(self, tokens):
        """As many for each replica, one after another, so that it is known who
        has the fewest."""
        streams = []
        for _ in range(EACH * REPLICAS):
            streams.append(self.stream(tokens=tokens, **self.front)
                           .wait_for_tokens())
        counts = collections.Counter(s.answer.server for s in streams)
        self.assertEqual(counts, {name: EACH for name in self.names},
                         "connections are not spread by their number")
        return streams

    def retries(self):
        """Of the requests that the proxy has written lines of."""
        pattern = (r" api~? replicas/\S+ [-\d/+]+ (\d+) .* "
                   r"\d+/\d+/\d+/\d+/\+?(\d+) ")
        return [int(match[2]) for line in list(self.proxy.lines)
                if (match := re.search(pattern, line))]

    def test_killed_under_load(self):
        """Nobody loses a request without knowing, and only streams that had
        begun are lost."""
        killed = self.servers[1]
        streams = self.begin_streams(2000)
        plain = [Request(body=completion(500), **self.front)
                 for _ in range(EACH * REPLICAS)]
        wait_until(lambda: metric(killed.address, "sandwich_requests_total") >=
                   2 * EACH, "requests of both kinds are there")
        killed.signal(signal.SIGKILL)
        # Those that come later do not notice.
        later = [Request(body=completion(20, stream=bool(i % 2)), **self.front)
                 for i in range(4 * REPLICAS)]
        for request in plain:
            self.check_complete(request.wait(), 500)
        for request in later:
            self.check_complete(request.wait(), 20)
        broken = 0
        for request in streams:
            answer = request.wait()
            if answer.server == self.names[1]:
                broken += 1
                self.assertTrue(answer.has_failed_visibly(), answer.describe())
                self.assertNotIn("[DONE]", answer.events)
            else:
                self.check_complete(answer, 2000)
        self.assertEqual(broken, EACH)
        self.assertTrue(any(self.retries()), self.proxy.log())

    def test_shutdown_under_load(self):
        """A replica that is told to end finishes what it has, and nobody
        notices: so replicas are restarted one by one."""
        streams = self.begin_streams(2000)
        leaving = self.servers[1]
        leaving.signal(signal.SIGTERM)
        leaving.wait_for("shutting down")
        for i in range(4 * REPLICAS):
            answer = Request(body=completion(20, stream=bool(i % 2)),
                             **self.front).wait()
            self.check_complete(answer, 20)
            self.assertNotEqual(answer.server, self.names[1])
        for request in streams:
            self.check_complete(request.wait(), 2000)
        self.assertEqual(leaving.wait(), 0, leaving.log())

    def test_none_is_there(self):
        for server in self.servers:
            server.signal(signal.SIGKILL)
            server.wait()
        answer = self.ask(5)
        self.assertGreaterEqual(answer.status, 500, answer.describe())
        self.assertTrue(answer.has_failed_visibly(), answer.describe())

    def test_metrics_are_not_for_clients(self):
        self.assertEqual(ask(path="/metrics", **self.front).status, 404)
        self.assertEqual(ask(path="/v1/models", **self.front).status, 200)


class Hangs(Replicas):
    silence = "12s"
    test_killed_under_load = test_shutdown_under_load = None
    test_none_is_there = test_metrics_are_not_for_clients = None

    def test_hangs(self):
        """A replica that no longer answers loses its requests visibly, and gets
        no others."""
        streams = self.begin_streams(2000)
        hanging = self.servers[1]
        hanging.signal(signal.SIGSTOP)
        for request in streams:
            answer = request.wait()
            if answer.server == self.names[1]:
                self.assertTrue(answer.has_failed_visibly(), answer.describe())
            else:
                self.check_complete(answer, 2000)
        for _ in range(2 * REPLICAS):
            self.check_complete(self.ask(20), 20)
        hanging.signal(signal.SIGCONT)
        wait_until(lambda: self.ask(1).server == self.names[1],
                   "it is back among the others")


class Overload(OperationTest):
    def test_refusal_goes_through(self):
        """What replicas are too busy for is refused at once, and not sent to
        the next one."""
        servers = [self.start("--batch=1", "--max-waiting=1")
                   for _ in range(REPLICAS)]
        front = self.start_haproxy(servers)
        running = [self.stream(tokens=30000, **front).wait_for_tokens()
                   for _ in range(REPLICAS)]
        waiting = [self.stream(tokens=30000, **front) for _ in range(REPLICAS)]
        for server in servers:
            wait_until(lambda server=server: metric(
                server.address, "vllm:num_requests_waiting") == 1,
                       "each has one that waits")
        answer = ask(path="/v1/completions", body=completion(5), **front)
        self.check_error(answer, 429, "wait")
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        self.assertEqual(sum(metric(s.address,
                                    "sandwich_refused_requests_total")
                             for s in servers), 1)
        # Clients that leave are noticed behind the proxy, too.
        for request in running + waiting:
            request.leave()
        for server in servers:
            wait_until(lambda server=server: not server.running(),
                       "nothing is computed for nobody")


OperationTest.main()
