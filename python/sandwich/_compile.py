# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Running sandwich-compile."""

import os
import shutil
import subprocess
from os import PathLike, fsdecode
from pathlib import Path

from sandwich._errors import Error
from sandwich._library import check_path, library_path


def find_program(name: str) -> str:
    """A program of the compiler: in the folder that SANDWICH_BIN names, on the PATH,
    or in the `bin` beside the library's folder."""
    for folder in (os.environ.get("SANDWICH_BIN", ""), os.environ.get("PATH", "")):
        found = folder and shutil.which(name, path=folder)
        if found:
            return found
    beside = str(Path(library_path()).resolve().parent.parent / "bin")
    found = shutil.which(name, path=beside)
    if found:
        return found
    raise Error(
        f"{name} is not on the PATH; build Sandwich, or set SANDWICH_BIN to the folder "
        "that holds it"
    )


def run_program(command: list[str]) -> str:
    """The messages of a program of the compiler. What it refuses is raised as Error."""
    result = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode == 0:
        return result.stderr
    errors = [
        line.removeprefix("error: ")
        for line in result.stderr.splitlines()
        if line.startswith("error: ")
    ]
    raise Error(
        errors[-1]
        if errors
        else f"{os.path.basename(command[0])} ended with status {result.returncode}: "
        f"{result.stderr.strip()}"
    )


def compile_model(
    model_dir: str | PathLike[str],
    output: str | PathLike[str],
    **options: str | int | bool,
) -> None:
    """Compiles the checkpoint in the folder `model_dir` to the artifact `output`.

    Options are those of sandwich-compile with underscores for dashes:
    `compile_model("llama", "llama.sandwich", dtype="bf16", threads=2)` runs
    `sandwich-compile --output=llama.sandwich --dtype=bf16 --threads=2 -- llama`. True
    gives the bare option, False leaves it out. What sandwich-compile refuses
    is raised as Error.
    """
    check_path(model_dir)
    check_path(output)
    command = [find_program("sandwich-compile"), "--output=" + fsdecode(output)]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            command.append(option)
        elif value is not False:
            command.append(f"{option}={value}")
    # What follows is no option, whatever the folder's name is.
    command += ["--", fsdecode(model_dir)]
    run_program(command)
