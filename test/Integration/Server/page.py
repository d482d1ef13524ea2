#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the chat page does in a browser, beside a server without a model."""
import json
import os
import sys
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
import mock_server
from browser import PATIENCE, SHIFT, Browser

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
ANSWER = "document.querySelector('.exchange:last-child .answer')"
BELOW = "document.querySelector('.exchange:last-child .below')"
PROBLEM = "document.querySelector('.exchange:last-child .problem')"


def by_id(name):
    return f"document.getElementById('{name}')"


def button(text):
    """The last button with this text."""
    return ("[...document.querySelectorAll('button')].filter("
            f"it => it.textContent.trim() === '{text}').at(-1)")


# What the page does once a second it does so often for tests.
FASTER = 5
CLOCK = """{
    const real = window.setTimeout;
    window.setTimeout = (act, after) => real(act, after / %d);
}""" % FASTER


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.mock = mock_server.Mock()
        self.addCleanup(self.mock.close)

    def open(self, **options):
        """The page, once it knows its models. At the end of the test nothing
        went wrong in it, and it asked nobody but its server."""
        page = self.browser.open(self.mock.url, first_script=CLOCK, **options)
        self.addCleanup(self.check_and_close, page)
        page.wait(f"{by_id('model')}.value && "
                  f"{by_id('state')}.dataset.state !== 'unknown'")
        return page

    def check_and_close(self, page):
        page.evaluate("0")  # What has happened by now is known then.
        page.close()
        self.assertEqual(page.problems, [])
        self.assertIn(self.mock.url + "status", page.requested)
        for url in page.requested:
            self.assertTrue(url.startswith((self.mock.url, "data:")), url)

    def send(self, page, text):
        page.click(by_id("prompt"))
        page.type(text)
        page.press("Enter")

    def ask(self, page, text):
        """Sends, and waits for the end of the answer."""
        before = page.evaluate("document.querySelectorAll('.exchange').length")
        self.send(page, text)
        page.wait("document.querySelectorAll('.exchange').length > "
                  f"{before} && !{by_id('send')}.hidden")

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def choose(self, page, name, value):
        """Of a select."""
        page.evaluate(f"(it => {{ it.value = {json.dumps(value)}; "
                      "it.dispatchEvent(new Event('input', {bubbles: true}));"
                      "it.dispatchEvent(new Event('change', {bubbles: true}));"
                      f"}})({by_id(name)})")


class Conversation(PageTest):
    def test_text_grows(self):
        page = self.open()
        self.send(page, "gate")
        page.wait(f"{ANSWER}.textContent === 'before the gate'")
        # Meanwhile it can be stopped, and says that it is not finished.
        self.assertTrue(page.evaluate(f"{by_id('send')}.hidden"))
        self.assertEqual(page.evaluate(
            f"{by_id('exchanges')}.getAttribute('aria-busy')"), "true")
        self.mock.gate.set()
        page.wait(f"{ANSWER}.textContent === 'before the gate, after it'")
        page.wait(f"!{by_id('send')}.hidden")
        self.assertEqual(page.evaluate(
            f"{by_id('exchanges')}.getAttribute('aria-busy')"), "false")
        self.assertRegex(page.evaluate(f"{BELOW}.textContent"),
                         r"^4 tokens · first after [\d.]+ s · [\d.,]+ tokens/s")
        self.assertIn("4 tokens", page.evaluate(
            f"{by_id('announcement')}.textContent"))

    def test_what_was_said_goes_along(self):
        page = self.open()
        self.ask(page, "say yes")
        self.ask(page, "refuse")
        self.ask(page, "say no")
        bodies = self.mock.asked(CHAT)
        self.assertEqual(bodies[0]["stream_options"], {"include_usage": True})
        self.assertEqual(bodies[0]["model"], "mock")
        # Nobody answered the second message, so it is left out.
        self.assertEqual(bodies[2]["messages"], [
            {"role": "user", "content": "say yes"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "say no"}])
        page.click(button("Clear"))
        self.assertEqual(page.evaluate(
            "document.querySelectorAll('.exchange').length"), 0)
        self.ask(page, "say again")
        self.assertEqual(len(self.mock.asked(CHAT)[3]["messages"]), 1)

    def test_stop_ends_the_request(self):
        page = self.open()
        for way in ("button", "key"):
            with self.subTest(way=way):
                before = self.mock.disconnects
                self.send(page, "forever")
                page.wait(f"{ANSWER}.textContent.length > 20")
                if way == "button":
                    page.click(by_id("stop"))
                else:
                    page.press("Escape")
                page.wait(f"!{by_id('send')}.hidden")
                self.wait_until(lambda: self.mock.disconnects == before + 1)
                self.assertIn("stopped",
                              page.evaluate(f"{BELOW}.textContent"))
                self.assertFalse(page.evaluate(f"!!{PROBLEM}"))
        # What there is of the answer is part of the conversation.
        self.ask(page, "say on")
        self.assertRegex(
            self.mock.asked(CHAT)[2]["messages"][1]["content"], "^on on ")

    def test_clear_ends_the_request(self):
        page = self.open()
        self.send(page, "forever")
        page.wait(f"{ANSWER}.textContent.length > 20")
        page.click(button("Clear"))
        self.wait_until(lambda: self.mock.disconnects == 1)
        self.assertTrue(page.evaluate(f"{by_id('exchanges')}.hidden"))
        self.ask(page, "say fresh")
        self.assertEqual(page.evaluate(f"{ANSWER}.textContent"), "fresh")

    def test_regenerate_and_edit(self):
        page = self.open()
        self.ask(page, "say first")
        self.ask(page, "say second")
        page.click(button("Regenerate"))
        self.wait_until(lambda: len(self.mock.asked(CHAT)) == 3)
        page.wait(f"!{by_id('send')}.hidden")
        self.assertEqual(self.mock.asked(CHAT)[2], self.mock.asked(CHAT)[1])
        self.assertEqual(page.evaluate(f"{ANSWER}.textContent"), "second")

        page.fill(by_id("prompt"), "a draft")
        page.click(button("Edit"))
        self.assertEqual(page.evaluate(f"{by_id('prompt')}.value"),
                         "say second")
        page.click(button("Cancel"))
        self.assertEqual(page.evaluate(f"{by_id('prompt')}.value"), "a draft")
        page.click(button("Edit"))
        page.press("Escape")
        self.assertEqual(page.evaluate(f"{by_id('prompt')}.value"), "a draft")
        page.fill(by_id("prompt"), "")
        page.click(button("Edit"))
        page.evaluate(f"{by_id('prompt')}.select()")
        page.type("say third")
        page.press("Enter")
        page.wait(f"{ANSWER}.textContent === 'third'")
        page.wait(f"!{by_id('send')}.hidden")
        self.assertEqual(
            [each["content"] for each in self.mock.asked(CHAT)[3]["messages"]],
            ["say first", "first", "say third"])
        self.assertEqual(page.evaluate(
            "document.querySelectorAll('.exchange').length"), 2)

    def test_copy(self):
        page = self.open()
        self.browser.call("Browser.grantPermissions",
                          permissions=["clipboardReadWrite",
                                       "clipboardSanitizedWrite"],
                          browserContextId=page.context)
        self.ask(page, "say **as** it came")
        page.click(button("Copy"))
        page.wait(button("Copied"))
        self.assertEqual(page.evaluate("navigator.clipboard.readText()"),
                         "**as** it came")

    def test_keyboard(self):
        page = self.open()
        # The message has the focus from the beginning.
        page.type("say one")
        page.press("Enter", SHIFT)
        page.type("two")
        page.press("Enter")
        page.wait(f"{ANSWER}.textContent.includes('two')")
        self.assertEqual(
            self.mock.asked(CHAT)[0]["messages"][0]["content"], "say one\ntwo")
        page.evaluate(f"{by_id('tab-live')}.focus()")
        page.press("ArrowRight")
        self.assertEqual(page.evaluate("document.activeElement.id"),
                         "tab-settings")
        self.assertFalse(page.evaluate(f"{by_id('settings')}.hidden"))
        # Everything that has the focus by Tab has a name.
        page.evaluate("document.activeElement.blur()")
        names = set()
        for _ in range(40):
            page.press("Tab")
            names.add(page.evaluate("""(it =>
                it.id + ':' + (it.labels?.[0]?.textContent || it.title
                    || it.getAttribute('aria-label')
                    || it.getAttribute('aria-labelledby') || it.textContent)
            )(document.activeElement)""").strip())
        self.assertTrue({"temperature:Temperature", "stop-strings:Stop "
                         "strings, one a line", "model:Model"} <= names, names)
        self.assertFalse([name for name in names if name.endswith(":")], names)

    def test_markdown(self):
        page = self.open()
        self.ask(page, "anything")
        self.assertEqual(page.evaluate(
            f"[...{ANSWER}.children].map(it => it.tagName + it.className)"),
            ["P", "OL", "DIVcode", "P"])
        self.assertEqual(page.evaluate(
            f"[...{ANSWER}.querySelectorAll('strong, em, code')]"
            ".map(it => it.tagName + ' ' + it.textContent)"),
            ["STRONG blocks", "EM hash",
             "CODE def blocks(tokens, size=16):\n    return -(-tokens // size)",
             "CODE cached_tokens"])

    def test_markdown_that_is_none(self):
        page = self.open()
        for text, shape in (
                ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
                ("a ** b", "<p>a ** b</p>"),
                ("`open", "<p>`open</p>"),
                ("**open", "<p>**open</p>"),
                (r"\*no\*", "<p>*no*</p>"),
                ("``a`b``", "<p><code>a`b</code></p>"),
                ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
                ("- a\n  - b\n    - c\n- d", "<ul><li>a<ul><li>b<ul><li>c</li>"
                 "</ul></li></ul></li><li>d</li></ul>"),
                ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
                ("    - a\n- b", "<div><ul><li>a</li></ul><ul><li>b</li></ul>"
                 "</div>"),
                ("- a\n1. b", "<ul><li>a</li></ul><ol><li>b</li></ol>"),
                ("## a\nb\n\nc", "<h3>a</h3><p>b</p><p>c</p>"),
                ("&lt;b>", "<p>&amp;lt;b&gt;</p>")):
            with self.subTest(text=text):
                self.ask(page, "say " + text)
                self.assertEqual(page.evaluate(f"{ANSWER}.innerHTML").replace(
                    ' class=""', ""), shape)

    def test_markdown_that_does_not_end(self):
        # What closes nothing is text, and what nests too deep does not nest.
        page = self.open()
        for text in ("**a ", "[a](", "a ***", "- ", "1) "):
            with self.subTest(text=text):
                self.ask(page, "repeat 4000 " + json.dumps(text))
                shown = page.evaluate(f"{ANSWER}.textContent")
                self.assertIn(shown.strip(), 4000 * text)
                self.assertGreater(len(shown), 3990 * len(text))
        self.ask(page, "repeat 400 " + json.dumps("- a\n"))
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelectorAll('ul > li').length"), 400)
        self.ask(page, "say ```\n" + "<b>\n" * 100)
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelector('pre').textContent"),
            "\n".join(["<b>"] * 100))
        self.ask(page, "say " + "\n".join(
            "  " * depth + "- a" for depth in range(100)))
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelectorAll('li').length"), 100)
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelectorAll('ul ' + 'ul '.repeat(5)).length"), 1)
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelectorAll('ul ' + 'ul '.repeat(6)).length"), 0)

    def test_text_of_models_is_only_text(self):
        page = self.open()
        for place in ("chat", "text", "json_object"):
            with self.subTest(place=place):
                if place == "text":
                    page.click("document.querySelector('[value=text]')")
                if place == "json_object":
                    page.click("document.querySelector('[value=chat]')")
                    self.choose(page, "format", place)
                self.ask(page, "attack")
                shown = page.evaluate(f"{ANSWER}.textContent")
                for part in ('onerror="window.attacked = 1"',
                             "</script><script>", "onload=", "<iframe",
                             "<style>"):
                    self.assertIn(part, shown)
                self.assertEqual(page.evaluate(
                    f"{ANSWER}.querySelectorAll('img, script, svg, iframe, "
                    "style, a, [onerror], [onload], [onclick]').length"), 0)
        # Attacks that come by other ways: errors, names of models.
        self.choose(page, "format", "text")
        self.ask(page, "refuse")
        self.assertIn("<b>lower</b>", page.evaluate(f"{PROBLEM}.textContent"))
        self.mock.models.append(
            mock_server.Model("<img src=x onerror='window.attacked = 7'>"))
        page.wait(f"{by_id('model')}.options.length === 3 && "
                  f"{by_id('plans')}.children.length === 3")
        self.assertFalse(page.evaluate("'attacked' in window"))

    def test_policy_stops_what_the_page_would_not_do(self):
        page = self.open()
        for attack in ("document.body.innerHTML = '<b>a</b>'",
                       "document.write('a')",
                       "new DOMParser().parseFromString('a', 'text/html')"):
            with self.subTest(attack=attack):
                self.assertRegex(page.evaluate(
                    f"(() => {{ try {{ {attack}; return 'done'; }} "
                    "catch (error) { return error.message; } })()"), "Trusted")
        self.assertEqual(page.evaluate(
            "fetch('http://127.0.0.1:9/').then(() => 'done', () => 'refused')"),
            "refused")
        page.evaluate("""(it => {
            it.src = 'http://127.0.0.1:9/a.png'; document.body.append(it);
        })(document.createElement('img'))""")
        page.evaluate("new Promise(done => setTimeout(done, 250))")
        # All of them, and nothing else, are what the browser complains of.
        page.evaluate("0")
        self.assertTrue(page.problems)
        for problem in page.problems:
            self.assertRegex(problem, "Content Security Policy|TrustedHTML")
        page.problems.clear()
        page.requested[:] = [url for url in page.requested if ":9/" not in url]

    def test_long_answers_stay_at_their_end(self):
        page = self.open()
        view = by_id("conversation")
        self.ask(page, "say " + "word\n\n" * 120)
        at_end = (f"{view}.scrollHeight - {view}.scrollTop - "
                  f"{view}.clientHeight < 2")
        page.wait(at_end)
        page.evaluate(f"{view}.scrollTop = 0")
        page.click(by_id("to-end"))
        page.wait(at_end)
        page.wait(f"{by_id('to-end')}.hidden")


class Errors(PageTest):
    def test_what_the_server_says_is_shown(self):
        page = self.open()
        for text, message, details in (
                ("refuse", "Temperature is 7; it must be <b>lower</b>",
                 "temperature · out_of_range · status 400"),
                ("busy", "Too many requests wait",
                 "rate_limit_exceeded · status 429 · again in 3 s"),
                ("break", "The engine has ended", "")):
            with self.subTest(text=text):
                self.ask(page, text)
                self.assertEqual(page.evaluate(f"{PROBLEM}.textContent"),
                                 message + details)
        self.assertEqual(page.evaluate(f"{ANSWER}.textContent"), "half of ")
        # What there is of an answer stays; the same message can be sent again.
        page.click(button("Try again"))
        self.wait_until(lambda: len(self.mock.asked(CHAT)) == 4)

    def test_connections_that_end_are_told_of(self):
        page = self.open()
        self.send(page, "cut")
        page.wait(f"{ANSWER}.textContent === 'half of '")
        self.mock.gate.set()
        page.wait(PROBLEM)
        self.assertEqual(page.evaluate(f"{ANSWER}.textContent"), "half of ")
        self.assertEqual(page.evaluate(f"{PROBLEM}.textContent"),
                         "The connection was lost in the middle of the answer")
        self.mock.close()
        page.wait(f"{by_id('state')}.dataset.state === 'unreachable'")
        self.ask(page, "say hello")
        self.assertEqual(page.evaluate(f"{PROBLEM}.textContent"),
                         "The server cannot be reached")

    def test_keys(self):
        page = self.open()
        self.assertTrue(page.evaluate(f"{by_id('key-bar')}.hidden"))
        self.mock.api_key = "secret"
        self.ask(page, "say hello")
        self.assertIn("API key", page.evaluate(f"{PROBLEM}.textContent"))
        page.fill(by_id("key"), "wrong")
        page.press("Enter")
        page.wait(f"!{by_id('key-bar')}.hidden")
        page.fill(by_id("key"), "secret")
        page.click(by_id("use-key"))
        page.wait(f"{by_id('key-bar')}.hidden && "
                  f"{by_id('state')}.dataset.state === 'ready'")
        page.click(button("Try again"))
        page.wait(f"{ANSWER}.textContent === 'hello'")
        # That the key before it was wrong may be heard of later.
        self.mock.holds_refusals = True
        for key in ("wrong", "secret"):
            page.click(by_id("tab-settings"))
            page.click(by_id("show-key"))
            page.fill(by_id("key"), key)
            asked = len(self.mock.asked("/status"))
            page.press("Enter")
            if key == "wrong":
                self.wait_until(
                    lambda: len(self.mock.asked("/status")) > asked)
        self.ask(page, "say again")
        asked = len(self.mock.asked("/status"))
        self.mock.gate.set()
        self.wait_until(lambda: len(self.mock.asked("/status")) > asked + 1)
        self.assertTrue(page.evaluate(f"{by_id('key-bar')}.hidden"))
        self.assertEqual(page.evaluate(f"{by_id('state')}.dataset.state"),
                         "ready")
        # It stays in the tab, and goes nowhere else.
        page.go(self.mock.url + "?")
        page.wait(f"{by_id('state')}.dataset.state === 'ready'")
        self.assertEqual(page.evaluate("Object.values(localStorage).filter("
                                       "it => it.includes('secret'))"), [])


class Settings(PageTest):
    def test_requests_have_them(self):
        page = self.open()
        page.click(by_id("tab-settings"))
        self.ask(page, "say a")
        # What is empty is left to the server.
        self.assertEqual(set(self.mock.asked(CHAT)[0]), {
            "model", "messages", "stream", "stream_options", "max_tokens"})
        wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05,
                  "max_tokens": 3, "seed": -12345678901234,
                  "repetition_penalty": 1.1, "presence_penalty": -0.5,
                  "frequency_penalty": 0.25}
        for name, value in wanted.items():
            page.fill(by_id(name), str(value))
        page.fill(by_id("system"), "Be brief.")
        page.fill(by_id("stop-strings"), "###\n\\n\\n\n\\\\n")
        self.ask(page, "say b c d e f")
        body = self.mock.asked(CHAT)[1]
        self.assertEqual({name: body[name] for name in wanted}, wanted)
        self.assertEqual(body["stop"], ["###", "\n\n", "\\n"])
        self.assertEqual(body["messages"][0],
                         {"role": "system", "content": "Be brief."})
        self.assertNotIn("response_format", body)
        self.assertIn("ended by max tokens",
                      page.evaluate(f"{BELOW}.textContent"))

        # They are there the next time, until they are reset.
        page.go(self.mock.url + "?")
        page.wait(f"{by_id('model')}.value")
        self.ask(page, "say c")
        self.assertEqual({**self.mock.asked(CHAT)[2], "messages": None},
                         {**body, "messages": None})
        page.click(by_id("tab-settings"))
        page.click(by_id("reset"))
        self.ask(page, "say d")
        self.assertEqual(self.mock.asked(CHAT)[3].keys(),
                         self.mock.asked(CHAT)[0].keys())

    def test_json(self):
        page = self.open()
        self.choose(page, "format", "json_object")
        self.ask(page, "who")
        self.assertEqual(self.mock.asked(CHAT)[0]["response_format"],
                         {"type": "json_object"})
        # As it came, with nothing in it taken for Markdown.
        self.assertEqual(page.evaluate(
            f"{ANSWER}.querySelector('pre').textContent"),
            '{"name": "Ada", "kind": "**person**"}')
        schema = {"type": "object", "required": ["name"],
                  "properties": {"name": {"type": "string"}}}
        self.choose(page, "format", "json_schema")
        page.click(by_id("tab-settings"))
        page.fill(by_id("schema"), json.dumps(schema))
        self.ask(page, "who")
        self.assertEqual(
            self.mock.asked(CHAT)[1]["response_format"],
            {"type": "json_schema", "json_schema": {
                "name": "answer", "strict": True, "schema": schema}})

    def test_what_cannot_be_sent_is_not(self):
        page = self.open()
        page.click(by_id("tab-settings"))
        page.fill(by_id("top_p"), "1.5")
        page.click(by_id("tab-live"))
        self.send(page, "say hello")
        page.wait(f"!{by_id('composer-problem')}.hidden")
        self.assertRegex(page.evaluate(
            f"{by_id('composer-problem')}.textContent"), "^Top p: ")
        # The field is shown, and the message is kept.
        self.assertEqual(page.evaluate("document.activeElement.id"), "top_p")
        self.assertEqual(page.evaluate(f"{by_id('prompt')}.value"),
                         "say hello")
        page.fill(by_id("top_p"), "1")
        self.choose(page, "format", "json_schema")
        page.fill(by_id("schema"), "{")
        page.click(by_id("send"))
        page.wait("document.activeElement.id === 'schema'")
        self.assertRegex(page.evaluate(
            f"{by_id('composer-problem')}.textContent"), "^JSON schema: ")
        self.assertEqual(self.mock.asked(CHAT), [])
        page.fill(by_id("schema"), "{}")
        page.click(by_id("send"))
        page.wait(f"{by_id('composer-problem')}.hidden")

    def test_storage_may_be_refused(self):
        page = self.open()
        page.call("Page.addScriptToEvaluateOnNewDocument", source="""
            for (const name of ['localStorage', 'sessionStorage'])
                Object.defineProperty(window, name, {
                    get() { throw new DOMException('no', 'SecurityError'); }});
        """)
        page.go(self.mock.url + "?")
        page.wait(f"{by_id('model')}.value")
        page.click(by_id("tab-settings"))
        page.fill(by_id("seed"), "7")
        self.ask(page, "say hello")
        self.assertEqual(self.mock.asked(CHAT)[0]["seed"], 7)


class Texts(PageTest):
    def test_model_without_template(self):
        page = self.open()
        self.choose(page, "model", "mock-base")
        self.assertEqual(page.evaluate(
            "document.querySelector('[name=mode]:checked').value"), "text")
        self.ask(page, "say once upon")
        self.assertEqual(self.mock.asked(CHAT), [])
        body = self.mock.asked(TEXT)[0]
        self.assertEqual(body["prompt"], "say once upon")
        self.assertEqual(body["max_tokens"], 256)
        self.assertNotIn("messages", body)
        # Where it goes on, the text so far is what it goes on from.
        page.click(button("Continue"))
        page.wait(f"{ANSWER}.textContent === 'once upononce upononce upon'"
                  f" || {ANSWER}.textContent.length > 20")
        self.assertEqual(self.mock.asked(TEXT)[1]["prompt"],
                         "say once upononce upon")

    def test_fallback(self):
        # Where only the server's error tells of it.
        self.mock.tells_templates = False
        page = self.open()
        self.choose(page, "model", "mock-base")
        self.assertEqual(page.evaluate(
            "document.querySelector('[name=mode]:checked').value"), "chat")
        self.ask(page, "say once")
        self.assertEqual(len(self.mock.asked(CHAT)), 1)
        self.assertEqual(self.mock.asked(TEXT)[0]["prompt"], "say once")
        self.assertEqual(page.evaluate(f"{ANSWER}.textContent"), "once")
        self.assertEqual(page.evaluate(
            "document.querySelector('[name=mode]:checked').value"), "text")
        self.assertIn("chat template", page.evaluate(
            "document.querySelector('.exchange .note').textContent"))
        self.assertFalse(page.evaluate(f"!!{PROBLEM}"))
        # What is known of a model stays so.
        for model, mode in (("mock", "chat"), ("mock-base", "text")):
            self.choose(page, "model", model)
            self.assertEqual(page.evaluate(
                "document.querySelector('[name=mode]:checked').value"), mode)

    def test_mode_is_kept(self):
        page = self.open()
        page.click("document.querySelector('[value=text]')")
        self.ask(page, "say **a**")
        self.assertEqual(self.mock.asked(TEXT)[0]["prompt"], "say **a**")
        self.assertEqual(page.evaluate(f"{ANSWER}.innerHTML"), "**a**")
        page.go(self.mock.url + "?")
        page.wait(f"{by_id('model')}.value")
        self.assertEqual(page.evaluate(
            "document.querySelector('[name=mode]:checked').value"), "text")


class Live(PageTest):
    def text(self, page, name):
        return page.evaluate(f"{by_id(name)}.textContent")

    def test_values_follow_the_server(self):
        model = self.mock.models[0].fields
        page = self.open()
        page.wait(f"{by_id('kv-total')}.textContent === '128 blocks'")
        with self.mock.lock:
            model["running_requests"], model["waiting_requests"] = 3, 2
            model["kv_blocks"].update(used=32, cached=64)
            model["phase"] = "prefill"
            model["totals"]["generated_tokens"] += 100_000
            model["totals"]["prompt_tokens"] += 1_000_000
            model["totals"]["prefill_seconds"] += 1000
        page.wait(f"{by_id('running')}.textContent === '3'")
        self.assertEqual(self.text(page, "waiting"), "2")
        self.assertEqual(page.evaluate(
            f"[...{by_id('kv')}.children].map(it => it.style.width)"),
            ["25%", "50%"])
        self.assertEqual(page.evaluate(f"{by_id('kv')}.ariaLabel"),
                         "32 in use, 64 cached, 32 free")
        plan = f"{by_id('plans')}.firstChild"
        self.assertEqual(page.evaluate(f"{plan}.querySelector('.phase')"
                                       ".textContent"), "prefill")
        # Rates come from what the totals grew by.
        generated, prompt = (
            float(self.text(page, name).replace(",", ""))
            for name in ("rate-generated", "rate-prompt"))
        self.assertGreater(generated, 1000)
        self.assertAlmostEqual(prompt / generated, 10, delta=0.1)
        self.assertIn("prefill 100%", page.evaluate(f"{plan}.textContent"))
        # And fall again, with a line behind them.
        page.wait(f"{by_id('rate-generated')}.textContent === '0'")
        self.assertGreaterEqual(page.evaluate(
            "document.querySelector('#chart-generated .line')"
            ".getAttribute('d').split(/[ML]/).length - 1"), 2)

    def test_cores_of_both_plans(self):
        with self.mock.lock:
            fields = self.mock.models[0].fields
            fields["phase"] = "decode"
            fields["plan"] = {"prefill_cores": [[0, 1], [2, 3]],
                              "decode_cores": [[1], [3, 5]]}
        page = self.open()
        page.wait("document.querySelectorAll('.cores').length === 2")
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('.cores')[0].querySelectorAll('g')]"
            ".map(it => [...it.querySelectorAll('.part')]"
            ".map(part => part.getAttribute('class')).join(', '))"),
            ["part prefill", "part prefill, part decode active",
             "part prefill", "part prefill, part decode active", "",
             "part decode active"])
        self.assertEqual(page.evaluate(
            "document.querySelector('.cores').getAttribute('aria-label')"),
            "prefill on cores 0-3, decode on cores 1,3,5; now decode")
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('.cores')[0]"
            ".querySelectorAll('title')].map(it => it.textContent)")[3:5],
            ["core 3: prefill and decode, rank 1", "core 4: in no plan"])
        # The other model's picture has the same cores.
        self.assertEqual(page.evaluate(
            "document.querySelectorAll('.cores')[1].children.length"), 6)

    def test_states(self):
        page = self.open()
        model = self.mock.models[0].fields
        for change, state, text in (
                ({"state": "loading", "progress": 0.4}, "loading",
                 "loading 40%"),
                ({"state": "failed"}, "failed", "failed"),
                ({"state": "ready"}, "ready", "ready")):
            with self.mock.lock:
                model.update(change)
            page.wait(f"{by_id('state')}.dataset.state === '{state}'")
            self.assertEqual(self.text(page, "state"), text)
        self.mock.draining = True
        page.wait(f"{by_id('state')}.dataset.state === 'draining'")
        self.assertIn("takes nothing new", self.text(page, "live-note"))

    def test_server_that_was_started_anew(self):
        self.mock.begun -= 1000
        page = self.open()
        page.wait(f"{by_id('rate-generated')}.textContent === '0'")
        # Totals and the clock begin again: no rate of that is told.
        self.mock.begun += 1000
        self.mock.models[0].fields["totals"]["generated_tokens"] = 10**9
        page.wait(f"{by_id('rate-generated')}.textContent === '–'")
        page.wait(f"{by_id('rate-generated')}.textContent === '0'")
        # The pictures begin again, too.
        points = page.evaluate(
            "document.querySelector('#chart-queue .line').getAttribute('d')"
            ".match(/[^ML]+/g).map(point => parseFloat(point))")
        self.assertEqual(points[-1], 240)
        self.assertLess(len(points), 30)
        self.assertEqual(points, sorted(points))

    def test_hidden_tabs_ask_nothing(self):
        page = self.open()
        page.evaluate("""
            Object.defineProperty(document, 'visibilityState',
                                  {value: 'hidden', configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));""")
        # One may have been under way.
        page.evaluate("new Promise(done => setTimeout(done, 1000))")
        before = len(self.mock.asked("/status"))
        page.evaluate("new Promise(done => setTimeout(done, 5000))")
        self.assertEqual(len(self.mock.asked("/status")), before)
        page.evaluate("""
            delete document.visibilityState;
            document.dispatchEvent(new Event('visibilitychange'));""")
        self.wait_until(lambda: len(self.mock.asked("/status")) > before)


class Sizes(PageTest):
    def test_nothing_is_wider_than_the_window(self):
        for width in (320, 390, 700, 1280):
            with self.subTest(width=width):
                page = self.open(width=width, height=700, phone=width < 1000)
                self.send(page, "repeat 4 " + json.dumps(
                    "wide" * 100 + " `" + "code" * 100 + "`\n\n```\n"
                    + "line " * 100 + "\n```\n\n- " + "item" * 100 + "\n\n"))
                page.wait(f"!{by_id('send')}.hidden && "
                          f"{ANSWER}.querySelector('li')")
                self.check_width(page, width)
                if width < 960:
                    page.click(by_id("open-side"))
                for tab in ("settings", "live"):
                    page.click(by_id("tab-" + tab))
                    self.check_width(page, width)

    def check_width(self, page, width):
        self.assertEqual(page.evaluate("window.innerWidth"), width)
        self.assertLessEqual(page.evaluate(
            "document.scrollingElement.scrollWidth"), width)
        for part in ("#conversation", "#live", "#settings", "header"):
            self.assertTrue(page.evaluate(
                f"(it => it.scrollWidth <= it.clientWidth)"
                f"(document.querySelector('{part}'))"), part)

    def test_the_panel_of_a_phone(self):
        page = self.open(width=390, height=844, phone=True)
        self.assertEqual(page.evaluate("getComputedStyle("
                                       f"{by_id('side')}).display"), "none")
        page.click(by_id("open-side"))
        self.assertEqual(page.evaluate("document.activeElement.id"),
                         "tab-live")
        # What lies behind cannot be reached.
        self.assertTrue(page.evaluate(f"{by_id('main')}.inert"))
        page.press("Escape")
        self.assertEqual(page.evaluate("document.activeElement.id"),
                         "open-side")
        self.assertFalse(page.evaluate(f"{by_id('main')}.inert"))

    def test_nothing_jumps(self):
        # Numbers that grow, and buttons that come and go, move nothing else.
        page = self.open()
        where = """JSON.stringify(['live', 'kv', 'chart-queue', 'clear',
            'composer', 'tab-live'].map(id => {
                const {x, y, width, height} =
                    document.getElementById(id).getBoundingClientRect();
                return [x, y, width, height];
            }))"""
        page.wait(f"{by_id('rate-generated')}.textContent === '0'")
        before = page.evaluate(where)
        self.send(page, "gate")
        page.wait(f"{ANSWER}.textContent === 'before the gate'")
        with self.mock.lock:
            model = self.mock.models[0].fields
            model["totals"]["generated_tokens"] += 123_456_789
            model["waiting_requests"] = 1234
        page.wait(f"{by_id('waiting')}.textContent === '1,234'")
        self.assertEqual(page.evaluate(where), before)
        self.mock.gate.set()
        page.wait(f"!{by_id('send')}.hidden")
        self.assertEqual(page.evaluate(where), before)


if __name__ == "__main__":
    unittest.main()
