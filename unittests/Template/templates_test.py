# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Templates of the shapes that models have, with conversations of all kinds,
beside Python's jinja2. RENDER_TEMPLATES names the program that runs ours.
"""

import json
import pathlib
import unittest

try:
    import jinja2
except ModuleNotFoundError:
    raise unittest.SkipTest("needs jinja2") from None

from jinja_reference import (
    SPECIAL_TOKENS,
    difference,
    render_ours,
    render_reference,
)

INPUTS = pathlib.Path(__file__).parent / "Inputs"


class TemplatesTest(unittest.TestCase):
    def test_all(self):
        templates = {
            path.stem: path.read_text(encoding="utf-8")
            for path in sorted((INPUTS / "templates").glob("*.jinja"))
        }
        conversations = json.loads(
            (INPUTS / "conversations.json").read_text(encoding="utf-8")
        )
        self.assertGreaterEqual(len(templates), 40)
        self.assertGreaterEqual(len(conversations), 40)
        names, cases = [], []
        for name, template in templates.items():
            for conversation in conversations:
                names.append((name, conversation["name"]))
                cases.append(
                    {
                        "template": template,
                        "variables": conversation["variables"],
                        "trusted": SPECIAL_TOKENS,
                    }
                )
        rendered = set()
        for (name, conversation), case, ours in zip(names, cases, render_ours(cases)):
            variables = {**SPECIAL_TOKENS, **case["variables"]}
            reference = render_reference(case["template"], variables)
            with self.subTest(template=name, conversation=conversation):
                self.assertNotIn("parse", ours)
                self.assertIsNone(difference(ours, reference))
            if "text" in reference:
                rendered.add(name)
        # A template that every conversation fails in tests nothing.
        self.assertEqual(rendered, set(templates))


if __name__ == "__main__":
    unittest.main()
