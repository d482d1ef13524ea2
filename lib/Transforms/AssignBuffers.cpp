//===- AssignBuffers.cpp - Phases as programs over buffers ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace sandwich {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;
using phase::ProgramArgument;

namespace {

/// An argument of a phase, and which one of the program takes its place.
struct PhaseArgument {
  ProgramArgument place;
  StringLiteral name;
};
constexpr PhaseArgument phaseArguments[] = {
    {ProgramArgument::TokenIds, "token ids"},
    {ProgramArgument::Positions, "positions"},
    {ProgramArgument::Sequences, "sequences"},
    {ProgramArgument::LogitRows, "logit rows"},
    {ProgramArgument::KVCache, "cache"}};

/// What bounds the rows of a value.
enum class RowKind { Tokens, LogitRows };

/// A piece of the workspace that one or more tensors share, one after another.
struct Buffer {
  /// Null for the partial sums of a matmul, which have `bytes`.
  RankedTensorType type;
  RowKind rows;
  int64_t bytes;
  /// The positions in program order between which it holds a value.
  int64_t firstUse, lastUse;
  /// Rows follow each other without gaps, as ranks exchange them.
  bool dense = false;
  int64_t offset = 0;
  /// Set once the program's operations are created.
  Value view;
};

int64_t rowStride(const Buffer &buffer) {
  RankedTensorType type = buffer.type;
  return buffer.dense ? type.getDimSize(1)
                      : sandwich::rowStride(type.getDimSize(1),
                                            type.getElementTypeBitWidth() / 8);
}

/// Whether other ranks get what is in the buffer of `value`, or will be once
/// others have been computed in its place.
bool isExchanged(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(user))
      return isExchanged(loop.getTiedLoopRegionIterArg(&use));
    if (auto matmul = dyn_cast<gemm::MatmulOp>(user))
      return matmul.getResidual() == use.get() &&
             isExchanged(matmul.getResult());
    return isa<lm::AllReduceOp, lm::AllGatherOp>(user);
  });
}

class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp phase, const AssignBuffersOptions &limits)
      : phase(phase), limits(limits), builder(phase.getLoc(), phase) {}

  LogicalResult run();

private:
  LogicalResult checkSignature();
  LogicalResult collectBuffers();
  LogicalResult addLoopCarried(scf::ForOp loop);
  LogicalResult addResult(Operation *op);
  Buffer *addBuffer(Operation *op, RankedTensorType type, RowKind rows,
                    bool dense = false);
  Buffer *findReused(Operation *op);
  LogicalResult addPartialSums(gemm::MatmulOp op, RowKind rows);
  LogicalResult checkArguments(Operation *op);
  FailureOr<RowKind> getRows(Operation *op);
  bool isLastUse(Value value, Operation *op);
  void extendLives();
  int64_t assignOffsets();
  int64_t rowLimit(RowKind rows) const {
    return rows == RowKind::Tokens ? limits.maxTokens : limits.maxLogitRows;
  }
  func::FuncOp createProgram(int64_t workspaceBytes);
  Value viewOf(Value tensor);
  void convertBlock(Block &source);
  void convert(Operation *op);

  func::FuncOp phase;
  AssignBuffersOptions limits;
  ImplicitLocOpBuilder builder;
  func::FuncOp program;
  lm::KVCacheType cacheType;
  Value logits;

  std::vector<std::unique_ptr<Buffer>> buffers;
  DenseMap<Value, Buffer *> bufferOf;
  DenseMap<Operation *, Buffer *> partialSumsOf;
  DenseMap<Operation *, int64_t> position;
  IRMapping mapping;
  Value tokens, logitRows;
};

} // namespace

static bool hasBufferForm(Operation *op) {
  return isa_and_nonnull<lm::EmbedOp, lm::RMSNormOp, lm::RotaryTableOp,
                         lm::AttentionOp, lm::GatherRowsOp, lm::AllReduceOp,
                         lm::AllGatherOp, gemm::MatmulOp>(op);
}

using ArgumentOperands = SmallVector<std::pair<Value, ProgramArgument>>;

/// The operands that must be arguments of the phase: only of those the runtime
/// guarantees that the tokens, positions and rows in them exist.
static ArgumentOperands getArgumentOperands(Operation *op) {
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
      .Case([&](lm::AttentionOp attention) { return ofCache(attention); })
      .Case([&](gemm::MatmulOp matmul) {
        return matmul.getKvCache() ? ofCache(matmul) : ArgumentOperands();
      })
      .Default([](Operation *) { return ArgumentOperands(); });
}

LogicalResult ProgramBuilder::checkSignature() {
  FunctionType type = phase.getFunctionType();
  Type indices =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
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
  cacheType = cast<lm::KVCacheType>(type.getInputs().back());
  logits = phase.getBody().front().getTerminator()->getOperand(0);
  if (!hasBufferForm(logits.getDefiningOp()) || !logits.hasOneUse())
    return phase.emitError("a phase returns what an operation with a buffer "
                           "form computes for nothing else");
  return success();
}

/// Whether nothing reads `value` after `op`, nor in another iteration of a
/// loop around it.
bool ProgramBuilder::isLastUse(Value value, Operation *op) {
  return value.getParentBlock() == op->getBlock() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock() &&
                  position[user] <= position[op];
         });
}

/// A loop carries its tensor in the buffer it starts in, so the layer must
/// compute in place: what the body yields has to be in that buffer.
LogicalResult ProgramBuilder::addLoopCarried(scf::ForOp loop) {
  if (loop.getInitArgs().size() != 1)
    return loop.emitError("a loop over layers carries one tensor");
  Value initial = loop.getInitArgs().front();
  Buffer *buffer = bufferOf.lookup(initial);
  if (!buffer || !isLastUse(initial, loop))
    return loop.emitError("the tensor a loop carries must be its own");
  bufferOf[loop.getRegionIterArg(0)] = buffer;
  bufferOf[loop.getResult(0)] = buffer;
  return success();
}

LogicalResult ProgramBuilder::checkArguments(Operation *op) {
  for (auto [operand, place] : getArgumentOperands(op))
    for (auto [argument, own] :
         llvm::zip_equal(phaseArguments, phase.getArguments()))
      if (argument.place == place && operand != own)
        return op->emitOpError("must take the ")
               << argument.name << " that its phase takes";
  return success();
}

/// What bounds the rows of the result of `op`, or an error where its operands
/// differ in that.
FailureOr<RowKind> ProgramBuilder::getRows(Operation *op) {
  // One for each token are token ids, positions and what rows are gathered of.
  bool ofTokens = !getArgumentOperands(op).empty(), ofLogits = false;
  for (Value operand : op->getOperands())
    if (Buffer *buffer = bufferOf.lookup(operand))
      (buffer->rows == RowKind::Tokens ? ofTokens : ofLogits) = true;
  if (ofTokens && ofLogits)
    return op->emitOpError("mixes rows of tokens with rows of logits");
  return ofLogits || isa<lm::GatherRowsOp>(op) ? RowKind::LogitRows
                                               : RowKind::Tokens;
}

/// A buffer that lives where `op` is; `type` may be null.
Buffer *ProgramBuilder::addBuffer(Operation *op, RankedTensorType type,
                                  RowKind rows, bool dense) {
  auto buffer = std::make_unique<Buffer>();
  buffer->type = type;
  buffer->rows = rows;
  buffer->bytes = 0;
  buffer->dense = dense;
  if (type)
    buffer->bytes = llvm::alignTo(rowLimit(rows) * rowStride(*buffer) *
                                      type.getElementTypeBitWidth() / 8,
                                  cacheLineBytes);
  buffer->firstUse = buffer->lastUse = position[op];
  buffers.push_back(std::move(buffer));
  return buffers.back().get();
}

/// Finds memory for what threads that share the K of `op` compute.
LogicalResult ProgramBuilder::addPartialSums(gemm::MatmulOp op, RowKind rows) {
  constexpr int64_t maxBytes = int64_t(1) << 36;
  int64_t bytes = gemm::getPartialSumsBytes(op, rowLimit(rows));
  if (bytes > maxBytes)
    return op.emitOpError("would need ")
           << bytes << " bytes for partial sums, more than " << maxBytes;
  if (bytes == 0)
    return success();
  Buffer *buffer = addBuffer(op, nullptr, rows);
  buffer->bytes = llvm::alignTo(bytes, cacheLineBytes);
  partialSumsOf[op] = buffer;
  return success();
}

/// The buffer of an operand that the result of `op` can be written over, or
/// null: one that nobody needs any more, be it `op` itself for other channels.
Buffer *ProgramBuilder::findReused(Operation *op) {
  auto canReuse = [&](Value value) {
    return value.getType() == op->getResult(0).getType() &&
           isLastUse(value, op);
  };
  if (auto matmul = dyn_cast<gemm::MatmulOp>(op)) {
    Value residual = matmul.getResidual();
    if (residual && residual != matmul.getInput() && canReuse(residual))
      return bufferOf[residual];
  } else if (auto reduce = dyn_cast<lm::AllReduceOp>(op);
             reduce && canReuse(reduce.getInput())) {
    return bufferOf.lookup(reduce.getInput());
  }
  return nullptr;
}

/// Finds the buffer for the result of `op`.
LogicalResult ProgramBuilder::addResult(Operation *op) {
  FailureOr<RowKind> rows = getRows(op);
  if (failed(checkArguments(op)) || failed(rows))
    return failure();
  Value value = op->getResult(0);
  if (auto matmul = dyn_cast<gemm::MatmulOp>(op);
      matmul && failed(addPartialSums(matmul, *rows)))
    return failure();
  if (value == logits) {
    if (*rows != RowKind::LogitRows)
      return op->emitOpError("computes logits for every token, not for the "
                             "rows that are gathered");
    return success();
  }
  Buffer *buffer = findReused(op);
  if (isa<lm::AllReduceOp>(op) && (!buffer || !buffer->dense))
    return op->emitOpError("must be the last to use what an operation made for "
                           "it");
  if (!buffer)
    buffer = addBuffer(op, cast<RankedTensorType>(value.getType()), *rows,
                       isExchanged(value) || isa<lm::AllGatherOp>(op));
  else if (isExchanged(value) && !buffer->dense)
    return op->emitOpError("makes what ranks exchange in place of what they do "
                           "not");
  bufferOf[value] = buffer;
  return success();
}

LogicalResult ProgramBuilder::collectBuffers() {
  int64_t counter = 0;
  phase.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { position[op] = counter++; });

  auto isTensor = llvm::IsaPred<TensorType, lm::KVCacheType>;
  WalkResult result = phase.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return WalkResult(addLoopCarried(loop));
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      auto loop = cast<scf::ForOp>(op->getParentOp());
      if (bufferOf.lookup(yield.getOperand(0)) !=
          bufferOf[loop.getRegionIterArg(0)]) {
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
    if (!hasBufferForm(op)) {
      op->emitOpError("has no buffer form; convert it first");
      return WalkResult::interrupt();
    }
    return WalkResult(addResult(op));
  });
  if (result.wasInterrupted())
    return failure();
  extendLives();
  return success();
}

/// A buffer lives from its first to its last access. One that a loop's body
/// reads but does not define lives through the whole loop, as every iteration
/// reads it.
void ProgramBuilder::extendLives() {
  for (auto [value, buffer] : bufferOf) {
    Region *home = value.getParentRegion();
    for (Operation *user : value.getUsers()) {
      Operation *outermost = home->findAncestorOpInRegion(*user);
      int64_t last = position[user];
      if (outermost != user)
        outermost->walk([&](Operation *nested) {
          last = std::max(last, position[nested]);
        });
      buffer->lastUse = std::max(buffer->lastUse, last);
    }
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      buffer->lastUse =
          std::max(buffer->lastUse, position[loop.getBody()->getTerminator()]);
  }
}

/// First fit: each buffer at the lowest offset that no living one overlaps.
int64_t ProgramBuilder::assignOffsets() {
  int64_t total = 0;
  SmallVector<Buffer *> placed;
  for (std::unique_ptr<Buffer> &buffer : buffers) {
    SmallVector<Buffer *> living;
    for (Buffer *other : placed)
      if (other->firstUse <= buffer->lastUse &&
          buffer->firstUse <= other->lastUse)
        living.push_back(other);
    llvm::sort(living,
               [](Buffer *a, Buffer *b) { return a->offset < b->offset; });
    for (Buffer *other : living)
      if (other->offset < buffer->offset + buffer->bytes)
        buffer->offset = std::max(buffer->offset, other->offset + other->bytes);
    total = std::max(total, buffer->offset + buffer->bytes);
    placed.push_back(buffer.get());
  }
  return total;
}

func::FuncOp ProgramBuilder::createProgram(int64_t workspaceBytes) {
  MLIRContext *context = builder.getContext();
  Type i32 = builder.getI32Type(), i8 = builder.getI8Type();
  int64_t dynamic = ShapedType::kDynamic;
  auto vector = MemRefType::get({dynamic}, i32);
  auto bytes = MemRefType::get({dynamic}, i8);
  auto logitsType = cast<RankedTensorType>(logits.getType());
  Type types[phase::numProgramArguments] = {
      vector,
      vector,
      vector,
      vector,
      MemRefType::get({dynamic, dynamic}, i32),
      cacheType.getBufferType(),
      MemRefType::get(logitsType.getShape(), logitsType.getElementType()),
      bytes,
      bytes,
      builder.getIndexType(),
      phase::TeamType::get(context)};
  auto function = func::FuncOp::create(builder, phase.getName(),
                                       builder.getFunctionType(types, {}));
  function.setVisibility(phase.getVisibility());
  function->setDiscardableAttrs(phase->getDiscardableAttrDictionary());
  for (auto [i, argument] : llvm::enumerate(phaseArguments))
    function.setArgAttrs(static_cast<unsigned>(argument.place),
                         phase.getArgAttrDict(i));
  function->setAttr(
      phase::programAttributeName,
      phase::ProgramAttr::get(context, limits.threads, limits.maxTokens,
                              limits.maxLogitRows, workspaceBytes));
  return function;
}

Value ProgramBuilder::viewOf(Value tensor) {
  if (tensor == logits)
    return phase::getArgument(program, ProgramArgument::Logits);
  return bufferOf[tensor]->view;
}

void ProgramBuilder::convert(Operation *op) {
  if (isa<func::ReturnOp>(op)) {
    func::ReturnOp::create(builder);
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto converted = scf::ForOp::create(
        builder, mapping.lookup(loop.getLowerBound()),
        mapping.lookup(loop.getUpperBound()), mapping.lookup(loop.getStep()));
    converted->setAttrs(loop->getAttrDictionary());
    mapping.map(loop.getInductionVar(), converted.getInductionVar());
    mapping.map(loop.getRegionIterArg(0), viewOf(loop.getInitArgs().front()));
    mapping.map(loop.getResult(0), viewOf(loop.getInitArgs().front()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(converted.getBody()->getTerminator());
    return convertBlock(*loop.getBody());
  }
  if (isa<scf::YieldOp>(op))
    return;

  bool hasTensor = llvm::any_of(op->getResultTypes(), [](Type type) {
    return isa<RankedTensorType>(type);
  });
  if (!hasTensor) {
    builder.clone(*op, mapping);
    return;
  }

  // The same operation, on buffers: its result becomes its destination.
  Value tensor = op->getResult(0);
  Value destination = viewOf(tensor);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(mapping.lookup(operand));
  OperationState state(op->getLoc(), op->getName(), operands, TypeRange(),
                       op->getAttrs());
  Operation *converted = builder.create(state);
  if (auto attention = dyn_cast<lm::AttentionOp>(converted)) {
    attention.getBlockTablesMutable().assign(
        phase::getArgument(program, ProgramArgument::BlockTables));
    attention.getDestinationMutable().assign(destination);
  } else if (auto matmul = dyn_cast<gemm::MatmulOp>(converted)) {
    if (matmul.getKvCache())
      matmul.getBlockTablesMutable().assign(
          phase::getArgument(program, ProgramArgument::BlockTables));
    matmul.getDestinationMutable().assign(destination);
    if (Buffer *sums = partialSumsOf.lookup(op))
      matmul.getPartialSumsMutable().assign(sums->view);
  } else if (auto norm = dyn_cast<lm::RMSNormOp>(converted)) {
    norm.getDestinationMutable().assign(destination);
  } else {
    // The others have the destination as their last, only optional operand.
    converted->insertOperands(converted->getNumOperands(), destination);
  }
  mapping.map(tensor, destination);
}

void ProgramBuilder::convertBlock(Block &source) {
  for (Operation &op : source)
    convert(&op);
}

LogicalResult ProgramBuilder::run() {
  if (failed(checkSignature()) || failed(collectBuffers()))
    return failure();
  program = createProgram(assignOffsets());
  builder.setInsertionPointToStart(program.addEntryBlock());
  for (auto [argument, own] :
       llvm::zip_equal(phaseArguments, phase.getArguments()))
    mapping.map(own, phase::getArgument(program, argument.place));

  Value zero = arith::ConstantIndexOp::create(builder, 0);
  tokens = memref::DimOp::create(
      builder, phase::getArgument(program, ProgramArgument::TokenIds), zero);
  logitRows = memref::DimOp::create(
      builder, phase::getArgument(program, ProgramArgument::LogitRows), zero);
  Value workspace = phase::getArgument(program, ProgramArgument::Workspace);
  for (std::unique_ptr<Buffer> &buffer : buffers) {
    Value rows = buffer->rows == RowKind::Tokens ? tokens : logitRows;
    Value offset = arith::ConstantIndexOp::create(builder, buffer->offset);
    if (!buffer->type) {
      buffer->view = memref::ViewOp::create(
          builder, MemRefType::get({buffer->bytes}, builder.getI8Type()),
          workspace, offset, ValueRange());
      continue;
    }
    auto padded = MemRefType::get({ShapedType::kDynamic, rowStride(*buffer)},
                                  buffer->type.getElementType());
    Value view =
        memref::ViewOp::create(builder, padded, workspace, offset, rows);
    if (buffer->dense) {
      buffer->view = view;
      continue;
    }
    buffer->view = memref::SubViewOp::create(
        builder, view,
        ArrayRef<OpFoldResult>{builder.getIndexAttr(0),
                               builder.getIndexAttr(0)},
        ArrayRef<OpFoldResult>{
            rows, builder.getIndexAttr(buffer->type.getDimSize(1))},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1),
                               builder.getIndexAttr(1)});
  }
  convertBlock(phase.getBody().front());
  phase.erase();
  return success();
}

namespace {
struct AssignBuffers : sandwich::impl::AssignBuffersBase<AssignBuffers> {
  using AssignBuffersBase::AssignBuffersBase;

  void runOnOperation() override {
    if (threads < 1 || threads > phase::maxThreads || maxTokens < 1 ||
        maxTokens > phase::maxStepRows || maxLogitRows < 1 ||
        maxLogitRows > phase::maxStepRows) {
      getOperation().emitError("threads must be between 1 and ")
          << phase::maxThreads
          << ", max-tokens and max-logit-rows between 1 and "
          << phase::maxStepRows;
      return signalPassFailure();
    }
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!function->hasAttr(lm::phaseAttributeName) ||
          phase::getProgram(function))
        continue;
      AssignBuffersOptions limits;
      limits.threads = lm::getThreads(function, threads);
      limits.maxTokens = maxTokens;
      limits.maxLogitRows = maxLogitRows;
      if (failed(ProgramBuilder(function, limits).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
