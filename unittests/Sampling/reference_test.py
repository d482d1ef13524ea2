# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The sampler against what vLLM documents, written down once more in numpy.

SAMPLE_TOKENS names the program that runs the sampler. A case is an object of
`options`, `end_tokens`, `prompt`, `logits` (null bars a token) and `steps`, a
number of tokens drawn from the same logits. The steps are those of the class
`Sampler` in `vllm/v1/sample/sampler.py`; drawing is by the cumulative
distribution, with the numbers of std::mt19937_64.
"""

import json
import os
import subprocess
import unittest

try:
    import numpy
except ModuleNotFoundError:
    raise unittest.SkipTest("needs numpy") from None

SAMPLE_TOKENS = os.environ["SAMPLE_TOKENS"]


class MersenneTwister64:
    """Matsumoto and Nishimura's 64-bit generator, from its published constants."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = [seed & self.MASK]
        for i in range(1, 312):
            last = self.state[-1]
            self.state.append(
                (6364136223846793005 * (last ^ (last >> 62)) + i) & self.MASK
            )
        self.index = 312

    def twist(self):
        upper = self.MASK ^ 0x7FFFFFFF
        for i in range(312):
            x = (self.state[i] & upper) | (self.state[(i + 1) % 312] & 0x7FFFFFFF)
            odd = 0xB5026F5AA96619E9 if x & 1 else 0
            self.state[i] = self.state[(i + 156) % 312] ^ (x >> 1) ^ odd
        self.index = 0

    def __call__(self):
        if self.index == 312:
            self.twist()
        x = self.state[self.index]
        self.index += 1
        x ^= (x >> 29) & 0x5555555555555555
        x ^= (x << 17) & 0x71D67FFFEDA60000
        x ^= (x << 37) & 0xFFF7EEE000000000
        return (x ^ (x >> 43)) & self.MASK


def softmax(logits):
    weights = numpy.exp(logits - logits.max())
    return weights / weights.sum()


def most_probable_first(logits):
    """Tokens by logit; of equal ones the smaller token first."""
    return numpy.argsort(-logits, kind="stable")


class Reference:
    """vLLM's steps, on one row."""

    def __init__(self, case):
        self.options = case["options"]
        self.end_tokens = case["end_tokens"]
        self.logits = numpy.array(
            [-numpy.inf if x is None else x for x in case["logits"]], numpy.float32
        )
        self.in_prompt = numpy.zeros(len(self.logits), bool)
        self.in_prompt[case["prompt"]] = True
        self.counts = numpy.zeros(len(self.logits), numpy.int64)
        self.random = MersenneTwister64(self.options.get("seed", 0))

    def option(self, name, default):
        return numpy.float32(self.options.get(name, default))

    def processed(self):
        """After the processors and penalties, in float32 as there."""
        logits = self.logits.copy()
        if self.counts.sum() < self.options.get("min_tokens", 0):
            logits[self.end_tokens] = -numpy.inf
        for token, bias in self.options.get("logit_bias", []):
            logits[token] += numpy.float32(-numpy.inf if bias is None else bias)
        repetition = self.option("repetition_penalty", 1)
        penalized = numpy.where(logits > 0, logits / repetition, logits * repetition)
        in_output = self.counts > 0
        logits = numpy.where(self.in_prompt | in_output, penalized, logits)
        logits -= self.option("frequency_penalty", 0) * self.counts.astype("f4")
        logits -= self.option("presence_penalty", 0) * in_output.astype("f4")
        return logits

    def filtered(self, logits):
        """Logits divided by the temperature, minus infinity where left out."""
        logits = logits.astype(numpy.float64)
        logits /= float(self.option("temperature", 0))
        probabilities = softmax(logits)
        min_p = float(self.option("min_p", 0))
        logits[probabilities < min_p * probabilities.max()] = -numpy.inf
        in_order = False
        top_k = self.options.get("top_k", 0)
        if 0 < top_k < numpy.isfinite(logits).sum():
            logits[most_probable_first(logits)[top_k:]] = -numpy.inf
            in_order = True
        top_p = float(self.option("top_p", 1))
        if top_p < 1:
            ascending = most_probable_first(logits)[::-1]
            sums = numpy.cumsum(softmax(logits)[ascending])
            left_out = sums <= 1 - top_p
            left_out[-1] = False
            logits[ascending[left_out]] = -numpy.inf
            in_order = True
        return logits, in_order

    def draw(self, logits, in_order):
        order = most_probable_first(logits) if in_order else numpy.arange(len(logits))
        sums = numpy.cumsum(softmax(logits)[order])
        place = (self.random() >> 11) * 2.0**-53 * sums[-1]
        return int(order[numpy.searchsorted(sums, place, side="right")])

    def step(self):
        logits = self.processed()
        if self.options.get("temperature", 0) == 0:
            token = int(most_probable_first(logits)[0])
        else:
            token = self.draw(*self.filtered(logits))
        self.counts[token] += 1
        return token

    def log_probabilities(self):
        """Of the distribution that the model computed: `raw_logprobs`."""
        logits = self.logits.astype(numpy.float64)
        return logits - logits.max() - numpy.log(numpy.exp(logits - logits.max()).sum())


def random_case(random, vocabulary):
    """Every option, each in some of the cases."""
    logits = random.normal(0, random.choice([0.5, 2, 8]), vocabulary).astype("f4")
    logits = [None if random.random() < 0.05 else float(x) for x in logits]
    logits[random.integers(vocabulary)] = 1.0

    def tokens(count):
        return [int(x) for x in random.integers(0, vocabulary, count)]

    options = {"seed": int(random.integers(2**63))}
    choices = {
        "temperature": [0.3, 0.8, 1.0, 1.5],
        "top_k": [1, 5, 40, 300],
        "top_p": [0.1, 0.5, 0.9, 0.99],
        "min_p": [0.001, 0.05, 0.5],
        "repetition_penalty": [0.8, 1.2],
        "frequency_penalty": [-0.5, 0.7],
        "presence_penalty": [-1.0, 1.5],
        "min_tokens": [2],
    }
    for name, values in choices.items():
        if random.random() < (0.9 if name == "temperature" else 0.4):
            options[name] = random.choice(values).item()
    if random.random() < 0.4:
        options["logit_bias"] = [
            [token, None if random.random() < 0.3 else float(random.integers(-9, 9))]
            for token in sorted(set(tokens(6)))
        ]
    return {
        "options": options,
        "end_tokens": tokens(3),
        "prompt": tokens(random.integers(0, 20)),
        "logits": logits,
        "steps": 12,
    }


class ReferenceTest(unittest.TestCase):
    def sample(self, cases):
        run = subprocess.run(
            [SAMPLE_TOKENS], input=json.dumps(cases), capture_output=True, text=True
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def test_random_numbers(self):
        random = MersenneTwister64(5489)
        # The C++ standard, [rand.predef].
        for _ in range(9999):
            random()
        self.assertEqual(random(), 9981545732273789042)

    def test_random_cases(self):
        random = numpy.random.default_rng(1)
        sizes = [30, 200, 256, 257, 1500, 6000]
        cases = [random_case(random, sizes[i % len(sizes)]) for i in range(240)]
        for number, (case, steps) in enumerate(zip(cases, self.sample(cases))):
            reference = Reference(case)
            expected = reference.log_probabilities()
            top = most_probable_first(expected)[:5]
            for step in steps:
                with self.subTest(case=number, options=case["options"]):
                    self.assertEqual(step["token"], reference.step())
                    self.assertAlmostEqual(
                        step["log_probability"], expected[step["token"]], delta=2e-5
                    )
                    self.assertEqual([token for token, _ in step["top"]], list(top))
                    numpy.testing.assert_allclose(
                        [x for _, x in step["top"]], expected[top], atol=2e-5
                    )


if __name__ == "__main__":
    unittest.main()
