//===- AssignBuffers.cpp - Phases as programs over buffers ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferPlan.h"

#include "sandwich/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sandwich {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;
using phase::ProgramArgument;

namespace {

/// Writes the program of a phase beside it.
class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp phase, const BufferPlan &plan,
                 SymbolTableCollection &symbols)
      : phase(phase), plan(plan), symbols(symbols),
        builder(phase.getLoc(), phase) {}

  void run(RowLimits limits, int64_t threads);

private:
  func::FuncOp createProgram(RowLimits limits, int64_t threads);
  Value createView(const Buffer &buffer);
  Value viewOf(Value tensor);
  void convertBlock(Block &source);
  void convert(Operation *op);

  func::FuncOp phase;
  const BufferPlan &plan;
  SymbolTableCollection &symbols;
  ImplicitLocOpBuilder builder;
  func::FuncOp program;
  DenseMap<const Buffer *, Value> views;
  IRMapping mapping;
  Value tokens, logitRows;
};

} // namespace

/// The rows of what `phase` looks up by token id, by token type and by
/// position, as `#phase.program` tells them: nothing where that is token ids
/// alone, which are below the channels of logits.
static SmallVector<int64_t> getTables(func::FuncOp phase,
                                      SymbolTableCollection &symbols) {
  SmallVector<int64_t> tables(3, 0);
  phase.walk([&](lm::EmbedOp op) {
    int64_t rows = lm::lookupWeight(symbols, op, op.getWeightAttr())
                       .getTensorType()
                       .getDimSize(0) -
                   op.getOffsetAttr().getInt();
    int64_t &fewest = tables[static_cast<size_t>(op.getInput())];
    fewest = fewest == 0 ? rows : std::min(fewest, rows);
  });
  if (lm::encodes(getPhase(phase)))
    return tables;
  tables[0] = 0;
  if (tables[1] == 0 && tables[2] == 0)
    tables.clear();
  return tables;
}

func::FuncOp ProgramBuilder::createProgram(RowLimits limits, int64_t threads) {
  auto logitsType = cast<RankedTensorType>(plan.logits().getType());
  func::FuncOp function = phase::createProgram(
      builder, builder.getLoc(), phase.getName(),
      plan.cacheType().getBufferType(),
      MemRefType::get(logitsType.getShape(), logitsType.getElementType()),
      phase::ProgramAttr::get(builder.getContext(), threads, limits.tokens,
                              limits.logitRows, plan.workspaceBytes(),
                              getTables(phase, symbols)),
      phase.getNumArguments() == std::size(phaseArguments));
  function.setVisibility(phase.getVisibility());
  for (NamedAttribute attribute : phase->getDiscardableAttrs())
    function->setDiscardableAttr(attribute.getName(), attribute.getValue());
  for (auto [i, argument] : llvm::enumerate(getPhaseArguments(phase)))
    function.setArgAttrs(static_cast<unsigned>(argument.place),
                         phase.getArgAttrDict(i));
  return function;
}

Value ProgramBuilder::viewOf(Value tensor) {
  if (tensor == plan.logits())
    return phase::getArgument(program, ProgramArgument::Logits);
  return views.lookup(plan.bufferOf(tensor));
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
  auto step = cast<lm::StepOpInterface>(converted);
  step.getDestinationMutable().assign(destination);
  if (const Buffer *sums = plan.partialSumsOf(op))
    step.getPartialSumsMutable().assign(views.lookup(sums));
  mapping.map(tensor, destination);
}

void ProgramBuilder::convertBlock(Block &source) {
  for (Operation &op : source)
    convert(&op);
}

Value ProgramBuilder::createView(const Buffer &buffer) {
  Value workspace = phase::getArgument(program, ProgramArgument::Workspace);
  Value rows = buffer.rows == lm::RowKind::Tokens ? tokens : logitRows;
  Value offset = arith::ConstantIndexOp::create(builder, buffer.offset);
  if (!buffer.type)
    return memref::ViewOp::create(
        builder, MemRefType::get({buffer.bytes}, builder.getI8Type()),
        workspace, offset, ValueRange());
  auto padded = MemRefType::get({ShapedType::kDynamic, buffer.rowStride()},
                                buffer.type.getElementType());
  Value view = memref::ViewOp::create(builder, padded, workspace, offset, rows);
  if (buffer.dense)
    return view;
  return memref::SubViewOp::create(
      builder, view,
      ArrayRef<OpFoldResult>{builder.getIndexAttr(0), builder.getIndexAttr(0)},
      ArrayRef<OpFoldResult>{rows,
                             builder.getIndexAttr(buffer.type.getDimSize(1))},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1), builder.getIndexAttr(1)});
}

void ProgramBuilder::run(RowLimits limits, int64_t threads) {
  program = createProgram(limits, threads);
  builder.setInsertionPointToStart(&program.getBody().front());
  for (auto [argument, own] :
       llvm::zip_equal(getPhaseArguments(phase), phase.getArguments()))
    mapping.map(own, phase::getArgument(program, argument.place));

  Value zero = arith::ConstantIndexOp::create(builder, 0);
  tokens = memref::DimOp::create(
      builder, phase::getArgument(program, ProgramArgument::TokenIds), zero);
  logitRows = memref::DimOp::create(
      builder, phase::getArgument(program, ProgramArgument::LogitRows), zero);
  for (const std::unique_ptr<Buffer> &buffer : plan.buffers())
    views[buffer.get()] = createView(*buffer);
  convertBlock(phase.getBody().front());
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
    SymbolTableCollection symbols;
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!function->hasAttr(lm::phaseAttributeName) ||
          phase::getProgram(function))
        continue;
      const RowLimits limits{maxTokens, maxLogitRows};
      FailureOr<BufferPlan> plan =
          BufferPlan::create(function, limits, symbols);
      if (failed(plan))
        return signalPassFailure();
      ProgramBuilder(function, *plan, symbols)
          .run(limits, lm::getThreads(function, threads));
      function.erase();
    }
  }
};
} // namespace
