# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Builds the wheel, which carries libsandwich.so and sandwich-run, as PEP 517 has
it. It needs nothing from anywhere: CMake and a compiler are the system's.

The setting `build` names a build of the repository whose runtime is taken, instead
of building one in build/wheel:

    pip install ./python --config-settings build=build/release
"""

import base64
import hashlib
import os
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parent
REPOSITORY = PYTHON.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    given = (config_settings or {}).get("build")
    build = (REPOSITORY / given).resolve() if given else build_runtime()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    name = f"{project['name']}-{project['version']}-{tag}.whl"
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "sandwich")
        run("cmake", "--install", build, "--prefix", package, "--component", "runtime",
            "--strip")  # fmt: skip
        if not list(package.glob("lib/libsandwich.so.*")):
            raise SystemExit(f"error: {build} does not install its library into lib")
        files = [(f"sandwich/{file.relative_to(package)}", file)
                 for file in package.rglob("*") if file.is_file()]  # fmt: skip
        files += [
            (f"sandwich/{file.name}", file)
            for file in (PYTHON / "sandwich").iterdir()
            if file.suffix == ".py" or file.name == "py.typed"
        ]
        information = f"{project['name']}-{project['version']}.dist-info"
        texts = [
            (f"{information}/METADATA", make_metadata(project)),
            (f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: sandwich\n"
             f"Root-Is-Purelib: false\nTag: {tag}\n"),
        ]  # fmt: skip
        write_wheel(Path(wheel_directory, name), information, sorted(files), texts)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError(
        "the package is built in the repository, whose runtime it carries"
    )


def build_runtime():
    """The folder of a build of the runtime, brought up to date."""
    build = REPOSITORY / "build/wheel"
    run("cmake", "-S", REPOSITORY, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_INSTALL_LIBDIR=lib", "-DSANDWICH_BUILD_COMPILER=OFF",
        "-DSANDWICH_BUILD_TESTS=OFF", "-DSANDWICH_BUILD_BENCHMARKS=OFF")  # fmt: skip
    run("cmake", "--build", build, "--parallel", str(len(os.sched_getaffinity(0))),
        "--target", "SandwichShared", "sandwich-run")  # fmt: skip
    return build


def run(*command):
    """Runs `command`, whose output is what pip shows."""
    try:
        result = subprocess.run(command)
    except FileNotFoundError:
        raise SystemExit(f"error: {command[0]} is not installed") from None
    if result.returncode != 0:
        raise SystemExit(f"error: {command[0]} failed; docs/Python.md has what it needs")


def make_metadata(project):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    return "\n".join(lines) + "\n"


def write_wheel(path, information, files, texts):
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record.append(f"{name},sha256={digest.decode().rstrip('=')},{len(data)}")

        for name, file in files:
            add(name, file.read_bytes(), file.stat().st_mode & 0o777)
        for name, text in texts:
            add(name, text.encode(), 0o644)
        record.append(f"{information}/RECORD,,\n")
        wheel.writestr(f"{information}/RECORD", "\n".join(record))
