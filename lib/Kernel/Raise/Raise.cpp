//===- Raise.cpp - Hand-written kernels at the high level -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Raise.h"

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Block/IR/Block.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sandwich;

void kernel::addRaisingPasses(OpPassManager &manager) {
  manager.addPass(createKernelToVector());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createVectorToBlock());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

LogicalResult kernel::raiseKernels(ModuleOp module) {
  PassManager manager(module.getContext());
  addRaisingPasses(manager);
  if (failed(manager.run(module)))
    return failure();
  bool hasKernel = false;
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && block::isKernel(function))
      hasKernel = true;
    else
      op.erase();
  }
  if (!hasKernel)
    return module.emitError("has no function that is raised");
  return success();
}
