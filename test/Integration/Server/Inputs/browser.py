# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chromium without a window, by its DevTools protocol.

The protocol goes over two pipes (--remote-debugging-pipe), messages of JSON that
end with a zero byte: no port, no driver, and the browser ends with whoever holds
the pipes.
"""
import base64
import collections
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time

# Waits end when what they wait for is there; this is for tests that fail.
PATIENCE = 30

KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
    "ArrowRight": {"code": "ArrowRight", "windowsVirtualKeyCode": 39},
}
SHIFT = 8


class BrowserError(Exception):
    pass


def find():
    """The path of a Chromium, or None."""
    return shutil.which("chromium")


class Browser:
    """One Chromium with a profile of its own, which `close` removes."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sandwich-browser-")
        self.received = b""
        self.counter = 0
        self.events = collections.deque()
        self.start()

    def start(self):
        # Numbers above those that the browser gets, so that none is in the way
        # of another.
        ends = []
        for pipe in (os.pipe(), os.pipe()):
            for end in pipe:
                ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
                os.close(end)
        commands, self.commands, self.answers, answers = ends
        arguments = [
            find(), "--headless=new", "--remote-debugging-pipe",
            "--user-data-dir=" + self.folder, "--no-first-run",
            # Tests may run as root and in containers, where there is no other
            # way; the only pages are those of this machine.
            "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--disable-extensions", "--disable-breakpad",
            "--no-default-browser-check", "--hide-scrollbars",
            # Nothing but this machine has an address.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "about:blank"]
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        log = os.open(os.path.join(self.folder, "log"),
                      os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.process = os.posix_spawn(
            arguments[0], arguments, {**os.environ, "HOME": self.folder},
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0),
                          (os.POSIX_SPAWN_DUP2, log, 1),
                          (os.POSIX_SPAWN_DUP2, log, 2),
                          (os.POSIX_SPAWN_DUP2, commands, 3),
                          (os.POSIX_SPAWN_DUP2, answers, 4)],
            setpgroup=0)
        for descriptor in (null, log, commands, answers):
            os.close(descriptor)

    def close(self):
        try:
            self.call("Browser.close")
        except BrowserError:
            pass
        os.close(self.commands)
        os.close(self.answers)
        deadline = time.monotonic() + 5
        while os.waitpid(self.process, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                break
            time.sleep(0.01)
        # What is left of its processes may still write into the folder.
        for _ in range(100):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                return
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, session=None, **parameters):
        """The result of a method of the protocol; events that come before it
        are kept."""
        self.counter += 1
        message = {"id": self.counter, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self.commands, data):]
        except BrokenPipeError:
            raise BrowserError("Chromium has ended: " + self.log()) from None
        while True:
            answer = self.receive(PATIENCE)
            if answer is None:
                raise BrowserError(f"no answer to {method}: " + self.log())
            if answer.get("id") != self.counter:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def receive(self, seconds):
        """The next message, or None where none comes."""
        while b"\0" not in self.received:
            if not select.select([self.answers], [], [], seconds)[0]:
                return None
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise BrowserError("Chromium has ended: " + self.log())
            self.received += data
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            # Of buses that are nowhere in a container it says much.
            return "".join(line for line in file if "dbus" not in line)[-2000:]

    def open(self, url, width=1280, height=800, phone=False, dark=False,
             scale=1, first_script=""):
        """A page in a context of its own: without the storage of others.
        `first_script` runs before each document's own."""
        return Page(self, url, width, height, phone, dark, scale, first_script)


class Page:
    def __init__(self, browser, url, width, height, phone, dark, scale,
                 first_script):
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")[
            "browserContextId"]
        self.target = browser.call(
            "Target.createTarget", url="about:blank",
            browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", flatten=True,
                                    targetId=self.target)["sessionId"]
        # What the page asked for, and what went wrong in it.
        self.requested = []
        self.problems = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=scale, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        self.call("Page.addScriptToEvaluateOnNewDocument", source=first_script)
        self.go(url)

    def close(self):
        self.browser.call("Target.disposeBrowserContext",
                          browserContextId=self.context)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **parameters):
        result = self.browser.call(method, self.session, **parameters)
        self.take_events()
        return result

    def take_events(self):
        while self.browser.events:
            event = self.browser.events.popleft()
            if event.get("sessionId") != self.session:
                continue
            parameters = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            elif event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.problems.append(
                    details.get("exception", {}).get("description")
                    or details["text"])
            elif event["method"] == "Log.entryAdded":
                entry = parameters["entry"]
                # Answers with an error status are not the page's fault.
                if entry["level"] == "error" and entry["source"] != "network":
                    self.problems.append(entry["text"])

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && "
                  f"location.href === {json.dumps(url)}")

    def evaluate(self, expression):
        """The value of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description")
                               or details["text"])
        return result["result"].get("value")

    def wait(self, expression):
        """The value of JavaScript, as soon as it counts as true."""
        deadline = time.monotonic() + PATIENCE
        while True:
            # A node has no value of its own.
            value = self.evaluate(
                f"(it => it instanceof Node || it)({expression})")
            if value:
                return value
            if time.monotonic() > deadline:
                raise BrowserError(f"does not become true: {expression}; the "
                                   "page says: " + self.evaluate(
                                       "document.body.innerText")[-1500:])
            time.sleep(0.02)

    def click(self, expression):
        """Presses the pointer where an element is; nothing may lie above it."""
        x, y = self.wait(f"""(() => {{
            const wanted = {expression};
            if (!wanted) return null;
            wanted.scrollIntoView({{block: 'nearest'}});
            const {{x, y, width, height}} = wanted.getBoundingClientRect();
            const at = [x + width / 2, y + height / 2];
            const found = document.elementFromPoint(...at);
            return wanted.contains(found) || found?.control === wanted
                ? at : null;
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                      button="left", clickCount=1)

    def press(self, key, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      modifiers=modifiers, **KEYS[key])

    def type(self, text):
        """Into what has the focus."""
        self.call("Input.insertText", text=text)

    def fill(self, expression, text):
        self.click(expression)
        self.evaluate("document.activeElement.select()")
        self.type(text)

    def screenshot(self):
        """A PNG."""
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png")["data"])
