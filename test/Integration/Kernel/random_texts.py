# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of the high level. Each is read and written; that is read, written with
its names and without, and read again, which is the same IR to the last operation. What is
written is compiled for several parameters, and computes what the first text does where
Python runs it.

    random_texts.py FOLDER SOURCE SEED COUNT
"""
import os
import random
import subprocess
import sys

import numpy as np

FOLDER, SOURCE, SEED, COUNT = sys.argv[1:]
sys.path.insert(0, SOURCE + "/python")
import sandwich  # noqa: E402

SHAPES = {"A": ("A",), "B": ("B",), "AB": ("A", "B"), "A1": ("A", "1"), "": ()}


class Writer:
    """Writes one kernel. Variables are f32 of the shapes above; names of a kind are set
    again, so that loops carry them and branches choose them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.scopes = [{}]
        self.number = 0

    def known(self, shape):
        return [name for scope in self.scopes for name, its in scope.items() if its == shape]

    def constant(self):
        return self.random.choice(["0.5", "2.0", "-1.25", "1e-3", "3.0", "0.0625"])

    def index(self):
        return self.random.choice(["0", "1", "2", "rows - 1"] + self.counters)

    def block(self, shape, depth):
        """An expression of a shape, or of one that goes together with it."""
        pick = self.random.random()
        names = self.known(shape)
        if depth <= 0 or pick < 0.25:
            if names and pick < 0.2:
                return self.random.choice(names)
            return self.leaf(shape)
        if pick < 0.5:
            operator = self.random.choice("+-*")
            return (f"({self.block(shape, depth - 1)} {operator} "
                    f"{self.block(self.part(shape), depth - 1)})")
        if pick < 0.6:
            function = self.random.choice(["abs", "tanh", "-", "f32", "exp"])
            inner = self.block(shape, depth - 1)
            if function == "-":
                return f"(-{inner})"
            return f"exp(tanh({inner}))" if function == "exp" else f"{function}({inner})"
        if pick < 0.7:
            return (f"fma({self.block(shape, depth - 1)}, "
                    f"{self.block(self.part(shape), depth - 1)}, "
                    f"{self.block(self.part(shape), depth - 1)})")
        if pick < 0.8:
            return (f"where({self.condition(shape, depth - 1)}, "
                    f"{self.block(shape, depth - 1)}, {self.block(self.part(shape), 0)})")
        if pick < 0.9:
            function = self.random.choice(["maximum", "minimum"])
            return (f"{function}({self.block(shape, depth - 1)}, "
                    f"{self.block(self.part(shape), depth - 1)})")
        return self.reduction(shape, depth - 1)

    def part(self, shape):
        return self.random.choice({"A": ["A", ""], "B": ["B", ""], "": [""],
                                   "A1": ["A1", ""],
                                   "AB": ["AB", "B", "A1", ""]}[shape])

    def condition(self, shape, depth):
        operator = self.random.choice(["<", "<=", ">", ">="])
        test = f"({self.block(shape, depth)} {operator} {self.block(self.part(shape), 0)})"
        if self.random.random() < 0.3:
            joint = ("and", "or") if not shape else ("&", "|", "^")
            # What stands behind `and` must not read memory.
            other = self.block(shape, 0) if shape else self.random.choice(
                ["scale", "f32(rows)"])
            test = f"({test} {self.random.choice(joint)} ({other} < {self.constant()}))"
        return test

    def reduction(self, shape, depth):
        function = self.random.choice(["sum", "max", "min"])
        if shape == "":
            return f"{function}({self.block(self.random.choice(['A', 'B', 'AB']), depth)})"
        if shape == "A":
            return f"{function}({self.block('AB', depth)}, axis=1)"
        if shape == "B":
            return f"{function}({self.block('AB', depth)}, axis=0)"
        if shape == "A1":
            return f"{self.block('A', depth)}[:, None]"
        return f"broadcast({self.block(self.random.choice(['B', 'A1']), depth)}, A, B)"

    def leaf(self, shape):
        if shape == "":
            return self.random.choice([self.constant(), "scale", f"f32({self.index()})",
                                       f"x[{self.index()}, {self.index()}]"])
        ranges = {"A": "i", "B": "j"}
        if shape in ranges:
            r = ranges[shape]
            choices = [f"full({self.constant()}, {shape})", f"f32(positions({r}))",
                       f"x[{self.index()}, {r}]",
                       f"x[i, {self.index()}]" if r == "i" else "x[1, j]",
                       f"x[2, {r} + 1]", f"where(inside({r}), 1.5, 2.5)"]
            return self.random.choice(choices)
        if shape == "A1":
            return f"x[i, {self.index()}, None]"
        return self.random.choice(["x[i, j]", "x[i + 1, j]", f"full({self.constant()}, A, B)"])

    def line(self, text):
        self.lines.append("    " * len(self.scopes) + text)

    def statement(self, depth):
        pick = self.random.random()
        if pick < 0.5 or depth == 0:
            shape = self.random.choice(list(SHAPES))
            names = self.known(shape)
            if names and self.random.random() < 0.6:
                name = self.random.choice(names)
            else:
                self.number += 1
                name = f"v{self.number}"
            value = self.block(shape, 3)
            if name not in names:
                # Of exactly this shape, whatever the parts of it are.
                sizes = ", ".join(SHAPES[shape])
                value = f"{value} + zeros({sizes})" if sizes else f"f32({value})"
                self.scopes[-1][name] = shape
            self.line(f"{name} = {value}")
        elif pick < 0.65:
            index = self.random.choice(["i, j", "0, j", "i, 2", "1, 1", "1, j + 1"])
            shape = {"i, j": "AB", "0, j": "B", "i, 2": "A", "1, 1": "",
                     "1, j + 1": "B"}[index]
            self.line(f"y[{index}] = {self.block(self.part(shape), 3)}")
        elif pick < 0.8:
            self.number += 1
            counter = f"k{self.number}"
            loop = self.random.choice(["range(3)", "range(1, rows - 2, 2)", "unroll(2)"])
            self.line(f"for {counter} in {loop}:")
            self.body(depth - 1, counter)
        else:
            self.line(f"if {self.condition('', 1)}:")
            self.body(depth - 1)
            if self.random.random() < 0.6:
                self.line("else:")
                self.body(depth - 1)

    def body(self, depth, counter=None):
        self.scopes.append({})
        if counter:
            self.counters.append(counter)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)
        if counter:
            self.counters.pop()
        self.scopes.pop()

    def kernel(self):
        self.counters = []
        self.lines = ["def random(x: f32[rows, columns], scale: f32, y: f32[rows, columns], "
                      "A: tune(1, 2, 4) = 2, B: tune(1, 4, 8, 16) = 8):"]
        self.line("for i in blocks(rows - 1, A):")
        self.scopes.append({})
        self.line("for j in blocks(columns - 1, B):")
        self.scopes.append({})
        for _ in range(self.random.randint(3, 8)):
            self.statement(2)
        self.line(f"y[i, j] = {self.block('AB', 3)}")
        return "\n".join(self.lines) + "\n"


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr}")
    return result.stdout


def check_text(path):
    """The path of the same kernel, written without names."""
    # Constants and repetitions are where the writer has them from here on.
    written = path.replace(".kernel", ".written.kernel")
    run("sandwich-import", path, "--emit=text", "-o", written)
    ir = check_again(written)
    nameless = path.replace(".kernel", ".nameless.mlir")
    with open(nameless, "w", encoding="utf-8") as file:
        file.write(ir)
    without_names = path.replace(".kernel", ".nameless.kernel")
    run("sandwich-import", nameless, "--emit=text", "-o", without_names)
    check_again(without_names)
    return without_names


def check_again(path):
    """The IR of a text that the writer wrote, which is also that of what it writes
    of it."""
    ir = run("sandwich-import", path, "--no-locations")
    again = path.replace(".kernel", ".again.kernel")
    run("sandwich-import", path, "--emit=text", "-o", again)
    if run("sandwich-import", again, "--no-locations") != ir:
        raise RuntimeError(f"{again}: is other IR than {path}")
    return ir


def check_results(path, written, seed):
    """Python runs the one, compiled code is made of the other."""
    original, kernel = sandwich.load_kernel(path), sandwich.load_kernel(written)
    numbers = np.random.default_rng(seed)
    for a, b in (2, 8), (numbers.choice((1, 4)), numbers.choice((1, 4, 16))):
        rows, columns = 6, int(numbers.integers(7, 23))
        x = numbers.standard_normal((rows, columns)).astype(np.float32)
        results = []
        for call in kernel, original.interpret:
            y = np.zeros_like(x)
            call(x, 0.75, y, A=int(a), B=int(b))
            results.append(y.astype(np.float64))
        # Comparisons may fall either way where rounding differs: a few numbers may.
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(*results, rtol=2e-3, atol=2e-3, equal_nan=True)
        if wrong.mean() > 0.02:
            raise RuntimeError(f"{path}: A={a} B={b} columns={columns}: {wrong.mean():.0%} "
                               f"of results differ")


def main():
    for number in range(int(COUNT)):
        seed = int(SEED) * 100000 + number
        path = os.path.join(FOLDER, f"random{seed}.kernel")
        with open(path, "w", encoding="utf-8") as file:
            file.write(Writer(seed).kernel())
        check_results(path, check_text(path), seed)
    print(COUNT, "kernels agree")


if __name__ == "__main__":
    main()
