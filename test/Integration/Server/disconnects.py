#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clients that leave take their requests with them, whenever they leave.

    disconnects.py ARTIFACT [COUNT]

COUNT is how many leave at random moments, 500 by default.
"""
import json
import os
import random
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
from serving import ARTIFACT, CHAT, COMPLETIONS, Server, ServerTest, main

COUNT = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 500


def http_request(path, body):
    text = json.dumps(body).encode()
    return (b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
            b"\r\nContent-Length: %d\r\n\r\n%b"
            % (path.encode(), len(text), text))


# Runs until its client leaves.
LONG = {"prompt": "A", "max_tokens": 8000, "ignore_eos": True}


class Disconnects(ServerTest):
    """Their blocks are free again."""
    options = ("--batch=2", "--kv-memory=64MiB", "--no-log-requests",
               "--no-prefix-cache")

    def tearDown(self):
        self.server.wait_until_idle()

    def leave(self, body, begun, path=COMPLETIONS):
        """Leaves when `begun`, in both ways that there are."""
        for leave in ("close", "reset"):
            raw = self.server.raw()
            raw.send(http_request(path, body))
            begun(raw)
            getattr(raw, leave)()
            self.server.wait_until_idle()

    def is_running(self, _):
        self.server.wait_for("vllm:num_requests_running", 1)

    def test_within_a_stream(self):
        def begun(raw):
            raw.read_until(b"data: ")
            self.is_running(raw)
        self.leave({**LONG, "stream": True}, begun)
        self.leave({"messages": [{"role": "user", "content": "x"}],
                    "ignore_eos": True, "stream": True}, begun, CHAT)

    def test_before_an_answer_that_comes_as_a_whole(self):
        self.leave(LONG, self.is_running)

    def test_of_several_texts(self):
        self.leave({**LONG, "n": 2}, self.is_running)
        self.leave({**LONG, "prompt": ["A", "B", "C", "D"]},
                   lambda raw: self.server.wait_for(
                       "vllm:num_requests_running", 2))

    def test_while_the_prompt_is_computed(self):
        def begun(_):
            self.server.wait_until("the prompt has blocks", lambda:
                self.server.metric("vllm:kv_cache_usage_perc") > 0)
        self.leave({"prompt": [5] * 8000, "max_tokens": 100,
                    "ignore_eos": True}, begun)

    def test_while_it_waits(self):
        running = [self.server.stream(COMPLETIONS, LONG) for _ in range(2)]
        self.server.wait_for("vllm:num_requests_running", 2)
        for body in (LONG, {**LONG, "stream": True}):
            raw = self.server.raw()
            raw.send(http_request(COMPLETIONS, body))
            self.server.wait_for("vllm:num_requests_waiting", 1)
            raw.close()
            self.server.wait_for("vllm:num_requests_waiting", 0)
        # Who runs does not notice.
        self.assertEqual(self.server.metric("vllm:num_requests_running"), 2)
        for stream in running:
            stream.close()

    def test_of_clients_that_send_ahead(self):
        """Behind more than is read ahead nobody would see them leave."""
        raw = self.server.raw()
        raw.send(http_request(COMPLETIONS, LONG))
        self.is_running(raw)
        try:
            raw.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40000)
        except OSError:
            pass
        self.server.wait_until_idle()
        raw.close()


def wait_a_little(source):
    """Mostly too little for an answer, and sometimes enough."""
    time.sleep(source.choice((0, 0.0003, 0.002, 0.01, 0.05)) *
               source.random())


class RandomDisconnects(ServerTest):
    options = ("--batch=4", "--kv-memory=64MiB", "--no-log-requests",
               "--max-waiting=32")

    def bodies(self, source):
        prompt = [source.randrange(3000) for _ in
                  range(source.choice((1, 20, 200, 2000)))]
        yield COMPLETIONS, {"prompt": prompt, "n": source.randint(1, 3),
                            "max_tokens": source.choice((1, 30, 3000)),
                            "ignore_eos": True,
                            "stream": source.random() < 0.7}
        yield CHAT, {"messages": [{"role": "user", "content": "x" *
                                   source.choice((1, 100, 2000))}],
                     "max_tokens": source.choice((1, 30, 3000)),
                     "ignore_eos": True, "stream": source.random() < 0.7}

    def leave_somewhere(self, source):
        path, body = source.choice(list(self.bodies(source)))
        data = http_request(path, body)
        raw = self.server.raw()
        try:
            if source.random() < 0.1:
                data = data[:source.randrange(len(data))]
            raw.send(data)
            wait_a_little(source)
            if source.random() < 0.5:
                raw.socket.settimeout(source.choice((0.001, 0.02, 0.3)))
                raw.socket.recv(source.choice((1, 100, 100000)))
                wait_a_little(source)
        except OSError:
            pass
        finally:
            if source.random() < 0.5:
                raw.reset()
            else:
                raw.close()

    def run_clients(self, count, seed):
        def client(number):
            source = random.Random(seed + number)
            for _ in range(count // 8):
                self.leave_somewhere(source)
        clients = [threading.Thread(target=client, args=(i,))
                   for i in range(8)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        self.server.wait_until_idle()

    def fill_cache(self):
        """Uses each block of the KV cache once, as a page takes memory from
        its first use on."""
        source = random.Random(3)
        for _ in range(14):
            self.server.complete(prompt=[source.randrange(2000)
                                         for _ in range(2000)], max_tokens=1)

    def test_random_moments(self):
        # What it takes once, such as buffers of its threads.
        self.fill_cache()
        self.run_clients(160, 1000)
        descriptors = self.server.descriptors()
        before = self.server.resident_bytes()
        self.run_clients(COUNT, 2000)
        self.server.wait_until("all connections are gone", lambda:
                               self.server.descriptors() <= descriptors)
        after = self.server.resident_bytes()
        used = self.server.metric("vllm:kv_cache_usage_perc")
        print(f"{COUNT} disconnects: {before >> 10} KiB before, "
              f"{after >> 10} KiB after, {used} of the blocks used")
        self.assertEqual(used, 0)
        # Far below what each would keep if it kept its prompt or its answer.
        self.assertLess(after - before, (8 << 20) + COUNT * 1024)
        answer = self.server.complete(max_tokens=20, ignore_eos=True)
        self.assertEqual(answer["usage"]["completion_tokens"], 20)


main()
