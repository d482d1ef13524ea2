# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Prints what the Python package makes of an artifact: the same on every CPU."""

import sys

import sandwich

path = sys.argv[1]
prompts = ["The CPU is", "A hacker is naïve – or"]

with sandwich.Model(path) as model:
    print(model.vocab_size, model.name)
    ids = list(model.tokenize(prompts[1]))
    print(ids)
    for completion in model.generate(prompts, max_tokens=20):
        print(repr(completion.text), completion.finish_reason)
    stream = model.stream(prompts[0], max_tokens=10, seed=3, temperature=1.0)
    print([token.text for token in stream])
    try:
        model.generate(prompts[0], max_tokens=-1)
    except (ValueError, sandwich.Error) as error:
        print(error)

with sandwich.Evaluator(path) as evaluator:
    rows = evaluator.logits(ids)
    print(rows.shape, rows.argmax(axis=1).tolist())
