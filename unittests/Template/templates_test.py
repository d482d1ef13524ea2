# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Templates of the shapes that models have, with conversations of all kinds,
beside Python's jinja2. RENDER_TEMPLATES names the program that runs ours.
"""

import json
import os
import pathlib
import shutil
import subprocess
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


CLIENTS = os.environ.get("SANDWICH_TEST_CLIENTS", "")


def read_cases():
    """The names of all templates, and a case of each with each conversation."""
    templates = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted((INPUTS / "templates").glob("*.jinja"))
    }
    conversations = json.loads(
        (INPUTS / "conversations.json").read_text(encoding="utf-8")
    )
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
    return set(templates), names, cases


def render_case(case):
    return render_reference(case["template"], {**SPECIAL_TOKENS, **case["variables"]})


class TemplatesTest(unittest.TestCase):
    def test_all(self):
        templates, names, cases = read_cases()
        self.assertGreaterEqual(len(templates), 40)
        self.assertGreaterEqual(len(cases), 40 * len(templates))
        rendered = set()
        for (name, conversation), case, ours in zip(names, cases, render_ours(cases)):
            reference = render_case(case)
            with self.subTest(template=name, conversation=conversation):
                self.assertNotIn("parse", ours)
                self.assertIsNone(difference(ours, reference))
            if "text" in reference:
                rendered.add(name)
        # A template that every conversation fails in tests nothing.
        self.assertEqual(rendered, templates)

    def test_npm(self):
        """What @huggingface/jinja, which browsers use, makes of them. It knows
        less of Jinja, writes lists as JSON and prints some errors as nothing:
        where its text is another than ours, ours is jinja2's."""
        module = pathlib.Path(CLIENTS) / "node_modules/@huggingface/jinja"
        if not CLIENTS or not module.is_dir() or not shutil.which("node"):
            self.skipTest("SANDWICH_TEST_CLIENTS has no @huggingface/jinja")
        templates, names, cases = read_cases()
        run = subprocess.run(
            ["node", pathlib.Path(__file__).parent / "jinja_npm.mjs", module.resolve()],
            input=json.dumps(cases),
            capture_output=True,
            text=True,
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        same = set()
        for (name, conversation), case, ours, theirs in zip(
            names, cases, render_ours(cases), json.loads(run.stdout)
        ):
            if "text" not in theirs or "text" not in ours:
                continue
            if theirs["text"] == ours["text"]:
                same.add(name)
            else:
                with self.subTest(template=name, conversation=conversation):
                    self.assertEqual(render_case(case), {"text": ours["text"]})
        # What it lacks: `index` of lists, keys that are numbers, `recursive`.
        missing = {"deepseek-v3.1", "seed-oss", "granite-recursive-docs"}
        self.assertEqual(templates - same - missing, set())


if __name__ == "__main__":
    unittest.main()
