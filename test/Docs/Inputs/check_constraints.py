#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the numbered constraints that the code of dialects reports,
"(C1) ...", with those in the sections of their reference pages about the same
operation, attribute or type, and with those that negative tests break. Prints
one line for each difference and exits 1 if there is any.

    check_constraints.py REFERENCE_DIR DIALECTS_DIR TESTS_DIR

A constraint belongs to the class whose method reports it, or calls a function
that does; one of a class without a section (a dialect) must merely be somewhere
in the page. A case of invalid*.mlir tests what its expected errors name, or what
it names itself ("lm.embed (C2): ...") with the number that they have.
"""
import glob
import os
import re
import sys

NUMBER = re.compile(r"\(C\d+\)")
# What clang-format leaves at the begin of a line is a definition.
DEFINITION = re.compile(r"^(?!using|namespace|#|//|\}|\{)[\w:<>&* ]*?"
                        r"((?:\w+::)*)(\w+)\([^;]*?"
                        r"\{(?:\n(.*?)^\}| ([^\n]*) \}$)",
                        re.MULTILINE | re.DOTALL)


def read_sections(page, dialect):
    """From the names of classes to the constraints in their sections, and to
    what IR calls them."""
    mnemonic = re.compile(rf"(?:`|[#!]){dialect.lower()}\.\w+")
    sections, mnemonics = {}, {}
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        title = section.splitlines()[0]
        name = re.search(r"(\w+)\)?$", title).group(1)
        sections[name] = set(NUMBER.findall(section))
        if match := mnemonic.search(section):
            mnemonics[name] = match.group().lstrip("`")
    return sections, mnemonics


def read_tested(folder):
    """The pairs of mnemonic and constraint that negative tests break."""
    tested = set()
    for path in glob.glob(os.path.join(folder, "*invalid*.mlir")):
        with open(path, encoding="utf-8") as file:
            cases = file.read().split("// -----")
        for case in cases:
            errors = "".join(re.findall(r"expected-error.*", case))
            tested.update(re.findall(r"'([\w.]+)' op (\(C\d+\))", errors))
            numbers = NUMBER.findall(errors)
            tested.update(
                pair for pair in re.findall(r"^// (\S+) (\(C\d+\)):", case,
                                            re.MULTILINE)
                if pair[1] in numbers)
    return tested


def read_code(folder):
    """The functions of a dialect from their names to their bodies, and the
    methods as pairs of class and body."""
    functions, methods = {}, []
    for path in glob.glob(os.path.join(folder, "IR", "*.cpp")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for scope, name, lines, line in DEFINITION.findall(text):
            body = lines or line
            owner = scope.split("::")[-2] if scope else ""
            # Namespaces are in lower case.
            if owner[:1].isupper():
                methods.append((owner, body))
            else:
                functions[name] = body
    return functions, methods


def constraints(body, functions, seen=()):
    """Those that `body` reports itself or through `functions`."""
    result = set(NUMBER.findall(body))
    for name, callee in functions.items():
        if name not in seen and re.search(rf"\b{name}\(", body):
            result |= constraints(callee, functions, (*seen, name))
    return result


def differences(sections, reported):
    everywhere = set().union(*sections.values())
    elsewhere = set()
    for name, numbers in reported.items():
        if name not in sections:
            elsewhere |= numbers
        for number in sorted(numbers - sections.get(name, everywhere)):
            yield f"{name}: {number} is reported but not documented"
    for name, numbers in sections.items():
        for number in sorted(numbers - reported.get(name, set()) - elsewhere):
            yield f"{name}: {number} is documented but not reported"


def untested(sections, mnemonics, tested):
    for name, numbers in sections.items():
        for number in sorted(numbers):
            if (mnemonics.get(name), number) not in tested:
                yield f"{name}: {number} is documented but not tested"


def main():
    reference, dialects, tests = sys.argv[1:]
    code = {name: read_code(os.path.join(dialects, name))
            for name in sorted(os.listdir(dialects))
            if os.path.isdir(os.path.join(dialects, name, "IR"))}
    # Dialects use the functions of others.
    functions = {}
    for own, _ in code.values():
        functions.update(own)
    failed = False
    for dialect, (_, methods) in code.items():
        with open(os.path.join(reference, dialect + ".md"),
                  encoding="utf-8") as file:
            sections, mnemonics = read_sections(file.read(), dialect)
        reported = {}
        for owner, body in methods:
            reported.setdefault(owner, set()).update(
                constraints(body, functions))
        print(f"{dialect}: {sum(map(len, reported.values()))} constraints")
        for difference in (
                *differences(sections, reported),
                *untested(sections, mnemonics,
                          read_tested(os.path.join(tests, dialect)))):
            print(difference)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
