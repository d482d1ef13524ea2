# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a page of charts is well-formed and needs no other file, and
prints its paragraphs, its tables' rows, its charts' titles and the names of the
numbers that it holds.

    check_page.py FILE
"""
import json
import re
import sys
import xml.etree.ElementTree

with open(sys.argv[1], encoding="utf-8", errors="strict") as file:
    text = file.read()
# The server's address is no link.
for found in re.findall(r"src=|href=|url\(|@import", text):
    sys.exit(f"the page fetches: {found}")
page = xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])
for paragraph in page.iter("p"):
    print("paragraph:", "".join(paragraph.itertext()))
for row in page.iter("tr"):
    print("row:", " | ".join(cell.text or "" for cell in row))
for caption in page.iter("figcaption"):
    print("chart:", caption.text)
for line in page.iter("polyline"):
    for point in line.get("points").split():
        x, y = map(float, point.split(","))
        if not (0 <= x <= 640 and 0 <= y <= 360):
            sys.exit(f"{point} lies outside of its chart")
print("data:", " ".join(json.loads(page.find(".//script").text)))
