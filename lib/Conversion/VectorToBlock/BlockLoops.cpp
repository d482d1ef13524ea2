//===- BlockLoops.cpp - Loops whose vectors may have any width ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::ReductionKind;

/// More vectors than these a turn are no loop that is unrolled, but a block.
static constexpr int64_t mostCopies = 16;

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

bool widening::isElementwise(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
         !isa<vector::BroadcastOp>(op);
}

bool widening::isUniform(Value vector) {
  if (!isa<VectorType>(vector.getType()))
    return false;
  // All that it is computed of, each once.
  llvm::SmallDenseSet<Value> visited;
  SmallVector<Value> left = {vector};
  while (!left.empty()) {
    Value value = left.pop_back_val();
    if (!isa<VectorType>(value.getType()) || !visited.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
      if (isa<VectorType>(broadcast.getSourceType()))
        return false;
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (!isa<SplatElementsAttr>(constant.getValue()))
        return false;
      continue;
    }
    if (!isElementwise(op))
      return false;
    left.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

bool widening::onlyChooses(Operation *op) {
  if (!isa<arith::CmpFOp, arith::CmpIOp>(op))
    return false;
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return isa<arith::SelectOp>(user) && findCombination(user) &&
           user->getOperand(0) == op->getResult(0);
  });
}

std::optional<MaskedStep> widening::findMaskedStep(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select || !isa<VectorType>(select.getCondition().getType()) ||
      findCombination(select))
    return std::nullopt;
  std::optional<Combination> step =
      findCombination(select.getTrueValue().getDefiningOp());
  if (!step || step->lhs == step->rhs)
    return std::nullopt;
  Value sum = select.getFalseValue();
  if (step->lhs != sum && step->rhs != sum)
    return std::nullopt;
  return MaskedStep{step->kind, sum, step->lhs == sum ? step->rhs : step->lhs,
                    select.getCondition()};
}

//===----------------------------------------------------------------------===//
// One loop
//===----------------------------------------------------------------------===//

namespace {

/// What the lanes of a vector in a loop are.
struct Lanes {
  enum class Kind {
    /// All the same, whichever place they are for.
    Uniform,
    /// Each that of one place.
    Neighbors,
    /// Parts of a sum, which goes over all places.
    PartialSum,
  };
  Kind kind = Kind::Uniform;
  /// The vector of a turn that neighbors belong to.
  int64_t copy = 0;
  /// The variable that sums up.
  unsigned variable = 0;
};

/// Finds out whether a loop is a BlockLoop.
class LoopAnalysis {
public:
  explicit LoopAnalysis(scf::ForOp loop) { made.loop = loop; }

  std::optional<BlockLoop> run();

private:
  bool findPlaces();
  bool visit(Block &block);
  bool visit(Operation *op);
  bool visitAccess(Operation *op);
  bool visitElementwise(Operation *op);
  bool visitSum(Operation *op, const Combination &combination);
  bool visitFor(scf::ForOp inner);
  bool visitIf(scf::IfOp branch);
  bool isIndependentOfOtherPlaces() const;
  bool findRepetitions();
  bool isOrderOfCopiesFree() const;
  bool matchStores();
  bool matchSums();
  bool areSumsJoined(unsigned leader);
  bool areCopies(Value first, Value other, int64_t copy,
                 unsigned depth = 0) const;
  /// Which vector of a turn is at a place: the first one has the lowest.
  /// Nothing, if it is none, or lies across several.
  std::optional<int64_t> copyOf(Operation *access) const;

  /// Of a vector; nothing for one that is no such.
  std::optional<Lanes> lanesOf(Value value) const;
  void set(Value value, Lanes lanes) {
    known[value] = lanes;
    if (lanes.kind == Lanes::Kind::PartialSum)
      made.partialSums.insert(value);
  }
  bool isInLoop(Value value) const {
    return made.loop->isAncestor(value.getParentBlock()->getParentOp());
  }
  Value variable() { return made.loop.getInductionVar(); }

  BlockLoop made;
  llvm::DenseMap<Value, Lanes> known;
  /// Numbers that are others in the next turn.
  llvm::DenseSet<Value> moving;
  SmallVector<std::optional<ReductionKind>> kinds;
  SmallVector<Operation *> accesses;
  /// Of values of copies, which may be shared again and again.
  static constexpr size_t mostComparisons = size_t(1) << 16;
  mutable size_t comparisons = 0;
  /// What is added to sums, in order: by which operation, and of which copy.
  struct Contribution {
    Operation *op;
    Value sum;
    unsigned variable;
    int64_t copy;
  };
  SmallVector<Contribution> contributions;
};

} // namespace

std::optional<Lanes> LoopAnalysis::lanesOf(Value value) const {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type || type.getRank() != 1 || type.getNumElements() != made.lanes)
    return std::nullopt;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (isUniform(value))
    return Lanes{};
  return std::nullopt;
}

/// Finds which neighbors a turn has, of the accesses that move along.
bool LoopAnalysis::findPlaces() {
  std::optional<int64_t> step = constantOf(made.loop.getStep());
  if (!step || *step < 1 || made.loop.getUnsignedCmp())
    return false;
  WalkResult result = made.loop.getBody()->walk([&](Operation *op) {
    if (!isWholeVector(op))
      return WalkResult::advance();
    accesses.push_back(op);
    const int64_t factor = indexFormOf(accessedIndex(op)).factorOf(variable());
    auto type =
        cast<VectorType>(isa<vector::LoadOp>(op) ? op->getResult(0).getType()
                                                 : op->getOperand(0).getType());
    if (made.lanes == 0) {
      made.scale = factor;
      made.lanes = type.getNumElements();
    }
    return type.getRank() == 1 && factor == made.scale &&
                   type.getNumElements() == made.lanes
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  int64_t places = 0;
  if (result.wasInterrupted() || made.lanes < 2 || made.scale < 1 ||
      llvm::MulOverflow(made.scale, *step, places) || places % made.lanes != 0)
    return false;
  made.copies = places / made.lanes;
  return made.copies <= mostCopies;
}

std::optional<int64_t> LoopAnalysis::copyOf(Operation *access) const {
  const IndexForm form = indexFormOf(accessedIndex(access));
  const int64_t places = made.lanes * made.copies;
  int64_t copy = 0;
  for (Operation *other : accesses) {
    if (memoryOf(accessedMemory(other)) != memoryOf(accessedMemory(access)))
      continue;
    std::optional<int64_t> distance =
        indexFormOf(accessedIndex(other)).distanceTo(form);
    if (!distance || *distance >= places || *distance <= -places)
      continue;
    if (*distance % made.lanes != 0)
      return std::nullopt;
    copy = std::max(copy, *distance / made.lanes);
  }
  return copy < made.copies ? std::optional(copy) : std::nullopt;
}

bool LoopAnalysis::visitAccess(Operation *op) {
  const IndexForm form = indexFormOf(accessedIndex(op));
  // Places may not move in another way.
  for (const auto &[value, factor] : form.terms)
    if (value != variable() && moving.contains(value))
      return false;
  std::optional<int64_t> copy = copyOf(op);
  if (!copy)
    return false;
  const Lanes lanes{Lanes::Kind::Neighbors, *copy};
  if (auto load = dyn_cast<vector::LoadOp>(op)) {
    set(load.getResult(), lanes);
    return true;
  }
  std::optional<Lanes> stored = lanesOf(op->getOperand(0));
  return stored &&
         (stored->kind == Lanes::Kind::Uniform ||
          (stored->kind == Lanes::Kind::Neighbors && stored->copy == *copy));
}

/// A step of a sum: what is added must be lanes of places.
bool LoopAnalysis::visitSum(Operation *op, const Combination &combination) {
  std::optional<Lanes> lhs = lanesOf(combination.lhs),
                       rhs = lanesOf(combination.rhs);
  if (!lhs || !rhs)
    return false;
  const bool isLeft = lhs->kind == Lanes::Kind::PartialSum;
  const Lanes &sum = isLeft ? *lhs : *rhs, &added = isLeft ? *rhs : *lhs;
  const bool isIdempotent = combination.kind == ReductionKind::Maximum ||
                            combination.kind == ReductionKind::Minimum;
  if (added.kind == Lanes::Kind::PartialSum ||
      (added.kind == Lanes::Kind::Uniform && !isIdempotent))
    return false;
  std::optional<ReductionKind> &kind = kinds[sum.variable];
  if (kind && *kind != combination.kind)
    return false;
  kind = combination.kind;
  contributions.push_back({op, isLeft ? combination.lhs : combination.rhs,
                           sum.variable, added.copy});
  set(op->getResult(0), sum);
  return true;
}

bool LoopAnalysis::visitElementwise(Operation *op) {
  const auto isPartialSum = [&](Value each) {
    return made.partialSums.contains(each);
  };
  std::optional<Combination> combination = findCombination(op);
  if (combination &&
      (isPartialSum(combination->lhs) || isPartialSum(combination->rhs)))
    return visitSum(op, *combination);
  SmallVector<Lanes> operands;
  bool hasSum = false;
  for (Value each : op->getOperands()) {
    if (!isa<VectorType>(each.getType())) {
      if (moving.contains(each))
        return false;
      continue;
    }
    std::optional<Lanes> lanes = lanesOf(each);
    if (!lanes)
      return false;
    hasSum |= lanes->kind == Lanes::Kind::PartialSum;
    operands.push_back(*lanes);
  }
  if (!hasSum) {
    Lanes result;
    for (const Lanes &each : operands) {
      if (each.kind != Lanes::Kind::Neighbors)
        continue;
      if (result.kind == Lanes::Kind::Neighbors && result.copy != each.copy)
        return false;
      result = each;
    }
    set(op->getResult(0), result);
    return true;
  }
  if (onlyChooses(op))
    return true;
  Lanes sum;
  int64_t copy = 0;
  Value before;
  if (isa<math::FmaOp>(op) && operands[2].kind == Lanes::Kind::PartialSum) {
    // Neighbors of one copy, and what is the same for all of them.
    bool hasNeighbors = false;
    for (const Lanes &each : ArrayRef(operands).take_front(2)) {
      if (each.kind == Lanes::Kind::PartialSum ||
          (each.kind == Lanes::Kind::Neighbors && hasNeighbors &&
           each.copy != copy))
        return false;
      if (each.kind == Lanes::Kind::Neighbors) {
        hasNeighbors = true;
        copy = each.copy;
      }
    }
    if (!hasNeighbors)
      return false;
    sum = operands[2];
    before = op->getOperand(2);
  } else if (isa<arith::SubFOp, arith::SubIOp>(op) &&
             operands[0].kind == Lanes::Kind::PartialSum &&
             operands[1].kind == Lanes::Kind::Neighbors) {
    sum = operands[0];
    copy = operands[1].copy;
    before = op->getOperand(0);
  } else {
    return false;
  }
  std::optional<ReductionKind> &kind = kinds[sum.variable];
  if (kind && *kind != ReductionKind::Add)
    return false;
  kind = ReductionKind::Add;
  contributions.push_back({op, before, sum.variable, copy});
  set(op->getResult(0), sum);
  return true;
}

/// A loop within a turn: what it carries is of the same places.
bool LoopAnalysis::visitFor(scf::ForOp inner) {
  if (made.copies > 1)
    return false;
  for (Value bound :
       {inner.getLowerBound(), inner.getUpperBound(), inner.getStep()})
    if (moving.contains(bound))
      return false;
  SmallVector<std::optional<Lanes>> carried;
  for (Value init : inner.getInits()) {
    if (!isa<VectorType>(init.getType())) {
      if (moving.contains(init))
        return false;
      carried.push_back(std::nullopt);
      continue;
    }
    std::optional<Lanes> lanes = lanesOf(init);
    if (!lanes)
      return false;
    // Whatever begins the same may end otherwise.
    if (lanes->kind == Lanes::Kind::Uniform)
      lanes->kind = Lanes::Kind::Neighbors;
    carried.push_back(lanes);
  }
  for (auto [argument, lanes] :
       llvm::zip_equal(inner.getRegionIterArgs(), carried))
    if (lanes)
      set(argument, *lanes);
  if (!visit(*inner.getBody()))
    return false;
  for (auto [yielded, result, lanes] :
       llvm::zip_equal(inner.getYieldedValues(), inner.getResults(), carried)) {
    if (!lanes) {
      if (moving.contains(yielded))
        return false;
      continue;
    }
    std::optional<Lanes> after = lanesOf(yielded);
    if (!after)
      return false;
    const bool isSum = lanes->kind == Lanes::Kind::PartialSum;
    if (isSum != (after->kind == Lanes::Kind::PartialSum) ||
        (isSum && after->variable != lanes->variable))
      return false;
    set(result, *lanes);
  }
  return true;
}

bool LoopAnalysis::visitIf(scf::IfOp branch) {
  if (made.copies > 1 || moving.contains(branch.getCondition()) ||
      !visit(*branch.thenBlock()) ||
      (branch.elseBlock() && !visit(*branch.elseBlock())))
    return false;
  for (OpResult result : branch.getResults()) {
    const unsigned number = result.getResultNumber();
    Value first = branch.thenYield().getOperand(number),
          second = branch.elseYield().getOperand(number);
    if (!isa<VectorType>(result.getType())) {
      if (moving.contains(first) || moving.contains(second))
        return false;
      continue;
    }
    std::optional<Lanes> one = lanesOf(first), other = lanesOf(second);
    if (!one || !other)
      return false;
    const bool isSum = one->kind == Lanes::Kind::PartialSum;
    if (isSum != (other->kind == Lanes::Kind::PartialSum) ||
        (isSum && one->variable != other->variable))
      return false;
    if (!isSum)
      one->kind = Lanes::Kind::Neighbors;
    set(result, *one);
  }
  return true;
}

bool LoopAnalysis::visit(Operation *op) {
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return visitFor(inner);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  if (isWholeVector(op))
    return visitAccess(op);
  const auto isMoving = [&](Value each) { return moving.contains(each); };
  if (isa<vector::BroadcastOp, arith::ConstantOp>(op))
    return !llvm::any_of(op->getOperands(), isMoving) &&
           (!isa<VectorType>(op->getResult(0).getType()) ||
            isUniform(op->getResult(0)));
  if (op->getNumResults() == 1 && isa<VectorType>(op->getResult(0).getType()))
    return isElementwise(op) && visitElementwise(op);
  // Numbers: those of the turn are places, and nothing else.
  for (Value each : op->getOperands())
    if (isa<VectorType>(each.getType()))
      return false;
  if (isa<memref::LoadOp>(op))
    return !llvm::any_of(op->getOperands(), isMoving);
  if (!isElementwise(op))
    return false;
  if (llvm::any_of(op->getOperands(), isMoving))
    moving.insert(op->getResult(0));
  return true;
}

bool LoopAnalysis::visit(Block &block) {
  for (Operation &op : block.without_terminator())
    if (!visit(&op))
      return false;
  return true;
}

/// Whether no turn reads what another one writes.
bool LoopAnalysis::isIndependentOfOtherPlaces() const {
  scf::ForOp loop = made.loop;
  for (Operation *store : accesses) {
    if (!isa<vector::StoreOp>(store))
      continue;
    Value memory = memoryOf(accessedMemory(store));
    WalkResult result = loop->walk([&](memref::LoadOp load) {
      return memoryOf(load.getMemRef()) == memory ? WalkResult::interrupt()
                                                  : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return false;
    const IndexForm form = indexFormOf(accessedIndex(store));
    for (Operation *other : accesses) {
      if (memoryOf(accessedMemory(other)) != memory)
        continue;
      std::optional<int64_t> distance =
          form.distanceTo(indexFormOf(accessedIndex(other)));
      if (!distance || *distance % made.lanes != 0 ||
          *distance >= made.lanes * made.copies ||
          *distance <= -made.lanes * made.copies)
        return false;
    }
    // In a loop within a turn it may write places of other turns.
    for (const auto &[value, factor] : form.terms)
      if (value != loop.getInductionVar() && isInLoop(value))
        return false;
  }
  return true;
}

/// Whether the copies of a turn may be computed together: each place that is
/// written is so once, behind all that read it.
bool LoopAnalysis::isOrderOfCopiesFree() const {
  for (Operation *store : accesses) {
    if (!isa<vector::StoreOp>(store))
      continue;
    for (Operation *other : accesses) {
      if (other == store ||
          memoryOf(accessedMemory(other)) != memoryOf(accessedMemory(store)))
        continue;
      const bool isSamePlace =
          indexFormOf(accessedIndex(store))
              .distanceTo(indexFormOf(accessedIndex(other))) == 0;
      if (isSamePlace &&
          (isa<vector::StoreOp>(other) || !other->isBeforeInBlock(store)))
        return false;
    }
  }
  return true;
}

/// Whether `other` is for copy number `copy` what `first` is for the first one.
bool LoopAnalysis::areCopies(Value first, Value other, int64_t copy,
                             unsigned depth) const {
  // Longer chains than those of polynomials are not compared.
  constexpr unsigned deepest = 200;
  if (depth > deepest || comparisons++ > mostComparisons)
    return false;
  if (first == other) {
    std::optional<Lanes> lanes = lanesOf(first);
    return !isInLoop(first) || !lanes || lanes->kind == Lanes::Kind::Uniform;
  }
  Operation *one = first.getDefiningOp(), *two = other.getDefiningOp();
  if (!one || !two || one->getName() != two->getName() ||
      one->getAttrDictionary() != two->getAttrDictionary() ||
      one->getPropertiesAsAttribute() != two->getPropertiesAsAttribute() ||
      first.getType() != other.getType() ||
      one->getNumOperands() != two->getNumOperands())
    return false;
  if (isa<vector::LoadOp>(one)) {
    std::optional<int64_t> distance =
        indexFormOf(accessedIndex(one))
            .distanceTo(indexFormOf(accessedIndex(two)));
    return memoryOf(accessedMemory(one)) == memoryOf(accessedMemory(two)) &&
           distance == copy * made.lanes;
  }
  if (!isElementwise(one) && !isa<vector::BroadcastOp, arith::ConstantOp>(one))
    return false;
  return llvm::all_of(
      llvm::zip_equal(one->getOperands(), two->getOperands()), [&](auto pair) {
        return areCopies(std::get<0>(pair), std::get<1>(pair), copy, depth + 1);
      });
}

/// Whether all copies write the same, each at its places.
bool LoopAnalysis::matchStores() {
  std::vector<SmallVector<Operation *>> stores(made.copies);
  for (Operation *each : accesses) {
    if (!isa<vector::StoreOp>(each))
      continue;
    std::optional<int64_t> copy = copyOf(each);
    if (!copy)
      return false;
    stores[*copy].push_back(each);
  }
  for (int64_t copy = 1; copy < made.copies; ++copy) {
    if (stores[copy].size() != stores[0].size())
      return false;
    for (Operation *store : stores[copy]) {
      const bool hasFirst = llvm::any_of(stores[0], [&](Operation *first) {
        return memoryOf(accessedMemory(first)) ==
                   memoryOf(accessedMemory(store)) &&
               indexFormOf(accessedIndex(first))
                       .distanceTo(indexFormOf(accessedIndex(store))) ==
                   copy * made.lanes &&
               areCopies(first->getOperand(0), store->getOperand(0), copy);
      });
      if (!hasFirst)
        return false;
      made.repetitions.insert(store);
    }
  }
  return true;
}

/// Whether all copies add the same to sums, in one order, and which variables
/// have those of the first one.
bool LoopAnalysis::matchSums() {
  std::vector<SmallVector<Contribution>> added(made.copies);
  for (const Contribution &each : contributions)
    added[each.copy].push_back(each);
  for (int64_t copy = 1; copy < made.copies; ++copy) {
    if (added[copy].size() != added[0].size())
      return false;
    for (auto [first, other] : llvm::zip_equal(added[0], added[copy])) {
      if (first.op->getName() != other.op->getName() ||
          kinds[first.variable] != kinds[other.variable])
        return false;
      for (auto [one, two] :
           llvm::zip_equal(first.op->getOperands(), other.op->getOperands())) {
        // What chooses is a part of the combination.
        const bool isStep = one == first.sum && two == other.sum;
        Operation *chooser = one.getDefiningOp();
        if (!isStep && !(chooser && onlyChooses(chooser)) &&
            !areCopies(one, two, copy))
          return false;
      }
      unsigned &leader = made.leaders[other.variable];
      if (leader != other.variable && leader != first.variable)
        return false;
      leader = first.variable;
      made.repetitions.insert(other.op);
    }
  }
  return llvm::all_of(made.leaders, [&](unsigned leader) {
    return made.leaders[leader] == leader;
  });
}

/// Whether the sums of copies become one behind the loop, and are used as
/// nothing else.
bool LoopAnalysis::areSumsJoined(unsigned leader) {
  llvm::DenseSet<Value> parts;
  for (auto [number, each] : llvm::enumerate(made.leaders))
    if (each == leader)
      parts.insert(made.loop.getResult(number));
  // Two of them become one, or one is a number.
  const auto join = [&](Value part) {
    Operation *user = part.hasOneUse() ? *part.user_begin() : nullptr;
    if (auto reduction = dyn_cast_if_present<vector::ReductionOp>(user);
        reduction && kindOf(reduction) == kinds[leader]) {
      parts.erase(part);
      parts.insert(reduction.getResult());
      return true;
    }
    std::optional<Combination> sum =
        user ? findCombination(user) : std::nullopt;
    if (!sum || sum->kind != *kinds[leader] || sum->lhs == sum->rhs ||
        !parts.contains(sum->lhs) || !parts.contains(sum->rhs) ||
        !sum->lhs.hasOneUse() || !sum->rhs.hasOneUse())
      return false;
    parts.erase(sum->lhs);
    parts.erase(sum->rhs);
    parts.insert(user->getResult(0));
    return true;
  };
  while (parts.size() > 1)
    if (!llvm::any_of(SmallVector<Value>(parts.begin(), parts.end()), join))
      return false;
  return true;
}

/// Whether all copies compute the same, and which variables sum it up.
bool LoopAnalysis::findRepetitions() {
  for (unsigned i = 0; i < kinds.size(); ++i)
    made.leaders.push_back(i);
  return made.copies == 1 ||
         (isOrderOfCopiesFree() && matchStores() && matchSums() &&
          llvm::all_of(made.leaders,
                       [&](unsigned leader) { return areSumsJoined(leader); }));
}

std::optional<BlockLoop> LoopAnalysis::run() {
  if (!findPlaces())
    return std::nullopt;
  scf::ForOp loop = made.loop;
  moving.insert(loop.getInductionVar());
  for (BlockArgument each : loop.getRegionIterArgs()) {
    auto type = dyn_cast<VectorType>(each.getType());
    if (!type || type.getRank() != 1 || type.getNumElements() != made.lanes)
      return std::nullopt;
    set(each,
        {Lanes::Kind::PartialSum, 0, static_cast<unsigned>(kinds.size())});
    kinds.push_back(std::nullopt);
  }
  if (!visit(*loop.getBody()) || !isIndependentOfOtherPlaces())
    return std::nullopt;
  for (auto [number, yielded] : llvm::enumerate(loop.getYieldedValues())) {
    std::optional<Lanes> lanes = lanesOf(yielded);
    if (!lanes || lanes->kind != Lanes::Kind::PartialSum ||
        lanes->variable != number || !kinds[number])
      return std::nullopt;
    made.reductions.push_back(*kinds[number]);
  }
  // Nothing but the next step of a sum sees how far it is.
  for (Value sum : made.partialSums)
    for (Operation *user : sum.getUsers())
      if (loop->isProperAncestor(user) && user->getNumResults() == 1 &&
          !onlyChooses(user) && !made.partialSums.contains(user->getResult(0)))
        return std::nullopt;
  if (!findRepetitions())
    return std::nullopt;
  return std::move(made);
}

//===----------------------------------------------------------------------===//
// All loops
//===----------------------------------------------------------------------===//

BlockLoops::BlockLoops(func::FuncOp function) {
  // The innermost ones first; a loop around one is none of these.
  function.walk([&](scf::ForOp loop) {
    const bool hasOne = loop.getBody()
                            ->walk([&](scf::ForOp inner) {
                              return loops.contains(inner)
                                         ? WalkResult::interrupt()
                                         : WalkResult::advance();
                            })
                            .wasInterrupted();
    if (hasOne)
      return;
    if (std::optional<BlockLoop> found = LoopAnalysis(loop).run())
      loops.insert({loop, std::move(*found)});
  });
  while (std::optional<scf::ForOp> wrong = findSums())
    loops.erase(*wrong);
}

const BlockLoop *BlockLoops::find(scf::ForOp loop) const {
  auto found = loops.find(loop);
  return found == loops.end() ? nullptr : &found->second;
}

std::optional<ReductionKind> BlockLoops::sumOf(Value value) const {
  auto found = sums.find(value);
  return found == sums.end() ? std::nullopt : std::optional(found->second.kind);
}

bool BlockLoops::mayBegin(ReductionKind kind, Value value) const {
  if (isIdentity(kind, value) || sumOf(value) == kind)
    return true;
  return isUniform(value) &&
         (kind == ReductionKind::Maximum || kind == ReductionKind::Minimum);
}

std::optional<scf::ForOp> BlockLoops::propagate(Value value) {
  const Sum sum = sums.find(value)->second;
  const auto mark = [&](Value other) {
    auto [entry, isNew] = sums.insert({other, sum});
    return isNew || entry->second.kind == sum.kind;
  };
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    const unsigned number = use.getOperandNumber();
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      const unsigned carried = number - loop.getNumControlOperands();
      if (const BlockLoop *inner = find(loop)) {
        if (inner->reductions[carried] != sum.kind)
          return sum.origin;
        continue;
      }
      if (!mark(loop.getRegionIterArg(carried)) ||
          !mark(loop.getResult(carried)))
        return sum.origin;
      continue;
    }
    if (isa<scf::YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      if (!isa<scf::ForOp, scf::IfOp>(parent) ||
          !mark(parent->getResult(number)))
        return sum.origin;
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        if (!mark(loop.getRegionIterArg(number)))
          return sum.origin;
      continue;
    }
    if (auto reduction = dyn_cast<vector::ReductionOp>(user)) {
      if (kindOf(reduction) != std::optional(sum.kind) || reduction.getAcc())
        return sum.origin;
      continue;
    }
    if (onlyChooses(user))
      continue;
    bool isStep = false;
    if (std::optional<MaskedStep> masked = findMaskedStep(user))
      isStep = masked->kind == sum.kind && number != 0;
    if (std::optional<Combination> combination = findCombination(user);
        combination && combination->kind == sum.kind)
      isStep = combination->lhs != combination->rhs;
    // Sums are linear.
    if (sum.kind == ReductionKind::Add) {
      if (isa<arith::SubFOp, arith::SubIOp, arith::NegFOp>(user))
        isStep = user->getNumOperands() == 1 ||
                 user->getOperand(0) != user->getOperand(1);
      if (isa<arith::MulFOp, arith::MulIOp>(user))
        isStep = isUniform(user->getOperand(1 - number));
      if (isa<arith::ExtFOp>(user))
        isStep = true;
      if (isa<arith::DivFOp>(user))
        isStep = number == 0 && isUniform(user->getOperand(1));
      if (isa<math::FmaOp>(user))
        isStep = llvm::count(user->getOperands(), value) == 1 &&
                 (number == 2 || isUniform(user->getOperand(1 - number)));
    }
    if (!isStep || !mark(user->getResult(0)))
      return sum.origin;
  }
  return std::nullopt;
}

std::optional<scf::ForOp> BlockLoops::findSums() {
  sums.clear();
  for (auto &[op, loop] : loops)
    for (auto [result, kind] :
         llvm::zip_equal(loop.loop.getResults(), loop.reductions))
      sums.insert({result, {kind, loop.loop}});
  for (size_t i = 0; i < sums.size(); ++i)
    if (std::optional<scf::ForOp> wrong = propagate((sums.begin() + i)->first))
      return wrong;
  // What sums begin with, and what else they are put together of.
  for (auto &[op, loop] : loops)
    for (auto [init, kind] :
         llvm::zip_equal(loop.loop.getInits(), loop.reductions))
      if (!mayBegin(kind, init))
        return loop.loop;
  for (auto &[value, sum] : sums) {
    const auto areSums = [&](ValueRange values) {
      return llvm::all_of(values, [&, kind = sum.kind](Value each) {
        return mayBegin(kind, each);
      });
    };
    Operation *op = value.getDefiningOp();
    // Which lanes of a sum a mask would take is not known.
    if (std::optional<MaskedStep> masked =
            op ? findMaskedStep(op) : std::nullopt;
        masked && (sumOf(masked->added) || !sumOf(masked->sum)))
      return sum.origin;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
      const unsigned number = argument.getArgNumber() - 1;
      if (!areSums({loop.getInits()[number], loop.getYieldedValues()[number]}))
        return sum.origin;
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const unsigned number = cast<OpResult>(value).getResultNumber();
      if (!areSums({branch.thenYield().getOperand(number),
                    branch.elseYield().getOperand(number)}))
        return sum.origin;
    }
  }
  return std::nullopt;
}
