//===- sandwich-opt.cpp - The pass driver ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Pipelines/Pipelines.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  sandwich::registerSandwichPasses();
  registry.insert<sandwich::lm::LMDialect, sandwich::gemm::GemmDialect,
                  sandwich::phase::PhaseDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Sandwich's dialects and passes\n", registry));
}
