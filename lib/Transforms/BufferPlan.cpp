//===- BufferPlan.cpp - What of a phase shares memory ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferPlan.h"

#include "sandwich/Target/Target.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace sandwich;
using lm::RowKind;

int64_t Buffer::rowStride() const {
  return dense ? type.getDimSize(1)
               : sandwich::rowStride(type.getDimSize(1),
                                     type.getElementTypeBitWidth() / 8);
}

/// `op`, which may be null, as one that has a buffer form; or null.
static lm::StepOpInterface withBufferForm(Operation *op) {
  auto step = dyn_cast_or_null<lm::StepOpInterface>(op);
  return step && step.hasBufferForm() ? step : lm::StepOpInterface();
}

LogicalResult BufferPlan::checkSignature() {
  if (failed(verifyPhaseSignature(phase)))
    return failure();
  for (auto [argument, type] :
       llvm::zip_first(getPhaseArguments(phase), phase.getArgumentTypes()))
    if (argument.input == lm::PhaseInput::KVCache)
      cache = cast<lm::KVCacheType>(type);
  returned = phase.getBody().front().getTerminator()->getOperand(0);
  if (!withBufferForm(returned.getDefiningOp()) || !returned.hasOneUse())
    return phase.emitError("a phase returns what an operation with a buffer "
                           "form computes for nothing else");
  return success();
}

/// The position of the last use of `value`, behind every one where some use is
/// in a loop that `value` is not in.
int64_t BufferPlan::lastUseOf(Value value) {
  auto [known, isNew] = lastUses.try_emplace(value, -1);
  if (!isNew)
    return known->second;
  int64_t last = -1;
  for (Operation *user : value.getUsers())
    last = std::max(last, user->getBlock() == value.getParentBlock()
                              ? position[user]
                              : std::numeric_limits<int64_t>::max());
  return lastUses[value] = last;
}

/// Whether nothing reads `value` after `op`, nor in another iteration of a
/// loop around it.
bool BufferPlan::isLastUse(Value value, Operation *op) {
  return value.getParentBlock() == op->getBlock() &&
         lastUseOf(value) <= position[op];
}

/// A loop carries its tensor in the buffer it starts in, so the layer must
/// compute in place: what the body yields has to be in that buffer.
LogicalResult BufferPlan::addLoopCarried(scf::ForOp loop) {
  if (loop.getInitArgs().size() != 1)
    return loop.emitError("a loop over layers carries one tensor");
  Value initial = loop.getInitArgs().front();
  Buffer *buffer = tensorBuffers.lookup(initial);
  if (!buffer || !isLastUse(initial, loop))
    return loop.emitError("the tensor a loop carries must be its own");
  tensorBuffers[loop.getRegionIterArg(0)] = buffer;
  tensorBuffers[loop.getResult(0)] = buffer;
  return success();
}

/// What bounds the rows of the result of `op`, or an error where its operands
/// differ in that.
FailureOr<RowKind> BufferPlan::getRows(lm::StepOpInterface op) {
  // One for each token are token ids, positions and what rows are gathered of.
  bool ofTokens = !op.getPhaseInputs().empty(), ofLogits = false;
  for (Value operand : op->getOperands())
    if (Buffer *buffer = tensorBuffers.lookup(operand))
      (buffer->rows == RowKind::Tokens ? ofTokens : ofLogits) = true;
  if (ofTokens && ofLogits)
    return op->emitOpError("mixes rows of tokens with rows of logits");
  return op.getResultRows().value_or(ofLogits ? RowKind::LogitRows
                                              : RowKind::Tokens);
}

/// A buffer that lives where `op` is; `type` may be null.
Buffer *BufferPlan::addBuffer(Operation *op, RankedTensorType type,
                              RowKind rows, bool dense) {
  auto buffer = std::make_unique<Buffer>();
  buffer->type = type;
  buffer->rows = rows;
  buffer->bytes = 0;
  buffer->dense = dense;
  if (type)
    buffer->bytes = llvm::alignTo(limits.of(rows) * buffer->rowStride() *
                                      type.getElementTypeBitWidth() / 8,
                                  cacheLineBytes);
  buffer->firstUse = buffer->lastUse = position[op];
  owned.push_back(std::move(buffer));
  return owned.back().get();
}

/// Notes the values in whose buffers is what ranks exchange, or will be once
/// others have been computed in their place: back through every operation that
/// hands its buffer on, so that all that is exchanged is in one made for it.
void BufferPlan::findExchanged() {
  SmallVector<Value> found;
  auto add = [&](Value value) {
    if (exchanged.insert(value).second)
      found.push_back(value);
  };
  phase.walk([&](Operation *op) {
    if (isa<lm::AllReduceOp, lm::AllGatherOp>(op))
      add(op->getOperand(0));
  });
  while (!found.empty()) {
    Value value = found.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (OpOperand *initial = loop ? loop.getTiedLoopInit(argument) : nullptr)
        add(initial->get());
    } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
      add(loop.getTiedLoopInit(cast<OpResult>(value))->get());
    } else if (auto op = value.getDefiningOp<lm::StepOpInterface>();
               op && op.getOverwritten()) {
      add(op.getOverwritten());
    }
  }
}

/// Finds memory for the parts of sums that threads compute for `op`: those that
/// share a matmul's K, or a context.
LogicalResult BufferPlan::addPartialSums(lm::StepOpInterface op, RowKind rows) {
  constexpr int64_t maxBytes = int64_t(1) << 36;
  const int64_t bytes = op.getPartialSumsBytes(limits.of(rows), symbols);
  if (bytes > maxBytes)
    return op->emitOpError("would need ")
           << bytes << " bytes for partial sums, more than " << maxBytes;
  if (bytes == 0)
    return success();
  Buffer *buffer = addBuffer(op, nullptr, rows);
  buffer->bytes = llvm::alignTo(bytes, cacheLineBytes);
  partialSums[op] = buffer;
  return success();
}

/// The buffer of an operand that the result of `op` can be written over, or
/// null: one that nobody needs any more.
Buffer *BufferPlan::findReused(lm::StepOpInterface op) {
  Value value = op.getOverwritten();
  // A kernel may read what it has written beyond.
  if (op->hasAttr(lm::kernelAttributeName))
    return nullptr;
  return value && value.getType() == op->getResult(0).getType() &&
                 isLastUse(value, op)
             ? tensorBuffers.lookup(value)
             : nullptr;
}

/// Finds the buffer for the result of `op`.
LogicalResult BufferPlan::addResult(lm::StepOpInterface op) {
  FailureOr<RowKind> rows = getRows(op);
  if (failed(rows))
    return failure();
  if (op->getNumResults() == 0)
    return success();
  Value value = op->getResult(0);
  if (failed(addPartialSums(op, *rows)))
    return failure();
  if (value == returned) {
    if (*rows != RowKind::LogitRows)
      return op->emitOpError("computes logits for every token, not for the "
                             "rows that are gathered");
    if (isa<lm::AllReduceOp>(*op))
      return op->emitOpError("sums in the workspace, where logits are not; "
                             "divide their channels and use lm.all_gather");
    return success();
  }
  Buffer *buffer = findReused(op);
  if (isa<lm::AllReduceOp>(*op) && !buffer)
    return op->emitOpError("must be the last to use what an operation made for "
                           "it");
  if (!buffer)
    buffer = addBuffer(op, cast<RankedTensorType>(value.getType()), *rows,
                       exchanged.contains(value) || isa<lm::AllGatherOp>(*op));
  tensorBuffers[value] = buffer;
  return success();
}

LogicalResult BufferPlan::collectBuffers() {
  int64_t counter = 0;
  phase.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { position[op] = counter++; });
  findExchanged();

  auto isTensor = llvm::IsaPred<TensorType, lm::KVCacheType>;
  WalkResult result = phase.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return WalkResult(addLoopCarried(loop));
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      auto loop = cast<scf::ForOp>(op->getParentOp());
      if (tensorBuffers.lookup(yield.getOperand(0)) !=
          tensorBuffers[loop.getRegionIterArg(0)]) {
        yield.emitError("a layer must end by adding to its own input");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    }
    if (op == phase || isa<func::ReturnOp>(op))
      return WalkResult::advance();
    if (op->getNumRegions() != 0) {
      op->emitOpError("cannot be in a phase; only loops over layers can hold "
                      "operations");
      return WalkResult::interrupt();
    }
    if (!llvm::any_of(op->getOperandTypes(), isTensor) &&
        !llvm::any_of(op->getResultTypes(), isTensor))
      return WalkResult::advance();
    lm::StepOpInterface step = withBufferForm(op);
    if (!step) {
      op->emitOpError("has no buffer form; convert it first");
      return WalkResult::interrupt();
    }
    return WalkResult(addResult(step));
  });
  if (result.wasInterrupted())
    return failure();
  extendLives();
  return success();
}

/// A buffer lives from its first to its last access. One that a loop's body
/// reads but does not define lives through the whole loop, as every iteration
/// reads it.
void BufferPlan::extendLives() {
  for (auto [value, buffer] : tensorBuffers) {
    Region *home = value.getParentRegion();
    for (Operation *user : value.getUsers()) {
      // All that is around others is loops, whose last operation yields.
      Operation *outermost = home->findAncestorOpInRegion(*user);
      if (outermost != user)
        outermost = cast<scf::ForOp>(outermost).getBody()->getTerminator();
      buffer->lastUse = std::max(buffer->lastUse, position[outermost]);
    }
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      buffer->lastUse =
          std::max(buffer->lastUse, position[loop.getBody()->getTerminator()]);
  }
}

/// First fit: each buffer at the lowest offset that no living one overlaps.
void BufferPlan::assignOffsets() {
  // By offset. Buffers come in the order of their first use, so that one that
  // is dead stays so.
  SmallVector<Buffer *> living;
  for (std::unique_ptr<Buffer> &buffer : owned) {
    llvm::erase_if(living, [&](Buffer *other) {
      return other->lastUse < buffer->firstUse;
    });
    for (Buffer *other : living)
      if (other->offset < buffer->offset + buffer->bytes)
        buffer->offset = std::max(buffer->offset, other->offset + other->bytes);
    workspace = std::max(workspace, buffer->offset + buffer->bytes);
    living.insert(llvm::upper_bound(living, buffer.get(),
                                    [](Buffer *a, Buffer *b) {
                                      return a->offset < b->offset;
                                    }),
                  buffer.get());
  }
}

FailureOr<BufferPlan> BufferPlan::create(func::FuncOp phase, RowLimits limits,
                                         SymbolTableCollection &symbols) {
  BufferPlan plan(phase, limits, symbols);
  if (failed(plan.checkSignature()) || failed(plan.collectBuffers()))
    return failure();
  plan.assignOffsets();
  return plan;
}
