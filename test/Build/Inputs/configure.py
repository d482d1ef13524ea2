#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configures the build with and without each optional package.

    configure.py CMAKE SOURCE_DIR
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, SOURCE = sys.argv[1:]
del sys.argv[1:]

# As Debian's package has it: an error where OpenCL is not.
BROKEN_CONFIG = "find_package(OpenCL REQUIRED)\n"
VERSION_FILE = "set(PACKAGE_VERSION 2.6)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
HEADER = """
#define DNNL_VERSION_MAJOR 2
#define DNNL_VERSION_MINOR 6
namespace dnnl {
struct engine {
  enum class kind { cpu };
  static unsigned long get_count(kind);
};
}
"""
LIBRARY = """
#include <dnnl.hpp>
unsigned long dnnl::engine::get_count(kind) { return 1; }
"""


class Configure(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = os.path.join(self.folder, "prefix")

    def write(self, name, content):
        path = os.path.join(self.prefix, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def configure(self, *options):
        """What is said by a configuration that succeeds."""
        done = self.run_cmake(*options)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("CMake Error", done.stdout)
        return done.stdout

    def run_cmake(self, *options):
        return subprocess.run(
            [CMAKE, "-S", SOURCE, "-B", os.path.join(self.folder, "build"),
             "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             f"-DCMAKE_PREFIX_PATH={self.prefix}",
             # What is installed here does not count. (It would be looked for
             # if the value was NOTFOUND.)
             *(() if any("DNNL" in option for option in options) else (
                 "-DDNNL_LIBRARY=OFF",
                 "-DCMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON")), *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def without(self, *packages):
        return [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in packages]

    def broken_onednn(self):
        self.write("lib/cmake/dnnl/dnnl-config.cmake", BROKEN_CONFIG)
        self.write("lib/cmake/dnnl/dnnl-config-version.cmake", VERSION_FILE)

    def onednn(self):
        """Headers and a library, beside CMake files that need OpenCL."""
        self.broken_onednn()
        self.write("include/dnnl.hpp", HEADER)
        source = self.write("dnnl.cpp", LIBRARY)
        subprocess.run(["c++", "-shared", "-fPIC", source, "-o",
                        os.path.join(self.prefix, "lib/libdnnl.so"),
                        "-I", os.path.join(self.prefix, "include")],
                       check=True)
        return [f"-DDNNL_INCLUDE_DIR={self.prefix}/include",
                f"-DDNNL_LIBRARY={self.prefix}/lib/libdnnl.so",
                *self.without("OpenCL")]

    def test_onednn(self):
        self.assertNotIn("compares with nothing",
                         self.configure(*self.onednn()))

    def test_onednn_without_its_library(self):
        options = self.onednn()
        os.truncate(os.path.join(self.prefix, "lib/libdnnl.so"), 0)
        self.assertIn("cannot be used", self.configure(*options))

    def test_onednn_without_openmp(self):
        self.assertIn("compares with nothing", self.configure(
            *self.onednn(), *self.without("OpenMP")))

    def test_broken_cmake_files_of_onednn(self):
        self.broken_onednn()
        self.assertIn("oneDNN was not found", self.configure())

    def test_nothing_optional(self):
        said = self.configure(*self.without("MPI", "OpenMP"))
        for what in ("compares with no MPI", "does not compare with OpenMP",
                     "compares with nothing"):
            self.assertIn(what, said)

    def test_mpi(self):
        if not shutil.which("mpicc"):
            self.skipTest("there is no MPI")
        self.configure("-DSANDWICH_ENABLE_MPI=ON")

    def test_mpi_that_is_asked_for(self):
        done = self.run_cmake("-DSANDWICH_ENABLE_MPI=ON", *self.without("MPI"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("MPI", done.stdout)

    def test_runtime_only(self):
        said = self.configure("-DSANDWICH_BUILD_COMPILER=OFF",
                              *self.without("MPI", "OpenMP", "TBB"))
        self.assertIn("does not compare with oneTBB", said)

    def test_no_tests_and_no_benchmarks(self):
        self.configure("-DSANDWICH_BUILD_TESTS=OFF",
                       "-DSANDWICH_BUILD_BENCHMARKS=OFF",
                       *self.without("GTest"))


unittest.main()
