//===- PhaseSignature.cpp - What phases take and return -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PhaseSignature.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using phase::ProgramArgument;

using ArgumentOperands = SmallVector<std::pair<Value, ProgramArgument>>;

ArgumentOperands sandwich::getArgumentOperands(Operation *op) {
  auto ofCache = [](auto op) -> ArgumentOperands {
    return {{op.getKvCache(), ProgramArgument::KVCache},
            {op.getPositions(), ProgramArgument::Positions},
            {op.getSequences(), ProgramArgument::Sequences}};
  };
  return llvm::TypeSwitch<Operation *, ArgumentOperands>(op)
      .Case([](lm::EmbedOp embed) -> ArgumentOperands {
        return {{embed.getTokenIds(), ProgramArgument::TokenIds}};
      })
      .Case([](lm::RotaryTableOp table) -> ArgumentOperands {
        return {{table.getPositions(), ProgramArgument::Positions}};
      })
      .Case([](lm::GatherRowsOp gather) -> ArgumentOperands {
        return {{gather.getRows(), ProgramArgument::LogitRows}};
      })
      .Case<lm::AppendKVOp, lm::AttentionOp>(ofCache)
      .Case([&](gemm::MatmulOp matmul) {
        return matmul.getKvCache() ? ofCache(matmul) : ArgumentOperands();
      })
      .Default([](Operation *) { return ArgumentOperands(); });
}

LogicalResult sandwich::verifyPhaseSignature(func::FuncOp phase) {
  FunctionType type = phase.getFunctionType();
  Type indices = RankedTensorType::get(
      {ShapedType::kDynamic}, IntegerType::get(phase.getContext(), 32));
  auto isIndices = [&](Type type) { return type == indices; };
  auto isLogits = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 2 && tensor.getElementType().isF32();
  };
  if (type.getNumInputs() != std::size(phaseArguments) ||
      type.getNumResults() != 1 ||
      !llvm::all_of(type.getInputs().drop_back(), isIndices) ||
      !isa<lm::KVCacheType>(type.getInputs().back()) ||
      !isLogits(type.getResult(0)))
    return phase.emitError("a phase takes token ids, positions, sequences and "
                           "logit rows (tensor<?xi32>) and a cache, and "
                           "returns logits (tensor<?xNxf32>)");
  if (!llvm::hasSingleElement(phase.getBody()) ||
      !isa<func::ReturnOp>(phase.getBody().front().getTerminator()))
    return phase.emitError("a phase is one block that returns");
  return success();
}
