# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the corpus reader and the tokenizer; they need the standard library only."""

import json
import random
import unittest
from pathlib import Path

import corpus
from tokenizer import Tokenizer, train_merges, word_pattern

BUNDLED = Path(__file__).resolve().parents[1] / "jargon-llama"

DICTIONARY = """00-database-info
This is about the dictionary.

first word
 /ferst/, n.

    Of the {second
    word}, see “
    quoted” and TCP/
    IP or brk
    (2).

    A

        code = (1 + 2) * 3;

    A second paragraph.

second word


    1. Text.
"""


class CorpusTest(unittest.TestCase):
    def test_entries_are_unwrapped_prose(self):
        self.assertEqual(
            corpus.parse_entries(DICTIONARY),
            [
                "first word: Of the second word, see “quoted” and TCP/IP or brk(2).\nA second paragraph.",
                "second word: 1. Text.",
            ],
        )

    def test_split_is_a_partition_and_repeats(self):
        entries = [str(number) for number in range(40)]
        training, held_out = corpus.split_entries(entries, 0.05, seed=1)
        self.assertEqual(len(held_out), 2)
        self.assertEqual(sorted(training + held_out), sorted(entries))
        self.assertEqual(corpus.split_entries(entries, 0.05, seed=1), (training, held_out))

    def test_missing_dictionary_is_named(self):
        with self.assertRaisesRegex(corpus.CorpusError, "/nowhere/jargon: no such file"):
            corpus.read_dictionary(Path("/nowhere/jargon"))


class TokenizerTest(unittest.TestCase):
    def test_words_are_cut_as_gpt2_cuts_them(self):
        self.assertEqual(
            word_pattern().findall("I'll  see ½ of\x1c42_x  \n"),
            ["I", "'ll", " ", " see", " ½", " of", "\x1c", "42", "_", "x", "  \n"],
        )

    def test_most_frequent_pair_is_merged_first(self):
        merges = train_merges(["ab ab ab abc abc"], 3)
        self.assertEqual(merges[0], (ord("a"), ord("b")))
        self.assertEqual(merges[1], (ord(" "), 256))
        self.assertEqual(merges[2], (257, ord("c")))

    def test_too_little_text_is_refused(self):
        with self.assertRaisesRegex(ValueError, "ask for a smaller vocabulary"):
            train_merges(["abc"], 5)
        with self.assertRaisesRegex(ValueError, "only 0 pairs"):
            train_merges([], 5)

    def test_every_text_survives_encoding(self):
        tokenizer = Tokenizer(train_merges(["the cat sat on the mat, the cat"], 6))
        generator = random.Random(1)
        for _ in range(200):
            text = "".join(chr(generator.choice([32, 10, 0x1F600, generator.randrange(0xD800)])) for _ in range(30))
            self.assertEqual(tokenizer.decode(tokenizer.encode(text)), text)

    def test_saved_and_read_back_it_is_the_same(self):
        tokenizer = Tokenizer(train_merges(["the cat sat on the mat, the cat"], 6))
        saved = tokenizer.to_hugging_face()
        self.assertEqual(sorted(saved["model"]["vocab"].values()), list(range(tokenizer.vocabulary_size)))
        self.assertEqual(Tokenizer.from_hugging_face(json.dumps(saved)).merges, tokenizer.merges)


class BundledFolderTest(unittest.TestCase):
    def test_size_and_token_ids(self):
        self.assertLessEqual(sum(path.stat().st_size for path in BUNDLED.iterdir()), 8_000_000)
        config = json.loads((BUNDLED / "config.json").read_text())
        tokenizer = Tokenizer.from_hugging_face((BUNDLED / "tokenizer.json").read_text(encoding="utf-8"))
        self.assertEqual(tokenizer.vocabulary_size, config["vocab_size"])
        self.assertEqual(tokenizer.begin_of_text, config["bos_token_id"])
        self.assertEqual(tokenizer.end_of_text, config["eos_token_id"])


if __name__ == "__main__":
    unittest.main()
