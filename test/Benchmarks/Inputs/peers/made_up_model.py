# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model that all made-up programs run, and what is wrong with each.

A model file holds a JSON object: `speed` is how many times as fast as one token
a second the program is, `error` is added to the log-probability of the likeliest
token, `shift` to the number of each.
"""
import json
import math

VOCABULARY = 320


class Model:
    def __init__(self, path):
        with open(path) as file:
            fields = json.load(file)
        self.speed = fields.get("speed", 1)
        self.error = fields.get("error", 0)
        self.shift = fields.get("shift", 0)

    def speeds(self, prompts, generated):
        """By test: a prompt of N tokens is as fast as N, generation as 1."""
        figures = {f"pp{length}": float(self.speed * int(length))
                   for length in prompts.split(",") if length != "0"}
        figures.update({f"tg{length}": float(self.speed)
                        for length in generated.split(",") if length != "0"})
        return figures

    def log_probabilities(self, sequence):
        """Of each token after the sequence: one is the likeliest, and those
        after it by number are less so."""
        best = 31 * sequence[-1] + len(sequence) + self.shift
        weights = [-0.05 * ((token - best) % VOCABULARY)
                   for token in range(VOCABULARY)]
        whole = math.log(sum(map(math.exp, weights)))
        weights[best % VOCABULARY] += self.error
        return [weight - whole for weight in weights]

    def continuation(self, prompt, steps):
        """For each step the token and the log-probabilities of all."""
        sequence = list(prompt)
        taken = []
        for _ in range(steps):
            known = self.log_probabilities(sequence)
            sequence.append(known.index(max(known)))
            taken.append((sequence[-1], known))
        return taken
