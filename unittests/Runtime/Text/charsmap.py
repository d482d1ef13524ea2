# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Maps of characters as SentencePiece makes them."""

import base64
import struct


def _node(rules, prefix):
    """The bytes that follow `prefix` in `rules`, which are of bytes; 0 where
    one ends."""
    return sorted(
        {(key + b"\0")[len(prefix)] for key in rules if key.startswith(prefix)}
    )


def charsmap(rules):
    """The base64 of a map of the keys of `rules`, texts, to its values."""
    texts, rules = b"", {key.encode(): value.encode() for key, value in rules.items()}
    offsets = {}
    for key, value in rules.items():
        offsets[key] = len(texts)
        texts += value + b"\0"
    units = {0: 0}
    blocks = 1
    pending = [(0, b"")]  # nodes by their place and the bytes that lead there
    while pending:
        place, prefix = pending.pop()
        labels = _node(rules, prefix)
        # A block of its own for each node is large, simple and right; 21 bits of
        # its place are all that is needed of what a unit has room for.
        base = blocks << 8
        blocks += 1
        units[place] |= (place ^ base) << 10
        for label in labels:
            if label == 0:
                units[place] |= 1 << 8
                units[base] = 1 << 31 | offsets[prefix]
            else:
                units[base ^ label] = label
                pending.append((base ^ label, prefix + bytes([label])))
    array = struct.pack(
        f"<{blocks << 8}I", *(units.get(place, 0) for place in range(blocks << 8))
    )
    return base64.b64encode(struct.pack("<I", len(array)) + array + texts).decode()
