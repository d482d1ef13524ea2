#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package `openai` of PyPI gets of the server OPENAI_BASE_URL."""
import asyncio
import json
import time
import unittest

import openai

MODEL = "served"
MESSAGES = [{"role": "user", "content": "Who is a hacker?"}]
TOOLS = [{"type": "function", "function": {
    "name": "look_up", "description": "Looks up a word.", "parameters": {
        "type": "object", "properties": {"word": {"type": "string",
                                                  "maxLength": 8}},
        "required": ["word"], "additionalProperties": False}}}]
SCHEMA = {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 8},
    "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"], "additionalProperties": False}


class Client(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(max_retries=0)
        self.addCleanup(self.client.close)

    def test_models(self):
        models = list(self.client.models.list())
        self.assertEqual([model.id for model in models], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_completions(self):
        answer = self.client.completions.create(
            model=MODEL, prompt="A hacker is", max_tokens=8, logprobs=2,
            extra_body={"ignore_eos": True})
        self.assertEqual(answer.usage.completion_tokens, 8)
        self.assertEqual(len(answer.choices[0].logprobs.tokens), 8)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        text = "".join(chunk.choices[0].text for chunk in
                       self.client.completions.create(
                           model=MODEL, prompt="A", max_tokens=8, stream=True))
        self.assertTrue(text)

    def test_chats(self):
        answer = self.client.chat.completions.create(
            model=MODEL, messages=MESSAGES, max_completion_tokens=8, n=2,
            logprobs=True, top_logprobs=3, seed=1)
        self.assertEqual(len(answer.choices), 2)
        first = answer.choices[0]
        self.assertEqual(first.message.role, "assistant")
        self.assertEqual(len(first.logprobs.content[0].top_logprobs), 3)
        self.assertEqual(answer.usage.prompt_tokens_details.cached_tokens % 16,
                         0)

    def test_streams(self):
        chunks = list(self.client.chat.completions.create(
            model=MODEL, messages=MESSAGES, max_completion_tokens=8,
            stream=True, stream_options={"include_usage": True},
            extra_body={"ignore_eos": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

    def test_stream_helper(self):
        """The client puts the chunks together by itself, and takes no text that
        did not end."""
        with self.client.chat.completions.stream(
                model=MODEL, messages=MESSAGES, stop=["e", "a", "."],
                seed=1) as stream:
            text = "".join(event.delta for event in stream
                           if event.type == "content.delta")
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, text)

    def test_leaving_a_stream(self):
        stream = self.client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True,
            extra_body={"ignore_eos": True})
        next(stream)
        stream.close()
        self.test_chats()

    def test_tools(self):
        answer = self.client.chat.completions.create(
            model=MODEL, messages=MESSAGES, tools=TOOLS, seed=1,
            tool_choice="required")
        call, = answer.choices[0].message.tool_calls
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual(call.function.name, "look_up")
        self.assertEqual(set(json.loads(call.function.arguments)), {"word"})
        # And the answer to it.
        self.client.chat.completions.create(
            model=MODEL, tools=TOOLS, max_completion_tokens=4,
            messages=[*MESSAGES, answer.choices[0].message,
                      {"role": "tool", "tool_call_id": call.id,
                       "content": "found"}])

    def test_tools_in_streams(self):
        with self.client.chat.completions.stream(
                model=MODEL, messages=MESSAGES, tools=TOOLS, seed=1,
                tool_choice={"type": "function",
                             "function": {"name": "look_up"}}) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        call, = final.choices[0].message.tool_calls
        self.assertEqual(call.function.name, "look_up")
        json.loads(call.function.arguments)

    def test_structured_output(self):
        answer = self.client.chat.completions.create(
            model=MODEL, messages=MESSAGES, seed=2, response_format={
                "type": "json_schema", "json_schema": {
                    "name": "person", "strict": True, "schema": SCHEMA}})
        found = json.loads(answer.choices[0].message.content)
        self.assertEqual(set(found), {"name", "age"})

    def test_parsed_output(self):
        import pydantic

        class Person(pydantic.BaseModel):
            age: int = pydantic.Field(ge=0, le=99)
            adult: bool
        answer = self.client.chat.completions.parse(
            model=MODEL, messages=MESSAGES, seed=2, response_format=Person)
        self.assertIsInstance(answer.choices[0].message.parsed, Person)

    def test_errors_are_typed(self):
        def ask(client=self.client, **fields):
            return client.chat.completions.create(
                **{"model": MODEL, "messages": MESSAGES,
                   "max_completion_tokens": 1, **fields})
        with self.assertRaises(openai.BadRequestError) as caught:
            ask(temperature=101)
        self.assertEqual(caught.exception.param, "temperature")
        self.assertEqual(caught.exception.type, "invalid_request_error")
        with self.assertRaises(openai.BadRequestError) as caught:
            ask(max_completion_tokens=1 << 30)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.NotFoundError) as caught:
            ask(model="gpt-9")
        self.assertEqual(caught.exception.code, "model_not_found")
        with openai.OpenAI(api_key="wrong", max_retries=0) as other:
            with self.assertRaises(openai.AuthenticationError) as caught:
                ask(other)
        self.assertEqual(caught.exception.code, "invalid_api_key")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model=MODEL, input="x")
        with self.assertRaises(openai.APITimeoutError):
            ask(self.client.with_options(timeout=0.05),
                max_completion_tokens=8000, extra_body={"ignore_eos": True})


class AsyncClient(unittest.IsolatedAsyncioTestCase):
    async def test_many_at_a_time(self):
        async with openai.AsyncOpenAI(max_retries=0) as client:
            answers = await asyncio.gather(*(
                client.chat.completions.create(
                    model=MODEL, messages=MESSAGES, max_completion_tokens=8,
                    seed=5) for _ in range(20)))
        self.assertEqual(
            len({each.choices[0].message.content for each in answers}), 1)

    async def test_streams(self):
        async with openai.AsyncOpenAI(max_retries=0) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, max_completion_tokens=8,
                stream=True)
            reasons = [chunk.choices[0].finish_reason async for chunk in stream]
        self.assertEqual(set(reasons[:-1]), {None})
        self.assertIn(reasons[-1], ("stop", "length"))

    async def test_abort(self):
        async with openai.AsyncOpenAI(max_retries=0) as client:
            task = asyncio.create_task(client.completions.create(
                model=MODEL, prompt="A", max_tokens=8000,
                extra_body={"ignore_eos": True}))
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            answer = await client.completions.create(
                model=MODEL, prompt="A", max_tokens=2)
        self.assertTrue(answer.choices)


unittest.main()
