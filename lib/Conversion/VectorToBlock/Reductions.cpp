//===- Reductions.cpp - Lanes that become one number ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::ReductionKind;

//===----------------------------------------------------------------------===//
// Combinations
//===----------------------------------------------------------------------===//

/// Whether a comparison chooses the larger (1) or the smaller (-1) of its
/// operands where it holds; 0 for others.
static int orderOf(Operation *compare) {
  if (auto floats = dyn_cast_if_present<arith::CmpFOp>(compare)) {
    using P = arith::CmpFPredicate;
    switch (floats.getPredicate()) {
    case P::OGT:
    case P::OGE:
    case P::UGT:
    case P::UGE:
      return 1;
    case P::OLT:
    case P::OLE:
    case P::ULT:
    case P::ULE:
      return -1;
    default:
      return 0;
    }
  }
  auto integers = dyn_cast_if_present<arith::CmpIOp>(compare);
  if (!integers)
    return 0;
  using P = arith::CmpIPredicate;
  const P predicate = integers.getPredicate();
  return predicate == P::sgt || predicate == P::sge   ? 1
         : predicate == P::slt || predicate == P::sle ? -1
                                                      : 0;
}

std::optional<Combination> widening::findCombination(Operation *op) {
  const auto both = [&](ReductionKind kind) {
    return Combination{kind, op->getOperand(0), op->getOperand(1)};
  };
  if (isa_and_nonnull<arith::AddFOp, arith::AddIOp>(op))
    return both(ReductionKind::Add);
  if (isa_and_nonnull<arith::MulFOp, arith::MulIOp>(op))
    return both(ReductionKind::Multiply);
  if (isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp, arith::MaxSIOp>(op))
    return both(ReductionKind::Maximum);
  if (isa_and_nonnull<arith::MinNumFOp, arith::MinimumFOp, arith::MinSIOp>(op))
    return both(ReductionKind::Minimum);
  auto select = dyn_cast_if_present<arith::SelectOp>(op);
  if (!select)
    return std::nullopt;
  Operation *compare = select.getCondition().getDefiningOp();
  int order = orderOf(compare);
  if (order == 0)
    return std::nullopt;
  Value first = compare->getOperand(0), second = compare->getOperand(1);
  if (select.getTrueValue() == second && select.getFalseValue() == first)
    order = -order;
  else if (select.getTrueValue() != first || select.getFalseValue() != second)
    return std::nullopt;
  return Combination{order > 0 ? ReductionKind::Maximum
                               : ReductionKind::Minimum,
                     first, second};
}

Value widening::combine(OpBuilder &builder, Location location,
                        ReductionKind kind, Value lhs, Value rhs) {
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(lhs));
  const auto choose = [&](arith::CmpFPredicate floats,
                          arith::CmpIPredicate integers) -> Value {
    Value isLeft =
        isFloat ? arith::CmpFOp::create(builder, location, floats, lhs, rhs)
                      .getResult()
                : arith::CmpIOp::create(builder, location, integers, lhs, rhs)
                      .getResult();
    return arith::SelectOp::create(builder, location, isLeft, lhs, rhs);
  };
  switch (kind) {
  case ReductionKind::Add:
    return isFloat
               ? arith::AddFOp::create(builder, location, lhs, rhs).getResult()
               : arith::AddIOp::create(builder, location, lhs, rhs).getResult();
  case ReductionKind::Multiply:
    return isFloat
               ? arith::MulFOp::create(builder, location, lhs, rhs).getResult()
               : arith::MulIOp::create(builder, location, lhs, rhs).getResult();
  case ReductionKind::Maximum:
    return choose(arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
  case ReductionKind::Minimum:
    return choose(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
  }
  llvm_unreachable("all kinds are handled");
}

TypedAttr widening::identityOf(ReductionKind kind, Type number) {
  if (auto floats = dyn_cast<FloatType>(number)) {
    const llvm::fltSemantics &semantics = floats.getFloatSemantics();
    switch (kind) {
    case ReductionKind::Add:
      return FloatAttr::get(number, 0.0);
    case ReductionKind::Multiply:
      return FloatAttr::get(number, 1.0);
    case ReductionKind::Maximum:
      return FloatAttr::get(number, APFloat::getInf(semantics, true));
    case ReductionKind::Minimum:
      return FloatAttr::get(number, APFloat::getInf(semantics, false));
    }
  }
  const unsigned width = number.isIndex() ? 64 : number.getIntOrFloatBitWidth();
  switch (kind) {
  case ReductionKind::Add:
    return IntegerAttr::get(number, APInt(width, 0));
  case ReductionKind::Multiply:
    return IntegerAttr::get(number, APInt(width, 1));
  case ReductionKind::Maximum:
    return IntegerAttr::get(number, APInt::getSignedMinValue(width));
  case ReductionKind::Minimum:
    return IntegerAttr::get(number, APInt::getSignedMaxValue(width));
  }
  llvm_unreachable("all kinds are handled");
}

bool widening::isIdentity(ReductionKind kind, Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(constant))
    constant = splat.getSplatValue<Attribute>();
  // A sum that begins with -0 is no other one.
  if (auto number = dyn_cast<FloatAttr>(constant);
      number && kind == ReductionKind::Add)
    return number.getValue().isZero();
  return constant == identityOf(kind, getElementTypeOrSelf(value));
}

std::optional<ReductionKind> widening::kindOf(vector::ReductionOp reduction) {
  switch (reduction.getKind()) {
  case vector::CombiningKind::ADD:
    return ReductionKind::Add;
  case vector::CombiningKind::MUL:
    return ReductionKind::Multiply;
  case vector::CombiningKind::MAXNUMF:
  case vector::CombiningKind::MAXSI:
    return ReductionKind::Maximum;
  case vector::CombiningKind::MINNUMF:
  case vector::CombiningKind::MINSI:
    return ReductionKind::Minimum;
  default:
    return std::nullopt;
  }
}

static vector::CombiningKind combiningKind(ReductionKind kind, bool isFloat) {
  switch (kind) {
  case ReductionKind::Add:
    return vector::CombiningKind::ADD;
  case ReductionKind::Multiply:
    return vector::CombiningKind::MUL;
  case ReductionKind::Maximum:
    return isFloat ? vector::CombiningKind::MAXNUMF
                   : vector::CombiningKind::MAXSI;
  case ReductionKind::Minimum:
    return isFloat ? vector::CombiningKind::MINNUMF
                   : vector::CombiningKind::MINSI;
  }
  llvm_unreachable("all kinds are handled");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {

/// How often each lane of which vectors, and which numbers (lane -1), are in
/// one lane of a value.
using Parts = std::map<std::pair<void *, int64_t>, int64_t>;

/// What a value is made of by combinations of one kind.
class Decomposition {
public:
  explicit Decomposition(ReductionKind kind) : kind(kind) {}

  /// Of each lane; nothing where there is too much.
  std::optional<std::vector<Parts>> partsOf(Value value);
  /// In the order in which they turned up.
  ArrayRef<Value> getLeaves() const { return leaves; }

private:
  /// A lane holds no more than all of a vector and a few numbers.
  static constexpr size_t mostParts = 512;
  /// And none of them often.
  static constexpr int64_t mostTimes = int64_t(1) << 20;
  /// Sums of many numbers are no reduction of vectors.
  static constexpr size_t mostSteps = 1024;

  std::vector<Parts> leafParts(Value value);
  std::optional<std::vector<Parts>> compute(Value value);

  ReductionKind kind;
  llvm::DenseMap<Value, std::vector<Parts>> known;
  SmallVector<Value> leaves;
};

} // namespace

static int64_t lanesOf(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? vector.getNumElements() : 1;
}

/// Whether `value` is a part of a vector.
static bool isPart(Value value) {
  return isa_and_nonnull<vector::ShuffleOp, vector::ExtractOp,
                         vector::ExtractStridedSliceOp>(value.getDefiningOp());
}

std::vector<Parts> Decomposition::leafParts(Value value) {
  if (!llvm::is_contained(leaves, value))
    leaves.push_back(value);
  std::vector<Parts> parts(lanesOf(value));
  const bool isVector = isa<VectorType>(value.getType());
  for (auto [lane, each] : llvm::enumerate(parts))
    each[{value.getAsOpaquePointer(),
          isVector ? static_cast<int64_t>(lane) : -1}] = 1;
  return parts;
}

std::optional<std::vector<Parts>> Decomposition::partsOf(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (known.size() > mostSteps)
    return std::nullopt;
  std::optional<std::vector<Parts>> parts = compute(value);
  if (parts)
    known[value] = *parts;
  return parts;
}

std::optional<std::vector<Parts>> Decomposition::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (isIdentity(kind, value))
    return std::vector<Parts>(lanesOf(value));
  if (auto extract = dyn_cast_if_present<vector::ExtractOp>(op)) {
    ArrayRef<int64_t> position = extract.getStaticPosition();
    if (position.size() != 1 || ShapedType::isDynamic(position[0]) ||
        isa<VectorType>(value.getType()))
      return leafParts(value);
    auto source = partsOf(extract.getSource());
    if (!source)
      return std::nullopt;
    return std::vector<Parts>{(*source)[position[0]]};
  }
  if (auto shuffle = dyn_cast_if_present<vector::ShuffleOp>(op)) {
    auto first = partsOf(shuffle.getV1()), second = partsOf(shuffle.getV2());
    if (!first || !second)
      return std::nullopt;
    first->insert(first->end(), second->begin(), second->end());
    std::vector<Parts> result;
    for (int64_t lane : shuffle.getMask())
      result.push_back(lane < 0 ? Parts() : (*first)[lane]);
    return result;
  }
  std::optional<Combination> combination = findCombination(op);
  // Of whole vectors only what combines parts of them is a step of a reduction.
  if (!combination || combination->kind != kind ||
      (isa<VectorType>(value.getType()) && !isPart(combination->lhs) &&
       !isPart(combination->rhs)))
    return leafParts(value);
  auto lhs = partsOf(combination->lhs), rhs = partsOf(combination->rhs);
  if (!lhs || !rhs)
    return std::nullopt;
  for (auto [left, right] : llvm::zip_equal(*lhs, *rhs)) {
    for (const auto &[part, count] : right)
      if ((left[part] += count) > mostTimes)
        return std::nullopt;
    if (left.size() > mostParts)
      return std::nullopt;
  }
  return lhs;
}

/// Where all lanes of vectors became `value`, the reductions of those;
/// null for others.
static Value reduceAgain(OpBuilder &builder, Operation *op) {
  Value value = op->getResult(0);
  auto lane = dyn_cast<vector::ExtractOp>(op);
  std::optional<Combination> combination =
      findCombination(lane ? lane.getSource().getDefiningOp() : op);
  if (!combination)
    return {};
  Decomposition decomposition(combination->kind);
  auto parts = decomposition.partsOf(value);
  if (!parts)
    return {};
  const Parts &all = parts->front();
  size_t expected = 0;
  bool hasVector = false;
  for (Value leaf : decomposition.getLeaves()) {
    const bool isVector = isa<VectorType>(leaf.getType());
    hasVector |= isVector;
    for (int64_t lane = 0; lane < lanesOf(leaf); ++lane, ++expected) {
      auto found = all.find({leaf.getAsOpaquePointer(), isVector ? lane : -1});
      if (found == all.end() || found->second != 1)
        return {};
    }
  }
  if (!hasVector || expected != all.size())
    return {};
  builder.setInsertionPoint(op);
  Value result;
  for (Value leaf : decomposition.getLeaves()) {
    Value number = leaf;
    if (isa<VectorType>(leaf.getType()))
      number = vector::ReductionOp::create(
          builder, op->getLoc(),
          combiningKind(combination->kind, isa<FloatType>(value.getType())),
          leaf);
    result = result ? combine(builder, op->getLoc(), combination->kind, result,
                              number)
                    : number;
  }
  return result;
}

void widening::recognizeReductions(func::FuncOp function) {
  SmallVector<Operation *> operations;
  function.walk([&](Operation *op) { operations.push_back(op); });
  OpBuilder builder(function);
  for (Operation *op : llvm::reverse(operations)) {
    // What only led to a reduction behind it is gone first.
    if (isOpTriviallyDead(op)) {
      op->erase();
      continue;
    }
    if (op->getNumResults() != 1 || isa<VectorType>(op->getResult(0).getType()))
      continue;
    if (Value reduced = reduceAgain(builder, op)) {
      op->getResult(0).replaceAllUsesWith(reduced);
      op->erase();
    }
  }
}
