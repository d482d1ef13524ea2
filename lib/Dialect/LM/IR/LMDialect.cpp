//===- LMDialect.cpp - The language-model dialect -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

#include "sandwich/Dialect/LM/IR/LMDialect.cpp.inc"

void LMDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/LM/IR/LMOps.cpp.inc"
      >();
  declarePromisedInterfaces<LoopLoweringOpInterface, AddOp, AllGatherOp,
                            AllReduceOp, AppendKVOp, AttentionOp, DealRowsOp,
                            EmbedOp, GatherRowsOp, GeluOp, L2NormalizeOp,
                            LayerNormOp, PoolOp, RMSNormOp, RotaryTableOp,
                            RotateOp, RoundOp, SiluMulOp, TanhOp>();
}

LogicalResult LMDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  if (attribute.getName() == threadsAttributeName) {
    auto threads = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<FunctionOpInterface>(op) || !threads ||
        !threads.getType().isSignlessInteger(64) || threads.getInt() < 1 ||
        threads.getInt() > SANDWICH_MAX_THREADS)
      return op->emitError("'lm.threads' is an i64 between 1 and ")
             << SANDWICH_MAX_THREADS << " on a function";
    return success();
  }
  if (attribute.getName() == deterministicAttributeName) {
    if (!isa<ModuleOp>(op) || !isa<UnitAttr>(attribute.getValue()))
      return op->emitError(
          "'lm.deterministic' has no value and is on a module");
    return success();
  }
  if (attribute.getName() == kernelAttributeName) {
    if (!isa<KernelOpInterface>(op) || !isa<KernelAttr>(attribute.getValue()))
      return op->emitError("'lm.kernel' is a #lm.kernel on an operation whose "
                           "place a kernel can take");
    return success();
  }
  if (attribute.getName() != phaseAttributeName)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "'";
  if (!isa<FunctionOpInterface>(op) || !isa<PhaseAttr>(attribute.getValue()))
    return op->emitError("'lm.phase' is a #lm.phase on a function");
  return success();
}

int64_t lm::getThreads(Operation *function, int64_t given) {
  auto threads =
      function ? function->getAttrOfType<IntegerAttr>(threadsAttributeName)
               : IntegerAttr();
  return threads ? threads.getInt() : given;
}

bool lm::isDeterministic(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(deterministicAttributeName);
}
