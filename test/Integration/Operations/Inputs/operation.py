# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Servers, proxies in front of them, and clients that tell a complete answer
from one that is not."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "../../Inputs"))
import leftovers

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__),
                                       "../../../.."))
PACKAGING = os.path.join(SOURCE, "packaging")
# Waits end when what they wait for is there; this is for tests that fail.
PATIENCE = 120


def find_program(name):
    """Where it is, or None. Proxies are where users do not look."""
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain until " + what)
        time.sleep(0.01)


#===------------------------------------------------------------------------===#
# Clients
#===------------------------------------------------------------------------===#

class Connection(http.client.HTTPConnection):
    """To "http://HOST:PORT", or "unix:PATH", there with TLS if there is a
    certificate to trust."""

    def __init__(self, address, certificate=None):
        self.address = address
        self.certificate = certificate
        super().__init__("localhost", timeout=PATIENCE)

    def connect(self):
        if self.address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(PATIENCE)
            self.sock.connect(self.address[len("unix:"):])
        else:
            host, port = self.address[len("http://"):].rsplit(":", 1)
            self.sock = socket.create_connection((host.strip("[]"), int(port)),
                                                 PATIENCE)
        if self.certificate:
            context = ssl.create_default_context(cafile=self.certificate)
            self.sock = context.wrap_socket(self.sock,
                                            server_hostname="localhost")


class Answer:
    """What came of one request."""

    def __init__(self):
        self.status = None
        self.headers = {}
        self.body = bytearray()
        # Of a stream, the data of its events; of its error events apart.
        self.events = []
        self.errors = []
        # Why the connection ended before the answer did.
        self.broken = None

    def json(self):
        return json.loads(self.body)

    @property
    def is_stream(self):
        return self.headers.get("content-type", "").startswith(
            "text/event-stream")

    @property
    def has_begun(self):
        return bool(self.body)

    @property
    def chunks(self):
        return [json.loads(e) for e in self.events if e != "[DONE]"]

    @property
    def server(self):
        """A server's answers have this in common, and with no other's."""
        answer = self.chunks[0] if self.is_stream else self.json()
        return answer["id"].split("-")[1][:16]

    def is_complete(self, tokens):
        """Whether it has all it should, of a request for `tokens` tokens with
        usage."""
        if self.status != 200 or self.broken or self.errors:
            return False
        if not self.is_stream:
            return self.json()["usage"]["completion_tokens"] == tokens
        return (bool(self.events) and self.events[-1] == "[DONE]" and
                any(c["choices"] and c["choices"][0]["finish_reason"]
                    for c in self.chunks) and
                any((c.get("usage") or {}).get("completion_tokens") == tokens
                    for c in self.chunks))

    def has_failed_visibly(self):
        """Whether no client can take it for complete."""
        if self.status is None or self.broken or self.errors:
            return "[DONE]" not in self.events
        return self.status >= 400

    def describe(self):
        return (f"status {self.status}, {len(self.body)} bytes, "
                f"{len(self.events)} events, errors {self.errors}, "
                f"broken {self.broken!r}: {bytes(self.body[-300:])!r}")


class Request(threading.Thread):
    """A request on a thread of its own."""

    def __init__(self, address, path="/v1/completions", body=None, method=None,
                 certificate=None, headers=None):
        super().__init__(daemon=True)
        self.connection = Connection(address, certificate)
        self.path = path
        self.content = None if body is None else json.dumps(body)
        self.method = method or ("GET" if body is None else "POST")
        self.headers = {"Content-Type": "application/json", **(headers or {})}
        self.answer = Answer()
        self.rest = b""
        self.start()

    def run(self):
        answer = self.answer
        with contextlib.closing(self.connection) as connection:
            try:
                connection.request(self.method, self.path, self.content,
                                   self.headers)
                response = connection.getresponse()
                answer.headers = {name.lower(): value
                                  for name, value in response.getheaders()}
                answer.status = response.status
                # What has a length and ends before it is no error here.
                length = response.getheader("Content-Length")
                while piece := response.read1(65536):
                    answer.body += piece
                    if answer.is_stream:
                        self.read_events(piece)
                if length and len(answer.body) != int(length):
                    answer.broken = "the body is too short"
            except (OSError, http.client.HTTPException) as error:
                answer.broken = error

    def read_events(self, piece):
        *events, self.rest = (self.rest + piece).split(b"\n\n")
        for event in events:
            fields = dict(line.split(": ", 1)
                          for line in event.decode().split("\n")
                          if not line.startswith(":"))
            if fields.get("event") == "error":
                self.answer.errors.append(fields["data"])
            elif "data" in fields:
                self.answer.events.append(fields["data"])

    def leave(self):
        """Ends the connection, whatever has come."""
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)

    def wait(self):
        self.join(PATIENCE)
        assert not self.is_alive(), "no end of " + self.answer.describe()
        return self.answer

    def wait_for_tokens(self, count=1):
        """Until so many of a stream have come."""
        wait_until(lambda: len(self.answer.events) >= count or
                   not self.is_alive(), "tokens come")
        assert self.is_alive(), self.answer.describe()
        return self


def ask(address, path, body=None, **others):
    return Request(address, path, body, **others).wait()


def completion(tokens, stream=False, **fields):
    """The body of a request for exactly so many tokens."""
    body = {"prompt": "hacker:", "max_tokens": tokens, "ignore_eos": True,
            "temperature": 0, **fields}
    if stream:
        body.update(stream=True, stream_options={"include_usage": True})
    return body


def metric(address, name, **labels):
    """The sum of a metric over the labels that are not given."""
    text = ask(address, "/metrics").body.decode()
    total = 0.0
    for line in text.splitlines():
        match = re.fullmatch(r"([^{ ]+)(?:\{(.*)\})? (\S+)", line)
        if match and match[1] == name and all(
                f'{key}="{value}"' in match[2] for key, value in labels.items()):
            total += float(match[3])
    return total


#===------------------------------------------------------------------------===#
# Programs
#===------------------------------------------------------------------------===#

class Program:
    """One that runs until it is stopped, by the signal `end`, and what it
    writes."""

    def __init__(self, command, end=signal.SIGKILL, **options):
        self.lines = []
        self.end = end
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", **options)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def log(self):
        return "\n".join(list(self.lines))

    def find(self, pattern):
        for line in list(self.lines):
            if match := re.search(pattern, line):
                return match
        return None

    def wait_for(self, pattern):
        """The match of a line that it writes."""
        def found():
            if match := self.find(pattern):
                return match
            if self.process.poll() is not None:
                self.reader.join(PATIENCE)
                assert self.find(pattern), (
                    f"ended with {self.process.returncode}: {self.log()}")
            return None
        return wait_until(found, f"'{pattern}' is written: {self.log()}")

    def wait_to_listen(self, path):
        """Until it takes connections at the socket `path`."""
        def listens():
            assert self.process.poll() is None, self.log()
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(path) == 0
        wait_until(listens, "it listens: " + self.log())

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Its exit status, when it has ended and all that it wrote is here."""
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(self.end)
        self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stderr.close()


class Server(Program):
    """sandwich-run serve, at a port that was free."""

    def __init__(self, artifact, *options, ready=True, prefix=(), **others):
        super().__init__([*prefix, "sandwich-run", "serve", artifact,
                          "--port=0", "--kv-memory=128MiB", *options], **others)
        self.address = self.wait_for(r"^info: listening at (\S+)$")[1]
        if ready:
            self.wait_for("^info: ready at ")

    @property
    def name(self):
        """See `Answer.server`."""
        return ask(self.address, "/v1/completions", completion(1)).server

    def running(self):
        return metric(self.address, "vllm:num_requests_running")


class OperationTest(unittest.TestCase):
    """Tests with the artifact that the command line names, and nothing left of
    what they start."""
    artifact = None

    @classmethod
    def main(cls):
        cls.artifact = os.path.abspath(sys.argv.pop(1))
        unittest.main(verbosity=2)

    def setUp(self):
        # Sockets have short names.
        self.folder = tempfile.mkdtemp(prefix="operation", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        mark = leftovers.mark_processes()
        self.addCleanup(lambda: wait_until(
            lambda: not leftovers.marked_processes(mark),
            "all processes have ended"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def keep(self, program):
        """Ends `program` with the test, and tells what it wrote if that
        fails."""
        self.addCleanup(program.close)
        return program

    def start(self, *options, artifact=None, **others):
        return self.keep(Server(artifact or self.artifact, *options, **others))

    def stream(self, address, tokens, **others):
        return Request(address, body=completion(tokens, stream=True), **others)

    def check_complete(self, answer, tokens):
        self.assertTrue(answer.is_complete(tokens), answer.describe())

    def check_error(self, answer, status, pattern):
        self.assertEqual(answer.status, status, answer.describe())
        self.assertRegex(answer.json()["error"]["message"], pattern)

    #===--------------------------------------------------------------------===#
    # Proxies
    #===--------------------------------------------------------------------===#

    def make_certificate(self):
        """Of localhost, for itself; returns the paths of it and its key."""
        certificate, key = self.path("certificate.pem"), self.path("key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", key, "-out",
             certificate], check=True, stderr=subprocess.DEVNULL)
        return certificate, key

    def adapt(self, name, replacements):
        """The configuration in packaging/ with other places in it. Returns the
        path."""
        with open(os.path.join(PACKAGING, name), encoding="utf-8") as file:
            text = file.read()
        for old, new in replacements.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write(name, text)

    def start_haproxy(self, servers, silence="30s"):
        """In front of three servers; returns how it is asked. A stream from
        which nothing comes for `silence` is given up."""
        certificate, key = self.make_certificate()
        both = self.path("both.pem")
        with open(both, "w", encoding="utf-8") as file:
            for path in certificate, key:
                with open(path, encoding="utf-8") as part:
                    file.write(part.read())
        address = self.path("proxy")
        places = {"/etc/haproxy/sandwich.pem": both,
                  "bind 127.0.0.1:8443": f"bind unix@{address}",
                  "log stdout": "log stderr",
                  "set-timeout server 30s": "set-timeout server " + silence}
        for number, server in enumerate(servers, 1):
            places[f"127.0.0.1:{8080 + number}"] = \
                server.address[len("http://"):]
        self.proxy = self.keep(Program(
            [find_program("haproxy"), "-db", "-f",
             self.adapt("haproxy.cfg", places)]))
        self.proxy.wait_to_listen(address)
        return {"address": "unix:" + address, "certificate": certificate}

    def start_nginx(self, upstream):
        """In front of the server at `upstream`; returns how it is asked."""
        certificate, key = self.make_certificate()
        address = self.path("proxy")
        configuration = self.adapt("nginx.conf", {
            "/etc/nginx/sandwich.crt": certificate,
            "/etc/nginx/sandwich.key": key,
            "/run/nginx.pid": self.path("nginx.pid"),
            "listen 127.0.0.1:8443": f"listen unix:{address}",
            "server 127.0.0.1:8080": "server " + upstream,
            "worker_connections 8192": "worker_connections 256",
        })
        # Temporary files go below the prefix, and where Debian built it to.
        text = "daemon off;\n"
        with open(configuration, encoding="utf-8") as file:
            text += file.read().replace("http {", "http {" + "".join(
                f"{kind}_temp_path {self.path(kind + '_files')};" for kind in
                ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")), 1)
        if os.geteuid() == 0:
            text = "user root;\n" + text
        self.write("nginx.conf", text)
        self.proxy = self.keep(Program(
            [find_program("nginx"), "-p", self.folder, "-e", "stderr", "-c",
             configuration], end=signal.SIGTERM))
        self.proxy.wait_to_listen(address)
        return {"address": "unix:" + address, "certificate": certificate}
