# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of `sandwich-run serve` share: a server that runs, requests
of the standard library, sockets that send any bytes, and streams."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(__file__), "../../Inputs"))
from leftovers import mark_processes, marked_processes

# Only what hangs takes so long, in seconds.
PATIENCE = 120

JSON = {"Content-Type": "application/json"}
COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


class Answer:
    """A response that was read to its end."""

    def __init__(self, status, headers, body):
        self.status = status
        # Names in lower case.
        self.headers = headers
        self.body = body

    @classmethod
    def of(cls, response):
        """Of a response of http.client."""
        return cls(response.status, {name.lower(): value for name, value
                                     in response.getheaders()},
                   response.read())

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]}"


class LocalConnection(http.client.HTTPConnection):
    """Over a socket of the file system."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class RawConnection:
    """Sends any bytes, and reads answers of HTTP/1.1."""

    def __init__(self, address, timeout=PATIENCE):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Leaves with a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """More bytes; false: there are none."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionError:
            return False
        self.rest += data
        return bool(data)

    def read_until(self, mark):
        """Up to and with `mark`, or all there was."""
        while mark not in self.rest and self.receive():
            pass
        found = self.rest.find(mark)
        end = len(self.rest) if found < 0 else found + len(mark)
        text, self.rest = self.rest[:end], self.rest[end:]
        return text

    def read_count(self, count):
        while len(self.rest) < count and self.receive():
            pass
        data, self.rest = self.rest[:count], self.rest[count:]
        return data

    def read_all(self):
        while self.receive():
            pass
        data, self.rest = self.rest, b""
        return data

    def read_head(self):
        """Status and headers; nothing: the connection ended."""
        head = self.read_until(b"\r\n\r\n")
        if not head.endswith(b"\r\n\r\n"):
            return None
        first, *lines = head[:-4].split(b"\r\n")
        status = int(first.split(b" ")[1])
        pairs = (line.decode("latin-1").split(": ", 1) for line in lines)
        return status, {name.lower(): value for name, value in pairs}

    def read_answer(self):
        head = self.read_head()
        if head is None:
            return None
        status, headers = head
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                size = int(self.read_until(b"\r\n"), 16)
                body += self.read_count(size)
                self.read_count(2)
                if size == 0:
                    break
        else:
            body = self.read_count(int(headers.get("content-length", 0)))
        return Answer(status, headers, body)

    def request(self, text):
        self.send(text)
        return self.read_answer()


class Stream:
    """The events of an answer as they come."""

    def __init__(self, connection, response):
        self.connection = connection
        self.response = response
        self.headers = {name.lower(): value
                        for name, value in response.getheaders()}
        # Comment lines so far.
        self.comments = []
        self.done = False

    def __iter__(self):
        """Yields pairs of the event's kind and its data."""
        kind, data = "message", []
        for line in self.response:
            assert line.endswith(b"\n"), line
            line = line[:-1].decode("utf-8")
            if line.startswith(":"):
                self.comments.append(line)
            elif line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data.append(line.removeprefix("data: "))
            elif line == "":
                if data:
                    yield kind, "\n".join(data)
                kind, data = "message", []
            else:
                raise AssertionError(f"no line of an event: {line!r}")

    def chunks(self):
        """The objects before [DONE], which must be the last."""
        for kind, data in self:
            assert kind == "message", data
            assert not self.done, f"behind [DONE]: {data}"
            if data == "[DONE]":
                self.done = True
            else:
                yield json.loads(data)
        assert self.done, "there was no [DONE]"
        self.close()

    def close(self):
        self.response.close()
        self.connection.close()


class Server:
    """`sandwich-run serve`, ready. Its end is checked."""

    def __init__(self, *artifacts, options=(), unix_socket=None, before=None,
                 ready=True):
        self.mark = mark_processes()
        self.unix_socket = unix_socket
        self.lines = []
        self.changed = threading.Condition()
        self.ended = False
        where = (["--unix-socket", unix_socket] if unix_socket
                 else ["--port=0"])
        self.process = subprocess.Popen(
            ["sandwich-run", "serve", *artifacts, *where, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=before)
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        try:
            line = self.wait_for_line(r"^info: listening at ")
            found = re.search(r"http://127\.0\.0\.1:(\d+)$", line)
            self.port = int(found[1]) if found else None
            if ready:
                self.wait_for_line(r"^info: ready at ")
        except BaseException:
            self.kill()
            raise

    def read_errors(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.decode("utf-8", "backslashreplace")
                                  .rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for_line(self, pattern):
        """The first line that the server writes with this pattern."""
        def find():
            return next((line for line in self.lines
                         if re.search(pattern, line)), None)
        with self.changed:
            self.changed.wait_for(lambda: find() or self.ended, PATIENCE)
            line = find()
            assert line, f"no line {pattern!r}: {self.lines[-20:]}"
            return line

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.kill()
        else:
            self.stop()

    def wait(self):
        """The exit status, and nothing may be left."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.reader.join()
        written = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert written == b"", written
        assert marked_processes(self.mark) == []
        if self.unix_socket:
            assert not os.path.exists(self.unix_socket)
        return status

    def stop(self):
        """Ends it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, (status, self.lines[-20:])
        assert self.lines[-1] == "info: ended", self.lines[-20:]

    @property
    def address(self):
        return self.unix_socket or ("127.0.0.1", self.port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # Requests.

    def connect(self):
        if self.unix_socket:
            return LocalConnection(self.unix_socket)
        return http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=PATIENCE)

    def raw(self, timeout=PATIENCE):
        return RawConnection(self.address, timeout)

    def request(self, method, path, body=None, headers=None):
        """`body`: bytes, or what is to be JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if headers is None:
            headers = JSON if body is not None else {}
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers)
            return Answer.of(connection.getresponse())

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def complete(self, prompt="A hacker is", **fields):
        """The answer of a completion that must succeed."""
        answer = self.post(COMPLETIONS, {"prompt": prompt, **fields})
        assert answer.status == 200, answer
        return answer.json()

    def chat(self, messages="Who is a hacker?", **fields):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        answer = self.post(CHAT, {"messages": messages, **fields})
        assert answer.status == 200, answer
        return answer.json()

    def stream(self, path, body):
        """The stream of a request that must succeed."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}),
                           JSON)
        response = connection.getresponse()
        if response.status != 200:
            answer = response.read()
            connection.close()
            raise AssertionError(f"{response.status} {answer}")
        return Stream(connection, response)

    # How it is.

    def metric(self, name, **labels):
        """The sum of all lines of this name with these labels."""
        text = self.get("/metrics").body.decode()
        total = None
        for line in text.splitlines():
            found = re.match(r"([^{ ]+)(?:\{(.*)\})? (\S+)$", line)
            if line.startswith("#") or not found or found[1] != name:
                continue
            these = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            if labels.items() <= these.items():
                total = (total or 0) + float(found[3])
        assert total is not None, f"no metric {name} {labels}"
        return total

    def wait_until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"never: {what}"
            time.sleep(0.01)

    def wait_for(self, name, value):
        self.wait_until(f"{name} is {value}",
                        lambda: self.metric(name) == value)

    def wait_until_idle(self):
        """Until no request runs or waits, none has blocks, and no connection
        but the asking one is open."""
        for name in ("vllm:num_requests_waiting", "vllm:num_requests_running",
                     "vllm:kv_cache_usage_perc"):
            self.wait_for(name, 0)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            found = re.search(r"^VmRSS:\s*(\d+) kB", file.read(), re.MULTILINE)
        return int(found[1]) << 10

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class ServerTest(unittest.TestCase):
    """Tests of one class share a server with these options."""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(ARTIFACT, options=cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def refuse(self, answer, status, param=None, code=None,
               kind="invalid_request_error", message=""):
        """`answer` must be an error in OpenAI's shape."""
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["content-type"], "application/json")
        body = answer.json()
        self.assertEqual(list(body), ["error"])
        error = body["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["type"], kind, error)
        self.assertEqual(error["param"], param, error)
        if code is not None:
            self.assertEqual(error["code"], code, error)
        self.assertRegex(error["message"], message or ".")
        self.assertTrue(error["message"])
        return error

    @contextlib.contextmanager
    def folder(self):
        path = tempfile.mkdtemp()
        try:
            yield path
        finally:
            shutil.rmtree(path)


def main():
    """Runs the tests of the script, with the artifact that it is given."""
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])


ARTIFACT = sys.argv[1] if len(sys.argv) > 1 else None
