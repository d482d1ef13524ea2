//===- Partition.cpp - A model as the program of one rank -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace sandwich::lm {
#define GEN_PASS_DEF_PARTITION
#include "sandwich/Dialect/LM/Transforms/Passes.h.inc"
} // namespace sandwich::lm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static int64_t channelsOf(Value value) {
  return cast<ShapedType>(value.getType()).getDimSize(1);
}

namespace {

/// Divides the phases of a module.
class Partitioner {
public:
  Partitioner(ModuleOp module, int64_t ranks)
      : module(module), symbols(module), ranks(ranks) {}

  LogicalResult run();

private:
  LogicalResult checkSizes(func::FuncOp phase);
  LogicalResult markByRows(Operation *user, Value value);
  LogicalResult markByRows(func::FuncOp phase);
  LogicalResult rewrite(func::FuncOp phase);
  LogicalResult rewrite(Operation *op);
  LogicalResult rewrite(LinearOp linear);
  Value addResidual(LinearOp linear);
  LogicalResult shardWeights();
  WeightOp makeShard(WeightOp weight, ShardKind kind);

  bool isSplit(Value value) const { return split.contains(value); }
  void divide(Value value);

  ModuleOp module;
  SymbolTable symbols;
  int64_t ranks;
  /// Linear layers of which a rank makes a part of the channels.
  DenseSet<Operation *> byRows;
  /// Those of them that make logits.
  DenseSet<Operation *> heads;
  /// Values of which a rank has a part of the channels.
  DenseSet<Value> split;
  /// What linear layers use of each weight.
  using LinearsByKind = llvm::MapVector<ShardKind, SmallVector<LinearOp>>;
  llvm::MapVector<StringAttr, LinearsByKind> shards;
  /// How often anything uses each weight before the first is divided; nothing
  /// where that cannot be known.
  std::optional<DenseMap<StringAttr, size_t>> useCounts;
};

} // namespace

/// Whether `gelu` is that of a feed-forward block, of which ranks compute a
/// part of the channels; others, as in front of a norm, all ranks compute.
static bool isBetweenLinears(GeluOp gelu) {
  return gelu.getInput().getDefiningOp<LinearOp>() &&
         llvm::all_of(gelu->getUsers(), llvm::IsaPred<LinearOp>);
}

/// Whether the ranks divide all that is divided of `phase`.
LogicalResult Partitioner::checkSizes(func::FuncOp phase) {
  TensorParallelSizes sizes;
  std::optional<std::string> reason;
  auto check = [&](int64_t &size, int64_t value) {
    size = value;
    if (!reason)
      reason = sizes.refuse(ranks);
  };
  phase.walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      KVCacheType cache = getKVCacheType(attention.getKvCache().getType());
      sizes.kvHeads = cache.getHeads();
      check(sizes.heads, channelsOf(attention.getQuery()) / cache.getHeadDim());
    } else if (auto append = dyn_cast<AppendKVOp>(op)) {
      check(sizes.kvHeads,
            getKVCacheType(append.getKvCache().getType()).getHeads());
    } else if (auto silu = dyn_cast<SiluMulOp>(op)) {
      check(sizes.intermediateSize, channelsOf(silu.getGate()));
    } else if (auto gelu = dyn_cast<GeluOp>(op);
               gelu && isBetweenLinears(gelu)) {
      check(sizes.intermediateSize, channelsOf(gelu.getInput()));
    } else if (isa<func::ReturnOp>(op)) {
      for (Value value : op->getOperands())
        if (value.getDefiningOp<LinearOp>())
          check(sizes.vocabSize, channelsOf(value));
    }
  });
  for (Type type : phase.getArgumentTypes())
    if (auto cache = dyn_cast<KVCacheType>(type))
      check(sizes.kvHeads, cache.getHeads());
  if (reason)
    return phase.emitOpError("cannot be divided: ") << *reason;
  return success();
}

/// Marks the linear layer that makes `value`, which `user` divides by channels.
LogicalResult Partitioner::markByRows(Operation *user, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto rotate = dyn_cast<RotateOp>(op)) {
      value = rotate.getInput();
    } else if (auto norm = dyn_cast<RMSNormOp>(op)) {
      value = norm.getInput();
    } else if (isa<LinearOp>(op)) {
      byRows.insert(op);
      return success();
    } else {
      break;
    }
  }
  return user->emitOpError(
      "cannot be divided: what it reads must come from linear layers");
}

LogicalResult Partitioner::markByRows(func::FuncOp phase) {
  WalkResult result = phase.walk([&](Operation *op) -> WalkResult {
    if (auto attention = dyn_cast<AttentionOp>(op))
      return markByRows(op, attention.getQuery());
    if (auto append = dyn_cast<AppendKVOp>(op))
      return failure(failed(markByRows(op, append.getKey())) ||
                     failed(markByRows(op, append.getValue())));
    if (auto silu = dyn_cast<SiluMulOp>(op))
      return failure(failed(markByRows(op, silu.getGate())) ||
                     failed(markByRows(op, silu.getUp())));
    if (auto gelu = dyn_cast<GeluOp>(op); gelu && isBetweenLinears(gelu))
      return markByRows(op, gelu.getInput());
    if (isa<func::ReturnOp>(op))
      for (Value value : op->getOperands())
        if (auto head = value.getDefiningOp<LinearOp>()) {
          byRows.insert(head);
          heads.insert(head);
        }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Leaves a rank its part of the channels of `value`.
void Partitioner::divide(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  value.setType(type.clone({type.getDimSize(0), type.getDimSize(1) / ranks}));
  split.insert(value);
}

/// What the `ranks` ranks add up for `linear`: its result, or, where the
/// residual connection is all that uses that, the connection's, to which each
/// rank adds its rows of the residual.
Value Partitioner::addResidual(LinearOp linear) {
  Value part = linear.getResult();
  auto add = part.hasOneUse() ? dyn_cast<AddOp>(*part.user_begin()) : AddOp();
  // Ranks add up in f32.
  if (!add || add.getResult().getType() != part.getType())
    return part;
  OpBuilder builder(add);
  OpOperand &residual = add->getOpOperand(add.getLhs() == part ? 1 : 0);
  if (isSplit(residual.get()))
    return part;
  residual.set(DealRowsOp::create(builder, add.getLoc(),
                                  residual.get().getType(), residual.get(),
                                  ranks, /*destination=*/Value())
                   .getResult());
  return add.getResult();
}

/// The same, for the linear layers' weights, once all are known.
LogicalResult Partitioner::rewrite(LinearOp linear) {
  bool rows = byRows.contains(linear), columns = isSplit(linear.getInput());
  if (rows && columns)
    return linear.emitOpError("cannot be divided: its input is divided by "
                              "channels, and so is its result");
  if (!rows && !columns)
    return success();
  auto use = [&](FlatSymbolRefAttr weight, ShardKind kind) {
    if (weight)
      shards[weight.getAttr()][kind].push_back(linear);
  };
  use(linear.getWeightAttr(), rows ? ShardKind::Rows : ShardKind::Columns);
  use(linear.getBiasAttr(), rows ? ShardKind::Rows : ShardKind::First);
  OpBuilder builder(linear->getContext());
  builder.setInsertionPointAfter(linear);
  Value part = linear.getResult();
  Type whole = part.getType();
  Operation *collective = nullptr;
  if (columns) {
    part = addResidual(linear);
    builder.setInsertionPointAfterValue(part);
    collective =
        AllReduceOp::create(builder, linear.getLoc(), whole, part, Value());
  } else {
    divide(part);
    if (heads.contains(linear)) {
      collective =
          AllGatherOp::create(builder, linear.getLoc(), whole, part, Value());
      split.erase(part);
    }
  }
  if (collective)
    part.replaceAllUsesExcept(collective->getResult(0), collective);
  return success();
}

LogicalResult Partitioner::rewrite(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return rewrite(linear);
  if (!llvm::any_of(op->getOperands(), [&](Value v) { return isSplit(v); }))
    return success();
  if (auto norm = dyn_cast<RMSNormOp>(op)) {
    // Norms of heads stay what they are, norms of rows would need all channels.
    auto weight = symbols.lookup<WeightOp>(norm.getWeightAttr().getAttr());
    if (channelsOf(norm.getInput()) % weight.getTensorType().getDimSize(0) == 0)
      return divide(norm.getResult()), success();
  } else if (auto rotate = dyn_cast<RotateOp>(op)) {
    if (!isSplit(rotate.getTable()))
      return divide(rotate.getResult()), success();
  } else if (auto attention = dyn_cast<AttentionOp>(op)) {
    return divide(attention.getResult()), success();
  } else if (auto silu = dyn_cast<SiluMulOp>(op)) {
    if (isSplit(silu.getGate()) && isSplit(silu.getUp()))
      return divide(silu.getResult()), success();
  } else if (auto gelu = dyn_cast<GeluOp>(op)) {
    return divide(gelu.getResult()), success();
  } else if (auto append = dyn_cast<AppendKVOp>(op)) {
    if (isSplit(append.getKey()) && isSplit(append.getValue()))
      return success();
  }
  return op->emitOpError("cannot be divided: it needs all channels of a value "
                         "of which each rank has a part");
}

LogicalResult Partitioner::rewrite(func::FuncOp phase) {
  for (BlockArgument argument : phase.getArguments())
    if (auto cache = dyn_cast<KVCacheType>(argument.getType()))
      argument.setType(KVCacheType::get(
          module.getContext(), cache.getLayers(), cache.getHeads() / ranks,
          cache.getHeadDim(), cache.getElementType()));
  phase.setFunctionType(FunctionType::get(module.getContext(),
                                          phase.getBody().getArgumentTypes(),
                                          phase.getResultTypes()));
  WalkResult result = phase.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return WalkResult(rewrite(op)); });
  return failure(result.wasInterrupted());
}

/// A weight beside `weight`, or `weight` itself where nothing needs it whole,
/// that is the rank's shard of it. Null, with an error, where there is none.
WeightOp Partitioner::makeShard(WeightOp weight, ShardKind kind) {
  auto &uses = shards[weight.getSymNameAttr()];
  size_t divided = 0;
  for (auto &[ofKind, linears] : uses)
    divided += linears.size();
  bool isOnly = uses.size() == 1 && useCounts &&
                useCounts->lookup(weight.getSymNameAttr()) == divided;
  if (kind == ShardKind::Rows && weight.getSources().size() != 1) {
    weight.emitOpError("cannot be divided by rows: it has several sources");
    return {};
  }
  WeightOp shard = weight;
  if (!isOnly) {
    shard = weight.clone();
    shard.setSymName((weight.getSymName() + ".shard").str());
    symbols.insert(shard, std::next(weight->getIterator()));
  }
  RankedTensorType type = weight.getTensorType();
  SmallVector<int64_t> shape(type.getShape());
  if (kind != ShardKind::First)
    shape[kind == ShardKind::Rows ? 0 : 1] /= ranks;
  shard.setType(type.clone(shape));
  shard.setShardAttr(ShardAttr::get(module.getContext(), kind, ranks));
  return shard;
}

LogicalResult Partitioner::shardWeights() {
  // Of all at once, as to ask for each reads the whole module.
  if (auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion())) {
    useCounts.emplace();
    for (const SymbolTable::SymbolUse &use : *uses)
      ++(*useCounts)[use.getSymbolRef().getRootReference()];
  }
  for (auto &[name, uses] : shards) {
    auto weight = symbols.lookup<WeightOp>(name);
    for (auto &[kind, linears] : uses) {
      WeightOp shard = makeShard(weight, kind);
      if (!shard)
        return failure();
      auto symbol = FlatSymbolRefAttr::get(shard.getSymNameAttr());
      for (LinearOp linear : linears) {
        if (linear.getWeightAttr().getAttr() == name)
          linear.setWeightAttr(symbol);
        else
          linear.setBiasAttr(symbol);
      }
    }
  }
  return success();
}

LogicalResult Partitioner::run() {
  SmallVector<func::FuncOp> phases;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(phaseAttributeName) && !function.isExternal())
      phases.push_back(function);
  for (auto weight : module.getOps<WeightOp>())
    if (weight.getShard())
      return weight.emitOpError("is a shard: the model is divided already");
  for (func::FuncOp phase : phases)
    if (!llvm::hasSingleElement(phase.getBody()))
      return phase.emitOpError("cannot be divided: it is not one block");
  for (func::FuncOp phase : phases)
    if (failed(checkSizes(phase)) || failed(markByRows(phase)))
      return failure();
  for (func::FuncOp phase : phases)
    if (failed(rewrite(phase)))
      return failure();
  return shardWeights();
}

namespace {
struct Partition : lm::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    if (ranks < 1 || ranks > maxTensorParallelRanks) {
      getOperation().emitError("ranks must be between 1 and ")
          << maxTensorParallelRanks;
      return signalPassFailure();
    }
    if (ranks == 1)
      return;
    if (failed(Partitioner(getOperation(), ranks).run()))
      signalPassFailure();
  }
};
} // namespace
