# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Every character that Python knows beside Python."""

import unicodedata
import unittest

try:
    import jinja2
except ModuleNotFoundError:
    raise unittest.SkipTest("needs jinja2") from None

from jinja_reference import render_ours

# utf8proc 2.8 knows version 15, of which Python may know less.
VERSIONS = ("14.0.0", "15.0.0")

METHODS = [
    "upper", "lower", "title", "capitalize", "swapcase", "isspace", "isalpha",
    "isdecimal", "isdigit", "isprintable", "isupper", "islower", "isalnum", "strip",
]  # fmt: skip


@unittest.skipUnless(unicodedata.unidata_version in VERSIONS, "another Unicode")
class UnicodeTest(unittest.TestCase):
    def test_every_character(self):
        characters = [
            chr(c)
            for c in range(0x110000)
            if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")
        ]
        size = 0x8000
        blocks = [
            "".join(characters[begin : begin + size])
            for begin in range(0, len(characters), size)
        ]
        for method in METHODS:
            template = "{% for c in x %}{{ c." + method + "() }}{% endfor %}"
            cases = [{"template": template, "variables": {"x": x}} for x in blocks]
            for x, ours in zip(blocks, render_ours(cases)):
                expected = "".join(str(getattr(c, method)()) for c in x)
                self.assertTrue(
                    ours["text"] == expected, f"{method} from U+{ord(x[0]):04X} on"
                )

    def test_words(self):
        # Case depends on what is around a sigma.
        x = "ΑΣ ΑΣΑ Σ ΑΣ. ΑΣ.Α ΑΣʼ ΑΣʼΑ Α\u0301Σ\u0301 ΑΣΣ"
        for method in ("lower", "title", "capitalize", "swapcase"):
            template = "{{ x." + method + "() }}"
            ours = render_ours([{"template": template, "variables": {"x": x}}])
            self.assertEqual(ours[0]["text"], getattr(x, method)())


if __name__ == "__main__":
    unittest.main()
