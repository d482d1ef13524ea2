//===- sandwich-opt.cpp - The pass driver ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Pipelines/Pipelines.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#ifdef SANDWICH_INCLUDE_TESTS
namespace sandwich::test {
void registerTestPasses();
} // namespace sandwich::test
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sandwich::registerSandwichDialects(registry);
  mlir::registerAllPasses();
  sandwich::registerSandwichPasses();
#ifdef SANDWICH_INCLUDE_TESTS
  sandwich::test::registerTestPasses();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Sandwich's dialects and passes\n", registry));
}
