#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes cases for encode-texts: many texts for each tokenizer.json that is in
the given folders.

    make_tokenizer_cases.py FOLDER...
"""
import json
import os
import random
import sys

SAMPLES = (
    "", " ", "\n\n\t", "The CPU is fast, isn't it?  It's 3.14159!", "naïve – or",
    "don't  DO  that\r\n", "日本語のテキスト、漢字かな", "한국어 텍스트", "ปลา ไทย",
    "العربية من اليمين", "ÀÉÎÕÜ ﬁ ½ Ⅷ", "e\u0301\u0308 a\u030a", "👩‍👩‍👧 🏳️‍🌈 🇩🇪",
    "\u00a0\u2003\u200b\ufeff", "a\u0000b\u0007", "12345678901234567890",
    "int main() {\n\treturn a->b[0] ? x : ~y;\n}\n", "<s></s><unk>[CLS][SEP]",
    "<|begin_of_text|>x<|eot_id|>", "\U0001f600\U00010348\U0002070e")


def random_text(generator):
    """Letters of all planes, and pieces of what is above."""
    parts = []
    for _ in range(generator.randrange(1, 12)):
        if generator.randrange(3):
            sample = generator.choice(SAMPLES)
            begin = generator.randrange(len(sample) + 1)
            parts.append(sample[begin:begin + generator.randrange(12)])
        else:
            last = generator.choice((0x7f, 0x24f, 0xd7ff, 0x1ffff))
            parts += [chr(generator.randrange(last)) for _ in range(4)]
    # Halves of a pair are no text.
    return "".join(part for part in "".join(parts)
                   if not 0xd800 <= ord(part) <= 0xdfff)


def main():
    generator = random.Random(1)
    files = sorted(os.path.join(where, "tokenizer.json")
                   for folder in sys.argv[1:]
                   for where, _, names in os.walk(folder)
                   if "tokenizer.json" in names)
    texts = [*SAMPLES, *(random_text(generator) for _ in range(200)),
             " ".join(SAMPLES) * 20]
    cases = []
    for file in files:
        for number, text in enumerate(texts):
            case = {"file": file, "text": text, "special": number % 2 == 0}
            if number % 8 == 1:
                case["truncation"] = {"max_length": 7, "direction": "Left",
                                      "strategy": "LongestFirst"}
            cases.append(case)
    if not cases:
        sys.exit("there is no tokenizer")
    json.dump(cases, sys.stdout)


main()
