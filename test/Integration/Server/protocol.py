#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What HTTP itself has to bear: paths and methods, sizes, clients that are
slow or many, keys, names, and a system that has nothing left to give.

    protocol.py ARTIFACT
"""
import base64
import json
import os
import resource
import socket
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
from serving import (ARTIFACT, CHAT, COMPLETIONS, JSON, Server, ServerTest,
                     main)

SMALL = ("--batch=2", "--kv-memory=64MiB")
QUIET = (*SMALL, "--no-log-requests")
BODY = {"prompt": "A", "max_tokens": 1}
# Runs until its client leaves.
LONG = {"prompt": "A", "max_tokens": 8000, "ignore_eos": True}


def http_request(path=COMPLETIONS, body=None, method=None, headers=()):
    """The bytes of a request."""
    text = b"" if body is None else json.dumps(body).encode()
    method = method or ("GET" if body is None else "POST")
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body is not None:
        lines += ["Content-Type: application/json",
                  f"Content-Length: {len(text)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + text


class Paths(ServerTest):
    options = QUIET

    def test_unknown_paths(self):
        for path in ("/v1", "/v1/", "/v2/completions", "/v1/completions/",
                     "/v1/images", "/favicon.ico", "/health/", "/Health",
                     "/metrics2"):
            with self.subTest(path=path):
                error = self.refuse(self.server.get(path), 404, None,
                                    "unknown_url")
                self.assertIn(path, error["message"])

    def test_tricks(self):
        """A path is what the client wrote, and none of files."""
        for target in ("//", "//v1/completions", "/../health", "/./health",
                       "/v1/../health", "/%2e%2e/health", "/%68ealth",
                       "/health%00", "/..%2f..%2fetc/passwd", "/health;x",
                       "/v1/completions#x", "\\health", "*", "health",
                       "http://localhost/nothing", "localhost:80",
                       "/" + "a" * 8000, "/\xff\xfe", "/v1\\completions"):
            with self.subTest(target=target[:40]), self.server.raw() as raw:
                answer = raw.request(
                    http_request(target, headers=("Connection: close",)))
                self.assertIn(answer.status, (400, 404), answer)
                self.assertEqual(set(answer.json()), {"error"})

    def test_bytes_that_no_target_has(self):
        for target in (b"/health\0", b"/hea lth", b"/\n", b"", b"/\x7f",
                       b"/\x01"):
            with self.subTest(target=target), self.server.raw() as raw:
                answer = raw.request(b"GET " + target + b" HTTP/1.1\r\n"
                                     b"Host: localhost\r\n"
                                     b"Connection: close\r\n\r\n")
                self.assertIn(answer.status, (400, 404), answer)

    def test_absolute_form(self):
        """What proxies send: the same as its path, or 404."""
        with self.server.raw() as raw:
            answer = raw.request(http_request("http://localhost/health"))
            self.assertIn(answer.status, (200, 404))

    def test_queries_change_nothing(self):
        for query in ("?", "?x=1", "?../", "?%00", "?a?b"):
            self.assertEqual(self.server.get("/health" + query).status, 200)

    def test_names_of_models_in_paths(self):
        self.assertEqual(self.server.get("/v1/models/%73erved").status, 200)
        for name in ("../served", "%7served", "served/", "served/x", "x" * 4000,
                     "%00", "%ff"):
            self.assertEqual(self.server.get("/v1/models/" + name).status, 404)

    def test_methods(self):
        for path, method, allowed in (
                (COMPLETIONS, "GET", "POST"), (CHAT, "PUT", "POST"),
                (CHAT, "DELETE", "POST"), ("/health", "POST", "GET, HEAD"),
                ("/v1/models", "PATCH", "GET, HEAD"),
                (COMPLETIONS, "OPTIONS", "POST"),
                ("/metrics", "BREW", "GET, HEAD"), ("/", "TRACE", "GET, HEAD"),
                ("/tokenize", "HEAD", "POST")):
            with self.subTest(method=method, path=path), \
                    self.server.raw() as raw:
                raw.send(http_request(path, method=method))
                if method == "HEAD":
                    status, headers = raw.read_head()
                else:
                    answer = raw.read_answer()
                    status, headers = answer.status, answer.headers
                    self.refuse(answer, 405, None, "method_not_allowed")
                self.assertEqual(status, 405)
                self.assertEqual(headers["allow"], allowed)

    def test_head(self):
        for path in ("/health", "/metrics", "/", "/v1/models"):
            with self.server.raw() as raw:
                raw.send(http_request(path, method="HEAD",
                                      headers=("Connection: close",)))
                status, headers = raw.read_head()
                self.assertEqual(status, 200)
                self.assertGreater(int(headers["content-length"]), 0)
                self.assertEqual(raw.read_all(), b"")

    def test_types_of_bodies(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded",
                     "multipart/form-data; boundary=x", "application/jsonp",
                     "application/json+x", "", None, "text/json"):
            headers = {} if kind is None else {"Content-Type": kind}
            with self.subTest(kind=kind):
                self.refuse(self.server.post(COMPLETIONS, BODY, headers), 415)
        for kind in ("application/json; charset=utf-8", "Application/JSON",
                     "application/json;charset=UTF-8"):
            answer = self.server.post(COMPLETIONS, BODY,
                                      {"Content-Type": kind})
            self.assertEqual(answer.status, 200)

    def test_the_page_may_run_nothing_but_its_own(self):
        answer = self.server.get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn("content-security-policy", answer.headers)
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")


class Framing(ServerTest):
    options = (*QUIET, "--max-header=8KiB", "--max-body=64KiB")

    def test_huge_headers(self):
        for text in (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nA: " + b"a" * 20000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + b"a" * 20000):
            with self.server.raw() as raw:
                raw.send(text)
                self.refuse(raw.read_answer(), 431, message="8192")
                self.assertEqual(raw.read_all(), b"")

    def test_huge_bodies(self):
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Content-Length: 65537\r\n\r\n")
            self.refuse(raw.read_answer(), 413, message="65536")
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Content-Length: 99999999999999999999999999\r\n\r\n")
            self.assertIn(raw.read_answer().status, (400, 413))
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(70):
                    raw.send(b"400\r\n" + b" " * 1024 + b"\r\n")
            except ConnectionError:
                pass
            self.refuse(raw.read_answer(), 413, message="65536")
        text = json.dumps(BODY).encode()
        answer = self.server.post(COMPLETIONS,
                                  text + b" " * (65536 - len(text)))
        self.assertEqual(answer.status, 200)

    def test_bodies_in_chunks(self):
        text = json.dumps(BODY).encode()
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
            for i in range(len(text)):
                raw.send(b"1\r\n" + text[i:i + 1] + b"\r\n")
            answer = raw.request(b"0\r\n\r\n")
        self.assertEqual(answer.status, 200)

    def test_what_is_no_http(self):
        for text in (b"\r\n\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
                     b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET / HTTP/2.0\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
                     b"GET / HTTP/1.1\r\n: x\r\n\r\n",
                     b"GET / HTTP/1.1\r\nA : x\r\n\r\n",
                     b"GET / HTTP/1.1\nA: x\n\n",
                     b"SSH-2.0-x\r\n", b"\0" * 100, b"\xff" * 100,
                     b"GET / HTTP/1.1\r\nA: \0\r\n\r\n"):
            with self.subTest(text=text[:30]), self.server.raw() as raw:
                raw.send(text)
                raw.socket.shutdown(socket.SHUT_WR)
                answer = raw.read_answer()
                if answer:
                    self.assertIn(answer.status, (400, 404, 505), answer)
                    self.assertEqual(set(answer.json()), {"error"})
                    self.assertEqual(raw.read_all(), b"")

    def test_two_lengths_are_none(self):
        """What two servers would read differently is refused."""
        for headers in (b"Content-Length: 2\r\nContent-Length: 3\r\n",
                        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
                        b"Content-Length: +2\r\n", b"Content-Length: -1\r\n",
                        b"Content-Length: 0x2\r\n", b"Content-Length: 2, 3\r\n",
                        b"Content-Length: \r\n",
                        b"Transfer-Encoding: gzip, identity\r\n",
                        b"Transfer-Encoding: chunked, gzip\r\n",
                        b"Transfer-Encoding: xchunked\r\n"):
            with self.subTest(headers=headers), self.server.raw() as raw:
                raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Type: application/json\r\n" + headers +
                         b"\r\n{}GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                raw.socket.shutdown(socket.SHUT_WR)
                answer = raw.read_answer()
                if answer:
                    self.assertGreaterEqual(answer.status, 400, answer)
                    self.assertLess(answer.status, 500, answer)
                    # No request is found in what may be its body.
                    self.assertEqual(raw.read_all(), b"")

    def test_a_connection_serves_many_requests(self):
        with self.server.raw() as raw:
            for _ in range(20):
                answer = raw.request(http_request(body=BODY))
                self.assertEqual(answer.status, 200)
            stream = {**BODY, "stream": True}
            for _ in range(3):
                answer = raw.request(http_request(body=stream))
                self.assertTrue(answer.body.endswith(b"data: [DONE]\n\n"))
            # An error of the API is no error of the connection.
            for _ in range(3):
                self.assertEqual(raw.request(http_request(body={})).status,
                                 400)
                self.assertEqual(raw.request(http_request("/nothing")).status,
                                 404)

    def test_requests_that_come_together(self):
        with self.server.raw() as raw:
            raw.send(http_request(body={**BODY, "stream": True}) +
                     http_request("/health") + http_request("/nothing") +
                     http_request(body=BODY))
            self.assertEqual([raw.read_answer().status for _ in range(4)],
                             [200, 200, 404, 200])

    def test_http_1_0(self):
        text = json.dumps({**BODY, "stream": True}).encode()
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.0\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
            data = raw.read_all()
        head, body = data.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head.lower())
        self.assertTrue(body.startswith(b"data: {"))
        self.assertTrue(body.endswith(b"data: [DONE]\n\n"))

    def test_expect_continue(self):
        text = json.dumps(BODY).encode()
        with self.server.raw() as raw:
            raw.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Expect: 100-continue\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(text))
            self.assertEqual(raw.read_head()[0], 100)
            self.assertEqual(raw.request(text).status, 200)


class SlowClients(ServerTest):
    options = (*QUIET, "--header-seconds=0.4", "--body-seconds=0.4",
               "--idle-seconds=0.4", "--write-seconds=0.4",
               "--max-unread=16KiB")

    def drip(self, raw, data):
        """Sends byte by byte until the server ends the connection."""
        try:
            for byte in data:
                raw.send(bytes([byte]))
                time.sleep(0.02)
        except ConnectionError:
            return
        raw.read_all()

    def test_slow_headers(self):
        for _ in range(2):
            with self.server.raw() as raw:
                self.drip(raw, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000)

    def test_slow_bodies(self):
        head = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n")
        with self.server.raw() as raw:
            raw.send(head + b"Content-Length: 10000\r\n\r\n")
            self.drip(raw, b" " * 10000)
        with self.server.raw() as raw:
            raw.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
            self.drip(raw, b"1\r\n \r\n" * 1000)

    def test_silent_clients(self):
        for text in (b"", b"GET", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n"
                     b"\r\n"):
            with self.server.raw() as raw:
                raw.send(text)
                raw.read_all()

    def test_many_slow_clients_hold_up_nobody(self):
        slow = [self.server.raw() for _ in range(200)]
        for raw in slow:
            raw.send(b"GET / HTTP/1.1\r\nA")
        self.assertEqual(self.server.complete(**BODY)["object"],
                         "text_completion")
        for raw in slow:
            raw.read_all()
            raw.close()

    def test_clients_that_do_not_read(self):
        """Neither their text nor its blocks are kept for them."""
        with self.server.raw() as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            before = self.server.metric("sandwich_requests_total")
            raw.send(http_request(body={**LONG, "stream": True, "n": 2,
                                        "logprobs": 20}))
            # It may be over before anybody looks whether it runs.
            self.server.wait_until("the request is taken", lambda:
                                   self.server.metric(
                                       "sandwich_requests_total") > before)
            self.server.wait_until_idle()
            self.assertNotIn(b"[DONE]", raw.read_all())


class ManyClients(ServerTest):
    options = (*QUIET, "--max-connections=8")

    def test_one_connection_too_many(self):
        others = [self.server.raw() for _ in range(8)]
        # Each is known by its answer.
        for raw in others:
            self.assertEqual(raw.request(http_request("/health")).status, 200)
        with self.server.raw() as raw:
            answer = raw.read_answer()
            self.refuse(answer, 503, kind="server_error",
                        message="as many connections as it allows")
            self.assertIn("retry-after", answer.headers)
        for raw in others:
            self.assertEqual(raw.request(http_request("/health")).status, 200)
            raw.close()

        def is_open():
            with self.server.raw() as raw:
                answer = raw.request(http_request("/health"))
                return answer and answer.status == 200
        self.server.wait_until("a connection is free", is_open)


class Keys(ServerTest):
    KEYS = ("sk-first", "second~!@#$%^&*()_+")

    @classmethod
    def setUpClass(cls):
        with ServerTest().folder() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w", encoding="ascii") as file:
                file.write("# for tests\n\n" + "\r\n".join(cls.KEYS))
            cls.server = Server(ARTIFACT, options=(
                *QUIET, "--api-key-file", path))

    def ask(self, path, key=None, method="GET"):
        headers = {} if key is None else {"Authorization": key}
        if method == "POST":
            return self.server.post(path, BODY, {**JSON, **headers})
        return self.server.request(method, path, headers=headers)

    def test_all_but_health_needs_a_key(self):
        for path, method in ((COMPLETIONS, "POST"), (CHAT, "POST"),
                             ("/tokenize", "POST"), ("/detokenize", "POST"),
                             ("/v1/models", "GET"), ("/v1/models/x", "GET"),
                             ("/status", "GET"), ("/metrics", "GET"),
                             ("/version", "GET"), ("/", "GET"),
                             ("/nothing", "GET"), (COMPLETIONS, "GET")):
            with self.subTest(path=path, method=method):
                answer = self.ask(path, None, method)
                self.refuse(answer, 401, None, "invalid_api_key")
                self.assertIn("www-authenticate", answer.headers)
        for path in ("/health", "/ready"):
            self.assertEqual(self.ask(path).status, 200)

    def test_keys(self):
        for key in self.KEYS:
            basic = base64.b64encode(b"anybody:" + key.encode()).decode()
            for value in (f"Bearer {key}", f"bearer   {key}", f"BEARER {key}",
                          f"Basic {basic}"):
                with self.subTest(value=value):
                    self.assertEqual(self.ask("/v1/models", value).status, 200)
                    self.assertEqual(
                        self.ask(COMPLETIONS, value, "POST").status, 200)

    def test_wrong_keys(self):
        key = self.KEYS[0]
        other = base64.b64encode(key.encode()).decode()
        for value in ("", "Bearer", "Bearer ", key, f"Bearer {key}x",
                      f"Bearer {key[:-1]}", f"Bearer {key.upper()}",
                      "Bearer # for tests", "Basic",
                      "Basic !!!!", f"Basic {other}", "Basic Og==",
                      f"Token {key}", f"Bearer{key}", "Bearer " + "x" * 4096,
                      f"Bearer {key},{self.KEYS[1]}", f"Bearer {key} x"):
            with self.subTest(value=value[:40]):
                self.refuse(self.ask("/v1/models", value), 401, None,
                            "invalid_api_key")

    def test_a_browser_asks_a_person(self):
        self.assertTrue(self.ask("/").headers["www-authenticate"]
                        .startswith("Basic "))


class Names(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(f"chat={ARTIFACT}", f"code={ARTIFACT}", options=(
            *QUIET, "--alias", "gpt-4o=chat", "--alias", "my/model=code"))

    def test_models(self):
        found = {model["id"]: model for model in
                 self.server.get("/v1/models").json()["data"]}
        self.assertEqual(set(found), {"chat", "code", "gpt-4o", "my/model"})
        self.assertEqual(found["gpt-4o"]["root"], "chat")
        self.assertEqual(found["gpt-4o"]["parent"], "chat")
        self.assertEqual(self.server.get("/v1/models/my/model").json(),
                         found["my/model"])

    def test_requests_say_which(self):
        for name in ("chat", "code", "gpt-4o", "my/model"):
            answer = self.server.complete(model=name, max_tokens=1)
            self.assertEqual(answer["model"], name)
        self.refuse(self.server.post(COMPLETIONS, BODY), 400, "model")
        self.refuse(self.server.post(COMPLETIONS, {**BODY, "model": "gpt"}),
                    404, "model", "model_not_found")

    def test_metrics_tell_them_apart(self):
        before = self.server.metric("vllm:generation_tokens_total",
                                    model_name="chat")
        self.server.complete(model="gpt-4o", max_tokens=3, ignore_eos=True)
        self.server.complete(model="code", max_tokens=5, ignore_eos=True)
        self.server.wait_until_idle()
        self.assertEqual(self.server.metric("vllm:generation_tokens_total",
                                            model_name="chat"), before + 3)


class LocalSockets(ServerTest):
    def test_serves_there(self):
        with self.folder() as folder:
            path = os.path.join(folder, "socket")
            with Server(ARTIFACT, options=QUIET, unix_socket=path) as server:
                self.assertEqual(server.get("/health").status, 200)
                server.complete(max_tokens=3)
                chunks = list(server.stream(CHAT, {"messages": [
                    {"role": "user", "content": "x"}],
                    "max_tokens": 3}).chunks())
                self.assertTrue(chunks[-1]["choices"][0]["finish_reason"])
            self.assertEqual(os.listdir(folder), [])

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass


class Resources(LocalSockets):
    """A system that has nothing left."""
    test_serves_there = None

    def test_no_file_descriptors(self):
        limit = 64
        def before():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        with Server(ARTIFACT, options=QUIET, before=before) as server:
            others = [server.raw() for _ in range(limit)]
            server.wait_for_line("cannot accept connections")
            answered = others[0].request(http_request("/health"))
            self.assertEqual(answered.status, 200)
            for raw in others:
                raw.close()
            self.assertEqual(server.complete(max_tokens=1)["object"],
                             "text_completion")
            self.assertLess(server.descriptors(), limit)

    def test_log_on_a_full_disk(self):
        with Server(ARTIFACT, options=(*SMALL, "--log-file=/dev/full")
                    ) as server:
            for _ in range(10):
                server.complete(max_tokens=1)
            self.assertEqual(server.get("/health").status, 200)

    def test_log(self):
        """A line for each request, and of its text nothing."""
        with self.folder() as folder:
            path = os.path.join(folder, "log")
            with Server(ARTIFACT, options=(
                    *SMALL, "--log-format=json", "--log-file", path)) as server:
                server.complete("A secret", max_tokens=3, ignore_eos=True)
                server.post(COMPLETIONS, {"prompt": "A secret", "n": 0})
                stream = server.stream(COMPLETIONS, LONG)
                next(iter(stream))
                stream.close()
                server.wait_until_idle()
            with open(path, encoding="utf-8") as file:
                text = file.read()
            # A line is written after its answer, by then another request may
            # have ended.
            lines = [json.loads(line) for line in text.splitlines()]
            by_status = {line["status"]: line for line in lines}
            self.assertEqual(len(lines), 3)
            self.assertEqual(set(by_status), {200, 400, 499})
            self.assertEqual(by_status[200]["generated_tokens"], 3)
            self.assertEqual(by_status[200]["finish_reason"], "length")
            self.assertIn("n is 0", by_status[400]["error"])
            self.assertNotIn("secret", text)

    def test_log_with_prompts(self):
        with self.folder() as folder:
            path = os.path.join(folder, "log")
            with Server(ARTIFACT, options=(
                    *SMALL, "--log-prompts", "--log-file", path)) as server:
                server.complete("A secret\nsecond line", max_tokens=3)
            with open(path, encoding="utf-8") as file:
                line, = file.read().splitlines()
            self.assertIn(r'prompt="A secret\nsecond line"', line)

    def test_two_thousand_idle_connections(self):
        connections = 2000
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < connections + 100:
            self.skipTest("this user may not open so many files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE,
                        (soft, hard))
        with Server(ARTIFACT, options=QUIET) as server:
            server.complete(max_tokens=1)
            before = server.resident_bytes()
            idle = []
            for _ in range(connections):
                raw = server.raw()
                # Not only accepted: each has served a request.
                raw.send(http_request("/health"))
                idle.append(raw)
            for raw in idle:
                self.assertEqual(raw.read_answer().status, 200)
            cost = server.resident_bytes() - before
            self.assertLess(cost, 100 << 20)
            print(f"{connections} idle connections: {cost >> 10} KiB")
            server.complete(max_tokens=1)
            for raw in idle:
                raw.close()
            descriptors = server.descriptors
            server.wait_until("all are gone", lambda: descriptors() < 100)


main()
