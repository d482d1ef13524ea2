#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What answers promise: texts, streams, usage, log-probabilities, metrics.

    contract.py ARTIFACT
"""
import json
import math
import os
import re
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "Inputs"))
from serving import (CHAT, COMPLETIONS, Server, ServerTest, main)

CONTEXT = 8192
END_OF_TEXT = 3071


def texts(answer):
    return [choice["text"] for choice in answer["choices"]]


class ContractTest(ServerTest):
    options = ("--batch=8", "--kv-memory=128MiB", "--no-log-requests",
               "--heartbeat-seconds=0.2")


class Completions(ContractTest):
    def test_shape(self):
        before = int(time.time())
        answer = self.server.complete(max_tokens=5, ignore_eos=True)
        self.assertEqual(set(answer), {
            "id", "object", "created", "model", "system_fingerprint",
            "choices", "usage"})
        self.assertEqual(answer["object"], "text_completion")
        self.assertEqual(answer["model"], "served")
        self.assertLessEqual(before, answer["created"])
        self.assertLessEqual(answer["created"], time.time() + 1)
        choice, = answer["choices"]
        self.assertEqual(choice["index"], 0)
        self.assertEqual(choice["finish_reason"], "length")
        self.assertIsNone(choice["logprobs"])
        self.assertTrue(choice["text"])

    def test_ids_are_unique(self):
        answers = [self.server.complete(max_tokens=1) for _ in range(20)]
        self.assertEqual(len({answer["id"] for answer in answers}), 20)
        for answer in answers:
            self.assertRegex(answer["id"], r"^cmpl-[0-9a-f]+$")

    def test_fingerprint_is_the_same(self):
        prints = {self.server.complete(max_tokens=1)["system_fingerprint"]
                  for _ in range(2)}
        self.assertEqual(len(prints), 1)
        self.assertRegex(prints.pop(), "^fp_[0-9a-f]{16}$")

    def test_sixteen_tokens_by_default(self):
        usage = self.server.complete(ignore_eos=True)["usage"]
        self.assertEqual(usage["completion_tokens"], 16)

    def test_prompts_as_tokens(self):
        text = "A hacker is"
        tokens = self.server.post("/tokenize",
                                  {"prompt": text}).json()["tokens"]
        fields = {"max_tokens": 20, "temperature": 0}
        expected = texts(self.server.complete(text, **fields))
        self.assertEqual(texts(self.server.complete(tokens, **fields)),
                         expected)
        self.assertEqual(
            texts(self.server.complete([tokens, tokens], **fields)),
            2 * expected)

    def test_several_prompts_and_texts(self):
        prompts = ["A hacker is", "The computer"]
        answer = self.server.complete(prompts, n=3, max_tokens=8, seed=5,
                                      ignore_eos=True)
        self.assertEqual([choice["index"] for choice in answer["choices"]],
                         list(range(6)))
        self.assertEqual(len(set(texts(answer))), 6)
        self.assertEqual(answer["usage"]["completion_tokens"], 48)
        for i, prompt in enumerate(prompts):
            alone = self.server.complete(prompt, n=3, max_tokens=8, seed=5,
                                         ignore_eos=True)
            self.assertEqual(texts(alone), texts(answer)[3 * i:3 * i + 3])

    def test_more_texts_than_run_at_a_time(self):
        answer = self.server.complete(["A", "B", "C", "D", "E", "F", "G", "H",
                                       "I", "J", "K", "L"], max_tokens=4,
                                      ignore_eos=True)
        self.assertEqual(len(answer["choices"]), 12)
        self.assertEqual(answer["usage"]["completion_tokens"], 48)

    def test_seed_gives_the_same_text(self):
        def text(seed):
            return texts(self.server.complete(max_tokens=40, seed=seed))
        self.assertEqual(text(7), text(7))
        self.assertEqual(text(-7), text(-7))
        self.assertNotEqual(text(7), text(8))

    def test_seed_gives_the_same_text_whoever_is_served_beside(self):
        alone = texts(self.server.complete(max_tokens=40, seed=7))
        streams = [self.server.stream(COMPLETIONS, {
            "prompt": "The computer" * i, "max_tokens": 2000,
            "ignore_eos": True}) for i in range(1, 5)]
        beside = texts(self.server.complete(max_tokens=40, seed=7))
        for stream in streams:
            stream.close()
        self.assertEqual(beside, alone)

    def test_no_seed_gives_other_texts(self):
        self.assertNotEqual(texts(self.server.complete(max_tokens=40)),
                            texts(self.server.complete(max_tokens=40)))

    def test_echo(self):
        answer = self.server.complete("A hacker is", echo=True, max_tokens=5)
        self.assertTrue(answer["choices"][0]["text"].startswith("A hacker is"))
        stream = self.server.stream(COMPLETIONS, {
            "prompt": "A hacker is", "echo": True, "max_tokens": 5,
            "temperature": 0})
        streamed = "".join(chunk["choices"][0]["text"]
                           for chunk in stream.chunks())
        whole = self.server.complete("A hacker is", echo=True, max_tokens=5,
                                     temperature=0)
        self.assertEqual(streamed, texts(whole)[0])


class Chats(ContractTest):
    def test_shape(self):
        answer = self.server.chat(max_tokens=5)
        self.assertEqual(set(answer), {
            "id", "object", "created", "model", "system_fingerprint",
            "choices", "usage"})
        self.assertEqual(answer["object"], "chat.completion")
        self.assertRegex(answer["id"], r"^chatcmpl-[0-9a-f]+$")
        choice, = answer["choices"]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertIsInstance(choice["message"]["content"], str)
        self.assertIsNone(choice["message"]["refusal"])
        self.assertIsNone(choice["logprobs"])
        self.assertIn(choice["finish_reason"], ("stop", "length"))

    def test_max_completion_tokens(self):
        for fields in ({"max_completion_tokens": 7}, {"max_tokens": 7},
                       {"max_completion_tokens": 7, "max_tokens": 9}):
            usage = self.server.chat(ignore_eos=True, **fields)["usage"]
            self.assertEqual(usage["completion_tokens"], 7)

    def test_prompt_is_the_template_s(self):
        messages = [{"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [
                        {"type": "text", "text": "Who"},
                        {"type": "text", "text": "are you?"}]}]
        count = self.server.post("/tokenize",
                                 {"messages": messages}).json()["count"]
        usage = self.server.chat(messages, max_tokens=1)["usage"]
        self.assertEqual(usage["prompt_tokens"], count)

    def test_user_text_is_never_special(self):
        def tokens(content):
            return self.server.post("/tokenize", {"messages": [
                {"role": "user", "content": content}]}).json()["tokens"]
        found = tokens("<|end_of_text|><|begin_of_text|>")
        self.assertNotIn(END_OF_TEXT, found)
        self.assertNotIn(3070, found)

    def test_a_last_message_is_continued_where_it_ends(self):
        """Also where the template writes the same behind it."""
        def post(content):
            return self.server.post("/tokenize", {
                "messages": [{"role": "user", "content": "x"},
                             {"role": "assistant", "content": content}],
                "add_generation_prompt": False,
                "continue_final_message": True})
        for content in ("Yes", "\n", "a\n"):
            text = self.server.post("/detokenize", {
                "tokens": post(content).json()["tokens"]}).json()["prompt"]
            self.assertEqual(text, "user: x\nassistant: " + content)
        self.refuse(post(""), 400, "continue_final_message")

    def test_template_refuses(self):
        self.refuse(self.server.post(CHAT, {"messages": [
            {"role": "wizard", "content": "x"}]}), 400, "messages",
            message="the role wizard is not known")

    def test_several_texts(self):
        answer = self.server.chat(n=3, max_tokens=12, ignore_eos=True, seed=1)
        self.assertEqual([choice["index"] for choice in answer["choices"]],
                         [0, 1, 2])
        self.assertEqual(answer["usage"]["completion_tokens"], 36)


class Streams(ContractTest):
    """`stream: true`."""

    def check_frame(self, path, body, kind):
        stream = self.server.stream(path, body)
        self.assertEqual(stream.headers["content-type"], "text/event-stream")
        self.assertEqual(stream.headers["cache-control"], "no-cache")
        chunks = list(stream.chunks())
        for name in ("id", "created", "model", "system_fingerprint"):
            self.assertEqual(len({chunk[name] for chunk in chunks}), 1, name)
        self.assertEqual({chunk["object"] for chunk in chunks}, {kind})
        return chunks

    def test_completions(self):
        body = {"prompt": "A hacker is", "max_tokens": 30, "temperature": 0}
        chunks = self.check_frame(COMPLETIONS, body, "text_completion")
        for chunk in chunks:
            self.assertEqual(len(chunk["choices"]), 1)
            self.assertNotIn("usage", chunk)
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
        self.assertEqual(set(reasons[:-1]), {None})
        self.assertIn(reasons[-1], ("stop", "length"))
        whole = self.server.complete(**body)["choices"][0]
        self.assertEqual("".join(chunk["choices"][0]["text"]
                                 for chunk in chunks), whole["text"])
        self.assertEqual(reasons[-1], whole["finish_reason"])
        self.assertGreater(len(chunks), 5)

    def test_chats(self):
        body = {"messages": [{"role": "user", "content": "Who?"}],
                "max_tokens": 30, "temperature": 0}
        chunks = self.check_frame(CHAT, body, "chat.completion.chunk")
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        self.assertEqual(deltas[0], {"role": "assistant", "content": ""})
        for delta in deltas[1:]:
            self.assertNotIn("role", delta)
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
        self.assertEqual(set(reasons[:-1]), {None})
        whole = self.server.chat(**body)["choices"][0]
        self.assertEqual("".join(delta.get("content", "") for delta in deltas),
                         whole["message"]["content"])
        self.assertEqual(reasons[-1], whole["finish_reason"])

    def test_usage_comes_last_where_asked_for(self):
        for path, body in ((COMPLETIONS, {"prompt": "A hacker is"}),
                           (CHAT, {"messages": [
                               {"role": "user", "content": "Who?"}]})):
            chunks = list(self.server.stream(path, {
                **body, "max_tokens": 6, "ignore_eos": True,
                "stream_options": {"include_usage": True}}).chunks())
            self.assertEqual(chunks[-1]["choices"], [])
            self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 6)
            for chunk in chunks[:-1]:
                self.assertIsNone(chunk["usage"])
                self.assertEqual(len(chunk["choices"]), 1)
            self.assertTrue(chunks[-2]["choices"][0]["finish_reason"])

    def test_continuous_usage(self):
        chunks = list(self.server.stream(COMPLETIONS, {
            "prompt": "A hacker is", "max_tokens": 6, "ignore_eos": True,
            "stream_options": {"continuous_usage_stats": True}}).chunks())
        counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(counts[-1], 6)

    def test_several_texts(self):
        chunks = list(self.server.stream(CHAT, {
            "messages": [{"role": "user", "content": "Who?"}], "n": 3,
            "max_tokens": 10, "ignore_eos": True, "seed": 3}).chunks())
        whole = self.server.chat("Who?", n=3, max_tokens=10, ignore_eos=True,
                                 seed=3)
        for index in range(3):
            mine = [chunk["choices"][0] for chunk in chunks
                    if chunk["choices"][0]["index"] == index]
            self.assertEqual(mine[0]["delta"]["role"], "assistant")
            self.assertEqual(
                [c["finish_reason"] for c in mine if c["finish_reason"]],
                ["length"])
            self.assertEqual(
                "".join(c["delta"].get("content", "") for c in mine),
                whole["choices"][index]["message"]["content"])

    def test_pieces_are_whole_characters(self):
        """Tokens of this model are bytes of characters: each event is JSON of
        valid UTF-8, or its decoding would have failed."""
        ids = self.server.post("/tokenize", {"prompt": "日本語", "add_special_tokens": False}).json()["tokens"]
        self.assertGreater(len(ids), 3)
        chunks = list(self.server.stream(COMPLETIONS, {
            "prompt": "日本語", "max_tokens": 100, "ignore_eos": True,
            "temperature": 3, "seed": 1, "echo": True}).chunks())
        text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
        whole = self.server.complete("日本語", max_tokens=100, ignore_eos=True,
                                     temperature=3, seed=1, echo=True)
        self.assertEqual(text, texts(whole)[0])

    def test_heartbeats_while_nothing_comes(self):
        """Who waits behind others hears so."""
        busy = [self.server.stream(COMPLETIONS, {
            "prompt": "A", "max_tokens": CONTEXT - 8, "ignore_eos": True})
            for _ in range(8)]
        waiting = self.server.stream(COMPLETIONS, {
            "prompt": "A hacker is", "max_tokens": 3})
        first = waiting.response.readline()
        self.assertRegex(first, rb"^:.*\n$")
        self.assertEqual(waiting.response.readline(), b"\n")
        for stream in busy:
            stream.close()
        chunks = list(waiting.chunks())
        self.assertTrue(chunks[-1]["choices"][0]["finish_reason"])

    def test_an_error_after_the_beginning_is_an_event(self):
        with Server(sys.argv[1], options=(*self.options, "--drain-seconds=0")
                    ) as server:
            stream = server.stream(COMPLETIONS, {
                "prompt": "A", "max_tokens": CONTEXT - 8, "ignore_eos": True})
            events = iter(stream)
            self.assertEqual(next(events)[0], "message")
            server.drain()
            kind, data = list(events)[-1]
            stream.close()
        self.assertEqual(kind, "error")
        error = json.loads(data)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["type"], "server_error")

    def test_errors_before_the_beginning_have_their_status(self):
        self.refuse(self.server.post(COMPLETIONS, {
            "prompt": "A", "stream": True, "max_tokens": CONTEXT}), 400,
            code="context_length_exceeded")


class Ends(ContractTest):
    """`finish_reason`, and what ends a text."""

    def test_length(self):
        answer = self.server.complete(max_tokens=3, ignore_eos=True)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_full_context(self):
        """Nothing is cut before the context is full."""
        with Server(sys.argv[1], options=(*self.options, "--context-length=64")
                    ) as server:
            usage = server.chat("Who?", ignore_eos=True)["usage"]
            self.assertEqual(usage["total_tokens"], 64)
            answer = server.complete(max_tokens=60, ignore_eos=True,
                                     prompt="A")
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_end_of_text(self):
        answer = self.server.complete(logit_bias={END_OF_TEXT: 100},
                                      max_tokens=50)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["choices"][0]["text"], "")
        self.assertEqual(answer["usage"]["completion_tokens"], 1)

    def test_ignore_eos(self):
        answer = self.server.complete(logit_bias={END_OF_TEXT: 100},
                                      max_tokens=20, ignore_eos=True)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], 20)

    def test_min_tokens(self):
        answer = self.server.complete(logit_bias={END_OF_TEXT: 100},
                                      max_tokens=20, min_tokens=9)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["usage"]["completion_tokens"], 10)

    def test_stop_strings(self):
        whole = texts(self.server.complete(max_tokens=60, temperature=0,
                                           ignore_eos=True))[0]
        words = whole.split()
        stop = words[5]
        expected = whole[:whole.index(stop)]
        for value in (stop, [stop], ["never appears", stop]):
            answer = self.server.complete(max_tokens=60, temperature=0,
                                          ignore_eos=True, stop=value)
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
            self.assertEqual(texts(answer), [expected])
        included = self.server.complete(
            max_tokens=60, temperature=0, ignore_eos=True, stop=stop,
            include_stop_str_in_output=True)
        self.assertEqual(texts(included), [expected + stop])

    def test_stop_strings_in_streams(self):
        """Not a character of a stop string is told before it is known to be
        none."""
        whole = texts(self.server.complete(max_tokens=60, temperature=0,
                                           ignore_eos=True))[0]
        for begin in range(20, 30):
            stop = whole[begin:begin + 12]
            stream = self.server.stream(COMPLETIONS, {
                "prompt": "A hacker is", "max_tokens": 60, "temperature": 0,
                "ignore_eos": True, "stop": stop})
            text = "".join(chunk["choices"][0]["text"]
                           for chunk in stream.chunks())
            self.assertEqual(text, whole[:whole.index(stop)])

    def test_stop_tokens(self):
        answer = self.server.complete(max_tokens=20, logit_bias={65: 100},
                                      stop_token_ids=[65])
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["usage"]["completion_tokens"], 1)


class Sampling(ContractTest):
    def tokens(self, **fields):
        answer = self.server.complete(ignore_eos=True, logprobs=0, seed=1,
                                      max_tokens=40, **fields)
        return answer["choices"][0]["logprobs"]["tokens"]

    def test_logit_bias(self):
        self.assertEqual(len(set(self.tokens(logit_bias={"1000": 100}))), 1)
        usual = self.tokens(temperature=0)
        barred = self.server.post("/tokenize", {
            "prompt": usual[0], "add_special_tokens": False}).json()["tokens"]
        other = self.tokens(temperature=0, logit_bias={barred[0]: -100})
        self.assertNotEqual(other[0], usual[0])

    def test_frequency_and_presence(self):
        bias = {"1000": 30}
        self.assertEqual(len(set(self.tokens(logit_bias=bias,
                                             temperature=0))), 1)
        # 30 in advance are used up by 2 for each time.
        self.assertGreater(len(set(self.tokens(
            logit_bias=bias, temperature=0, frequency_penalty=2))), 1)
        plain = self.tokens(temperature=0)
        self.assertNotEqual(plain, self.tokens(temperature=0,
                                               presence_penalty=2))
        self.assertNotEqual(plain, self.tokens(temperature=0,
                                               repetition_penalty=1.8))

    def test_greedy_by_every_means(self):
        greedy = self.tokens(temperature=0)
        for fields in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1}):
            self.assertEqual(self.tokens(**fields), greedy, fields)

    def test_all_tokens(self):
        usual = self.tokens()
        for fields in ({"top_k": -1}, {"top_k": 0}, {"top_p": 1},
                       {"min_p": 0}, {"temperature": 1},
                       {"temperature": None, "stop": None, "seed": None}):
            if "seed" not in fields:
                self.assertEqual(self.tokens(**fields), usual, fields)
        self.assertNotEqual(self.tokens(temperature=2), usual)


class LogProbabilities(ContractTest):
    def check_places(self, choice):
        """Each token is where it says, but those that are a part of a character
        only, and special ones, which are not in the text."""
        found = choice["logprobs"]
        places = found["text_offset"]
        self.assertEqual(places, sorted(places))
        for token, place in zip(found["tokens"], places):
            if not token.startswith(("bytes:", "<|")):
                self.assertEqual(choice["text"][place:place + len(token)],
                                 token)

    def test_completions(self):
        choice, = self.server.complete(max_tokens=6, logprobs=3,
                                       ignore_eos=True)["choices"]
        found = choice["logprobs"]
        self.assertEqual(set(found), {"tokens", "token_logprobs",
                                      "top_logprobs", "text_offset"})
        self.assertEqual({len(each) for each in found.values()}, {6})
        self.check_places(choice)
        for i, token in enumerate(found["tokens"]):
            top = found["top_logprobs"][i]
            self.assertIn(len(top), (3, 4))
            self.assertAlmostEqual(top[token], found["token_logprobs"][i])
            self.assertLessEqual(sum(map(math.exp, top.values())), 1.0001)

    def test_completions_without_others(self):
        choice, = self.server.complete(max_tokens=4, logprobs=0)["choices"]
        for token, top in zip(choice["logprobs"]["tokens"],
                              choice["logprobs"]["top_logprobs"]):
            self.assertEqual(list(top), [token])

    def test_chats(self):
        choice, = self.server.chat(max_tokens=6, logprobs=True, top_logprobs=4,
                                   ignore_eos=True)["choices"]
        content = choice["logprobs"]["content"]
        self.assertEqual(len(content), 6)
        data = b""
        for entry in content:
            self.assertEqual(set(entry),
                             {"token", "logprob", "bytes", "top_logprobs"})
            self.assertLessEqual(entry["logprob"], 0)
            data += bytes(entry["bytes"])
            self.assertEqual(len(entry["top_logprobs"]), 4)
            scores = [top["logprob"] for top in entry["top_logprobs"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(data.decode("utf-8", "replace"),
                         choice["message"]["content"])

    def test_chats_without_others(self):
        choice, = self.server.chat(max_tokens=2, logprobs=True)["choices"]
        for entry in choice["logprobs"]["content"]:
            self.assertEqual(entry["top_logprobs"], [])

    def test_streams_tell_the_same(self):
        """Characters of several tokens and stop strings among it."""
        for fields in ({}, {"echo": True}, {"temperature": 3, "seed": 1},
                       {"stop": ["never found", "a" * 100]}):
            body = {"prompt": "A hacker – is", "max_tokens": 40, "logprobs": 2,
                    "temperature": 0, "ignore_eos": True, **fields}
            choice, = self.server.complete(**body)["choices"]
            self.check_places(choice)
            streamed = {name: [] for name in choice["logprobs"]}
            for chunk in self.server.stream(COMPLETIONS, body).chunks():
                for name, values in chunk["choices"][0]["logprobs"].items():
                    streamed[name] += values
            self.assertEqual(streamed, choice["logprobs"])

    def test_prompts_are_scored(self):
        """`echo` with `logprobs`: what evaluation harnesses sum up."""
        prompt = "A hacker is a person"
        choice, = self.server.complete(prompt, echo=True, max_tokens=0,
                                       logprobs=1)["choices"]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(choice["text"], prompt)
        found = choice["logprobs"]
        ids = self.server.post("/tokenize", {"prompt": prompt}).json()
        self.assertEqual(len(found["tokens"]), ids["count"])
        self.check_places(choice)
        self.assertEqual(found["text_offset"][:2], [0, 0])
        self.assertIsNone(found["token_logprobs"][0])
        self.assertIsNone(found["top_logprobs"][0])
        for score in found["token_logprobs"][1:]:
            self.assertLessEqual(score, 0)
        # What is generated greedily is the most probable of each place.
        longer, = self.server.complete(prompt, max_tokens=10, temperature=0,
                                       ignore_eos=True)["choices"]
        choice, = self.server.complete(
            prompt + longer["text"], echo=True, max_tokens=0,
            logprobs=1)["choices"]
        found = choice["logprobs"]
        for i in range(ids["count"], len(found["tokens"])):
            best = max(found["top_logprobs"][i].values())
            self.assertAlmostEqual(found["token_logprobs"][i], best, places=4)

    def test_prompts_are_scored_as_texts_are(self):
        first, = self.server.complete("A hacker is", max_tokens=8, seed=3,
                                      ignore_eos=True, logprobs=0)["choices"]
        scored, = self.server.complete("A hacker is" + first["text"],
                                       echo=True, max_tokens=1, logprobs=0,
                                       ignore_eos=True)["choices"]
        tokens = first["logprobs"]["tokens"]
        echoed = scored["logprobs"]["tokens"]
        begin = len(echoed) - 1 - len(tokens)
        # Unless the text is cut into other tokens when it is a prompt.
        if echoed[begin:-1] == tokens:
            for a, b in zip(first["logprobs"]["token_logprobs"],
                            scored["logprobs"]["token_logprobs"][begin:]):
                self.assertAlmostEqual(a, b, places=3)


class Usage(ContractTest):
    def test_prompt_tokens(self):
        prompt = "A hacker is a person who"
        count = self.server.post("/tokenize",
                                 {"prompt": prompt}).json()["count"]
        usage = self.server.complete(prompt, n=2, max_tokens=3,
                                     ignore_eos=True)["usage"]
        self.assertEqual(usage["prompt_tokens"], count)
        self.assertEqual(usage["completion_tokens"], 6)
        self.assertEqual(usage["total_tokens"], count + 6)

    def test_cached_tokens_are_true(self):
        prompt = "Cached words " * 40
        def usage(**fields):
            found = self.server.complete(prompt, max_tokens=1,
                                         **fields)["usage"]
            cached = found["prompt_tokens_details"]["cached_tokens"]
            self.assertLess(cached, found["prompt_tokens"])
            return cached
        queried = self.server.metric("vllm:prefix_cache_hits_total")
        self.assertEqual(usage(cache_salt="1"), 0)
        cached = usage(cache_salt="1")
        self.assertGreater(cached, 64)
        self.assertEqual(cached % 16, 0)
        # Who has another salt learns nothing of it.
        self.assertEqual(usage(cache_salt="2"), 0)
        self.assertEqual(usage(), 0)
        self.assertEqual(usage(cache_salt="1"), cached)
        hits = self.server.metric("vllm:prefix_cache_hits_total") - queried
        self.assertEqual(hits, 2 * cached)


class Limits(ContractTest):
    """Never truncated silently, and admitted before work is done."""
    options = (*ContractTest.options, "--context-length=128")

    def test_context_length_exceeded_tells_both_numbers(self):
        prompt = list(range(100))
        for path, body in ((COMPLETIONS, {"prompt": prompt}),
                           (CHAT, {"messages": [
                               {"role": "user", "content": "word " * 150}]})):
            answer = self.server.post(path, {**body, "max_tokens": 64})
            error = self.refuse(answer, 400, None, "context_length_exceeded")
            numbers = [int(n) for n in re.findall(r"\d+", error["message"])]
            self.assertIn(128, numbers)
            if path == COMPLETIONS:
                self.assertIn(100, numbers)
                self.assertIn(164, numbers)

    def test_exactly_the_context(self):
        usage = self.server.complete(list(range(100)), max_tokens=28,
                                     ignore_eos=True)["usage"]
        self.assertEqual(usage["total_tokens"], 128)
        self.refuse(self.server.post(COMPLETIONS, {
            "prompt": list(range(100)), "max_tokens": 29}), 400,
            code="context_length_exceeded")
        self.refuse(self.server.post(COMPLETIONS, {
            "prompt": [1] * 128}), 400, code="context_length_exceeded")
        answer = self.server.complete([1] * 128, max_tokens=0, echo=True)
        self.assertEqual(answer["usage"]["completion_tokens"], 0)

    def test_a_text_without_max_tokens_has_the_room_that_is_left(self):
        usage = self.server.complete([1] * 120, ignore_eos=True)["usage"]
        self.assertEqual(usage["completion_tokens"], 8)

    def test_truncation_where_asked_for(self):
        usage = self.server.complete(list(range(2000)), max_tokens=8,
                                     truncate_prompt_tokens=100)["usage"]
        self.assertEqual(usage["prompt_tokens"], 100)


class Overload(ServerTest):
    options = ("--batch=1", "--max-waiting=1", "--kv-memory=64MiB",
               "--no-log-requests")

    def test_429_with_retry_after(self):
        body = {"prompt": "A", "max_tokens": CONTEXT - 8, "ignore_eos": True}
        running = self.server.stream(COMPLETIONS, body)
        next(iter(running))
        connection = self.server.raw()
        text = json.dumps({**body, "max_tokens": 1}).encode()
        connection.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
        self.server.wait_for("vllm:num_requests_waiting", 1)
        answer = self.server.post(COMPLETIONS, {"prompt": "A"})
        self.refuse(answer, 429, None, "rate_limit_exceeded",
                    "rate_limit_error")
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        # The others do not notice.
        running.close()
        waited = connection.read_answer()
        connection.close()
        self.assertEqual(waited.status, 200)
        self.server.wait_until_idle()
        self.assertEqual(self.server.metric("sandwich_responses_total",
                                            status="429"), 1)

    def test_what_is_refused_is_counted(self):
        def counted(status):
            return self.server.metric("sandwich_responses_total",
                                      status=status)

        self.refuse(self.server.post(COMPLETIONS, {"prompt": 5}), 400,
                    "prompt")
        self.refuse(self.server.post(COMPLETIONS, {
            "prompt": "A", "temperature": -1}), 400, "temperature")
        self.refuse(self.server.post(CHAT, {
            "model": "of nobody", "messages": [
                {"role": "user", "content": "A"}]}), 404, "model",
            "model_not_found")
        self.assertEqual(counted("400"), 2)
        self.assertEqual(counted("404"), 1)
        self.assertNotIn(b"of nobody", self.server.get("/metrics").body)


class Start(ContractTest):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def test_a_configuration_that_cannot_serve_its_context_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "error: "):
            Server(sys.argv[1], options=("--kv-memory=1MiB",))


class Health(ContractTest):
    def test_health_and_ready(self):
        self.assertEqual(self.server.get("/health").status, 200)
        self.assertEqual(self.server.get("/ready").status, 200)
        self.assertEqual(self.server.get("/version").status, 200)

    def test_503_while_draining(self):
        with Server(sys.argv[1], options=self.options) as server:
            stream = server.stream(COMPLETIONS, {
                "prompt": "A", "max_tokens": CONTEXT - 8, "ignore_eos": True})
            next(iter(stream))
            server.drain()
            server.wait_until("draining", lambda: server.get(
                "/ready").status == 503)
            for path, body in ((COMPLETIONS, {"prompt": "A"}),
                               (CHAT, {"messages": []})):
                answer = server.post(path, body)
                self.refuse(answer, 503, None, kind="server_error")
                self.assertIn("retry-after", answer.headers)
            self.assertEqual(server.get("/health").status, 200)
            # The server need not wait for it any more.
            stream.close()

    def test_texts_end_while_draining(self):
        with Server(sys.argv[1], options=(*self.options, "--drain-seconds=1000")
                    ) as server:
            chunks = server.stream(COMPLETIONS, {
                "prompt": "A", "max_tokens": 400, "ignore_eos": True}).chunks()
            next(chunks)
            server.drain()
            last = list(chunks)[-1]
            self.assertEqual(last["choices"][0]["finish_reason"], "length")

    def test_metrics_have_the_names_of_vllm(self):
        self.server.complete(max_tokens=4, ignore_eos=True)
        self.server.wait_until_idle()
        answer = self.server.get("/metrics")
        self.assertTrue(answer.headers["content-type"].startswith(
            "text/plain; version=0.0.4"))
        for name in ("num_requests_running", "num_requests_waiting",
                     "kv_cache_usage_perc", "prompt_tokens_total",
                     "generation_tokens_total", "prefix_cache_queries_total",
                     "prefix_cache_hits_total", "num_preemptions_total"):
            self.server.metric(f"vllm:{name}", model_name="served")
        for name in ("time_to_first_token_seconds",
                     "inter_token_latency_seconds",
                     "e2e_request_latency_seconds",
                     "request_queue_time_seconds",
                     "request_prefill_time_seconds",
                     "request_decode_time_seconds"):
            count = self.server.metric(f"vllm:{name}_count")
            self.assertGreater(count, 0, name)
            self.assertEqual(self.server.metric(f"vllm:{name}_bucket",
                                                le="+Inf"), count)

    def test_metrics_count(self):
        names = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total",
                 "vllm:time_to_first_token_seconds_count",
                 "vllm:e2e_request_latency_seconds_count")
        before = [self.server.metric(name) for name in names]
        usage = self.server.complete(max_tokens=9, ignore_eos=True)["usage"]
        self.server.wait_until_idle()
        after = [self.server.metric(name) for name in names]
        self.assertEqual([b - a for a, b in zip(before, after)],
                         [9, usage["prompt_tokens"], 1, 1])

    def test_status(self):
        status = self.server.get("/status").json()
        model, = status["models"]
        self.assertEqual(model["id"], "served")
        self.assertEqual(model["state"], "ready")
        self.assertEqual(model["context_length"], CONTEXT)
        self.assertGreater(model["kv_blocks"]["total"], 0)

    def test_models(self):
        found = self.server.get("/v1/models").json()
        self.assertEqual(found["object"], "list")
        model, = found["data"]
        self.assertEqual(model["id"], "served")
        self.assertEqual(model["object"], "model")
        self.assertEqual(model["max_model_len"], CONTEXT)
        self.assertEqual(self.server.get("/v1/models/served").json(), model)


class Structure(ContractTest):
    """Texts of a given format, and calls of tools."""
    TOOLS = [{"type": "function", "function": {
        "name": "look_up", "parameters": {
            "type": "object", "properties": {
                "word": {"type": "string", "maxLength": 8},
                "count": {"type": "integer", "minimum": 0, "maximum": 9}},
            "required": ["word", "count"],
            "additionalProperties": False}}}]

    def test_json_schema(self):
        schema = self.TOOLS[0]["function"]["parameters"]
        answer = self.server.chat(seed=1, response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": schema}})
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        found = json.loads(answer["choices"][0]["message"]["content"])
        self.assertEqual(set(found), {"word", "count"})

    def test_choice(self):
        answer = self.server.complete(guided_choice=["yes", "no"])
        self.assertIn(texts(answer)[0], ("yes", "no"))

    def test_wrong_schema(self):
        self.refuse(self.server.post(CHAT, {
            "messages": [{"role": "user", "content": "x"}],
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "x", "schema": {"type": "wizard"}}}}), 400,
            "response_format.json_schema.schema")

    def check_call(self, choice):
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertIsNone(choice["message"]["content"])
        call, = choice["message"]["tool_calls"]
        self.assertEqual(call["type"], "function")
        self.assertTrue(call["id"])
        self.assertEqual(call["function"]["name"], "look_up")
        self.assertEqual(set(json.loads(call["function"]["arguments"])),
                         {"word", "count"})

    def test_tool_calls(self):
        for choice in ("required",
                       {"type": "function", "function": {"name": "look_up"}}):
            answer = self.server.chat(tools=self.TOOLS, tool_choice=choice,
                                      seed=1)
            self.check_call(answer["choices"][0])

    def test_tool_calls_in_streams(self):
        chunks = list(self.server.stream(CHAT, {
            "messages": [{"role": "user", "content": "x"}],
            "tools": self.TOOLS, "tool_choice": "required",
            "seed": 1}).chunks())
        parts = [part for chunk in chunks for part in
                 chunk["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual({part["index"] for part in parts}, {0})
        self.assertEqual([part["function"]["name"] for part in parts
                          if "name" in part["function"]], ["look_up"])
        arguments = "".join(part["function"].get("arguments", "")
                            for part in parts)
        self.assertEqual(set(json.loads(arguments)), {"word", "count"})
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"],
                         "tool_calls")

    def test_answers_of_tools(self):
        self.server.chat([
            {"role": "user", "content": "Look up foo"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "1", "type": "function", "function": {
                    "name": "look_up", "arguments": '{"word": "foo"}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "bar"}],
            tools=self.TOOLS, max_tokens=2)


main()
