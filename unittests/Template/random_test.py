# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random templates beside Python's jinja2.

    random_test.py --first=SEED --count=N     more of them, from other seeds
"""

import argparse
import copy
import random
import re
import sys
import unittest
import warnings

try:
    import jinja2
except ModuleNotFoundError:
    raise unittest.SkipTest("needs jinja2") from None

from jinja_reference import difference, render_ours, render_reference
from random_templates import VARIABLES, random_expression, random_template

# What docs/RationaleTemplates.md says is not supported.
UNSUPPORTED = re.compile(
    "not supported|more than 64 bits|cannot be printed|out of range"
    "|cannot be a key|too many steps|values take more than"
    # jinja2 finds nothing in slices of constants that are wrong; of other
    # values they are errors.
    "|has no slices|a slice needs integers|the step of a slice is zero"
)
# What differs with each run of Python, or says what a program is made of.
UNSTABLE = re.compile(r" at 0x[0-9a-f]+>|<class |<built-in |<function ")


def compare(make, seeds):
    """The differences, and how many cases were compared."""
    cases = [
        {"template": make(random.Random(seed)), "variables": VARIABLES if i == 0 else 0}
        for i, seed in enumerate(seeds)
    ]
    differences, compared = [], 0
    for case, ours in zip(cases, render_ours(cases)):
        if UNSUPPORTED.search(ours.get("error", "")):
            continue
        # A copy, as jinja2's `indent` changes lists.
        reference = render_reference(case["template"], copy.deepcopy(VARIABLES))
        if UNSTABLE.search(reference.get("text", "")):
            continue
        compared += 1
        found = difference(ours, reference)
        if found:
            differences.append(f"{case['template']}\n{found}")
    return differences, compared


class RandomTest(unittest.TestCase):
    def check(self, make, count):
        differences, compared = compare(make, range(count))
        self.assertEqual(differences, [])
        self.assertGreater(compared, count * 3 // 4)

    def test_expressions(self):
        self.check(random_expression, 4000)

    def test_statements(self):
        self.check(random_template, 2000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    total = failed = 0
    for begin in range(options.first, options.first + options.count, 1000):
        for make in (random_expression, random_template):
            differences, compared = compare(make, range(begin, begin + 1000))
            total += compared
            failed += len(differences)
            for each in differences:
                print(each, "\n", flush=True)
    print(f"{total} compared, {failed} differ")
    return 1 if failed else 0


# Python warns of literals that are called, and the like.
warnings.simplefilter("ignore")
if __name__ == "__main__":
    sys.exit(main())
