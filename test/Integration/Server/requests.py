#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whatever a client asks for that is wrong, it is told which field is, in the
shape of OpenAI's errors, and nothing else happens.

    requests.py ARTIFACT
"""
import json
import os
import random
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
from serving import CHAT, COMPLETIONS, JSON, Answer, ServerTest, main

TOKENIZE = "/tokenize"
DETOKENIZE = "/detokenize"
VOCABULARY = 3072

TOOL = {"type": "function", "function": {"name": "f"}}

# Of both endpoints: the field, and values that must be refused.
COMMON = {
    "model": [5, [], "x" * 2000],
    "n": [0, -1, 3, 1025, 1.5, "2", True, 1 << 63, 1 << 64, []],
    "best_of": [0, 2, "1"],
    "temperature": [-0.1, 100.5, "1", True, [], {}, 1e300],
    "top_p": [0, -0.1, 1.1, "1", 1e-300],
    "min_p": [-0.1, 1.1, "1"],
    "top_k": [-2, 1 << 31, 1.5, "5"],
    "frequency_penalty": [-2.1, 2.1, "1"],
    "presence_penalty": [-2.1, 2.1, "1"],
    "repetition_penalty": [0, -1, 1e4, "1"],
    "ignore_eos": [1, "true"],
    "min_tokens": [-1, 1.5, "1", 1 << 63],
    "seed": [1.5, "1", 1 << 63, -(1 << 64)],
    "logit_bias": [[], "x", {"x": 1}, {"-1": 1}, {"1.5": 1}, {"": 1},
                   {"1": 101}, {"1": -101}, {"1": "1"}, {"1": None},
                   {str(VOCABULARY): 1}, {str(1 << 40): 1}],
    "stop": [5, "", [""], ["x", 5], ["x"] * 17, "x" * 1025, {}],
    "stop_token_ids": [5, ["1"], [-1], [1.5], [VOCABULARY], [1 << 40],
                       [1] * 257],
    "include_stop_str_in_output": [1, "x"],
    "skip_special_tokens": [1, "x"],
    "stream": [1, "true"],
    "stream_options": [5, [], {"include_usage": True}],
    "priority": [-1, 1.5, "1", 1 << 40],
    "cache_salt": [5, "x" * 2000],
    "response_format": [5, "json", [], {}, {"type": "xml"}, {"type": 5},
                        {"type": "json_schema"},
                        {"type": "json_schema", "json_schema": {}},
                        {"type": "json_schema",
                         "json_schema": {"schema": 5}}],
    "guided_json": [5, "no JSON", {"type": "wizard"}],
    "guided_regex": [5, "(", "x" * 100000],
    "guided_choice": [5, [], [5], "x"],
    "use_beam_search": [True, 1],
    "length_penalty": [2, "1"],
}
OF_COMPLETIONS = {
    "prompt": [None, 5, True, {}, [], [[]], ["x", 5], [5, "x"],
               [[5], "x", [True]], [-1], [1.5], [VOCABULARY], [1 << 40],
               ["x"] * 1025, [["x"]]],
    "echo": [1, "x"],
    "logprobs": [-1, 21, 1.5, True, "1"],
    "max_tokens": [0, -1, 1.5, "1", True, 1 << 63, (1 << 40) + 1],
    "truncate_prompt_tokens": [0, -1, 1.5, "1"],
    "add_special_tokens": [1, "x"],
    "suffix": ["x", 5],
    "max_completion_tokens": [5],
    "messages": [[{"role": "user", "content": "x"}]],
    "tools": [[TOOL]],
    "nonsense": [0, "", False, [], {}],
}
OF_CHATS = {
    "messages": [None, 5, "x", {}, [], [5], [None], [[]], [{}],
                 [{"role": "user"}], [{"content": "x"}],
                 [{"role": 5, "content": "x"}],
                 [{"role": "user", "content": 5}],
                 [{"role": "user", "content": {}}],
                 [{"role": "user", "content": [5]}],
                 [{"role": "user", "content": [{"type": "text"}]}],
                 [{"role": "user", "content": [{"type": "image_url"}]}],
                 [{"role": "user", "content": [
                     {"type": "text", "text": "x", "y": 1}]}],
                 [{"role": "user", "content": "x", "y": 1}],
                 [{"role": "assistant", "tool_calls": [{}]}],
                 [{"role": "assistant", "tool_calls": [5]}],
                 [{"role": "assistant", "tool_calls": 5}],
                 [{"role": "assistant", "tool_calls": [
                     {"function": {"name": "f", "arguments": "{"}}]}],
                 [{"role": "assistant", "tool_calls": [
                     {"function": {"arguments": "{}"}}]}],
                 [{"role": "user", "content": "x"}] * 16385],
    "logprobs": [1, "true", 5],
    "top_logprobs": [5, -1, 21, "1"],
    "max_tokens": [0, -1, 1.5, "1"],
    "max_completion_tokens": [0, -1, 1.5, "1"],
    "tools": [5, {}, [5], [{}], [{"type": "x"}], [{"type": "function"}],
              [{"type": "function", "function": 5}],
              [{"type": "function", "function": {}}],
              [{"type": "function", "function": {"name": 5}}],
              [{"type": "function",
                "function": {"name": "f", "parameters": 5}}],
              [{"type": "function", "function": {"name": "f", "x": 1}}],
              [TOOL] * 1025],
    "parallel_tool_calls": [1, "x"],
    "tool_choice": ["required", "wizard", 5, {"function": {"name": "f"}}],
    "chat_template_kwargs": [5, []],
    "reasoning_effort": [5],
    "documents": [5, {}],
    "continue_final_message": [1, "x"],
    "add_generation_prompt": [1, "x"],
    "echo": [True],
    "modalities": [["audio"], "text"],
    "prompt": ["x"],
    "nonsense": [0, "", False, [], {}],
}
OF_TOKENS = {
    "prompt": [None, 5, [], {}],
    "model": [5],
    "add_special_tokens": [1],
    "return_token_strs": [1],
    "nonsense": [1],
}
OF_TEXTS = {
    "tokens": [None, 5, "x", {}, ["x"], [-1], [1.5], [1 << 40], [None]],
    "nonsense": [1],
}


class RequestTest(ServerTest):
    options = ("--batch=2", "--kv-memory=64MiB", "--no-log-requests",
               "--max-header=64KiB")

    def setUp(self):
        self.connection = self.server.connect()
        self.addCleanup(self.connection.close)

    def post(self, path, body):
        """On one connection, as each of hundreds would take its time."""
        self.connection.request("POST", path, body, JSON)
        return Answer.of(self.connection.getresponse())


class Fields(RequestTest):
    def refuse_values(self, path, body, fields):
        for name, values in fields.items():
            for value in values:
                with self.subTest(path=path, field=name,
                                  value=str(value)[:60]):
                    answer = self.post(path, json.dumps({**body, name: value}))
                    self.assertEqual(answer.status, 400, answer)
                    param = answer.json()["error"]["param"]
                    self.assertIsNotNone(param, answer)
                    self.assertEqual(
                        param.split(".")[0].split("[")[0], name, answer)
                    self.refuse(answer, 400, param)
                    self.assertLess(len(answer.body), 4096)

    def test_completions(self):
        self.refuse_values(COMPLETIONS, {"prompt": "A", "max_tokens": 1},
                           {**COMMON, **OF_COMPLETIONS})

    def test_chats(self):
        self.refuse_values(CHAT, {"messages": [
            {"role": "user", "content": "A"}], "max_tokens": 1},
            {**COMMON, **OF_CHATS})

    def test_tokenize(self):
        self.refuse_values(TOKENIZE, {"prompt": "A"}, OF_TOKENS)

    def test_detokenize(self):
        self.refuse_values(DETOKENIZE, {"tokens": [1]}, OF_TEXTS)

    def test_detokenize_takes_tokens_of_the_vocabulary(self):
        self.refuse(self.post(DETOKENIZE,
                              json.dumps({"tokens": [VOCABULARY]})), 400,
                    "tokens")

    def test_tool_choice_without_such_a_tool(self):
        self.refuse(self.post(CHAT, json.dumps({
            "messages": [{"role": "user", "content": "x"}], "tools": [TOOL],
            "tool_choice": {"type": "function",
                            "function": {"name": "g"}}})), 400,
            "tool_choice.function.name")

    def test_a_field_that_is_wrong_is_named_with_its_place(self):
        for path, body, param in (
                (CHAT, {"messages": [{"role": "user", "content": "x"},
                                     {"role": "user", "content": 5}]},
                 "messages[1].content"),
                (CHAT, {"messages": [5]}, "messages[0]"),
                (CHAT, {"messages": [{"role": "user", "content": "x",
                                      "y": 1}]}, "messages[0].y"),
                (COMPLETIONS, {"prompt": ["a", 5]}, "prompt[1]"),
                (COMPLETIONS, {"prompt": "a", "stop": ["a", ""]}, "stop[1]"),
                (COMPLETIONS, {"prompt": "a", "stream": True,
                               "stream_options": {"x": 1}},
                 "stream_options.x")):
            with self.subTest(param=param):
                self.refuse(self.post(path, json.dumps(body)), 400, param)

    def test_one_format_only(self):
        for fields, param in (
                ({"response_format": {"type": "json_object"},
                  "guided_regex": "a+"}, "guided_regex"),
                ({"guided_json": {"type": "object"},
                  "structured_outputs": {"choice": ["a"]}},
                 "structured_outputs.choice"),
                ({"structured_outputs": {"regex": "a", "choice": ["a"]}},
                 "structured_outputs.choice")):
            with self.subTest(param=param):
                self.refuse(self.post(COMPLETIONS, json.dumps(
                    {"prompt": "A", **fields})), 400, param)

    def test_values_at_the_ends_of_ranges(self):
        for fields in ({"temperature": 0}, {"temperature": 100},
                       {"top_p": 1}, {"top_p": 1e-30}, {"min_p": 1},
                       {"top_k": (1 << 31) - 1}, {"frequency_penalty": -2},
                       {"presence_penalty": 2}, {"repetition_penalty": 1e-3},
                       {"repetition_penalty": 1e3}, {"seed": (1 << 63) - 1},
                       {"seed": -(1 << 63)}, {"logprobs": 20},
                       {"stop": ["x" * 1024] * 16},
                       {"stop_token_ids": [VOCABULARY - 1] * 256},
                       {"logit_bias": {"0": -100, "3071": 100}},
                       {"min_tokens": 1 << 40}, {"n": 2.0},
                       {"cache_salt": "x" * 1024}, {"user": {"any": []}},
                       {"metadata": None, "nonsense": None}):
            with self.subTest(fields=str(fields)[:60]):
                answer = self.post(COMPLETIONS, json.dumps(
                    {"prompt": "A", "max_tokens": 2, **fields}))
                self.assertEqual(answer.status, 200, answer)

    def test_unknown_model(self):
        for path in (COMPLETIONS, CHAT):
            self.refuse(self.post(path, json.dumps({
                "model": "gpt-9", "prompt": "A"} if path == COMPLETIONS else {
                "model": "gpt-9",
                "messages": [{"role": "user", "content": "A"}]})), 404,
                "model", "model_not_found")
        self.refuse(self.server.get("/v1/models/gpt-9"), 404, "model",
                    "model_not_found")


class Bodies(RequestTest):
    """What is no request at all."""

    def setUp(self):
        super().setUp()
        self.valid = json.dumps({"prompt": "A hacker is", "max_tokens": 1,
                                 "stop": ["\n"], "logit_bias": {"5": 1}})

    def refuse_body(self, body, message="", param=None):
        for path in (COMPLETIONS, CHAT, TOKENIZE, DETOKENIZE):
            answer = self.post(path, body)
            self.refuse(answer, 400, param, message=message)
            self.assertLess(len(answer.body), 4096)

    def test_bad_json_with_its_position(self):
        for body, position in ((b"", None), (b"{", None), (b"nonsense", 2),
                               (b"{} x", 4), (b'{"a": }', 7),
                               (b'{"a": 1,}', 9), (b"[1, 2", None),
                               (b'{"a": NaN}', 7), (b'{"a": 01}', 8),
                               (b'{"a": 1e999}', None),
                               (b"\xef\xbb\xbf", None), (b"\0", None),
                               (b'{"a": "\n"}', 8), (b"{'a': 1}", 2)):
            with self.subTest(body=body):
                self.refuse_body(body, r"not valid JSON at byte " +
                                 (str(position) if position else r"\d+"))

    def test_no_object(self):
        for body in (b"5", b'"x"', b"[]", b"null", b"true", b"[{}]"):
            with self.subTest(body=body):
                self.refuse_body(body, "it must be an object")

    def test_a_key_twice(self):
        self.refuse_body(b'{"prompt": "a", "prompt": "b"}', "duplicate key")
        self.refuse_body(b'{"%b": 1, "%b": 1}' % (b"x" * 100000, b"x" * 100000),
                         "duplicate key")

    def test_deep_json(self):
        for opening in (b"[", b'{"a":'):
            for depth in (65, 1000, 100000, 1000000):
                self.refuse_body(b'{"messages": ' + opening * depth,
                                 "nested deeper than 64")

    def test_deep_json_in_arguments(self):
        self.refuse(self.post(CHAT, json.dumps({"messages": [{
            "role": "assistant", "tool_calls": [{"function": {
                "name": "f", "arguments": "[" * 100000}}]}]})), 400,
            "messages[0].tool_calls[0].function.arguments")

    def test_invalid_utf8(self):
        for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
                     b"\xe2\x82", b"\x80"):
            with self.subTest(text=text):
                self.refuse_body(b'{"prompt": "' + text + b'"}',
                                 "not valid JSON at byte 1[3-6]")
                self.refuse_body(b'{"' + text + b'": 1}',
                                 "not valid JSON at byte")

    def test_lone_surrogates(self):
        for text in (r"\ud800", r"\udc00", r"\ud800\ud800", r"\ud800x",
                     r"\udbff\u0041", r"\u12"):
            with self.subTest(text=text):
                self.refuse_body(f'{{"prompt": "{text}"}}',
                                 "not valid JSON at byte")
        answer = self.post(COMPLETIONS, r'{"prompt": "\ud83d\ude00", '
                                        r'"max_tokens": 1, "echo": true}')
        self.assertTrue(answer.json()["choices"][0]["text"].startswith("😀"))

    def test_characters_of_every_kind(self):
        for text in ("\0", "\x7f", "\ufffe", "\uffff", "\U0010ffff", "\u200f",
                     "<|end_of_text|>", "\r\n\r\n", "data: [DONE]\n\n"):
            with self.subTest(text=text):
                body = {"prompt": text, "echo": True, "max_tokens": 1}
                answer = self.post(COMPLETIONS, json.dumps(body))
                self.assertEqual(answer.status, 200, answer)
                self.assertTrue(answer.json()["choices"][0]["text"]
                                .startswith(text))
                chunks = self.server.stream(COMPLETIONS, body).chunks()
                streamed = "".join(chunk["choices"][0]["text"]
                                   for chunk in chunks)
                self.assertTrue(streamed.startswith(text))

    def test_many_fields(self):
        """Fields without a value change nothing, and a million of them cost no
        more than reading them."""
        nulls = ", ".join(f'"k{i}": null' for i in range(500000))
        answer = self.post(COMPLETIONS,
                           f'{{"prompt": "A", "max_tokens": 1, {nulls}}}')
        self.assertEqual(answer.status, 200, answer)
        answer = self.post(CHAT, f'{{"messages": [{{"role": "user", '
                                 f'"content": "A", {nulls}}}], '
                                 f'"max_tokens": 1}}')
        self.assertEqual(answer.status, 200, answer)
        biases = ", ".join(f'"{i:07}": 1' for i in range(500000))
        self.refuse(self.post(COMPLETIONS, f'{{"prompt": "A", '
                              f'"logit_bias": {{{biases}}}}}'), 400,
                    "logit_bias")

    def test_mutations(self):
        """No body makes it fail: 200, or 400 that says why."""
        source = random.Random(5)
        chat = json.dumps({
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "x"}]}], "max_tokens": 1,
            "tools": [TOOL], "tool_choice": "auto", "n": 1})
        values = [b"null", b"-1", b"1e308", b"[]", b"{}", b'""', b"true",
                  b'"\\ud800"', b"18446744073709551616", b"\xff", b"[[", b"}"]
        for _ in range(1500):
            path, text = source.choice(((COMPLETIONS, self.valid),
                                        (CHAT, chat)))
            data = bytearray(text.encode())
            for _ in range(source.randint(1, 4)):
                place = source.randrange(len(data))
                what = source.random()
                if what < 0.3:
                    data[place] = source.randrange(256)
                elif what < 0.5:
                    del data[place:place + source.randint(1, 8)]
                elif what < 0.7:
                    data[place:place] = source.choice(values)
                else:
                    end = data.find(b",", place)
                    data[place:max(end, place)] = source.choice(values)
                if not data:
                    break
            answer = self.post(path, bytes(data))
            if answer.status == 200:
                answer.json()
            elif answer.status == 404:
                self.assertEqual(answer.json()["error"]["code"],
                                 "model_not_found")
            else:
                error = answer.json()["error"]
                self.assertEqual(answer.status, 400, (bytes(data), answer))
                self.assertTrue(error["message"])
        self.server.wait_until_idle()
        self.assertEqual(self.server.metric("sandwich_model_ready"), 1)


main()
