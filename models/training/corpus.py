# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the Jargon File, as Debian's package dict-jargon ships it, as clean prose.

The package holds a dictd database: one text, compressed with dictzip (gzip with an
index), in which an entry is an unindented headword, a line with pronunciation and
part of speech, and paragraphs wrapped and indented by four spaces. Here an entry
becomes "headword: definition", its paragraphs unwrapped and separated by newlines.
"""

import gzip
import random
import re
import zlib
from pathlib import Path

DEFAULT_DICTIONARY = Path("/usr/share/dictd/jargon.dict.dz")

# Text that the Jargon File sets as a block of its own is indented more deeply than
# running text.
RUNNING_TEXT_INDENT = 4

# Shares of letters and single spaces that tell prose from code, tables and drawings.
PROSE_SHARE = 0.85


class CorpusError(Exception):
    """The dictionary is missing or is not the text expected."""


def read_dictionary(path: Path) -> str:
    """Returns the whole text of a dictd database."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file; Debian's package dict-jargon provides it") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: not a readable dictd database: {error}") from error


def unwrap(lines: list[str]) -> str:
    """Joins the lines of one paragraph and removes cross-reference braces.

    The wrapping broke lines inside braces, quotes, paths and manual references
    ("{\\nfoo}", "“\\nfoo”", "TCP/\\nIP", "sbrk\\n(2)"), so no space is left there.
    """
    text = "\n".join(line.strip() for line in lines)
    text = re.sub(r"(?<=/)\n(?=\w)|\n(?=\(\d\))", "", text).replace("\n", " ")
    text = re.sub(r"\{\s*([^{}]*?)\s*\}", r"\1", text)
    text = re.sub(r"([“‘(\[]) ", r"\1", text)
    text = re.sub(r" ([”,;:.!?)\]])(?=[\s”’).,;:]|$)", r"\1", text)
    text = re.sub(r"^□ ?", "", text)
    return re.sub(r"\s+", " ", text).strip()


def is_prose(lines: list[str]) -> bool:
    """Whether a paragraph is sentences, not code, a table, a drawing or a heading."""
    joined = " ".join(line.strip() for line in lines)
    if len(joined) < 2 or not re.search(r"[a-z]", joined) or re.search(r"[─-╿]", joined):
        return False
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    if indent <= RUNNING_TEXT_INDENT:
        return True
    if any(re.search(r"\S   +\S", line) for line in lines):
        return False
    share = sum(character.isalpha() or character == " " for character in joined) / len(joined)
    return share >= PROSE_SHARE and len(joined) >= 60


def parse_entries(text: str) -> list[str]:
    """Returns the entries of the dictionary's text, each "headword: definition"."""
    lines = text.split("\n")
    entries = []
    headword, paragraphs, paragraph = "", [], []

    def finish_paragraph() -> None:
        if paragraph and is_prose(paragraph):
            paragraphs.append(unwrap(paragraph))
        paragraph.clear()

    def finish_entry() -> None:
        finish_paragraph()
        definition = "\n".join(part for part in paragraphs if part)
        if headword and definition and not headword.startswith("00-database"):
            entries.append(f"{headword}: {definition}")
        paragraphs.clear()

    number = 0
    while number < len(lines):
        line = lines[number]
        previous_is_blank = number > 0 and not lines[number - 1].strip()
        following = lines[number + 1] if number + 1 < len(lines) else ""
        opens_entry = (
            line[:1].strip() != ""
            and previous_is_blank
            and (not following.strip() or re.match(r" \S", following))
        )
        if opens_entry:
            finish_entry()
            headword = line.strip()
            number += 1  # The next line is blank or holds pronunciation and part of speech.
        elif line.strip():
            paragraph.append(line)
        else:
            finish_paragraph()
        number += 1
    finish_entry()
    return entries


def split_entries(entries: list[str], held_out_share: float, seed: int) -> tuple[list[str], list[str]]:
    """Splits entries into training and held-out ones, the same way for the same seed."""
    order = list(range(len(entries)))
    random.Random(seed).shuffle(order)
    held_out = set(order[: round(len(entries) * held_out_share)])
    return (
        [entry for number, entry in enumerate(entries) if number not in held_out],
        [entry for number, entry in enumerate(entries) if number in held_out],
    )
