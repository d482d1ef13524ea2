#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each way to break the layering is found in a small source tree.

    check_layering_test.py SOURCE_DIR
"""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(sys.argv.pop(1), "scripts"))
import check_layering

TABLE = """
| room | holds | may include |
|---|---|---|
| `Support` | helpers | |
| `Shared/ABI` | one header | |
| `Shared` | more | `Support`, `Shared/ABI` |
| `Dialect/X/IR` | operations | `LLVM`, `Support` |
| `Dialect/X/Transforms` | passes | `LLVM`, `Dialect/X/IR` |
| `Frontend/Reader` | reading | `Support` |
| `Frontend/Builder` | building | `LLVM`, `Frontend/Reader` |
| `tools/run` | a tool | `Support` |
"""


class CheckLayering(unittest.TestCase):

    def check(self, files, table=TABLE):
        with tempfile.TemporaryDirectory() as source:
            for path, text in {**files, "docs/Architecture.md": table}.items():
                path = os.path.join(source, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = check_layering.main([source])
        self.assertEqual(status, 1 if output.getvalue() else 0)
        return output.getvalue().splitlines()

    def test_accepts_what_the_table_allows(self):
        self.assertEqual(self.check({
            "include/sandwich/Support/A.h": "#include <string>\n",
            "lib/Support/A.cpp": '#include "sandwich/Support/A.h"\n',
            "include/sandwich/Frontend/Reader.h": "",
            "include/sandwich/Frontend/Other.h": "",
            "lib/Frontend/Reader/Reader.cpp":
                '#include "sandwich/Frontend/Other.h"\n',
            "include/sandwich/Frontend/Builder.h":
                '#include "mlir/IR/Types.h"\n'
                '#include "sandwich/Frontend/Reader.h"\n',
            "include/sandwich/Dialect/X/IR/XOps.td":
                'include "mlir/IR/OpBase.td"\n'
                'include "sandwich/Dialect/X/IR/X.td"\n',
            "lib/Shared/B.cpp": '#include "C.h"\n'
                                '#include "sandwich/Shared/ABI.h"\n',
            "lib/Shared/C.h": "",
        }), [])

    def test_refuses_a_room_above(self):
        self.assertEqual(self.check({
            "lib/Dialect/X/IR/X.cpp":
                "\n#include \"sandwich/Dialect/X/Transforms/Passes.h\"\n",
        }), ["lib/Dialect/X/IR/X.cpp:2: Dialect/X/IR must not include "
             "Dialect/X/Transforms, but includes "
             "sandwich/Dialect/X/Transforms/Passes.h"])

    def test_refuses_a_room_above_in_tablegen(self):
        self.assertEqual(self.check({
            "include/sandwich/Dialect/X/IR/XOps.td":
                'include "sandwich/Dialect/X/Transforms/Passes.td"\n',
        }), ["include/sandwich/Dialect/X/IR/XOps.td:1: Dialect/X/IR must not "
             "include Dialect/X/Transforms, but includes "
             "sandwich/Dialect/X/Transforms/Passes.td"])

    def test_refuses_llvm_in_plain_rooms(self):
        for header in ("llvm/ADT/SmallVector.h", "mlir/IR/Types.h",
                       "clang/AST/Decl.h", "lld/Common/Driver.h"):
            for left, right in ('""', "<>"):
                for folder, room in (("lib/Support", "Support"),
                                     ("tools/run", "tools/run"),
                                     ("include/sandwich/Frontend",
                                      "Frontend/Reader")):
                    self.assertEqual(self.check({
                        f"{folder}/A.h": f"#  include {left}{header}{right}\n",
                    }), [f"{folder}/A.h:1: {room} must not see LLVM, but "
                         f"includes {header}"])

    def test_refuses_a_part_of_a_room(self):
        self.assertEqual(self.check({
            "lib/Shared/ABI.h": '#include "sandwich/Shared/Other.h"\n',
        }), ["lib/Shared/ABI.h:1: Shared/ABI must not include Shared, but "
             "includes sandwich/Shared/Other.h"])

    def test_refuses_private_headers_of_others(self):
        self.assertEqual(self.check({
            "lib/Shared/A.cpp": '#include "../Support/Private.h"\n',
            "lib/Support/Private.h": "",
            "lib/Shared/B.cpp": '#include "Private.h"\n',
        }), ["lib/Shared/A.cpp:1: includes ../Support/Private.h outside of its "
             "folder",
             "lib/Shared/B.cpp:1: includes Private.h, which is not beside it"])

    def test_refuses_files_in_no_room(self):
        self.assertEqual(self.check({
            "lib/New/A.cpp": "",
            "lib/Support/B.cpp": '#include "sandwich/New/A.h"\n',
        }), ["lib/New/A.cpp: is in no room",
             "lib/Support/B.cpp:1: includes sandwich/New/A.h, which is in no "
             "room"])

    def test_refuses_a_table_that_points_up(self):
        self.assertEqual(self.check(
            {"lib/A/A.cpp": ""},
            "| room | holds | may include |\n|---|---|---|\n"
            "| `A` | a | `B` |\n| `B` | b | |\n"),
            ["error: docs/Architecture.md lets A include B, which is no room "
             "of an earlier row"])

    def test_refuses_a_page_without_table(self):
        self.assertEqual(self.check({"lib/A/A.cpp": ""}, "# Rooms\n"),
                         ["error: docs/Architecture.md has no table that "
                          "begins with '| room |'"])

    def test_refuses_an_empty_tree(self):
        lines = self.check({})
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith("holds no sources"), lines)


unittest.main()
