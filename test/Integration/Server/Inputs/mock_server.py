#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server without a model, which speaks what the chat page needs of one.

    mock_server.py [--port PORT] [--load] [--model NAME]

Serves the page of the source tree, and answers by rule: what the last message
is decides what comes (see `Mock.script`). --load makes numbers of a busy server
up, for pictures. Tests create a `Mock` and read what it saw.
"""
import argparse
import base64
import hashlib
import http.server
import itertools
import json
import math
import os
import re
import select
import socket
import sys
import threading
import time

PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                    "../../../../lib/Server/Page/page.html")

MARKDOWN = """\
Paged keys and values are kept in **blocks** of a few tokens each:

1. a sequence gets a block when it needs one,
2. full blocks are found again by the *hash* of what they hold,
3. and go back to the pool when nobody reads them.

```python
def blocks(tokens, size=16):
    return -(-tokens // size)
```

So a prompt that begins as an earlier one did is not computed again, and \
`cached_tokens` says how much that was."""

ATTACK = """\
<img src=x onerror="window.attacked = 1"> </script><script>window.attacked = 2
</script> **<svg onload="window.attacked = 3">** `<b onclick=1>` \
[link](javascript:window.attacked=4)

```html"><img src=x onerror="window.attacked = 5">
<iframe srcdoc="<script>parent.attacked = 6</script>"></iframe>
```
- <style>body { display: none }</style>
"""


def content_security_policy(page):
    """As lib/Server/Page/Page.cpp makes it."""
    def source(tag):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        digest = hashlib.sha256(text.encode()).digest()
        return "'sha256-" + base64.b64encode(digest).decode() + "'"
    return (f"default-src 'none'; script-src {source('script')}; "
            f"style-src {source('style')}; img-src data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'")


class Refusal(Exception):
    def __init__(self, status, message, param=None, code=None,
                 type="invalid_request_error"):
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": type, "param": param,
                      "code": code}


class Model:
    """What /status and /v1/models say of one."""

    def __init__(self, name, has_chat_template=True, prefill=((0, 1, 2, 3),),
                 decode=((2, 3, 4, 5),)):
        self.fields = {
            "id": name, "aliases": [], "state": "ready", "progress": 1.0,
            "context_length": 2048, "architecture": "LlamaForCausalLM",
            "target": "x86-64-avx512-bf16", "weights_dtype": "bf16",
            "ranks": len(prefill), "has_chat_template": has_chat_template,
            "phase": "idle",
            "plan": {"prefill_cores": prefill, "decode_cores": decode},
            "running_requests": 0, "running_texts": 0, "waiting_requests": 0,
            "kv_blocks": {"used": 0, "cached": 0, "total": 128},
            "totals": dict.fromkeys(
                ("requests", "refused", "prompt_tokens",
                 "cached_prompt_tokens", "generated_tokens", "preemptions",
                 "prefill_steps", "decode_steps", "prefill_seconds",
                 "decode_seconds", "drafted_tokens", "accepted_tokens"), 0)}


class Mock:
    """A server at a port of its own, until `close`."""

    def __init__(self, port=0, models=None, load=False):
        self.models = models or [Model("mock"), Model("mock-base", False)]
        self.lock = threading.Lock()
        self.begun = time.monotonic()
        # What was asked: (method, path, headers, body).
        self.requests = []
        self.disconnects = 0
        # What streams that wait for it wait for.
        self.gate = threading.Event()
        self.closing = threading.Event()
        self.api_key = None
        # Whether those without it hear of that only when the gate opens.
        self.holds_refusals = False
        self.draining = False
        # Whether /status says which models have a chat template.
        self.tells_templates = True
        self.load = load
        self.pace = 0.02 if load else 0.002
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.mock = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.05})
        self.thread.start()
        if load:
            threading.Thread(target=self.make_load_up, daemon=True).start()

    def close(self):
        self.closing.set()
        self.gate.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def asked(self, path):
        """The bodies of all requests for a path, first to last."""
        with self.lock:
            return [body for _, asked, _, body in self.requests
                    if asked == path]

    def model(self, name):
        for model in self.models:
            if model.fields["id"] == name:
                return model.fields
        raise Refusal(404, f"the model '{name}' is not served here", "model",
                      "model_not_found")

    def status(self):
        with self.lock:
            models = [{name: value for name, value in model.fields.items()
                       if self.tells_templates or name != "has_chat_template"}
                      for model in self.models]
            return json.loads(json.dumps({
                "version": "0.1.0",
                "uptime_seconds": time.monotonic() - self.begun,
                "draining": self.draining, "models": models}))

    def script(self, body, text):
        """The pieces of an answer, None where it waits for the gate, and a
        Refusal where it breaks."""
        if text.startswith("say "):
            return re.findall(r"\s*\S+", text[4:])
        if text == "gate":
            return ["before", " the gate", None, ", after", " it"]
        if text == "forever":
            return itertools.repeat("on ")
        if text.startswith("repeat "):
            _, count, repeated = text.split(" ", 2)
            return [int(count) // 4 * json.loads(repeated)] * 4
        if text == "break":
            return ["half of ", Refusal(500, "the engine has ended",
                                        type="server_error")]
        if text == "cut":
            return ["half of ", None]
        if text == "attack":
            return re.findall(r".{1,7}", ATTACK, re.DOTALL)
        if text == "refuse":
            raise Refusal(400, "temperature is 7; it must be <b>lower</b>",
                          "temperature", "out_of_range")
        if text == "busy":
            raise Refusal(429, "too many requests wait", None,
                          "rate_limit_exceeded", "rate_limit_error")
        if "response_format" in body:
            return ['{"name"', ': ', '"Ada", "kind": ', '"**person**"}']
        return re.findall(r"\s*\S+", MARKDOWN)

    def make_load_up(self):
        """Numbers as a server has them that others use too."""
        tick, waiting = 0.1, 0.0
        while not self.closing.wait(tick):
            now = time.monotonic() - self.begun
            wave = 0.5 + 0.5 * math.sin(now / 7) * math.cos(now / 3)
            prompt = 0 if math.sin(now / 2.3) < 0.1 else 640 * (0.4 + wave)
            with self.lock:
                fields = self.models[0].fields
                totals = fields["totals"]
                totals["prompt_tokens"] += int(prompt * tick)
                totals["cached_prompt_tokens"] += int(prompt * tick * 0.3)
                totals["generated_tokens"] += int(
                    tick * (150 + 90 * wave + 12 * math.sin(now * 1.7)))
                totals["requests"] += prompt > 900
                share = min(0.6, prompt / 1600)
                totals["prefill_seconds"] += tick * share
                totals["decode_seconds"] += tick * (0.93 - share)
                fields["phase"] = ("prefill" if share > 0.5 else "decode")
                fields["running_requests"] = 4 + round(4 * wave)
                waiting = max(0.0, waiting + (wave - 0.6))
                fields["waiting_requests"] = round(min(5, waiting))
                fields["kv_blocks"]["used"] = 46 + round(24 * wave)
                fields["kv_blocks"]["cached"] = 31


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        # Browsers end connections as they like.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    @property
    def mock(self):
        return self.server.mock

    def do_GET(self):
        self.handle_request(b"")

    def do_POST(self):
        self.handle_request(
            self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def handle_request(self, body):
        if self.mock.closing.is_set():
            self.close_connection = True
            return
        self.path = self.path.partition("?")[0]
        parsed = json.loads(body) if body else None
        with self.mock.lock:
            self.mock.requests.append(
                (self.command, self.path, dict(self.headers), parsed))
        try:
            self.route(parsed)
        except Refusal as refusal:
            self.answer(refusal.status, {"error": refusal.error})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self, body):
        if (self.command, self.path) == ("GET", "/"):
            return self.answer_page()
        key = self.mock.api_key
        if key and self.headers.get("Authorization") != "Bearer " + key:
            if self.mock.holds_refusals:
                self.wait_for_gate()
            raise Refusal(401, "this server needs an API key", None,
                          "invalid_api_key")
        if self.path == "/status":
            return self.answer(200, self.mock.status())
        if self.path == "/v1/models":
            return self.answer(200, {"object": "list", "data": [
                {"id": model.fields["id"], "object": "model"}
                for model in self.mock.models]})
        if self.command == "POST" and self.path == "/v1/chat/completions":
            return self.complete(body, True)
        if self.command == "POST" and self.path == "/v1/completions":
            return self.complete(body, False)
        raise Refusal(404, f"there is no '{self.path}' here", None,
                      "unknown_url")

    def answer(self, status, body):
        self.send(status, "application/json", json.dumps(body).encode(),
                  {"Retry-After": "3"} if status == 429 else {})

    def answer_page(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        self.send(200, "text/html; charset=utf-8", page.encode(), {
            "Content-Security-Policy": content_security_policy(page),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer"})

    def send(self, status, content_type, body, headers):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def complete(self, body, is_chat):
        fields = self.mock.model(body["model"])
        if is_chat and not fields["has_chat_template"]:
            raise Refusal(400, "this model has no chat template", "messages",
                          "chat_template_missing")
        text = body["messages"][-1]["content"] if is_chat else body["prompt"]
        pieces = self.mock.script(body, text)
        most = body.get("max_tokens")
        if isinstance(pieces, list):
            pieces = pieces[:most]
        prompt_tokens = len(json.dumps(body.get("messages", text)).split())
        totals = fields["totals"]
        with self.mock.lock:
            fields["running_requests"] += 1
            fields["kv_blocks"]["used"] += 5
            totals["requests"] += 1
            totals["prompt_tokens"] += prompt_tokens
            fields["phase"] = "decode"
        try:
            self.stream(pieces, is_chat, fields, prompt_tokens, most)
        except (BrokenPipeError, ConnectionResetError):
            with self.mock.lock:
                self.mock.disconnects += 1
            self.close_connection = True
        finally:
            with self.mock.lock:
                fields["running_requests"] -= 1
                fields["kv_blocks"]["used"] -= 5
                fields["kv_blocks"]["cached"] += 1
                fields["phase"] = "idle"

    def stream(self, pieces, is_chat, fields, prompt_tokens, most):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if is_chat:
            self.event(self.chunk(is_chat, {"role": "assistant"}))
        generated = 0
        for piece in pieces:
            if piece is None:
                self.write(b": nothing new\n\n")
                self.wait_for_gate()
                if pieces[-1] is None:
                    raise ConnectionResetError
                continue
            if isinstance(piece, Refusal):
                self.write(b"event: error\n")
                self.event({"error": piece.error})
                self.write(b"", last=True)
                return
            generated += 1
            with self.mock.lock:
                fields["totals"]["generated_tokens"] += 1
            self.event(self.chunk(is_chat, {"content": piece}))
            self.mock.closing.wait(self.mock.pace)
            self.check_client()
        finish = "length" if generated == most else "stop"
        self.event(self.chunk(is_chat, {}, finish))
        self.event({"choices": [], "usage": {
            "prompt_tokens": prompt_tokens, "completion_tokens": generated,
            "total_tokens": prompt_tokens + generated}})
        self.write(b"data: [DONE]\n\n")
        self.write(b"", last=True)

    def wait_for_gate(self):
        while not self.mock.gate.wait(0.02):
            self.check_client()

    def check_client(self):
        """Raises where the client has left."""
        if self.mock.closing.is_set():
            raise ConnectionResetError
        readable, _, _ = select.select([self.connection], [], [], 0)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError

    @staticmethod
    def chunk(is_chat, delta, finish=None):
        choice = {"index": 0, "finish_reason": finish}
        if is_chat:
            choice["delta"] = delta
        else:
            choice["text"] = delta.get("content", "")
        return {"id": "mock-1", "choices": [choice]}

    def event(self, value):
        self.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def write(self, data, last=False):
        """A chunk of HTTP for each half of the data, so that readers meet lines
        and characters in pieces."""
        middle = len(data) // 2
        for part in (data[:middle], data[middle:]):
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if last:
            self.wfile.write(b"0\r\n\r\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--model", action="append", default=[])
    arguments = parser.parse_args()
    models = [Model(name) for name in arguments.model]
    with Mock(arguments.port, models, arguments.load) as mock:
        print(mock.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
