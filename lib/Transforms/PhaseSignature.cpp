//===- PhaseSignature.cpp - What phases take and return -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PhaseSignature.h"

#include "sandwich/Dialect/LM/IR/LM.h"

using namespace mlir;
using namespace sandwich;
using phase::ProgramArgument;

lm::Phase sandwich::getPhase(func::FuncOp phase) {
  return phase->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName).getValue();
}

LogicalResult sandwich::verifyPhaseSignature(func::FuncOp phase) {
  FunctionType type = phase.getFunctionType();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto i32 = IntegerType::get(phase.getContext(), 32);
  Type indices = RankedTensorType::get({dynamic}, i32);
  Type segments = RankedTensorType::get({dynamic, 4}, i32);
  auto hasItsType = [&](auto argument) {
    auto [expected, type] = argument;
    switch (expected.place) {
    case ProgramArgument::KVCache:
      return isa<lm::KVCacheType>(type);
    case ProgramArgument::Segments:
      return type == segments;
    default:
      return type == indices;
    }
  };
  auto isLogits = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 2 && tensor.getElementType().isF32();
  };
  const size_t inputs = type.getNumInputs();
  if ((inputs != std::size(phaseArguments) &&
       inputs + 1 != std::size(phaseArguments)) ||
      type.getNumResults() != 1 ||
      !llvm::all_of(llvm::zip_first(type.getInputs(), phaseArguments),
                    [&](auto pair) {
                      auto [type, expected] = pair;
                      return hasItsType(std::pair(expected, type));
                    }) ||
      !isLogits(type.getResult(0)))
    return phase.emitError("a phase takes token ids, positions and cache slots "
                           "(tensor<?xi32>), segments (tensor<?x4xi32>), block "
                           "tables and logit rows (tensor<?xi32>), a cache, "
                           "and token types (tensor<?xi32>) if it reads them, "
                           "and returns rows (tensor<?xNxf32>)");
  if (!llvm::hasSingleElement(phase.getBody()) ||
      !isa<func::ReturnOp>(phase.getBody().front().getTerminator()))
    return phase.emitError("a phase is one block that returns");
  return success();
}
