//===- LMToGemm.cpp - Dense layers to matmuls with epilogues --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/SetVector.h"

namespace sandwich {
#define GEN_PASS_DEF_LMTOGEMM
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// Rows of gate and up that lie together: a vector of each, so that one panel
/// of 32 columns holds both.
constexpr int64_t interleavedRows = 16;

/// A projection on its way to the rotary embedding and the cache.
struct RotatedProjection {
  lm::RotateOp rotate;
  /// Null where the model does not normalize heads.
  lm::RMSNormOp norm;
  lm::LinearOp linear;
};

class Converter {
public:
  explicit Converter(ModuleOp module) : module(module), symbols(module) {}

  /// With `fuses`, matmuls take on what is done to their results.
  void run(bool fuses);
  int64_t numMatmuls = 0;

private:
  void fuse(func::FuncOp function);
  void fuseAppendKV(lm::AppendKVOp append);
  void fuseSiluMul(lm::SiluMulOp silu);
  void fuseGelu(lm::GeluOp gelu);
  void fuseAdd(lm::AddOp add);
  void convert(func::FuncOp function);
  gemm::MatmulOp createMatmul(ImplicitLocOpBuilder &builder, Type result,
                              lm::LinearOp linear, FlatSymbolRefAttr weight,
                              FlatSymbolRefAttr bias, Epilogue epilogue);

  /// Whether the rows of `parts`, weights or vectors, can become one's.
  bool canFuse(ArrayRef<FlatSymbolRefAttr> parts, bool interleaved);
  /// One weight (or vector) of the rows of `parts`, which `canFuse`, made once
  /// however many phases use it.
  FlatSymbolRefAttr fuseWeights(ArrayRef<FlatSymbolRefAttr> parts,
                                StringRef name, bool interleaved);

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<ArrayAttr, FlatSymbolRefAttr> fused;
  /// What fused weights are made of.
  llvm::SmallSetVector<lm::WeightOp, 16> fusedParts;
};

} // namespace

/// The `Op` in `block` that computes `value`, or null: what runs more or less
/// often than its user cannot become one with it.
template <typename Op> static Op getProducer(Value value, Block *block) {
  auto op = value.getDefiningOp<Op>();
  return op && op->getBlock() == block ? op : Op();
}

/// The linear layer in `block` that computes `value`, or null. One that rounds
/// its result stays apart: an epilogue would not.
static lm::LinearOp getLinear(Value value, Block *block) {
  auto linear = getProducer<lm::LinearOp>(value, block);
  return linear && linear.getType().getElementType().isF32() ? linear
                                                             : lm::LinearOp();
}

/// Follows `value` back through rotation and norm to its projection, all in
/// `block`.
static FailureOr<RotatedProjection> matchRotated(Value value, Block *block) {
  RotatedProjection match;
  match.rotate = getProducer<lm::RotateOp>(value, block);
  if (!match.rotate)
    return failure();
  Value source = match.rotate.getInput();
  match.norm = getProducer<lm::RMSNormOp>(source, block);
  if (match.norm)
    source = match.norm.getInput();
  match.linear = getLinear(source, block);
  if (!match.linear)
    return failure();
  return match;
}

/// Whether the norms of query and key, null where there is none, are over heads
/// of `headDim` channels and differ in nothing but their weights.
static bool sameNorm(lm::RMSNormOp query, lm::RMSNormOp key, Value layer,
                     int64_t headDim, const SymbolTable &symbols) {
  if (!query || !key)
    return !query && !key;
  auto isOverHeads = [&](lm::RMSNormOp norm) {
    auto weight = symbols.lookup<lm::WeightOp>(norm.getWeight());
    return weight.getTensorType().getDimSize(0) == headDim;
  };
  return query.getEpsilon() == key.getEpsilon() && query.getLayer() == layer &&
         key.getLayer() == layer && isOverHeads(query) && isOverHeads(key);
}

/// Erases those of `operations` (some may be null, or the same) that nothing
/// uses, users before what they use.
static void eraseUnused(ArrayRef<Operation *> operations) {
  llvm::SmallSetVector<Operation *, 8> unique(operations.begin(),
                                              operations.end());
  for (Operation *op : unique)
    if (op && op->use_empty())
      op->erase();
}

bool Converter::canFuse(ArrayRef<FlatSymbolRefAttr> parts, bool interleaved) {
  auto first = symbols.lookup<lm::WeightOp>(parts.front().getValue());
  return first && llvm::all_of(parts, [&](FlatSymbolRefAttr part) {
           auto weight = symbols.lookup<lm::WeightOp>(part.getValue());
           if (!weight)
             return false;
           RankedTensorType type = weight.getTensorType();
           return weight.getLayers() == first.getLayers() &&
                  weight.getShardAttr() == first.getShardAttr() &&
                  (!interleaved || weight.getSources().size() == 1) &&
                  weight.getStorageAttr() == first.getStorageAttr() &&
                  type.getElementType() ==
                      first.getTensorType().getElementType() &&
                  type.getShape().drop_front() ==
                      first.getTensorType().getShape().drop_front();
         });
}

FlatSymbolRefAttr Converter::fuseWeights(ArrayRef<FlatSymbolRefAttr> parts,
                                         StringRef name, bool interleaved) {
  Builder builder(module.getContext());
  SmallVector<Attribute> key(parts.begin(), parts.end());
  FlatSymbolRefAttr &result = fused[builder.getArrayAttr(key)];
  if (result)
    return result;

  SmallVector<Attribute> sources;
  auto first = symbols.lookup<lm::WeightOp>(parts.front().getValue());
  SmallVector<int64_t> shape(first.getTensorType().getShape());
  shape[0] = 0;
  for (FlatSymbolRefAttr part : parts) {
    auto weight = symbols.lookup<lm::WeightOp>(part.getValue());
    fusedParts.insert(weight);
    llvm::append_range(sources, weight.getSources());
    shape[0] += weight.getTensorType().getDimSize(0);
  }

  // The fused weight is named beside its parts.
  StringRef prefix = parts.front().getValue().rsplit('.').first;
  if (parts.front().getValue().ends_with(".bias"))
    prefix = prefix.rsplit('.').first;
  OpBuilder atWeight(first);
  auto weight = lm::WeightOp::create(
      atWeight, first.getLoc(), (prefix + "." + name).str(),
      RankedTensorType::get(shape, first.getTensorType().getElementType()),
      builder.getArrayAttr(sources), first.getLayers());
  if (interleaved)
    weight.setInterleave(interleavedRows);
  weight.setStorageAttr(first.getStorageAttr());
  if (first.getShardAttr())
    weight.setShardAttr(first.getShardAttr());
  result = FlatSymbolRefAttr::get(symbols.insert(weight));
  return result;
}

gemm::MatmulOp Converter::createMatmul(ImplicitLocOpBuilder &builder,
                                       Type result, lm::LinearOp linear,
                                       FlatSymbolRefAttr weight,
                                       FlatSymbolRefAttr bias,
                                       Epilogue epilogue) {
  auto matmul =
      gemm::MatmulOp::create(builder, result, linear.getInput(), weight);
  matmul.setEpilogueAttr(
      gemm::EpilogueAttr::get(builder.getContext(), epilogue));
  if (bias)
    matmul.setBiasAttr(bias);
  if (linear.getLayer())
    matmul.getLayerMutable().assign(linear.getLayer());
  ++numMatmuls;
  return matmul;
}

/// What writes keys and values stays as it is where there are no query, key and
/// value projections of one input in the forms that the epilogue knows.
void Converter::fuseAppendKV(lm::AppendKVOp append) {
  Block *block = append->getBlock();
  FailureOr<RotatedProjection> key = matchRotated(append.getKey(), block);
  lm::LinearOp value = getLinear(append.getValue(), block);
  if (failed(key) || !value)
    return;
  const int64_t headDim =
      lm::getKVCacheType(append.getKvCache().getType()).getHeadDim();
  if (cast<ShapedType>(key->rotate.getTable().getType()).getDimSize(1) !=
      headDim)
    return;

  // The query is the other rotated projection of the same input.
  FailureOr<RotatedProjection> query = failure();
  for (Operation *user : key->rotate.getTable().getUsers()) {
    auto rotate = dyn_cast<lm::RotateOp>(user);
    if (!rotate || rotate == key->rotate)
      continue;
    query = matchRotated(rotate.getResult(), block);
    if (succeeded(query) && query->linear.getInput() == key->linear.getInput())
      break;
    query = failure();
  }
  if (failed(query) || value.getInput() != key->linear.getInput() ||
      !sameNorm(query->norm, key->norm, value.getLayer(), headDim, symbols) ||
      query->linear.getLayer() != key->linear.getLayer() ||
      value.getLayer() != key->linear.getLayer() ||
      append.getLayer() != value.getLayer() ||
      !query->linear.getBias() != !key->linear.getBias() ||
      !query->linear.getBias() != !value.getBias())
    return;
  DominanceInfo dominance(append->getParentOp());
  for (Operation *user : query->rotate->getUsers())
    if (!dominance.properlyDominates(append, user))
      return;

  const FlatSymbolRefAttr weights[] = {query->linear.getWeightAttr(),
                                       key->linear.getWeightAttr(),
                                       value.getWeightAttr()};
  const FlatSymbolRefAttr biases[] = {query->linear.getBiasAttr(),
                                      key->linear.getBiasAttr(),
                                      value.getBiasAttr()};
  const bool hasBias = static_cast<bool>(value.getBiasAttr());
  if (!canFuse(weights, /*interleaved=*/false) ||
      (hasBias && !canFuse(biases, /*interleaved=*/false)))
    return;
  FlatSymbolRefAttr weight =
      fuseWeights(weights, "qkv_proj", /*interleaved=*/false);
  FlatSymbolRefAttr bias;
  if (hasBias)
    bias = fuseWeights(biases, "qkv_proj.bias", /*interleaved=*/false);

  ImplicitLocOpBuilder builder(append.getLoc(), append);
  gemm::MatmulOp matmul =
      createMatmul(builder, query->rotate.getResult().getType(), value, weight,
                   bias, Epilogue::RotateAppendKV);
  matmul.getRotaryTableMutable().assign(key->rotate.getTable());
  matmul.getKvCacheMutable().assign(append.getKvCache());
  matmul.getSlotsMutable().assign(append.getSlots());
  if (query->norm) {
    matmul.setQueryNormAttr(query->norm.getWeightAttr());
    matmul.setKeyNormAttr(key->norm.getWeightAttr());
    matmul.setNormEpsilonAttr(query->norm.getEpsilonAttr());
  }
  query->rotate->replaceAllUsesWith(ValueRange(matmul.getResult()));
  append.erase();
  eraseUnused({query->rotate, key->rotate, query->norm, key->norm,
               query->linear, key->linear, value});
}

/// A gate and what it opens to stay apart where they are not both linear layers
/// of one input.
void Converter::fuseSiluMul(lm::SiluMulOp silu) {
  lm::LinearOp gate = getLinear(silu.getGate(), silu->getBlock());
  lm::LinearOp up = getLinear(silu.getUp(), silu->getBlock());
  if (!gate || !up || gate.getInput() != up.getInput() ||
      gate.getLayer() != up.getLayer() || gate.getBias() || up.getBias())
    return;
  const FlatSymbolRefAttr weights[] = {gate.getWeightAttr(),
                                       up.getWeightAttr()};
  if (!canFuse(weights, /*interleaved=*/true))
    return;
  FlatSymbolRefAttr weight =
      fuseWeights(weights, "gate_up_proj", /*interleaved=*/true);
  ImplicitLocOpBuilder builder(silu.getLoc(), silu);
  gemm::MatmulOp matmul = createMatmul(builder, silu.getResult().getType(),
                                       gate, weight, {}, Epilogue::SiluMul);
  silu->replaceAllUsesWith(ValueRange(matmul.getResult()));
  silu.erase();
  eraseUnused({gate, up});
}

void Converter::fuseGelu(lm::GeluOp gelu) {
  lm::LinearOp linear = getLinear(gelu.getInput(), gelu->getBlock());
  if (!linear || !linear->hasOneUse())
    return;
  ImplicitLocOpBuilder builder(gelu.getLoc(), gelu);
  gemm::MatmulOp matmul =
      createMatmul(builder, gelu.getResult().getType(), linear,
                   linear.getWeightAttr(), linear.getBiasAttr(),
                   gelu.getKind() == lm::GeluKind::Exact ? Epilogue::GeluExact
                                                         : Epilogue::GeluTanh);
  gelu->replaceAllUsesWith(ValueRange(matmul.getResult()));
  gelu.erase();
  linear.erase();
}

void Converter::fuseAdd(lm::AddOp add) {
  for (auto [value, residual] : {std::pair(add.getLhs(), add.getRhs()),
                                 std::pair(add.getRhs(), add.getLhs())}) {
    lm::LinearOp linear = getLinear(value, add->getBlock());
    if (!linear || !linear->hasOneUse())
      continue;
    auto dealt = residual.getDefiningOp<lm::DealRowsOp>();
    ImplicitLocOpBuilder builder(add.getLoc(), add);
    gemm::MatmulOp matmul = createMatmul(
        builder, add.getResult().getType(), linear, linear.getWeightAttr(),
        linear.getBiasAttr(), Epilogue::AddResidual);
    matmul.getResidualMutable().assign(dealt ? dealt.getInput() : residual);
    if (dealt)
      matmul.setResidualRanksAttr(dealt.getRanksAttr());
    add->replaceAllUsesWith(ValueRange(matmul.getResult()));
    add.erase();
    linear.erase();
    eraseUnused({dealt});
    return;
  }
}

void Converter::fuse(func::FuncOp function) {
  // Collected first, as conversion erases operations around the one it visits.
  SmallVector<lm::AppendKVOp> appends;
  SmallVector<lm::SiluMulOp> silus;
  SmallVector<lm::GeluOp> gelus;
  SmallVector<lm::AddOp> adds;
  function.walk([&](Operation *op) {
    if (auto append = dyn_cast<lm::AppendKVOp>(op))
      appends.push_back(append);
    else if (auto silu = dyn_cast<lm::SiluMulOp>(op))
      silus.push_back(silu);
    else if (auto gelu = dyn_cast<lm::GeluOp>(op))
      gelus.push_back(gelu);
    else if (auto add = dyn_cast<lm::AddOp>(op))
      adds.push_back(add);
  });
  for (lm::AppendKVOp append : appends)
    fuseAppendKV(append);
  for (lm::SiluMulOp silu : silus)
    fuseSiluMul(silu);
  for (lm::GeluOp gelu : gelus)
    fuseGelu(gelu);
  for (lm::AddOp add : adds)
    fuseAdd(add);
}

void Converter::convert(func::FuncOp function) {
  function.walk([&](lm::LinearOp linear) {
    ImplicitLocOpBuilder builder(linear.getLoc(), linear);
    gemm::MatmulOp matmul =
        createMatmul(builder, linear.getType(), linear, linear.getWeightAttr(),
                     linear.getBiasAttr(), Epilogue::None);
    linear.replaceAllUsesWith(matmul.getResult());
    linear.erase();
  });
}

void Converter::run(bool fuses) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (fuses)
      fuse(function);
    convert(function);
  }
  // Fused parts are no longer weights of their own.
  for (lm::WeightOp part : fusedParts)
    if (SymbolTable::symbolKnownUseEmpty(part, module))
      part.erase();
}

namespace {
struct LMToGemm : sandwich::impl::LMToGemmBase<LMToGemm> {
  using Base::Base;

  void runOnOperation() override {
    Converter converter(getOperation());
    converter.run(fuse);
    numMatmuls += converter.numMatmuls;
  }
};
} // namespace
