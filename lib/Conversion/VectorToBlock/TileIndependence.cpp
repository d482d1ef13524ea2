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
#include "llvm/Support/MathExtras.h"

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

/// Which places an access reaches while loops within a turn go on.
struct Track {
  int64_t constant = 0, lanes = 1;
  /// The factor of each loop's index, where it begins and ends, and its step.
  SmallVector<std::array<int64_t, 4>> loops;

  bool operator==(const Track &) const = default;
  /// Whether it reaches each of them once.
  bool isOnce() const;
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
  /// Takes `value` for the next step of what turns hand on: false if it is not
  /// what that is now, or was so before the loop that `op` is in.
  bool use(Value value, Operation *op);
  /// Makes `value`, which is to have `role`, what turns hand on now.
  void setLive(Value value, Role role);
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
  /// What each variable, and then each sum in memory, is now; of memory null
  /// while none of it is being computed with.
  SmallVector<Value> live;
  /// How all exponents were raised.
  std::optional<OperationName> power;
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

bool Track::isOnce() const {
  // From the smallest stride on, each loop goes beyond what those before reach.
  SmallVector<std::pair<int64_t, int64_t>> strides;
  for (auto [factor, lower, upper, step] : loops) {
    if (factor <= 0 || step < 1)
      return false;
    const int64_t turns =
        upper > lower ? llvm::divideCeil(upper - lower, step) : 0;
    int64_t stride = 0;
    if (llvm::MulOverflow(factor, step, stride))
      return false;
    strides.emplace_back(stride, turns);
  }
  llvm::sort(strides);
  int64_t extent = lanes;
  for (auto [stride, turns] : strides) {
    int64_t reach = 0;
    if (stride < extent ||
        llvm::MulOverflow(stride, std::max<int64_t>(turns - 1, 0), reach) ||
        llvm::AddOverflow(extent, reach, extent))
      return false;
  }
  return true;
}

bool IndependenceProof::use(Value value, Operation *op) {
  return live[roleOf(value).number] == value &&
         value.getParentBlock() == op->getBlock();
}

void IndependenceProof::setLive(Value value, Role role) {
  roles[value] = role;
  live[role.number] = value;
}

/// How many numbers an access has.
static int64_t lanesOf(Operation *access) {
  Value value = writtenValue(access);
  auto vector = dyn_cast<VectorType>(value ? value.getType()
                                           : access->getResult(0).getType());
  return vector ? vector.getNumElements() : 1;
}

/// Whether it may leave lanes out.
static bool isMasked(Operation *access) {
  return isa<vector::MaskedLoadOp, vector::MaskedStoreOp>(access);
}

std::optional<Track> IndependenceProof::trackOf(Operation *access) const {
  IndexForm form = indexFormOf(accessedIndex(access));
  Track track{form.constant, lanesOf(access), {}};
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
    if (written.contains(place) && llvm::any_of(operations, isMasked))
      return false;
    if (!written.contains(place) ||
        llvm::any_of(tile.memory, [&](memref::AllocaOp each) {
          return each.getMemref() == place;
        }))
      continue;
    if (llvm::none_of(operations, isOfStep)) {
      memory[place].number = sums.size();
      sums.emplace_back();
      live.emplace_back();
      continue;
    }
    int64_t width = 1;
    for (Operation *op : operations)
      width = std::max(width, lanesOf(op));
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
        // Steps do not reach into each other's.
        isFine &= factor >= width;
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
    if (!track || !track->isOnce() || (sum.track && *sum.track != *track))
      return false;
    sum.track = track;
    if (!value) {
      // One number of it after the other.
      if (live[sum.number])
        return false;
      setLive(op->getResult(0), {Kind::Sum, sum.number, sum.isScaled});
      return true;
    }
    const Role role = roleOf(value);
    if (role.kind != Kind::Sum || role.number != sum.number || !use(value, op))
      return false;
    live[sum.number] = {};
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
    // A step's own numbers are not handed on from one to the next.
    if (role.kind == Kind::Free) {
      if (isStepLoop)
        return false;
      continue;
    }
    if ((role.kind != Kind::Extremum && role.kind != Kind::Sum) ||
        !use(init, inner))
      return false;
    setLive(argument, role);
  }
  if (!visit(*inner.getBody(), isInStep || isStepLoop))
    return false;
  for (auto [argument, yielded, result] :
       llvm::zip_equal(inner.getRegionIterArgs(), inner.getYieldedValues(),
                       inner.getResults())) {
    const Role role = roleOf(yielded);
    if (roleOf(argument) != role)
      return false;
    if (role.kind == Kind::Free)
      continue;
    if (!use(yielded, inner.getBody()->getTerminator()))
      return false;
    setLive(result, role);
  }
  return true;
}

/// `added` becomes a part of `sum`.
bool IndependenceProof::add(Operation *op, Value sum, Role added,
                            bool isInStep) {
  const Role role = roleOf(sum);
  if (!isInStep || !use(sum, op) ||
      (added.kind != Kind::Free && added.kind != Kind::Weight))
    return false;
  Sum &known = sums[role.number];
  const std::optional<unsigned> extremum =
      added.kind == Kind::Weight ? std::optional(added.number) : std::nullopt;
  if ((known.isKnown && known.extremum != extremum) ||
      role.isScaled != extremum.has_value())
    return false;
  known = {true, extremum};
  setLive(op->getResult(0), role);
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
    Value before = step->lhs, other = step->rhs;
    if (roleOf(before).kind == Kind::Free)
      std::swap(before, other);
    const Role role = roleOf(before);
    if (role.kind != Kind::Extremum || roleOf(other).kind != Kind::Free ||
        !isInStep || !use(before, op))
      return false;
    setLive(result, role);
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
    if ((!has(0, Kind::Change) && !has(0, Kind::Difference)) ||
        (power && *power != op->getName()))
      return false;
    power = op->getName();
    roles[result] = {has(0, Kind::Change) ? Kind::Factor : Kind::Weight,
                     operands[0].number};
    return true;
  }
  if (isa<arith::MulFOp>(op)) {
    Value before = op->getOperand(0);
    if (has(1, Kind::Sum) || has(1, Kind::Weight)) {
      std::swap(operands[0], operands[1]);
      before = op->getOperand(1);
    }
    if (has(0, Kind::Weight) && has(1, Kind::Free)) {
      roles[result] = operands[0];
      return true;
    }
    Role sum = operands[0];
    if (sum.kind != Kind::Sum || !has(1, Kind::Factor) || sum.isScaled ||
        isInStep || !use(before, op))
      return false;
    Sum &known = sums[sum.number];
    if (known.isKnown && known.extremum != operands[1].number)
      return false;
    known = {true, operands[1].number};
    sum.isScaled = true;
    setLive(result, sum);
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
    live.push_back(argument);
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
    if (role.number != number || live[number] != yielded ||
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
