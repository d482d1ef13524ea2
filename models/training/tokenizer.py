# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A byte-level BPE tokenizer of the GPT-2 kind: training, encoding, decoding, saving.

Text is cut into words by GPT-2's regular expression, each word is written as UTF-8
bytes, and pairs of neighbouring symbols are merged in the order in which training
found them most frequent. All 256 bytes are in the vocabulary, so every text has an
encoding and no token means "unknown".
"""

import functools
import json
import re
import sys
import unicodedata
from collections import Counter, defaultdict

BEGIN_OF_TEXT = "<|begin_of_text|>"
END_OF_TEXT = "<|end_of_text|>"
SPECIAL_TOKENS = (BEGIN_OF_TEXT, END_OF_TEXT)


def byte_characters() -> list[str]:
    """Returns the printable character that stands for each byte in token strings.

    Bytes that are printable in Latin-1 stand for themselves; the others take the code
    points from 256 on, in order (the table that GPT-2 introduced).
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    characters, next_code = [], 256
    for byte in range(256):
        if byte in printable:
            characters.append(chr(byte))
        else:
            characters.append(chr(next_code))
            next_code += 1
    return characters


def category_class(letter: str) -> str:
    """Returns the inside of a regex class: all characters of a general category.

    Python's `re` has no \\p{L}; this writes such a class as ranges of code points.
    """
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == letter:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@functools.lru_cache(maxsize=None)
def word_pattern() -> re.Pattern[str]:
    """Returns GPT-2's pre-tokenizer expression, the one ByteLevel's use_regex means."""
    letters, numbers = category_class("L"), category_class("N")
    spaces = r"\t-\r\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+"
        rf"| ?[^{spaces}{letters}{numbers}]+|[{spaces}]+(?![^{spaces}])|[{spaces}]+"
    )


Pair = tuple[int, int]


def merge_in_word(word: list[int], pair: Pair, merged: int) -> list[int]:
    """Returns the word with each occurrence of the pair, left to right, replaced."""
    result, position = [], 0
    while position < len(word):
        if tuple(word[position : position + 2]) == pair:
            result.append(merged)
            position += 2
        else:
            result.append(word[position])
            position += 1
    return result


def train_merges(texts: list[str], count: int) -> list[Pair]:
    """Returns the merges, in order: merge number i makes token 256 + i.

    Words are counted once, and after each merge only the words that held the merged
    pair are counted again. Ties go to the smaller pair, so the result is deterministic.
    """
    word_counts = Counter(word for text in texts for word in word_pattern().findall(text))
    words = [list(word.encode()) for word in word_counts]
    counts = list(word_counts.values())
    pair_counts: Counter[Pair] = Counter()
    words_with_pair: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_counts[pair] += counts[number]
            words_with_pair[pair].add(number)

    merges: list[Pair] = []
    while len(merges) < count:
        pair, occurrences = max(
            pair_counts.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]), default=((0, 0), 0)
        )
        if occurrences < 2:
            raise ValueError(f"the text has only {len(merges)} pairs worth merging; ask for a smaller vocabulary")
        merged = 256 + len(merges)
        merges.append(pair)
        for number in words_with_pair.pop(pair):
            for old in zip(words[number], words[number][1:]):
                pair_counts[old] -= counts[number]
            words[number] = merge_in_word(words[number], pair, merged)
            for new in zip(words[number], words[number][1:]):
                pair_counts[new] += counts[number]
                words_with_pair[new].add(number)
        del pair_counts[pair]
    return merges


class Tokenizer:
    """Token ids: the 256 bytes, then the merges in order, then the special tokens."""

    def __init__(self, merges: list[Pair]):
        self.merges = merges
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.token_bytes = [bytes([byte]) for byte in range(256)]
        for left, right in merges:
            self.token_bytes.append(self.token_bytes[left] + self.token_bytes[right])
        self.begin_of_text = len(self.token_bytes)
        self.end_of_text = self.begin_of_text + 1
        self.vocabulary_size = self.begin_of_text + len(SPECIAL_TOKENS)
        self.encode_word = functools.lru_cache(maxsize=1 << 16)(self._encode_word)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        symbols = list(word.encode())
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            symbols = merge_in_word(symbols, best, 256 + self.ranks[best])
        return tuple(symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of the text, with <|begin_of_text|> before it."""
        return [self.begin_of_text, *(id for word in word_pattern().findall(text) for id in self.encode_word(word))]

    def decode(self, ids: list[int]) -> str:
        """Returns the text of the ids; special tokens are left out."""
        return b"".join(self.token_bytes[id] for id in ids if id < self.begin_of_text).decode(errors="replace")

    def to_hugging_face(self) -> dict:
        """Returns the contents of tokenizer.json."""
        characters = byte_characters()
        strings = ["".join(characters[byte] for byte in token) for token in self.token_bytes]
        specials = {BEGIN_OF_TEXT: self.begin_of_text, END_OF_TEXT: self.end_of_text}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        begin = {"SpecialToken": {"id": BEGIN_OF_TEXT, "type_id": 0}}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": id,
                    "content": content,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for content, id in specials.items()
            ],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [
                    begin,
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": BEGIN_OF_TEXT, "type_id": 1}},
                    {"Sequence": {"id": "B", "type_id": 1}},
                ],
                "special_tokens": {
                    BEGIN_OF_TEXT: {"id": BEGIN_OF_TEXT, "ids": [self.begin_of_text], "tokens": [BEGIN_OF_TEXT]}
                },
            },
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": {**{string: id for id, string in enumerate(strings)}, **specials},
                "merges": [f"{strings[left]} {strings[right]}" for left, right in self.merges],
            },
        }

    @classmethod
    def from_hugging_face(cls, contents: str) -> "Tokenizer":
        """Reads back what `to_hugging_face` wrote; not a reader for other tokenizers."""
        model = json.loads(contents)["model"]
        pairs = [merge.split(" ") for merge in model["merges"]]
        bytes_of = {character: byte for byte, character in enumerate(byte_characters())}
        id_of = {**bytes_of, **{left + right: 256 + rank for rank, (left, right) in enumerate(pairs)}}
        return cls([(id_of[left], id_of[right]) for left, right in pairs])
