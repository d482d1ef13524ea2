# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Compile language models for CPUs and run them.

>>> import sandwich
>>> sandwich.compile_model("tiny-llama", "tiny.sandwich")  # doctest: +SKIP
>>> with sandwich.Model("tiny.sandwich") as model:  # doctest: +SKIP
...     print(model.generate("Once upon a time").text)
"""

from sandwich._compile import compile_model
from sandwich._errors import (
    CacheFullError,
    CancelledError,
    ContextExceededError,
    DeadlineExceededError,
    Error,
    InternalError,
    InvalidArgumentError,
    OverloadedError,
    UnavailableError,
)
from sandwich._evaluator import Evaluator
from sandwich._kernel import Kernel, kernel, load_kernel
from sandwich._model import Model
from sandwich._options import GenerationOptions
from sandwich._results import Completion, GeneratedText, Statistics, Token, Usage
from sandwich._streams import AsyncTokenStream, TokenStream

__all__ = [
    "AsyncTokenStream",
    "CacheFullError",
    "CancelledError",
    "Completion",
    "ContextExceededError",
    "DeadlineExceededError",
    "Error",
    "Evaluator",
    "GeneratedText",
    "GenerationOptions",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "Model",
    "OverloadedError",
    "Statistics",
    "Token",
    "TokenStream",
    "UnavailableError",
    "Usage",
    "compile_model",
    "kernel",
    "load_kernel",
]
