//===- TileIndependence.cpp - Results that no tile size changes -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileIndependence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::ReductionKind;

namespace {

/// What a value has to do with what turns hand on.
struct Role {
  enum class Kind {
    /// Nothing.
    Free,
    /// The largest or smallest number so far.
    Extremum,
    /// A sum so far.
    Sum,
    /// The largest number before, less the one so far; and its power of e.
    Change,
    Factor,
    /// A number less the largest one so far; and its power of e, multiplied
    /// with
    /// anything.
    Difference,
    Weight,
  };
  Kind kind = Kind::Free;
  /// Of an extremum or a sum, which one; of others, that of the extremum.
  unsigned number = 0;
  /// Of a sum: whether it was multiplied with the factor of this turn.
  bool isScaled = false;

  bool operator==(const Role &) const = default;
};

/// Where loops within a turn take an access.
struct Track {
  int64_t constant = 0;
  SmallVector<std::array<int64_t, 4>> loops;

  bool operator==(const Track &) const = default;
};

class IndependenceProof {
public:
  IndependenceProof(const TileLoop &tile, ArrayRef<Value> steps)
      : tile(tile), loop(tile.loop), steps(steps) {}

  bool run();

private:
  using Kind = Role::Kind;

  bool findSums();
  bool visit(Block &block, bool isInStep);
  bool visit(Operation *op, bool isInStep);
  bool visitAccess(Operation *op, bool isInStep);
  bool visitFor(scf::ForOp inner, bool isInStep);
  bool visitElementwise(Operation *op, bool isInStep);
  bool add(Operation *op, Value sum, Role added, bool isInStep);
  std::optional<Track> trackOf(Operation *access) const;
  bool isStep(Value value) const { return llvm::is_contained(steps, value); }

  Role roleOf(Value value) const {
    auto found = roles.find(value);
    return found == roles.end() ? Role() : found->second;
  }
  /// The number of the extremum that `value` is behind the turn.
  std::optional<unsigned> extremumAfter(Value value) const {
    for (auto [number, yielded] : llvm::enumerate(after))
      if (value == yielded && isExtremum[number])
        return number;
    return std::nullopt;
  }

  const TileLoop &tile;
  mutable scf::ForOp loop;
  ArrayRef<Value> steps;
  llvm::DenseMap<Value, Role> roles;
  SmallVector<Value> after;
  SmallVector<bool> isExtremum;
  /// Of each sum, of variables and then of memory: by which extremum what is
  /// added to it is scaled, none, or that nothing was added yet.
  struct Sum {
    bool isKnown = false;
    std::optional<unsigned> extremum;
  };
  SmallVector<Sum> sums;
  /// Memory that has a sum for each of its places.
  struct MemorySum {
    unsigned number = 0;
    bool isScaled = false;
    std::optional<Track> track;
  };
  llvm::MapVector<Value, MemorySum> memory;
  /// Memory with a number for each step of a turn: what these are.
  llvm::DenseMap<Value, Role> stepMemory;
};

} // namespace

/// The extremum, if there is one, that `value` is the last step of.
static bool endsExtremum(Value value) {
  for (unsigned depth = 0; depth < 8; ++depth) {
    Operation *op = value.getDefiningOp();
    if (auto inner = dyn_cast_if_present<scf::ForOp>(op)) {
      value = inner.getYieldedValues()[cast<OpResult>(value).getResultNumber()];
      continue;
    }
    std::optional<Combination> step = findCombination(op);
    return step && (step->kind == ReductionKind::Maximum ||
                    step->kind == ReductionKind::Minimum);
  }
  return false;
}

std::optional<Track> IndependenceProof::trackOf(Operation *access) const {
  IndexForm form = indexFormOf(accessedIndex(access));
  Track track{form.constant, {}};
  for (Operation *parent = access->getParentOp(); parent != loop;
       parent = parent->getParentOp()) {
    auto inner = dyn_cast<scf::ForOp>(parent);
    if (!inner)
      return std::nullopt;
    if (isStep(inner.getInductionVar()))
      continue;
    std::optional<int64_t> lower = constantOf(inner.getLowerBound()),
                           upper = constantOf(inner.getUpperBound()),
                           step = constantOf(inner.getStep());
    if (!lower || !upper || !step)
      return std::nullopt;
    track.loops.push_back(
        {form.factorOf(inner.getInductionVar()), *lower, *upper, *step});
    form = form.without(inner.getInductionVar());
  }
  return form.terms.empty() ? std::optional(std::move(track)) : std::nullopt;
}

/// Finds the memory that turns hand on: what they read and write at places that
/// are none of steps.
bool IndependenceProof::findSums() {
  bool isFine = true;
  llvm::MapVector<Value, SmallVector<Operation *>> accesses;
  llvm::DenseSet<Value> written;
  loop.getBody()->walk([&](Operation *op) {
    Value place = accessedMemory(op);
    if (!place)
      return;
    accesses[memoryOf(place)].push_back(op);
    if (writtenValue(op))
      written.insert(memoryOf(place));
  });
  const auto isOfStep = [&](Operation *op) {
    const IndexForm form = indexFormOf(accessedIndex(op));
    return form.factorOf(loop.getInductionVar()) != 0 ||
           llvm::any_of(form.terms,
                        [&](const auto &term) { return isStep(term.first); });
  };
  for (auto &[place, operations] : accesses) {
    if (!written.contains(place) ||
        llvm::any_of(tile.memory, [&](memref::AllocaOp each) {
          return each.getMemref() == place;
        }))
      continue;
    if (llvm::none_of(operations, isOfStep)) {
      memory[place].number = sums.size();
      sums.emplace_back();
      continue;
    }
    // Of each step its own, which no other one reads.
    for (Operation *op : operations) {
      IndexForm form = indexFormOf(accessedIndex(op)),
                first = indexFormOf(accessedIndex(operations.front()));
      for (IndexForm *each : {&form, &first}) {
        int64_t factor = 0;
        for (Value step : steps) {
          factor += each->factorOf(step);
          *each = each->without(step);
        }
        isFine &= factor != 0;
        for (const auto &[value, times] : each->terms)
          isFine &=
              value == loop.getInductionVar() ||
              !loop->isAncestor(Value(value).getParentBlock()->getParentOp());
      }
      isFine &= first.distanceTo(form) == 0;
    }
  }
  return isFine;
}

bool IndependenceProof::visitAccess(Operation *op, bool isInStep) {
  Value place = memoryOf(accessedMemory(op)), value = writtenValue(op);
  if (auto found = memory.find(place); found != memory.end()) {
    MemorySum &sum = found->second;
    std::optional<Track> track = trackOf(op);
    if (!track || (sum.track && *sum.track != *track))
      return false;
    sum.track = track;
    if (!value) {
      roles[op->getResult(0)] = {Kind::Sum, sum.number, sum.isScaled};
      return true;
    }
    const Role role = roleOf(value);
    if (role.kind != Kind::Sum || role.number != sum.number)
      return false;
    // All of it is scaled at once, before anything is added.
    if (role.isScaled != sum.isScaled && isInStep)
      return false;
    sum.isScaled = role.isScaled;
    return true;
  }
  const bool isOfSteps = llvm::any_of(tile.memory, [&](memref::AllocaOp each) {
    return each.getMemref() == place;
  });
  if (!isOfSteps)
    return !value || roleOf(value).kind == Kind::Free;
  if (!value) {
    // What a turn reads it has written before.
    auto found = stepMemory.find(place);
    if (found == stepMemory.end())
      return false;
    roles[op->getResult(0)] = found->second;
    return true;
  }
  const Role role = roleOf(value);
  auto [entry, isNew] = stepMemory.try_emplace(place, role);
  return isInStep && (role.kind == Kind::Free || role.kind == Kind::Weight) &&
         entry->second == role && isa<scf::ForOp>(op->getParentOp()) &&
         isStep(cast<scf::ForOp>(op->getParentOp()).getInductionVar());
}

bool IndependenceProof::visitFor(scf::ForOp inner, bool isInStep) {
  const bool isStepLoop = isStep(inner.getInductionVar());
  // Each step with each other one is no sum of steps.
  if (isStepLoop && isInStep)
    return false;
  for (auto [init, argument] :
       llvm::zip_equal(inner.getInits(), inner.getRegionIterArgs())) {
    const Role role = roleOf(init);
    if (role.kind != Kind::Free && role.kind != Kind::Extremum &&
        role.kind != Kind::Sum)
      return false;
    // A step's own numbers are not handed on from one to the next.
    if (role.kind == Kind::Free && isStepLoop)
      return false;
    roles[argument] = role;
  }
  if (!visit(*inner.getBody(), isInStep || isStepLoop))
    return false;
  for (auto [argument, yielded, result] :
       llvm::zip_equal(inner.getRegionIterArgs(), inner.getYieldedValues(),
                       inner.getResults())) {
    if (roleOf(argument) != roleOf(yielded))
      return false;
    roles[result] = roleOf(yielded);
  }
  return true;
}

/// `added` becomes a part of `sum`.
bool IndependenceProof::add(Operation *op, Value sum, Role added,
                            bool isInStep) {
  const Role role = roleOf(sum);
  if (!isInStep || (added.kind != Kind::Free && added.kind != Kind::Weight))
    return false;
  Sum &known = sums[role.number];
  const std::optional<unsigned> extremum =
      added.kind == Kind::Weight ? std::optional(added.number) : std::nullopt;
  if ((known.isKnown && known.extremum != extremum) ||
      role.isScaled != extremum.has_value())
    return false;
  known = {true, extremum};
  roles[op->getResult(0)] = role;
  return true;
}

bool IndependenceProof::visitElementwise(Operation *op, bool isInStep) {
  Value result = op->getResult(0);
  SmallVector<Role> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value each) { return roleOf(each); });
  if (llvm::all_of(operands,
                   [](const Role &each) { return each.kind == Kind::Free; }))
    return true;
  if (onlyChooses(op))
    return true;
  const auto has = [&](unsigned number, Kind kind) {
    return operands[number].kind == kind;
  };
  std::optional<Combination> step = findCombination(op);
  if (step && (step->kind == ReductionKind::Maximum ||
               step->kind == ReductionKind::Minimum)) {
    Role lhs = roleOf(step->lhs), rhs = roleOf(step->rhs);
    if (lhs.kind == Kind::Free)
      std::swap(lhs, rhs);
    if (lhs.kind != Kind::Extremum || rhs.kind != Kind::Free || !isInStep)
      return false;
    roles[result] = lhs;
    return true;
  }
  if (isa<arith::SubFOp>(op)) {
    std::optional<unsigned> number = extremumAfter(op->getOperand(1));
    if (!number)
      return false;
    if (op->getOperand(0) == loop.getRegionIterArg(*number))
      roles[result] = {Kind::Change, *number};
    else if (has(0, Kind::Free))
      roles[result] = {Kind::Difference, *number};
    else
      return false;
    return true;
  }
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    if (!has(0, Kind::Change) && !has(0, Kind::Difference))
      return false;
    roles[result] = {has(0, Kind::Change) ? Kind::Factor : Kind::Weight,
                     operands[0].number};
    return true;
  }
  if (isa<arith::MulFOp>(op)) {
    if (has(1, Kind::Sum) || has(1, Kind::Weight))
      std::swap(operands[0], operands[1]);
    if (has(0, Kind::Weight) && has(1, Kind::Free)) {
      roles[result] = operands[0];
      return true;
    }
    Role sum = operands[0];
    if (sum.kind != Kind::Sum || !has(1, Kind::Factor) || sum.isScaled ||
        isInStep)
      return false;
    Sum &known = sums[sum.number];
    if (known.isKnown && known.extremum != operands[1].number)
      return false;
    known = {true, operands[1].number};
    sum.isScaled = true;
    roles[result] = sum;
    return true;
  }
  if (isa<arith::AddFOp, arith::AddIOp>(op)) {
    const unsigned sum = has(0, Kind::Sum) ? 0 : 1;
    return has(sum, Kind::Sum) &&
           add(op, op->getOperand(sum), operands[1 - sum], isInStep);
  }
  if (isa<math::FmaOp>(op) && has(2, Kind::Sum)) {
    const Role product = has(0, Kind::Weight) ? operands[0] : operands[1];
    const Role other = has(0, Kind::Weight) ? operands[1] : operands[0];
    return other.kind == Kind::Free &&
           add(op, op->getOperand(2), product, isInStep);
  }
  return false;
}

bool IndependenceProof::visit(Operation *op, bool isInStep) {
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return visitFor(inner, isInStep);
  if (accessedMemory(op))
    return visitAccess(op, isInStep);
  if (isa<vector::BroadcastOp, vector::ReductionOp>(op)) {
    Role role = roleOf(op->getOperand(0));
    const bool isLinear =
        isa<vector::BroadcastOp>(op) ||
        kindOf(cast<vector::ReductionOp>(op)) == ReductionKind::Add;
    if (role.kind == Kind::Free)
      return true;
    if (!isLinear ||
        (role.kind != Kind::Weight &&
         !(role.kind == Kind::Factor && isa<vector::BroadcastOp>(op))))
      return false;
    roles[op->getResult(0)] = role;
    return true;
  }
  return isa<arith::ConstantOp>(op) ||
         (isElementwise(op) && visitElementwise(op, isInStep));
}

bool IndependenceProof::visit(Block &block, bool isInStep) {
  for (Operation &op : block.without_terminator())
    if (!visit(&op, isInStep))
      return false;
  return true;
}

bool IndependenceProof::run() {
  for (auto [number, argument, yielded] :
       llvm::enumerate(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    after.push_back(yielded);
    isExtremum.push_back(endsExtremum(yielded));
    sums.emplace_back();
    roles[argument] = {isExtremum.back() ? Kind::Extremum : Kind::Sum,
                       static_cast<unsigned>(number)};
  }
  if (!findSums() || !visit(*loop.getBody(), /*isInStep=*/false))
    return false;
  const auto isWhole = [&](const Role &role) {
    return role.kind == Kind::Sum &&
           role.isScaled == sums[role.number].extremum.has_value();
  };
  for (auto [number, yielded] : llvm::enumerate(loop.getYieldedValues())) {
    const Role role = roleOf(yielded);
    if (role.number != number ||
        !(isExtremum[number] ? role.kind == Kind::Extremum : isWhole(role)))
      return false;
  }
  return llvm::all_of(memory, [&](const auto &each) {
    const MemorySum &sum = each.second;
    return sum.isScaled == sums[sum.number].extremum.has_value();
  });
}

bool widening::isIndependentOfSize(const TileLoop &tile,
                                   ArrayRef<Value> steps) {
  return IndependenceProof(tile, steps).run();
}
