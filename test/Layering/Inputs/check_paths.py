# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names each path of the project that a document gives and that is not there.

    check_paths.py ROOT
"""
import glob
import os
import re
import sys

NAMED = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(
    ("benchmarks", "cmake", "docs", "fuzz", "include", "lib", "models", "proto",
     "python", "scripts", "test", "tools", "unittests")))
# Such as the TRIPLET of lib/TRIPLET/libname.so.
PLACEHOLDER = re.compile(r"(^|/)[A-Z]+(/|$)")
LINKED = re.compile(r"\]\((?!\w+:)([^)#]+)")


def documents(root):
    for pattern in ("*.md", "*/*.md"):
        yield from sorted(glob.glob(os.path.join(root, pattern)))


def missing(root, document):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    for path in NAMED.findall(text):
        if (not PLACEHOLDER.search(path)
                and not os.path.exists(os.path.join(root, path))):
            yield path
    for path in LINKED.findall(text):
        if not os.path.exists(os.path.join(os.path.dirname(document), path)):
            yield path


def main():
    root = sys.argv[1]
    found = 0
    wrong = 0
    for document in documents(root):
        found += 1
        for path in missing(root, document):
            wrong += 1
            print(f"{os.path.relpath(document, root)} names {path}, "
                  "which is not there", file=sys.stderr)
    if found == 0:
        sys.exit(f"{root}: has no documents")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
