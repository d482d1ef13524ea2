# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Compile language models for CPUs and run them.

>>> import sandwich
>>> sandwich.compile("tiny-llama", "tiny.sandwich")  # doctest: +SKIP
>>> model = sandwich.Model("tiny.sandwich")  # doctest: +SKIP
>>> for text in model.generate("Once upon a time"):  # doctest: +SKIP
...     print(text, end="", flush=True)
"""

from sandwich._compile import compile
from sandwich._model import Model, SandwichError

__all__ = ["Model", "SandwichError", "compile"]
