//===- Preparation.cpp - Raised functions made plain ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Preparation.h"

#include "Accesses.h"
#include "IndexForm.h"
#include "Reductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;

/// Whether values of `type` are such as this pass knows.
static bool isPlain(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return !vector.isScalable();
  auto memory = dyn_cast<BaseMemRefType>(type);
  if (!memory)
    return true;
  auto ranked = dyn_cast<MemRefType>(type);
  Type element = memory.getElementType();
  return ranked && ranked.getRank() == 1 && ranked.getLayout().isIdentity() &&
         !ranked.getMemorySpace() && element.isIntOrFloat() &&
         element.getIntOrFloatBitWidth() % 8 == 0;
}

bool widening::isPlain(func::FuncOp function) {
  const auto refuse = [](Operation *op, const Twine &what) {
    op->emitWarning("keeps its function from blocks: ") << what;
    return WalkResult::interrupt();
  };
  return !function
              ->walk([&](Operation *op) {
                bool hasMemory = false;
                const auto see = [&](Type type) {
                  hasMemory |= isa<BaseMemRefType>(type);
                  return ::isPlain(type);
                };
                bool isKnown = llvm::all_of(op->getOperandTypes(), see) &&
                               llvm::all_of(op->getResultTypes(), see);
                for (Region &region : op->getRegions())
                  for (Block &block : region)
                    isKnown &= llvm::all_of(block.getArgumentTypes(), see);
                if (!isKnown)
                  return refuse(op, "memory or vectors of another form");
                if (hasMemory && op != function &&
                    !isa<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
                         vector::MaskedStoreOp, memref::LoadOp, memref::StoreOp,
                         memref::CastOp, memref::ViewOp, memref::DimOp,
                         memref::AllocaOp, memref::GetGlobalOp>(op))
                  return refuse(op, "memory in an operation " +
                                        op->getName().getStringRef());
                return WalkResult::advance();
              })
              .wasInterrupted();
}

void widening::eraseDead(func::FuncOp function) {
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> operations;
    function.walk([&](Operation *op) { operations.push_back(op); });
    for (Operation *op : llvm::reverse(operations))
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      }
  }
}

//===----------------------------------------------------------------------===//
// Memory of the function's own
//===----------------------------------------------------------------------===//

namespace {

/// Numbers in memory: of an allocation, from byte `first` on.
struct Bytes {
  Operation *allocation = nullptr;
  int64_t first = 0, size = 0;
};

} // namespace

/// The allocation that `memory` is of, and the byte at which it begins there;
/// nothing where that is not known.
static std::optional<std::pair<Operation *, int64_t>> originOf(Value memory) {
  int64_t byte = 0;
  for (;;) {
    Operation *op = memory.getDefiningOp();
    if (auto cast = dyn_cast_if_present<memref::CastOp>(op)) {
      memory = cast.getSource();
    } else if (auto view = dyn_cast_if_present<memref::ViewOp>(op)) {
      std::optional<int64_t> shift = constantOf(view.getByteShift());
      if (!shift)
        return std::nullopt;
      byte += *shift;
      memory = view.getSource();
    } else if (isa_and_nonnull<memref::AllocaOp>(op)) {
      return std::pair(op, byte);
    } else {
      return std::nullopt;
    }
  }
}

static std::optional<Bytes> bytesOf(Value memory, ValueRange indices,
                                    Type type) {
  auto origin = originOf(memory);
  std::optional<int64_t> index =
      indices.size() == 1 ? constantOf(indices.front()) : std::nullopt;
  if (!origin || !index)
    return std::nullopt;
  const int64_t width = getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  auto vector = dyn_cast<VectorType>(type);
  return Bytes{origin->first, origin->second + *index * width,
               width * (vector ? vector.getNumElements() : 1)};
}

/// The allocation that `op` writes to; of others null.
static Operation *writtenAllocation(Operation *op) {
  Value memory;
  if (auto store = dyn_cast<vector::StoreOp>(op))
    memory = store.getBase();
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    memory = store.getMemRef();
  else if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    memory = store.getBase();
  while (memory && isa_and_nonnull<memref::CastOp, memref::ViewOp>(
                       memory.getDefiningOp()))
    memory = memory.getDefiningOp()->getOperand(0);
  return memory ? memory.getDefiningOp() : nullptr;
}

namespace {

/// A vector that memory holds.
struct WrittenVector {
  Bytes bytes;
  Value value;
};

} // namespace

/// Forgets what `op` writes over, and learns what it writes itself.
static void update(SmallVectorImpl<WrittenVector> &known, Operation *op,
                   bool isCertain) {
  Operation *allocation = writtenAllocation(op);
  if (!allocation)
    return;
  std::optional<Bytes> bytes;
  if (auto store = dyn_cast<vector::StoreOp>(op); store && isCertain)
    bytes = bytesOf(store.getBase(), store.getIndices(),
                    store.getValueToStore().getType());
  llvm::erase_if(known, [&](const WrittenVector &each) {
    return each.bytes.allocation == allocation &&
           (!bytes || (each.bytes.first < bytes->first + bytes->size &&
                       bytes->first < each.bytes.first + each.bytes.size));
  });
  if (bytes)
    known.push_back({*bytes, op->getOperand(0)});
}

/// What `op` reads, if it is known; null if it is not.
static Value findWritten(ArrayRef<WrittenVector> known, Operation *op) {
  Value memory;
  ValueRange indices;
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    memory = load.getMemRef();
    indices = load.getIndices();
  } else if (auto load = dyn_cast<vector::LoadOp>(op)) {
    memory = load.getBase();
    indices = load.getIndices();
  } else {
    return {};
  }
  Type type = op->getResult(0).getType();
  std::optional<Bytes> bytes = bytesOf(memory, indices, type);
  if (!bytes)
    return {};
  const int64_t width = getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  for (const WrittenVector &each : known) {
    const int64_t byte = bytes->first - each.bytes.first;
    if (each.bytes.allocation != bytes->allocation || byte < 0 ||
        byte % width != 0 ||
        getElementTypeOrSelf(each.value) != getElementTypeOrSelf(type) ||
        bytes->first + bytes->size > each.bytes.first + each.bytes.size)
      continue;
    if (type == each.value.getType())
      return each.value;
    if (isa<VectorType>(type))
      continue;
    OpBuilder builder(op);
    return vector::ExtractOp::create(builder, op->getLoc(), each.value,
                                     byte / width);
  }
  return {};
}

/// One of `loads` that reads the same number as `op`; null if there is none.
static Operation *findSame(ArrayRef<Operation *> loads, Operation *op) {
  if (!isa<memref::LoadOp>(op))
    return nullptr;
  auto found = llvm::find_if(loads, [&](Operation *each) {
    return llvm::equal(each->getOperands(), op->getOperands());
  });
  return found == loads.end() ? nullptr : *found;
}

static void forwardStores(Block &block, SmallVector<WrittenVector> known,
                          SmallVector<Operation *> loads) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    const bool writes =
        op.walk([](Operation *inner) {
            return isa<memref::StoreOp, vector::StoreOp, vector::MaskedStoreOp>(
                       inner)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          }).wasInterrupted();
    if (writes)
      loads.clear();
    // What a loop or a branch writes is not known behind it, nor, of a loop, in
    // its next turn.
    if (op.getNumRegions() != 0) {
      op.walk([&](Operation *inner) { update(known, inner, false); });
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          forwardStores(inner, known, loads);
      continue;
    }
    if (Operation *same = findSame(loads, &op)) {
      op.getResult(0).replaceAllUsesWith(same->getResult(0));
      op.erase();
      continue;
    }
    update(known, &op, true);
    if (Value value = findWritten(known, &op)) {
      op.getResult(0).replaceAllUsesWith(value);
      op.erase();
    } else if (isa<memref::LoadOp>(op)) {
      loads.push_back(&op);
    }
  }
}

void widening::flattenBranches(func::FuncOp function) {
  constexpr size_t mostOperations = 8;
  SmallVector<scf::IfOp> branches;
  function.walk([&](scf::IfOp branch) { branches.push_back(branch); });
  IRRewriter rewriter(function.getContext());
  for (scf::IfOp branch : branches) {
    const auto isPlain = [&](Block *side) {
      return side &&
             llvm::range_size(side->without_terminator()) <= mostOperations &&
             llvm::all_of(side->without_terminator(), [](Operation &op) {
               return op.getNumRegions() == 0 && isPure(&op);
             });
    };
    const bool hasNumbers =
        branch.getNumResults() > 0 &&
        llvm::none_of(branch.getResultTypes(), llvm::IsaPred<VectorType>);
    if (!hasNumbers || !isPlain(branch.thenBlock()) ||
        !isPlain(branch.elseBlock()))
      continue;
    SmallVector<Value> first(branch.thenYield().getOperands()),
        second(branch.elseYield().getOperands()), results;
    for (Block *side : {branch.thenBlock(), branch.elseBlock()})
      for (Operation &op :
           llvm::make_early_inc_range(side->without_terminator()))
        op.moveBefore(branch);
    rewriter.setInsertionPoint(branch);
    for (auto [one, other] : llvm::zip_equal(first, second))
      results.push_back(arith::SelectOp::create(
          rewriter, branch.getLoc(), branch.getCondition(), one, other));
    rewriter.replaceOp(branch, results);
  }
  // What both sides have is one again.
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

void widening::forwardStores(func::FuncOp function) {
  for (Block &block : function.getBody())
    ::forwardStores(block, {}, {});
  // What is only written is not needed.
  SmallVector<memref::AllocaOp> allocations;
  function.walk([&](memref::AllocaOp op) { allocations.push_back(op); });
  for (memref::AllocaOp allocation : allocations) {
    SmallVector<Operation *> users, stores;
    bool isRead = false;
    users.push_back(allocation);
    for (size_t i = 0; i < users.size(); ++i)
      for (OpOperand &use : users[i]->getResult(0).getUses()) {
        Operation *user = use.getOwner();
        if (isa<memref::CastOp, memref::ViewOp>(user))
          users.push_back(user);
        else if ((isa<vector::StoreOp, memref::StoreOp>(user) &&
                  use.getOperandNumber() == 1) ||
                 isa<vector::MaskedStoreOp>(user))
          stores.push_back(user);
        else if (!isOpTriviallyDead(user))
          isRead = true;
      }
    if (isRead)
      continue;
    for (Operation *store : stores)
      store->erase();
  }
  eraseDead(function);
}

//===----------------------------------------------------------------------===//
// Memory of bytes
//===----------------------------------------------------------------------===//

/// `form`, all of whose parts are multiples of `divisor`, divided by it.
static Value buildQuotient(OpBuilder &builder, Location location,
                           const IndexForm &form, int64_t divisor) {
  Value sum;
  const auto add = [&](Value part) {
    sum = sum ? arith::AddIOp::create(builder, location, sum, part).getResult()
              : part;
  };
  for (const auto &[value, factor] : form.terms) {
    Value part = value;
    if (!part.getType().isIndex())
      part = arith::IndexCastOp::create(builder, location,
                                        builder.getIndexType(), part);
    if (factor != divisor)
      part = arith::MulIOp::create(
          builder, location, part,
          arith::ConstantIndexOp::create(builder, location, factor / divisor));
    add(part);
  }
  if (form.constant != 0 || !sum)
    add(arith::ConstantIndexOp::create(builder, location,
                                       form.constant / divisor));
  return sum;
}

/// The views of `memory`, and what it is cast to, if all of them are of one
/// kind of numbers, and begin at whole ones.
static std::optional<SmallVector<memref::ViewOp>> findViews(Value memory) {
  SmallVector<memref::ViewOp> views;
  SmallVector<Value> left = {memory};
  while (!left.empty()) {
    Value each = left.pop_back_val();
    for (Operation *user : each.getUsers()) {
      if (isa<memref::DimOp>(user))
        continue;
      if (isa<memref::CastOp>(user)) {
        left.push_back(user->getResult(0));
        continue;
      }
      auto view = dyn_cast<memref::ViewOp>(user);
      if (!view)
        return std::nullopt;
      Type element = view.getType().getElementType();
      if (!views.empty() && views.front().getType().getElementType() != element)
        return std::nullopt;
      const int64_t width = element.getIntOrFloatBitWidth() / 8;
      const IndexForm shift = indexFormOf(view.getByteShift());
      if (shift.constant % width != 0 ||
          llvm::any_of(shift.terms, [&](const auto &term) {
            return term.second % width != 0;
          }))
        return std::nullopt;
      for (Operation *access : view->getUsers())
        if (!isa<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
                 vector::MaskedStoreOp, memref::LoadOp, memref::StoreOp>(
                access))
          return std::nullopt;
      views.push_back(view);
    }
  }
  return views.empty() ? std::nullopt : std::optional(std::move(views));
}

void widening::retypeBytes(func::FuncOp function) {
  SmallVector<Value> memories(function.getArguments());
  function.walk(
      [&](memref::AllocaOp op) { memories.push_back(op.getMemref()); });
  for (Value memory : memories) {
    auto type = dyn_cast<MemRefType>(memory.getType());
    if (!type || !type.getElementType().isInteger(8))
      continue;
    std::optional<SmallVector<memref::ViewOp>> views = findViews(memory);
    if (!views)
      continue;
    Type element = views->front().getType().getElementType();
    const int64_t width = element.getIntOrFloatBitWidth() / 8;
    Value made = memory;
    OpBuilder builder(function.getContext());
    if (isa<BlockArgument>(memory)) {
      memory.setType(MemRefType::get({ShapedType::kDynamic}, element));
    } else {
      builder.setInsertionPointAfter(memory.getDefiningOp());
      made = memref::AllocaOp::create(
          builder, memory.getLoc(),
          MemRefType::get({type.getDimSize(0) / width}, element));
    }
    for (memref::ViewOp view : *views) {
      builder.setInsertionPoint(view);
      Value shift = buildQuotient(builder, view.getLoc(),
                                  indexFormOf(view.getByteShift()), width);
      for (Operation *access : llvm::make_early_inc_range(view->getUsers())) {
        builder.setInsertionPoint(access);
        Value index = accessedIndex(access);
        Value moved =
            arith::AddIOp::create(builder, access->getLoc(), index, shift);
        access->replaceUsesOfWith(view, made);
        access->replaceUsesOfWith(index, moved);
      }
      view.erase();
    }
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getBody().front().getArgumentTypes(),
      function.getResultTypes()));
  eraseDead(function);
}

void widening::foldBitcasts(func::FuncOp function) {
  SmallVector<vector::BitCastOp> casts;
  function.walk([&](vector::BitCastOp cast) { casts.push_back(cast); });
  for (vector::BitCastOp cast : casts) {
    DenseElementsAttr numbers;
    if (!matchPattern(cast.getSource(), m_Constant(&numbers)))
      continue;
    // All bits, from the first lane's lowest one on.
    SmallVector<APInt> lanes;
    for (Attribute each : numbers.getValues<Attribute>())
      lanes.push_back(
          isa<FloatAttr>(each)
              ? llvm::cast<FloatAttr>(each).getValue().bitcastToAPInt()
              : llvm::cast<IntegerAttr>(each).getValue());
    const unsigned width = lanes.front().getBitWidth();
    APInt bits(width * lanes.size(), 0);
    for (auto [lane, each] : llvm::enumerate(lanes))
      bits.insertBits(each, lane * width);
    VectorType type = cast.getResultVectorType();
    Type element = type.getElementType();
    const unsigned own = element.getIntOrFloatBitWidth();
    SmallVector<Attribute> result;
    for (unsigned lane = 0; lane < bits.getBitWidth() / own; ++lane) {
      APInt number = bits.extractBits(own, lane * own);
      if (auto floats = dyn_cast<FloatType>(element))
        result.push_back(FloatAttr::get(
            element, APFloat(floats.getFloatSemantics(), number)));
      else
        result.push_back(IntegerAttr::get(element, number));
    }
    OpBuilder builder(cast);
    Value constant = arith::ConstantOp::create(
        builder, cast.getLoc(), DenseElementsAttr::get(type, result));
    cast.getResult().replaceAllUsesWith(constant);
    cast.erase();
  }
}

//===----------------------------------------------------------------------===//
// Inductions
//===----------------------------------------------------------------------===//

/// The number that variable `number` of `loop` grows by.
static std::optional<int64_t> growthOf(scf::ForOp loop, unsigned number) {
  Value argument = loop.getRegionIterArg(number);
  if (!argument.getType().isIndex() && !argument.getType().isInteger(64))
    return std::nullopt;
  IndexForm next = indexFormOf(loop.getYieldedValues()[number]);
  if (next.factorOf(argument) != 1 || next.terms.size() != 1)
    return std::nullopt;
  return next.constant;
}

/// `loop` without the variables `numbers`, which nothing needs; others keep
/// their names.
static void eraseVariables(IRRewriter &rewriter, scf::ForOp loop,
                           const llvm::SmallBitVector &numbers) {
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> inits, yielded, arguments = {};
  SmallVector<OpResult> kept;
  for (auto [number, init] : llvm::enumerate(loop.getInits()))
    if (!numbers[number]) {
      inits.push_back(init);
      yielded.push_back(loop.getYieldedValues()[number]);
      kept.push_back(loop->getResult(number));
    }
  auto made = scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                                 loop.getUpperBound(), loop.getStep(), inits,
                                 nullptr, loop.getUnsignedCmp());
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  arguments.push_back(made.getInductionVar());
  made.getInductionVar().setLoc(loop.getInductionVar().getLoc());
  unsigned next = 0;
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (numbers[number]) {
      arguments.push_back(loop.getInits()[number]);
      continue;
    }
    made.getRegionIterArg(next).setLoc(argument.getLoc());
    arguments.push_back(made.getRegionIterArg(next++));
  }
  if (!made.getBody()->empty())
    rewriter.eraseOp(&made.getBody()->back());
  Operation *yield = loop.getBody()->getTerminator();
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });
  rewriter.mergeBlocks(loop.getBody(), made.getBody(), arguments);
  for (auto [old, result] : llvm::zip_equal(kept, made.getResults()))
    rewriter.replaceAllUsesWith(old, result);
  rewriter.eraseOp(loop);
}

static void simplifyInductions(IRRewriter &rewriter, scf::ForOp loop) {
  std::optional<int64_t> step = constantOf(loop.getStep());
  if (!step || *step < 1 || loop.getUnsignedCmp())
    return;
  Location location = loop.getLoc();
  llvm::SmallBitVector gone(loop.getNumRegionIterArgs());
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number) {
    std::optional<int64_t> growth = growthOf(loop, number);
    if (!growth || *growth % *step != 0)
      continue;
    Value argument = loop.getRegionIterArg(number),
          init = loop.getInits()[number];
    const auto asType = [&](Value index) -> Value {
      return argument.getType() == index.getType()
                 ? index
                 : arith::IndexCastOp::create(rewriter, location,
                                              argument.getType(), index);
    };
    const auto asIndex = [&](Value value) -> Value {
      return value.getType().isIndex()
                 ? value
                 : arith::IndexCastOp::create(rewriter, location,
                                              rewriter.getIndexType(), value);
    };
    // init + (index - lower) * growth / step
    const auto valueAt = [&](Value index) {
      Value turns = arith::SubIOp::create(rewriter, location, asIndex(index),
                                          asIndex(loop.getLowerBound()));
      Value by =
          arith::ConstantIndexOp::create(rewriter, location, *growth / *step);
      turns = arith::MulIOp::create(rewriter, location, turns, by);
      return arith::AddIOp::create(rewriter, location, init, asType(turns))
          .getResult();
    };
    rewriter.setInsertionPointToStart(loop.getBody());
    Value inside = valueAt(loop.getInductionVar());
    rewriter.replaceAllUsesWith(argument, inside);
    if (!loop.getResult(number).use_empty()) {
      // The index of the turn that there is not.
      rewriter.setInsertionPoint(loop);
      Value span = arith::SubIOp::create(rewriter, location,
                                         asIndex(loop.getUpperBound()),
                                         asIndex(loop.getLowerBound()));
      Value zero = arith::ConstantIndexOp::create(rewriter, location, 0);
      span = arith::MaxSIOp::create(rewriter, location, span, zero);
      if (*step != 1) {
        Value by = arith::ConstantIndexOp::create(rewriter, location, *step);
        Value more =
            arith::ConstantIndexOp::create(rewriter, location, *step - 1);
        span = arith::AddIOp::create(rewriter, location, span, more);
        span = arith::DivSIOp::create(rewriter, location, span, by);
        span = arith::MulIOp::create(rewriter, location, span, by);
      }
      Value end = arith::AddIOp::create(rewriter, location,
                                        asIndex(loop.getLowerBound()), span);
      rewriter.replaceAllUsesWith(loop.getResult(number), valueAt(end));
    }
    gone.set(number);
  }
  if (gone.any())
    eraseVariables(rewriter, loop, gone);
}

void widening::simplifyInductions(func::FuncOp function) {
  SmallVector<scf::ForOp> loops;
  function.walk<WalkOrder::PreOrder>(
      [&](scf::ForOp loop) { loops.push_back(loop); });
  IRRewriter rewriter(function.getContext());
  for (scf::ForOp loop : loops)
    ::simplifyInductions(rewriter, loop);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Whether the lanes of `value` are 0, 1, 2 and so on.
static bool countsLanes(Value value) {
  DenseIntElementsAttr lanes;
  if (!matchPattern(value, m_Constant(&lanes)))
    return isa_and_nonnull<vector::StepOp>(value.getDefiningOp());
  for (auto [lane, number] : llvm::enumerate(lanes.getValues<APInt>()))
    if (number != lane)
      return false;
  return true;
}

/// The number in all lanes of `vector`; null if it is no repetition.
static Value repeatedNumber(Value vector) {
  auto broadcast = vector.getDefiningOp<vector::BroadcastOp>();
  return broadcast && !isa<VectorType>(broadcast.getSourceType())
             ? broadcast.getSource()
             : Value();
}

/// How many of the lowest bits of `bits`, which has one for each lane at least,
/// are set, and none else; null if that is not so.
static Value countOfBits(Value bits, unsigned lanes) {
  Operation *op = bits.getDefiningOp();
  // Bits that are cut off are none of lanes.
  if (isa_and_nonnull<arith::TruncIOp, arith::ExtUIOp>(op) &&
      bits.getType().getIntOrFloatBitWidth() >= lanes)
    return countOfBits(op->getOperand(0), lanes);
  const auto shifted = [](Value value, int64_t number) -> Value {
    auto shift = value.getDefiningOp<arith::ShLIOp>();
    return shift && constantOf(shift.getLhs()) == number ? shift.getRhs()
                                                         : Value();
  };
  // (1 << count) - 1
  if ((isa_and_nonnull<arith::AddIOp>(op) &&
       constantOf(op->getOperand(1)) == -1) ||
      (isa_and_nonnull<arith::SubIOp>(op) &&
       constantOf(op->getOperand(1)) == 1))
    return shifted(op->getOperand(0), 1);
  // ~(-1 << count)
  if (isa_and_nonnull<arith::XOrIOp>(op) && constantOf(op->getOperand(1)) == -1)
    return shifted(op->getOperand(0), -1);
  return {};
}

/// How many of the first lanes of `mask` hold, and none else; null if that is
/// not so.
static Value countOfMask(Value mask) {
  Operation *op = mask.getDefiningOp();
  const auto lanes =
      static_cast<unsigned>(cast<VectorType>(mask.getType()).getNumElements());
  if (auto cast = dyn_cast_if_present<vector::BitCastOp>(op)) {
    Value bits = repeatedNumber(cast.getSource());
    if (!bits || cast.getSourceVectorType().getNumElements() != 1)
      return {};
    return countOfBits(bits, lanes);
  }
  if (auto known = dyn_cast_if_present<vector::CreateMaskOp>(op);
      known && known.getOperands().size() == 1)
    return known.getOperands().front();
  auto compare = dyn_cast_if_present<arith::CmpIOp>(op);
  if (!compare)
    return {};
  using P = arith::CmpIPredicate;
  const P predicate = compare.getPredicate();
  if (predicate == P::slt && countsLanes(compare.getLhs()))
    return repeatedNumber(compare.getRhs());
  if (predicate == P::sgt && countsLanes(compare.getRhs()))
    return repeatedNumber(compare.getLhs());
  // Bit number `lane` of all lanes.
  const auto isNumber = [](Value value, uint64_t number) {
    DenseIntElementsAttr lanes;
    return matchPattern(value, m_Constant(&lanes)) && lanes.isSplat() &&
           lanes.getSplatValue<APInt>() == number;
  };
  auto bit = compare.getLhs().getDefiningOp<arith::AndIOp>();
  if (!bit || !isNumber(bit.getRhs(), 1) ||
      !((predicate == P::eq && isNumber(compare.getRhs(), 1)) ||
        (predicate == P::ne && isNumber(compare.getRhs(), 0))))
    return {};
  auto shift = bit.getLhs().getDefiningOp<arith::ShRUIOp>();
  if (!shift || !countsLanes(shift.getRhs()))
    return {};
  Value bits = repeatedNumber(shift.getLhs());
  return bits ? countOfBits(bits, lanes) : Value();
}

/// Masks that became bits, and masks again, are what they were.
static void forwardMasks(func::FuncOp function) {
  function.walk([](vector::BitCastOp cast) {
    if (!getElementTypeOrSelf(cast.getType()).isInteger(1))
      return;
    Value bits = repeatedNumber(cast.getSource());
    auto lane = bits ? bits.getDefiningOp<vector::ExtractOp>() : nullptr;
    auto before =
        lane ? lane.getSource().getDefiningOp<vector::BitCastOp>() : nullptr;
    const auto isWhole = [](Value vector) {
      return llvm::cast<VectorType>(vector.getType()).getNumElements() == 1;
    };
    if (before && before.getSource().getType() == cast.getType() &&
        isWhole(cast.getSource()) && isWhole(before.getResult()))
      cast.getResult().replaceAllUsesWith(before.getSource());
  });
}

/// Accesses whose mask is a constant that leaves nothing out need none.
static void eraseMasks(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  function.walk([&](Operation *op) {
    rewriter.setInsertionPoint(op);
    if (auto load = dyn_cast<vector::MaskedLoadOp>(op);
        load && matchPattern(load.getMask(), m_One()))
      rewriter.replaceOpWithNewOp<vector::LoadOp>(
          load, load.getVectorType(), load.getBase(), load.getIndices());
    else if (auto store = dyn_cast<vector::MaskedStoreOp>(op);
             store && matchPattern(store.getMask(), m_One()))
      rewriter.replaceOpWithNewOp<vector::StoreOp>(
          store, store.getValueToStore(), store.getBase(), store.getIndices());
  });
}

void widening::extendBeforeShuffles(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  SmallVector<arith::ExtFOp> extensions;
  function.walk([&](arith::ExtFOp op) { extensions.push_back(op); });
  for (arith::ExtFOp op : extensions) {
    rewriter.setInsertionPoint(op);
    Type element = getElementTypeOrSelf(op.getType());
    const auto extended = [&](Value vector) -> Value {
      return arith::ExtFOp::create(
          rewriter, op.getLoc(),
          cast<VectorType>(vector.getType()).clone(element), vector);
    };
    if (auto shuffle = op.getIn().getDefiningOp<vector::ShuffleOp>()) {
      Value first = extended(shuffle.getV1());
      Value second = shuffle.getV1() == shuffle.getV2()
                         ? first
                         : extended(shuffle.getV2());
      rewriter.replaceOpWithNewOp<vector::ShuffleOp>(op, first, second,
                                                     shuffle.getMask());
    } else if (auto lane = op.getIn().getDefiningOp<vector::ExtractOp>();
               lane && lane.getStaticPosition().size() == 1 &&
               lane.getDynamicPosition().empty() &&
               lane.getSourceVectorType().getRank() == 1 &&
               !findCombination(lane.getSource().getDefiningOp())) {
      Value all = extended(lane.getSource());
      rewriter.replaceOpWithNewOp<vector::ExtractOp>(
          op, all, lane.getStaticPosition().front());
    }
  }
}

void widening::recognizeMasks(func::FuncOp function) {
  forwardMasks(function);
  eraseMasks(function);
  SmallVector<Operation *> operations;
  function.walk([&](Operation *op) {
    if (op->getNumResults() != 1)
      return;
    auto type = dyn_cast<VectorType>(op->getResult(0).getType());
    if (type && type.getRank() == 1 && type.getElementType().isInteger(1) &&
        isa<vector::BitCastOp, arith::CmpIOp>(op))
      operations.push_back(op);
  });
  OpBuilder builder(function);
  for (Operation *op : operations) {
    Value count = countOfMask(op->getResult(0));
    if (!count)
      continue;
    builder.setInsertionPoint(op);
    if (!count.getType().isIndex())
      count = arith::IndexCastOp::create(builder, op->getLoc(),
                                         builder.getIndexType(), count);
    Value mask = vector::CreateMaskOp::create(
        builder, op->getLoc(), cast<VectorType>(op->getResult(0).getType()),
        ValueRange(count));
    op->getResult(0).replaceAllUsesWith(mask);
  }
  eraseDead(function);
}
