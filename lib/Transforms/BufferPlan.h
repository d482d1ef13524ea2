//===- BufferPlan.h - What of a phase shares memory -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TRANSFORMS_BUFFERPLAN_H
#define SANDWICH_LIB_TRANSFORMS_BUFFERPLAN_H

#include "PhaseSignature.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <memory>
#include <vector>

namespace sandwich {

/// The most rows that a step can have.
struct RowLimits {
  int64_t tokens;
  int64_t logitRows;

  int64_t of(lm::RowKind rows) const {
    return rows == lm::RowKind::Tokens ? tokens : logitRows;
  }
};

/// A piece of the workspace that one or more tensors share, one after another.
struct Buffer {
  /// Null for partial sums, which have `bytes`.
  mlir::RankedTensorType type;
  lm::RowKind rows;
  int64_t bytes;
  /// The positions in program order between which it holds a value.
  int64_t firstUse, lastUse;
  /// Rows follow each other without gaps, as ranks exchange them.
  bool dense = false;
  /// In bytes, in the workspace.
  int64_t offset = 0;

  /// Elements from one row to the next. There is a `type`.
  int64_t rowStride() const;
};

/// Where the tensors of a phase are when it runs, which `lm-verify-phases`
/// accepted. What is not there, is an error at the operation it is about:
/// operations have a form on buffers; layers compute in place.
class BufferPlan {
public:
  static llvm::FailureOr<BufferPlan>
  create(mlir::func::FuncOp phase, RowLimits limits,
         mlir::SymbolTableCollection &symbols);

  lm::KVCacheType cacheType() const { return cache; }
  /// What the phase returns, which has no buffer.
  mlir::Value logits() const { return returned; }
  /// In the order in which they are first used.
  llvm::ArrayRef<std::unique_ptr<Buffer>> buffers() const { return owned; }
  const Buffer *bufferOf(mlir::Value tensor) const {
    return tensorBuffers.lookup(tensor);
  }
  /// Where threads keep parts of the sums of `op`; null if they do not.
  const Buffer *partialSumsOf(mlir::Operation *op) const {
    return partialSums.lookup(op);
  }
  int64_t workspaceBytes() const { return workspace; }

private:
  BufferPlan(mlir::func::FuncOp phase, RowLimits limits,
             mlir::SymbolTableCollection &symbols)
      : phase(phase), limits(limits), symbols(symbols) {}

  llvm::LogicalResult checkSignature();
  llvm::LogicalResult collectBuffers();
  void findExchanged();
  llvm::LogicalResult addLoopCarried(mlir::scf::ForOp loop);
  llvm::LogicalResult addResult(lm::StepOpInterface op);
  Buffer *addBuffer(mlir::Operation *op, mlir::RankedTensorType type,
                    lm::RowKind rows, bool dense = false);
  Buffer *findReused(lm::StepOpInterface op);
  llvm::LogicalResult addPartialSums(lm::StepOpInterface op, lm::RowKind rows);
  llvm::FailureOr<lm::RowKind> getRows(lm::StepOpInterface op);
  int64_t lastUseOf(mlir::Value value);
  bool isLastUse(mlir::Value value, mlir::Operation *op);
  void extendLives();
  void assignOffsets();

  mlir::func::FuncOp phase;
  RowLimits limits;
  mlir::SymbolTableCollection &symbols;
  lm::KVCacheType cache;
  mlir::Value returned;
  std::vector<std::unique_ptr<Buffer>> owned;
  llvm::DenseMap<mlir::Value, Buffer *> tensorBuffers;
  llvm::DenseMap<mlir::Operation *, Buffer *> partialSums;
  llvm::DenseMap<mlir::Operation *, int64_t> position;
  /// Of the values that were asked for.
  llvm::DenseMap<mlir::Value, int64_t> lastUses;
  llvm::DenseSet<mlir::Value> exchanged;
  int64_t workspace = 0;
};

} // namespace sandwich

#endif // SANDWICH_LIB_TRANSFORMS_BUFFERPLAN_H
