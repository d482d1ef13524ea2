# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Texts that models generate."""

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import threading
import time

import numpy
from hash_model import SPOILING, VOCABULARY, HashModelTest

import sandwich

#: A text that does not end in the time of a test.
ENDLESS = {"max_tokens": 4_000_000, "logit_bias": {SPOILING: -float("inf")}}


class GenerateTest(HashModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.write("model.sandwich")
        cls.model = sandwich.Model(cls.path)
        cls.addClassCleanup(cls.model.close)

    def test_generates_the_text_of_sandwich_run(self):
        for sampling in ({}, {"temperature": 1.5, "top_k": 50, "top_p": 0.9, "seed": 3}):
            options = {"max_tokens": 60, **sampling}
            command = [
                os.environ["SANDWICH_RUN"],
                "generate",
                self.path,
                "--prompt=Hello",
                "--json",
            ]
            command += [
                f"--{name.replace('_', '-')}={value}" for name, value in options.items()
            ]
            result = subprocess.run(command, check=True, capture_output=True)
            expected = json.loads(result.stdout)
            for prompt in ("Hello", list(b"Hello"), numpy.array(list(b"Hello"))):
                completion = self.model.generate(prompt, **options)
                self.assertEqual(completion.text, expected["text"])
                self.assertEqual(completion.token_ids, expected["tokens"])
                self.assertEqual(completion.finish_reason, "max_tokens")
                self.assertEqual(completion.usage.prompt_tokens, 5)
                self.assertEqual(completion.usage.generated_tokens, 60)
            tokens = list(self.model.stream("Hello", **options))
            self.assertEqual("".join(token.text for token in tokens), expected["text"])
            self.assertEqual([token.token_id for token in tokens], expected["tokens"])

    def test_prompts_are_served_together(self):
        prompts = [f"prompt {i}" for i in range(20)]
        alone = [self.model.generate(prompt, max_tokens=20).text for prompt in prompts]
        for batch in (prompts, [list(prompt.encode()) for prompt in prompts]):
            together = self.model.generate(batch, max_tokens=20)
            self.assertEqual([each.text for each in together], alone)
        self.assertEqual(self.model.generate([]), [])

    def test_batches_may_be_larger_than_the_queue(self):
        with sandwich.Model(self.path, max_waiting_requests=3) as model:
            for count in (1, 40):
                self.assertEqual(len(model.generate(["x"] * count, max_tokens=2)), count)
                made = asyncio.run(model.generate_async(["x"] * count, max_tokens=2))
                self.assertEqual(len(made), count)

    def test_continuations_and_log_probabilities(self):
        options = {"temperature": 1.0, "max_tokens": 7, "log_probabilities": 2}
        completion = self.model.generate("x", continuations=3, seed=5, **options)
        self.assertEqual(len(completion.texts), 3)
        for i, text in enumerate(completion.texts):
            alone = self.model.generate("x", seed=5 + i, **options)
            self.assertEqual(alone.texts, [text])
            self.assertEqual(len(text.log_probabilities), 7)
            for chosen, top in zip(
                text.log_probabilities, text.top_log_probabilities, strict=True
            ):
                self.assertEqual(len(top), 2)
                self.assertLessEqual(chosen, max(top.values()))
        plain = self.model.generate("x", max_tokens=2)
        self.assertIsNone(plain.texts[0].log_probabilities)

    def test_options_change_the_text(self):
        def tokens(**options):
            return self.model.generate("Hi", max_tokens=20, **options).token_ids

        plain = tokens()
        self.assertNotIn(plain[0], tokens(logit_bias={plain[0]: -float("inf")}))
        self.assertEqual(tokens(logit_bias={7: 100.0}), [7] * 20)
        once = tokens(logit_bias={7: 3.0}, repetition_penalty=1e6)
        self.assertLessEqual(once.count(7), 1)
        self.assertEqual(tokens(temperature=1.0, min_p=1.0), plain)
        stopped = self.model.generate("Hi", max_tokens=20, stop_token_ids=[plain[3]])
        self.assertEqual(stopped.finish_reason, "stopped")
        self.assertEqual(stopped.token_ids, plain[: plain.index(plain[3]) + 1])
        longer = tokens(stop_token_ids=[plain[3]], min_tokens=20)
        self.assertEqual(len(longer), 20)

    def test_texts_end_at_strings(self):
        whole = self.model.generate("Hi", max_tokens=40).text
        end = next(i for i, each in enumerate(whole[2:], 2) if each.isascii())
        string = whole[end]
        for stop in (string, ["never there", string]):
            cut = self.model.generate("Hi", max_tokens=40, stop=stop)
            self.assertEqual(cut.text, whole[: whole.index(string)])
            self.assertEqual(cut.finish_reason, "stopped")
        kept = self.model.generate(
            "Hi", max_tokens=40, stop=string, include_stop_in_text=True
        )
        self.assertEqual(kept.text, whole[: whole.index(string) + 1])

    def test_texts_end_as_the_model_says(self):
        tokens = self.model.generate([1, 2], max_tokens=30).token_ids
        end = tokens[10]
        with sandwich.Model(self.write("end.sandwich", f"end={end}")) as model:
            completion = model.generate([1, 2], max_tokens=30)
            self.assertEqual(completion.token_ids, tokens[: tokens.index(end) + 1])
            self.assertEqual(completion.finish_reason, "end_of_text")
            full = model.generate([1, 2], max_tokens=30, ignore_end_of_text=True)
            self.assertEqual(full.token_ids, tokens)
        with sandwich.Model(self.write("short.sandwich", "context=8")) as model:
            full = model.generate([1, 2], max_tokens=30)
            self.assertEqual(full.token_ids, tokens[:7])
            self.assertEqual(full.finish_reason, "context_full")

    def test_special_tokens_of_a_prompt_are_text_unless_asked(self):
        for parse, prompt in ((False, list(b"a</s>")), (True, [97, 257])):
            text = self.model.generate("a</s>", max_tokens=9, parse_special_tokens=parse)
            self.assertEqual(text.texts, self.model.generate(prompt, max_tokens=9).texts)

    def test_bad_input_is_one_exception(self):
        model = self.model
        for options in (
            {"max_tokens": 0},
            {"continuations": 0},
            {"continuations": 2**32 - 1},
            {"top_p": 0},
            {"top_p": 1.5},
            {"top_k": -1},
            {"top_k": 2**32 + 1},
            {"min_p": 2.0},
            {"seed": -1},
            {"seed": 2**64},
            {"temperature": -1},
            {"temperature": float("nan")},
            {"repetition_penalty": 0},
            {"presence_penalty": 3.0},
            {"logit_bias": {VOCABULARY: 1.0}},
            {"logit_bias": {2**40: 1.0}},
            {"logit_bias": {1: 101.0}},
            {"log_probabilities": 21},
            {"log_probabilities": -1},
            {"min_tokens": -1},
            {"stop": ""},
            {"stop": "a\0b"},
            {"stop": ["x"] * 17},
            {"stop_token_ids": [-1]},
            {"stop_token_ids": [0.5]},
            {"priority": 8},
            {"priority": -1},
            {"timeout": 0},
            {"timeout": float("nan")},
            {"prefix_salt": -1},
        ):
            with self.subTest(options), self.assertRaises(ValueError) as raised:
                model.generate("x", **options)
            self.assertIsInstance(raised.exception, sandwich.InvalidArgumentError)
        for options in ({"unknown": 1}, {"max_tokens": 1.5}, {"temperature": "hot"}):
            with self.subTest(options), self.assertRaises(TypeError):
                model.generate("x", **options)
        for prompt in ([VOCABULARY], [-1], [1 << 40], [0.5], ""):
            with self.subTest(prompt), self.assertRaises(sandwich.InvalidArgumentError):
                model.generate(prompt)
        with self.assertRaises(sandwich.ContextExceededError):
            model.generate([1] * 5000)
        with self.assertRaisesRegex(sandwich.InternalError, "is nan"):
            model.generate([SPOILING])
        with sandwich.Model(self.write("mute.sandwich", "no-tokenizer")) as mute:
            with self.assertRaisesRegex(ValueError, "tokenizer.json"):
                mute.generate("x")
            completion = mute.generate([1], max_tokens=3)
            self.assertEqual((completion.text, len(completion.token_ids)), ("", 3))

    def test_one_bad_prompt_cancels_its_batch(self):
        with sandwich.Model(self.path) as model:
            with self.assertRaises(sandwich.InternalError):
                model.generate([[1], [SPOILING], [2]], max_tokens=4000)
            while model.statistics().running_requests:
                time.sleep(0.001)


class LongModelTest(HashModelTest):
    """With texts that do not end in the time of a test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.write("long.sandwich", "context=4194304")

    def setUp(self):
        self.model = sandwich.Model(self.path)
        self.addCleanup(self.model.close)

    def assert_idle(self):
        deadline = time.monotonic() + 10
        while (now := self.model.statistics()).running_requests + now.waiting_requests:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)


class StreamTest(LongModelTest):
    def test_tokens_come_while_they_are_made(self):
        stream = self.model.stream("x", **ENDLESS)
        self.assertIsInstance(next(stream), sandwich.Token)
        stream.close()
        self.assertEqual(list(stream), [])
        self.assert_idle()
        with self.model.stream("x", **ENDLESS) as stream:
            next(stream)
        self.assert_idle()
        stream = self.model.stream("x", **ENDLESS)
        del stream
        gc.collect()
        self.assert_idle()

    def test_the_end_tells_how_it_was_served(self):
        stream = self.model.stream("xyz", max_tokens=2)
        self.assertIsNone(stream.usage)
        self.assertEqual([token.finish_reason for token in stream], [None, "max_tokens"])
        self.assertEqual(stream.usage.prompt_tokens, 3)

    def test_streams_may_be_cancelled_from_other_threads(self):
        stream = self.model.stream("x", **ENDLESS)
        threading.Timer(0.02, stream.cancel).start()
        with self.assertRaises(sandwich.CancelledError):
            for _ in stream:
                pass
        self.assert_idle()

    def test_streams_may_be_closed_from_other_threads(self):
        for delay in (0, 0.001, 0.02, 0.15):
            stream = self.model.stream("x", **ENDLESS)
            threading.Timer(delay, stream.close).start()
            for _ in stream:
                pass
        self.assert_idle()

    def test_python_may_end_with_requests_under_way(self):
        program = """
import contextlib, sys, threading, sandwich
def read(stream):
    with contextlib.suppress(sandwich.CancelledError):
        list(stream)
model = sandwich.Model(sys.argv[1])
bias = {int(sys.argv[2]): -float("inf")}
streams = [model.stream("x", max_tokens=4000000, logit_bias=bias) for _ in range(3)]
threading.Thread(target=read, args=(streams[0],), daemon=True).start()
next(streams[1])
"""
        for _ in range(5):
            result = subprocess.run(
                [sys.executable, "-c", program, self.path, str(SPOILING)],
                capture_output=True,
                timeout=60,
            )
            self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_timeouts(self):
        with self.assertRaises(sandwich.DeadlineExceededError) as raised:
            self.model.generate("x", timeout=0.05, **ENDLESS)
        self.assertIsInstance(raised.exception, TimeoutError)

    def test_a_full_queue_is_overloaded(self):
        with sandwich.Model(
            self.path, max_sequences=1, max_waiting_requests=1
        ) as model:
            running = model.stream("x", **ENDLESS)
            next(running)
            waiting = model.stream("x", **ENDLESS)
            with self.assertRaises(sandwich.OverloadedError):
                model.stream("x")
            running.close()
            next(waiting)

    def test_closing_the_model_ends_all(self):
        for delay in (0, 0.002, 0.02):
            model = sandwich.Model(self.path)
            ends = []

            def read(model=model, ends=ends):
                try:
                    for _ in model.stream("x", **ENDLESS):
                        pass
                except sandwich.Error as error:
                    ends.append(type(error))

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(delay)
            model.close()
            for thread in threads:
                thread.join(10)
            self.assertEqual(len(ends), 4)
            for end in ends:
                self.assertIn(end, (sandwich.CancelledError, sandwich.UnavailableError))

    def test_many_threads(self):
        expected = {i: self.model.generate([i], max_tokens=30).token_ids for i in range(8)}
        failures = []

        def work(seed):
            chance = random.Random(seed)
            for _ in range(20):
                prompt = chance.randrange(8)
                count = chance.randrange(1, 31)
                stream = self.model.stream([prompt], max_tokens=count)
                if chance.random() < 0.3:
                    stream.close()
                    continue
                if [token.token_id for token in stream] != expected[prompt][:count]:
                    failures.append(prompt)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_forks_are_told_to_load_themselves(self):
        stream = self.model.stream("x", **ENDLESS)
        child = os.fork()
        if child == 0:
            try:
                for call in (self.model.statistics, lambda: next(stream)):
                    try:
                        call()
                    except sandwich.UnavailableError as error:
                        assert "fork" in str(error)
                    else:
                        os._exit(1)
                stream.close()
                self.model.close()
                os._exit(0)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(next(stream))
        stream.close()


class AsyncTest(LongModelTest):
    def run_async(self, function):
        return asyncio.run(asyncio.wait_for(function(), 60))

    def test_tasks_run_together(self):
        alone = self.model.generate([[i] for i in range(12)], max_tokens=20)

        async def stream(i):
            async with self.model.stream_async([i], max_tokens=20) as tokens:
                ids = [token.token_id async for token in tokens]
            self.assertEqual(tokens.usage.generated_tokens, 20)
            return ids

        async def main():
            streamed = await asyncio.gather(*map(stream, range(12)))
            self.assertEqual(streamed, [each.token_ids for each in alone])
            completions = await asyncio.gather(
                *(self.model.generate_async([i], max_tokens=20) for i in range(12))
            )
            self.assertEqual([c.texts for c in completions], [c.texts for c in alone])
            batch = await self.model.generate_async(
                [[i] for i in range(12)], max_tokens=20
            )
            self.assertEqual([c.texts for c in batch], [c.texts for c in alone])

        self.run_async(main)

    def test_cancelling_a_task_cancels_its_requests(self):
        async def stream():
            async for _ in self.model.stream_async("x", **ENDLESS):
                pass

        async def main():
            for coroutine in (
                stream(),
                self.model.generate_async("x", **ENDLESS),
                self.model.generate_async(["x", "y"], **ENDLESS),
            ):
                task = asyncio.create_task(coroutine)
                while not self.model.statistics().running_requests:
                    await asyncio.sleep(0.001)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assert_idle()
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(self.model.generate_async("x", **ENDLESS), 0.02)
            self.assert_idle()

        self.run_async(main)

    def test_streams_may_be_closed_by_other_tasks(self):
        async def main():
            # One that waits for its first step, as another has the only place.
            with sandwich.Model(self.path, max_sequences=1) as model:
                running = model.stream("x", **ENDLESS)
                next(running)
                waiting = model.stream_async("x", **ENDLESS)
                task = asyncio.ensure_future(anext(waiting, None))
                await asyncio.sleep(0.02)
                await waiting.aclose()
                self.assertIsNone(await task)
                running.close()

        self.run_async(main)

    def test_other_tasks_go_on(self):
        async def main():
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            await self.model.generate_async("x", max_tokens=2000)
            ticking.cancel()
            self.assertGreater(ticks, 10)

        self.run_async(main)

    def test_closing_the_model_ends_streams_of_tasks(self):
        async def main():
            stream = self.model.stream_async("x", **ENDLESS)
            await anext(stream)
            self.model.close()
            with self.assertRaises(sandwich.CancelledError):
                async for _ in stream:
                    pass

        self.run_async(main)


class RanksTest(HashModelTest):
    def test_without_a_rank_the_model_is_unavailable(self):
        path = self.write("ranks.sandwich", "ranks=2", "context=4194304")
        with sandwich.Model(path) as model:
            stream = model.stream("x", **ENDLESS)
            next(stream)
            children = subprocess.run(
                ["ps", "--no-headers", "-o", "pid,comm", "--ppid", str(os.getpid())],
                capture_output=True,
                text=True,
            ).stdout.split("\n")
            rank = next(int(line.split()[0]) for line in children if "sandwich" in line)
            os.kill(rank, 9)
            with self.assertRaisesRegex(sandwich.UnavailableError, "rank 1"):
                for _ in stream:
                    pass
            with self.assertRaisesRegex(sandwich.UnavailableError, "rank 1"):
                model.generate("x")
