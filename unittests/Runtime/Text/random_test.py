# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random texts beside Hugging Face's `tokenizers`.

    random_test.py --first=SEED --count=N     more of them, from other seeds
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
import unittest

try:
    import tokenizers
except ModuleNotFoundError:
    raise unittest.SkipTest("needs tokenizers") from None

from charsmap import charsmap

FOLDER = pathlib.Path(__file__).parent
ENCODE_TEXTS = os.environ["ENCODE_TEXTS"]
SHARED = pathlib.Path(os.environ.get("SANDWICH_SHARED", FOLDER.parents[3] / "shared"))

BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
MAP = charsmap(
    {
        "\u00c5": "A", "A\u030a": "\u00e5", "\ufb01": "fi", "\t": " ", "\r": "",
        "\u200d": " ", "e": "E", "e\u0301": "\u00e9", "\u3000": " ", "\uff76": "\u30ab",
        "\u0301": "", "\u2167": "VIII", "\uac00": "\u1100\u1161", "\ud7a3": "x",
    }
)  # fmt: skip
BYTES = [[f"<0x{byte:02X}>", -9 - byte / 64] for byte in range(256)]


def bert(**changes):
    return {"normalizer": {**BERT, **changes}}


def steps(*types):
    return {
        "type": "Sequence",
        "normalizers": [
            each if isinstance(each, dict) else {"type": each} for each in types
        ],
    }


def precompiled(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": charsmap}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


METASPACE = {
    "type": "Metaspace",
    "replacement": "\u2581",
    "prepend_scheme": "always",
    "split": True,
}


def variants(words, pieces):
    """Changes to the two tokenizers of the tests, by name."""
    yield "bert", words, {}
    yield "cased", words, bert(lowercase=False)
    yield "accents", words, bert(strip_accents=False)
    yield "cased-stripped", words, bert(lowercase=False, strip_accents=True)
    yield "uncleaned", words, bert(clean_text=False)
    yield "chinese", words, bert(handle_chinese_chars=False)
    yield "no-normalizer", words, {"normalizer": None}
    yield "short-words", words, {"model": {"max_input_chars_per_word": 4}}
    yield "prefix", words, {"model": {"continuing_subword_prefix": ""}}
    yield "uncleaned-decoder", words, {
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}
    }
    yield "bert-processing", words, {
        "post_processor": {
            "type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]
        }
    }  # fmt: skip
    yield "roberta-processing", words, {
        "post_processor": {
            "type": "RobertaProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3],
            "trim_offsets": True, "add_prefix_space": False,
        }
    }  # fmt: skip
    yield "no-processor", words, {"post_processor": None}
    yield "unigram", pieces, {}
    yield "no-spaces", pieces, {"pre_tokenizer": METASPACE}
    yield "whole", pieces, {"pre_tokenizer": {**METASPACE, "split": False}}
    yield "first", pieces, {"pre_tokenizer": {**METASPACE, "prepend_scheme": "first"}}
    yield "bytes", pieces, {
        "model": {"byte_fallback": True, "vocab": pieces["model"]["vocab"] + BYTES}
    }
    yield "twice", pieces, {
        "model": {"vocab": pieces["model"]["vocab"] + [["er", -1], ["bread", -2]]}
    }
    yield "likely", pieces, {
        "model": {
            "vocab": [[piece, score + 40] for piece, score in pieces["model"]["vocab"]]
        }
    }
    yield "nmt", pieces, {"normalizer": steps("Nmt", "NFKC", "Lowercase")}
    yield "albert", pieces, {
        "normalizer": steps(
            replace({"String": "``"}, '"'), "NFKD", "StripAccents", "Lowercase",
            precompiled(MAP), replace({"Regex": " {2,}"}, " "),
        )
    }  # fmt: skip
    yield "map", pieces, {"normalizer": precompiled(MAP)}
    yield "strip", pieces, {
        "normalizer": steps(
            {"type": "Strip", "strip_left": True, "strip_right": True},
            precompiled(MAP),
        )
    }
    tiny = SHARED / "tokenizers/unigram-tiny/tokenizer.json"
    if tiny.exists():
        whole = json.loads(tiny.read_text())
        yield "tiny", whole, {}
        yield "tiny-whole", whole, {"pre_tokenizer": METASPACE}
    base = SHARED / "tokenizers/bge-wordpiece/tokenizer.json"
    if base.exists():
        yield "bge", json.loads(base.read_text()), {}


def changed(file, changes):
    """`file` with `changes`, those of its model one by one."""
    return {
        **file,
        **changes,
        "model": {**file["model"], **changes.get("model", {})},
    }


def agrees(character):
    """Whether the library's classes of `character` are Unicode's: they are of
    an old version."""
    category = unicodedata.category(character)
    text = f"a{character}b"
    kept = tokenizers.normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    ).normalize_str(text)
    stripped = tokenizers.normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
    ).normalize_str(text)
    bare = tokenizers.normalizers.StripAccents().normalize_str(text)
    cut = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
    is_punctuation = category[0] == "P" or character in "$+<=>^`|~"
    is_space = category[0] == "Z" or character in "\t\n\v\f\r\x85"
    return (
        category != "Cn"
        and (kept == "ab") == (category in ("Cc", "Cf", "Co") and kept != "a b")
        and (stripped == "ab") == (category == "Mn")
        and (bare == "ab") == (category[0] == "M")
        and len(cut) == (3 if is_punctuation else 2 if is_space else 1)
    )


POOLS = [
    ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 6),
    (" .,!?'\"-#[](){}<>$+=^`|~_\\/*&%@:;", 4),
    ("  \t\n\r\v\f\x00\x01\x1f\x7f\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\u180e", 2),
    ("\xc0\xc9\xe9\xf1\xfc\xdf\u0130\u0131\u017f\u01c5\xc5\u212b\xe5\u0149\u1e9b", 2),
    ("\u0300\u0301\u030a\u0323\u0327\u0345\u20dd\u093c\u0e31\u05bc\u3099\u1161\u11a8", 2),
    ("\u0391\u03a3\u03c2\u03c3\u0416\u0434\u0439\u043f\u0451\u05d0\u05e9\u0627\u0644", 2),
    ("\u0915\u094d\u0937\u093f\u0928\u092e\u0e01\u0e33\u0e40\u1100\uac00\ud7a3\ub370", 1),
    ("\u9762\u5305\u5e08\u4e00\u9fff\u3400\u4dbf\uf900\U00020000\U0002b81f\u304f\u30d1\uff76", 2),
    ("\ufb01\ufb03\u00bd\u2167\u2460\uff21\uff01\ufdfa\u3392\u2026\u0132\u01c4\u1e9e", 1),
    ("\U0001f600\U0001f468\u200d\U0001f469\ufe0f\U0001f1e9\U0001f1ea\U0001f3fd\u2764", 1),
    ("\ufffd\ufeff\u2581\u200e\u202e\u2060\ue000\U000f0000\U0010ffff\ufffe\u0600\u00ad", 1),
]
WORDS = (
    "bakers baker the breads retrieval embeddings jumping running unknowns it's don't "
    "caf\u00e9 cafe\u0301 \u043f\u0440\u0438\u0432\u0435\u0442 \ub370\uc774\ud130 "
    "\u9762\u5305\u5e08 [CLS] [UNK] [MASK] <unk> <s> </s> <pad> ## \u2581 ``"
).split()


def random_character(draw):
    while draw.random() < 0.03:
        character = chr(draw.randrange(0x110000))
        if unicodedata.category(character) != "Cs" and agrees(character):
            return character
    pool = draw.choices(POOLS, [weight for _, weight in POOLS])[0][0]
    return draw.choice(pool)


def random_text(draw):
    text = ""
    for _ in range(draw.randrange(12)):
        if draw.random() < 0.5:
            text += draw.choice(WORDS) + draw.choice(["", " ", " ", "  "])
        else:
            text += "".join(
                random_character(draw) for _ in range(draw.randrange(8))
            )
    return text


def random_case(draw):
    case = {"text": random_text(draw), "special": draw.random() < 0.6}
    if draw.random() < 0.3:
        case["second"] = random_text(draw)
    if draw.random() < 0.3:
        case["truncation"] = {
            "max_length": draw.randrange(4, 24),
            "strategy": draw.choice(["LongestFirst", "OnlyFirst", "OnlySecond"]),
            "direction": draw.choice(["Left", "Right"]),
        }
    return case


def reference(tokenizer, case):
    """What encode-texts gives, of the library."""
    tokenizer.no_truncation()
    if truncation := case.get("truncation"):
        names = {
            "LongestFirst": "longest_first",
            "OnlyFirst": "only_first",
            "OnlySecond": "only_second",
        }
        tokenizer.enable_truncation(
            truncation["max_length"],
            strategy=names[truncation["strategy"]],
            direction=truncation["direction"].lower(),
        )
    try:
        encoding = tokenizer.encode(
            case["text"], case.get("second"), add_special_tokens=case["special"]
        )
    except Exception as error:  # of no kind that has a name
        return {"error": str(error)}
    return {
        "ids": encoding.ids,
        "types": encoding.type_ids,
        "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=False),
        "plain": tokenizer.decode(encoding.ids, skip_special_tokens=True),
    }


def compare(seeds):
    """The differences, and how many cases were compared."""
    words = json.loads((FOLDER / "Inputs/word-pieces.json").read_text())
    pieces = json.loads((FOLDER / "Inputs/unigram.json").read_text())
    cases, expected = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, file, changes in variants(words, pieces):
            path = os.path.join(folder, f"{name}.json")
            text = json.dumps(changed(file, changes))
            pathlib.Path(path).write_text(text)
            tokenizer = tokenizers.Tokenizer.from_str(text)
            for seed in seeds:
                case = random_case(random.Random(f"{name} {seed}"))
                cases.append({"file": path, **case})
                expected.append(reference(tokenizer, case))
        run = subprocess.run(
            [ENCODE_TEXTS], input=json.dumps(cases), capture_output=True, text=True
        )
    if (run.returncode, run.stderr) != (0, ""):
        raise AssertionError(f"{ENCODE_TEXTS}: {run.returncode}: {run.stderr}")
    differences = []
    for case, ours, theirs in zip(cases, json.loads(run.stdout), expected, strict=True):
        if ("error" in ours) != ("error" in theirs) or (
            "error" not in ours and ours != theirs
        ):
            name = pathlib.Path(case.pop("file")).stem
            differences.append(f"{name} {case}\nours:   {ours}\ntheirs: {theirs}")
    return differences, len(cases)


class RandomTexts(unittest.TestCase):
    def test_agree_with_the_library(self):
        differences, count = compare(range(40))
        self.assertGreater(count, 900)
        self.assertEqual(differences, [], "\n".join(differences[:3]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    arguments = parser.parse_args()
    differences, count = compare(
        range(arguments.first, arguments.first + arguments.count)
    )
    print("\n\n".join(differences))
    print(f"{len(differences)} of {count} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
