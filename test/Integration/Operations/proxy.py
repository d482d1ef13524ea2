#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nginx with TLS in front, with the configuration in packaging/.

    proxy.py ARTIFACT
"""
import http.server
import os
import signal
import sys
import threading

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "Inputs"))
from operation import (PATIENCE, OperationTest, Request, ask, completion,
                       metric, wait_until)

ENDLESS = 30000
EVENTS = 10


class Paced(http.server.BaseHTTPRequestHandler):
    """Sends each event of a stream when the one before it has arrived."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(EVENTS):
            piece = f"data: {number}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if not self.server.arrived[number].wait(PATIENCE):
                return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


class Proxy(OperationTest):
    def start_behind(self, *options):
        server = self.start(*options)
        return server, self.start_nginx(server.address[len("http://"):])

    def test_answers(self):
        server, front = self.start_behind()
        self.assertEqual(ask(path="/ready", **front).status, 200)
        self.check_complete(
            ask(path="/v1/completions", body=completion(20), **front), 20)
        self.check_complete(self.stream(tokens=20, **front).wait(), 20)
        self.check_error(ask(path="/v1/completions", body={"prompt": 1}, **front),
                         400, "prompt")
        self.check_error(ask(path="/nowhere", **front), 404, "nowhere")
        # Through it only what clients are to see.
        self.assertEqual(ask(path="/metrics", **front).status, 404)
        self.assertEqual(ask(server.address, "/metrics").status, 200)

    def test_nothing_is_held_back(self):
        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Paced)
        upstream.daemon_threads = True
        upstream.arrived = [threading.Event() for _ in range(EVENTS)]
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        front = self.start_nginx(f"127.0.0.1:{upstream.server_port}")
        request = self.stream(tokens=EVENTS, **front)
        for number in range(EVENTS):
            request.wait_for_tokens(number + 1)
            upstream.arrived[number].set()
        self.assertEqual(request.wait().events, [str(i) for i in range(EVENTS)])

    def test_clients_that_leave(self):
        server, front = self.start_behind()
        stream = self.stream(tokens=ENDLESS, **front).wait_for_tokens()
        plain = Request(body=completion(ENDLESS), **front)
        wait_until(lambda: server.running() == 2, "both run")
        stream.leave()
        plain.leave()
        wait_until(lambda: not server.running(), "nothing runs for nobody")

    def test_server_ends(self):
        """What has begun is broken off visibly."""
        server, front = self.start_behind()
        stream = self.stream(tokens=ENDLESS, **front).wait_for_tokens()
        plain = Request(body=completion(ENDLESS), **front)
        wait_until(lambda: server.running() == 2, "both run")
        server.signal(signal.SIGKILL)
        for request in stream, plain:
            answer = request.wait()
            self.assertTrue(answer.has_failed_visibly(), answer.describe())

    def test_drain(self):
        server, front = self.start_behind("--drain-seconds=0.5")
        stream = self.stream(tokens=ENDLESS, **front).wait_for_tokens()
        server.signal(signal.SIGTERM)
        answer = stream.wait()
        self.assertEqual(len(answer.errors), 1, answer.describe())
        self.assertEqual(server.wait(), 0)

    def test_body_limits(self):
        """The proxy lets pass what the server takes."""
        server, front = self.start_behind()
        for size, status in (15 << 20, 400), (17 << 20, 413):
            answer = ask(path="/tokenize", body={"text": "a" * size}, **front)
            self.assertEqual(answer.status, status, answer.describe())
        self.assertEqual(metric(server.address, "sandwich_requests_total"), 0)


class Keys(OperationTest):
    def test_keys_go_through(self):
        keys = self.write("keys", "# of the test\nsecret-key\n")
        server = self.start("--api-key-file=" + keys)
        front = self.start_nginx(server.address[len("http://"):])
        self.check_error(ask(path="/v1/models", **front), 401, "key")
        answer = ask(path="/v1/models",
                     headers={"Authorization": "Bearer secret-key"}, **front)
        self.assertEqual(answer.status, 200)
        self.assertEqual(ask(path="/ready", **front).status, 200)


OperationTest.main()
