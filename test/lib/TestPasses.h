//===- TestPasses.h - Passes that only tests need ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// As in MLIR, sandwich-opt and sandwich-compile know these passes only where
/// the tests are built, too; their names begin with `test-`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TEST_LIB_TESTPASSES_H
#define SANDWICH_TEST_LIB_TESTPASSES_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace sandwich::test {

/// `test-emulate-amx`: replaces AMX by vectors in a module of loop IR.
std::unique_ptr<mlir::Pass> createEmulateAMX();

void registerTestPasses();

} // namespace sandwich::test

#endif // SANDWICH_TEST_LIB_TESTPASSES_H
