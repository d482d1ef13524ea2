//===- VerifyPhases.cpp - Phases that are safe to run ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PhaseSignature.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Utils/KernelUse.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"

namespace sandwich {
#define GEN_PASS_DEF_VERIFYPHASES
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

//===----------------------------------------------------------------------===//
// What may be there
//===----------------------------------------------------------------------===//

/// Whether all that is said about `op` is of the dialects of models: other
/// attributes would reach the code.
static LogicalResult verifyAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (!isa_and_nonnull<lm::LMDialect, gemm::GemmDialect>(
            attribute.getNameDialect()))
      return op->emitOpError("cannot have an attribute ")
             << attribute.getName() << " in a model";
  if (auto function = dyn_cast<func::FuncOp>(op);
      function && (function.getArgAttrsAttr() || function.getResAttrsAttr()))
    return op->emitOpError("cannot have attributes of arguments and results in "
                           "a model");
  return success();
}

/// Whether `op` can be in a phase: what it does is known.
static bool isAllowed(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return op->getResult(0).getType().isIndex();
  if (isa<scf::ForOp, scf::YieldOp, func::ReturnOp, gemm::MatmulOp>(op))
    return true;
  return isa_and_nonnull<lm::LMDialect>(op->getDialect()) &&
         !isa<lm::WeightOp, lm::SamplingOp>(op);
}

//===----------------------------------------------------------------------===//
// Layers and weights
//===----------------------------------------------------------------------===//

/// How many layers `loop` counts, from the first on; nothing if it counts
/// something else.
static std::optional<int64_t> countLayers(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (first == 0 && step == 1 && end && *end >= 0)
    return end;
  return std::nullopt;
}

/// Whether `value` is or counts layers, and stays below `layers`.
static bool isLayer(Value value, int64_t layers) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant >= 0 && *constant < layers;
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : nullptr;
  return loop && loop.getInductionVar() == value &&
         countLayers(loop).value_or(layers + 1) <= layers;
}

/// Whether `loop` runs once for each layer, so that a step ends soon.
static LogicalResult verifyLoop(scf::ForOp loop) {
  if (countLayers(loop).value_or(lm::maxLayers + 1) > lm::maxLayers)
    return loop.emitOpError("must count layers, from 0 to at most ")
           << lm::maxLayers;
  if (isa<scf::ForOp>(loop->getParentOp()))
    return loop.emitOpError("is in another loop, but a layer has no layers");
  return success();
}

/// Whether the layer that `op` names, if it does, exists in all that it reads.
static LogicalResult verifyLayer(Operation *op,
                                 SymbolTableCollection &symbols) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return verifyLoop(loop);
  int64_t layers = lm::maxLayers;
  for (Type type : op->getOperandTypes())
    if (auto cache = dyn_cast<lm::KVCacheType>(type))
      layers = std::min(layers, cache.getLayers());
  for (NamedAttribute attribute : op->getAttrs())
    if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
      if (lm::WeightOp weight = lm::lookupWeight(symbols, op, name))
        layers = std::min<int64_t>(layers, weight.getLayers().value_or(layers));
  for (Value operand : op->getOperands())
    if (operand.getType().isIndex() && !isLayer(operand, layers))
      return op->emitOpError(
                 "has a layer that is neither a constant nor counted "
                 "by a loop from 0 to at most ")
             << layers;
  return success();
}

/// Whether `op` takes from the arguments of `phase` what only they are known
/// to hold.
static LogicalResult verifyArguments(Operation *op, func::FuncOp phase) {
  auto step = dyn_cast<lm::StepOpInterface>(op);
  if (!step)
    return success();
  for (auto [operand, input] : step.getPhaseInputs())
    for (auto [i, argument] : llvm::enumerate(phaseArguments))
      if (argument.input == input &&
          (i >= phase.getNumArguments() || operand != phase.getArgument(i)))
        return op->emitOpError("must take the ")
               << argument.name << " that its phase takes";
  return success();
}

/// What a rank has of the weight `name` that `user` names, or nothing if that
/// is all of it.
static std::optional<lm::ShardKind> findShard(Operation *user,
                                              FlatSymbolRefAttr name,
                                              SymbolTableCollection &symbols) {
  lm::ShardAttr shard = lm::lookupWeight(symbols, user, name).getShardAttr();
  return shard ? std::optional(shard.getKind()) : std::nullopt;
}

/// Whether ranks have of the weight `name` what `op` needs.
static LogicalResult verifyShard(Operation *op, FlatSymbolRefAttr name,
                                 std::optional<lm::ShardKind> needed,
                                 SymbolTableCollection &symbols) {
  auto describe = [](std::optional<lm::ShardKind> kind) {
    return kind ? "in shards of '" + lm::stringifyShardKind(*kind).str() + "'"
                : "whole";
  };
  std::optional<lm::ShardKind> actual = findShard(op, name, symbols);
  if (actual == needed)
    return success();
  return op->emitOpError("needs weight ")
         << name << " " << describe(needed) << ", not " << describe(actual);
}

/// Whether each token of the `vocabulary` has its row in the table of `op`, as
/// the code does not check token ids. How many rows other tables have, the
/// program tells (`#phase.program`).
static LogicalResult verifyTokenTable(lm::EmbedOp op, int64_t vocabulary,
                                      SymbolTableCollection &symbols) {
  int64_t rows = lm::lookupWeight(symbols, op, op.getWeightAttr())
                     .getTensorType()
                     .getDimSize(0);
  if (op.getInput() != lm::EmbeddedInput::TokenIds || rows >= vocabulary)
    return success();
  return op.emitOpError("needs the ")
         << vocabulary << " rows of the vocabulary, weight "
         << op.getWeightAttr() << " has " << rows;
}

/// Whether ranks have of the weights of `op` what their roles ask for.
static LogicalResult verifyWeights(Operation *op, int64_t vocabulary,
                                   SymbolTableCollection &symbols) {
  auto step = dyn_cast<lm::StepOpInterface>(op);
  if (!step)
    return success();
  // What ranks need of a bias.
  std::optional<lm::ShardKind> ofBias;
  for (const lm::WeightUse &use : step.getWeightUses()) {
    std::optional<lm::ShardKind> needed;
    switch (use.role) {
    case lm::WeightRole::Table:
    case lm::WeightRole::Vector:
      break;
    case lm::WeightRole::Matrix:
      needed = findShard(op, use.name, symbols);
      ofBias = needed == lm::ShardKind::Columns ? lm::ShardKind::First : needed;
      if (needed == lm::ShardKind::First)
        needed = std::nullopt;
      break;
    case lm::WeightRole::Bias:
      needed = ofBias;
      break;
    }
    if (failed(verifyShard(op, use.name, needed, symbols)))
      return failure();
  }
  auto embed = dyn_cast<lm::EmbedOp>(op);
  return embed ? verifyTokenTable(embed, vocabulary, symbols) : success();
}

/// Whether `phase` has a row for each segment, if `op` makes one.
static LogicalResult verifyRows(Operation *op, func::FuncOp phase) {
  const lm::Phase kind = getPhase(phase);
  if (!isa<lm::PoolOp>(op) || kind == lm::Phase::Embed ||
      kind == lm::Phase::Classify)
    return success();
  return op->emitOpError("makes a row for each segment, but a phase that is "
                         "for ")
         << lm::stringifyPhase(kind) << " returns others";
}

//===----------------------------------------------------------------------===//
// Sums over ranks
//===----------------------------------------------------------------------===//

namespace {

/// Tells the parts of sums over ranks, which differ between ranks, from all
/// that ranks may read.
class SumParts {
public:
  explicit SumParts(SymbolTableCollection &symbols) : symbols(symbols) {}

  /// Error: `op` reads parts as though they were sums, or makes a sum of what
  /// are not all parts. What `op` reads must have been added.
  LogicalResult add(Operation *op);

private:
  LogicalResult addTerms(Operation *op, ValueRange terms, bool areParts);

  /// Whether a rank has columns of `weight`, so that what `op` multiplies is a
  /// part.
  bool hasColumns(Operation *op, FlatSymbolRefAttr weight) {
    return findShard(op, weight, symbols) == lm::ShardKind::Columns;
  }

  SymbolTableCollection &symbols;
  DenseSet<Value> parts;
};

} // namespace

/// Adds `op`, of whose operands `terms` alone may be parts, and are if
/// `areParts`, as the result is then.
LogicalResult SumParts::addTerms(Operation *op, ValueRange terms,
                                 bool areParts) {
  for (Value operand : op->getOperands())
    if (parts.contains(operand) && !llvm::is_contained(terms, operand))
      return op->emitOpError("reads the result of ")
             << operand.getDefiningOp()->getName()
             << ", one rank's part, before lm.all_reduce sums it";
  for (Value term : terms)
    if (parts.contains(term) != areParts)
      return op->emitOpError(
          "sums what is one rank's part and what all ranks have alike");
  if (areParts)
    parts.insert_range(op->getResults());
  return success();
}

LogicalResult SumParts::add(Operation *op) {
  if (auto linear = dyn_cast<lm::LinearOp>(op))
    return addTerms(op, {}, hasColumns(op, linear.getWeightAttr()));
  if (isa<lm::DealRowsOp>(op))
    return addTerms(op, {}, true);
  if (auto add = dyn_cast<lm::AddOp>(op))
    return addTerms(op, op->getOperands(), parts.contains(add.getLhs()));
  if (auto reduce = dyn_cast<lm::AllReduceOp>(op)) {
    if (!parts.contains(reduce.getInput()))
      return op->emitOpError("sums what is no part of a sum over the ranks");
    return success();
  }
  auto matmul = dyn_cast<gemm::MatmulOp>(op);
  if (!matmul)
    return addTerms(op, {}, false);
  bool isPart = hasColumns(op, matmul.getWeightAttr());
  bool deals = matmul.getResidualRanks().has_value();
  Epilogue epilogue = matmul.getEpilogue();
  if (isPart ? epilogue != Epilogue::None && epilogue != Epilogue::AddResidual
             : deals)
    return op->emitOpError("has an epilogue that does not fit a weight of "
                           "which ranks have ")
           << (isPart ? "columns" : "no columns");
  return addTerms(
      op, deals ? ValueRange() : OperandRange(matmul.getResidualMutable()),
      isPart);
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

namespace {

/// Counts what the operations of a phase keep on the stacks of threads. What
/// has the same size shares its memory.
class StackUse {
public:
  /// Error: with `op`, it would be too much.
  LogicalResult add(Operation *op);

private:
  using Sizes = std::pair<int64_t, int64_t>;
  void addSchedule(const AttentionSchedule &schedule,
                   const AttentionShape &shape);

  /// Query heads and rows of the tiles that they are divided into.
  DenseSet<Sizes> heads;
  /// Rows of tiles of several tokens, and of all of them: those that FMA
  /// multiplies, and others.
  DenseSet<Sizes> tiles, matrixTiles;
  /// Rows and blocks.
  DenseSet<Sizes> scores, packed;
  uint64_t headBytes = 0, tileBytes = 0;
};

} // namespace

/// All attention of a phase reads the phase's cache: `headDim` is always the
/// same. Fewer than 2^31 channels, and added up only below the limits: no
/// overflow.
void StackUse::addSchedule(const AttentionSchedule &schedule,
                           const AttentionShape &shape) {
  const int64_t headDim = shape.headDim;
  const int64_t queryHeads = shape.cacheHeads * shape.group;
  const AttentionTile &decode = schedule.decode, &prefill = schedule.prefill;
  if (heads.insert({queryHeads, decode.rows}).second)
    headBytes += model_limits::attentionStackBytes(queryHeads, headDim);
  const int64_t kept = prefillPieces(schedule, shape).rows;
  if (!schedule.instructions) {
    if (tiles.insert({prefill.rows, kept}).second)
      tileBytes += model_limits::attentionStackBytes(kept, headDim);
  } else {
    if (matrixTiles.insert({prefill.rows, kept}).second)
      tileBytes += model_limits::attentionMatrixBytes(kept, headDim);
    if (packed.insert({prefill.rows, prefill.chunk}).second)
      tileBytes += model_limits::attentionPackedBytes(prefill.rows,
                                                      prefill.chunk, headDim);
  }
  for (const AttentionTile &tile : {decode, prefill})
    if (scores.insert({tile.rows, tile.chunk}).second)
      tileBytes += model_limits::attentionScoreBytes(tile.rows, tile.chunk);
}

LogicalResult StackUse::add(Operation *op) {
  auto attention = dyn_cast<lm::AttentionOp>(op);
  if (!attention)
    return success();
  AttentionTable table(1);
  if (attention.getSchedules())
    table = attention.getSchedules()->getTable();
  auto check = [&](StringRef kept, uint64_t bytes,
                   uint64_t limit) -> LogicalResult {
    if (bytes <= limit)
      return success();
    return op->emitOpError("needs too much of a thread's stack: ")
           << kept << " of its phase would keep " << bytes
           << " bytes there, at most " << limit << " are accepted";
  };
  for (const AttentionTableEntry &entry : table) {
    addSchedule(entry.schedule, attention.getShape());
    if (failed(check("attention", headBytes,
                     model_limits::maxAttentionStackBytes)) ||
        failed(check("tiles of attention", tileBytes,
                     model_limits::maxAttentionTileBytes)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static LogicalResult verifyPhase(func::FuncOp phase,
                                 SymbolTableCollection &symbols) {
  if (failed(verifyPhaseSignature(phase)))
    return failure();
  // Whoever encodes has a vocabulary of any size.
  int64_t vocabulary =
      lm::encodes(getPhase(phase))
          ? 0
          : cast<RankedTensorType>(phase.getResultTypes().front())
                .getDimSize(1);
  SumParts parts(symbols);
  StackUse stack;
  WalkResult result = phase.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == phase)
      return WalkResult::advance();
    if (!isAllowed(op)) {
      op->emitOpError("cannot be in a phase; only operations of lm, "
                      "gemm.matmul, loops over layers and constants of type "
                      "index can");
      return WalkResult::interrupt();
    }
    return WalkResult(
        success(succeeded(verifyAttributes(op)) &&
                succeeded(verifyLayer(op, symbols)) &&
                succeeded(verifyArguments(op, phase)) &&
                succeeded(verifyRows(op, phase)) &&
                succeeded(verifyWeights(op, vocabulary, symbols)) &&
                succeeded(parts.add(op)) && succeeded(stack.add(op)) &&
                succeeded(lm::findKernelUse(op, symbols))));
  });
  return failure(result.wasInterrupted());
}

/// Whether `module` has nothing but kernels, of operations that are known.
static LogicalResult verifyKernels(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto function = dyn_cast<func::FuncOp>(op);
    const bool isKernel = function && block::isKernel(function) &&
                          function->getParentOp() == module;
    if (op == module || isKernel ||
        isa<func::ReturnOp, scf::ForOp, scf::IfOp, scf::YieldOp, memref::LoadOp,
            memref::StoreOp>(op) ||
        isa_and_nonnull<block::BlockDialect, arith::ArithDialect,
                        math::MathDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("cannot be in a kernel");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Whether `op` is the only one of `module`, and of as many logits as its
/// phases return.
static LogicalResult verifySampling(lm::SamplingOp op, ModuleOp module,
                                    SymbolTableCollection &symbols) {
  if (*module.getOps<lm::SamplingOp>().begin() != op)
    return op.emitOpError("is there twice");
  // That of the function that it becomes.
  const StringRef name = op->getName().stripDialect();
  if (Operation *other = symbols.lookupSymbolIn(
          module, StringAttr::get(op.getContext(), name)))
    return other->emitError("cannot be called @")
           << name << " beside lm.sampling";
  for (auto function : module.getOps<func::FuncOp>()) {
    auto phase = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
    if (!phase)
      continue;
    if (lm::encodes(phase.getValue()))
      return op.emitOpError("is of a model that generates text, and @")
             << function.getName() << " returns no logits";
    if (failed(verifyPhaseSignature(function)))
      return failure();
    auto logits = cast<RankedTensorType>(function.getResultTypes().front());
    if (logits.getDimSize(1) != static_cast<int64_t>(op.getVocabulary()))
      return op.emitOpError("is of ")
             << op.getVocabulary() << " logits, and @" << function.getName()
             << " returns " << logits.getDimSize(1);
  }
  return lm::findKernelUse(op, symbols);
}

/// Whether `op` can be beside the phases of a model.
static LogicalResult verifyMember(Operation *op, ModuleOp module,
                                  SymbolTableCollection &symbols) {
  auto function = dyn_cast<func::FuncOp>(op);
  const bool isPhase = function && function->hasAttr(lm::phaseAttributeName);
  if (auto kernels = dyn_cast<ModuleOp>(op);
      kernels && kernels.getSymName() == lm::kernelsModuleName)
    return verifyKernels(kernels);
  if (!isPhase && !isa<lm::WeightOp, lm::SamplingOp>(op))
    return op->emitOpError("cannot be in a model; only weights, functions "
                           "with 'lm.phase', lm.sampling and the module of "
                           "kernels can");
  if (failed(verifyAttributes(op)))
    return failure();
  if (auto sampling = dyn_cast<lm::SamplingOp>(op))
    return verifySampling(sampling, module, symbols);
  return isPhase ? verifyPhase(function, symbols) : success();
}

namespace {
struct VerifyPhases : sandwich::impl::VerifyPhasesBase<VerifyPhases> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    // Programs are past this level.
    auto functions = module.getOps<func::FuncOp>();
    if (!functions.empty() && llvm::all_of(functions, phase::getProgram))
      return;
    if (failed(verifyAttributes(module)) || failed(lm::getRanks(module)))
      return signalPassFailure();
    SymbolTableCollection symbols;
    for (Operation &op : module.getOps())
      if (failed(verifyMember(&op, module, symbols)))
        return signalPassFailure();
  }
};
} // namespace
