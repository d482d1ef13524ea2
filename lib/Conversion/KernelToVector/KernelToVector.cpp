//===- KernelToVector.cpp - Hand-written kernels as loops over vectors ----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes functions of dialect kernel, in which everything is memory, to
/// structured control flow over values. Variables whose places are known become
/// values that loops carry; calls are inlined; pointers become a memref and an
/// offset; a branch that ends early takes the rest of its block into the other
/// one.
///
//===----------------------------------------------------------------------===//

#include "IntrinsicLowering.h"

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <set>
#include <variant>

namespace sandwich {
#define GEN_PASS_DEF_KERNELTOVECTOR
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// `type`, of a number or a vector, without signs.
static Type lowered(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), lowered(vector.getElementType()));
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

static bool isUnsigned(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isUnsignedInteger() || type.isInteger(1);
}

/// The numbers that memory of `type` is made of; null if there are several
/// kinds, or pointers.
static Type elementOf(Type type) {
  if (auto array = dyn_cast<kernel::ArrayType>(type))
    return elementOf(array.getElement());
  if (isa<kernel::PointerType, kernel::StructureType>(type))
    return {};
  Type element = lowered(getElementTypeOrSelf(type));
  return element.isInteger(1) ? Type() : element;
}

namespace {

//===----------------------------------------------------------------------===//
// What a value of dialect kernel becomes
//===----------------------------------------------------------------------===//

/// A variable that is a value, or a member of one that is a structure: no
/// place.
struct Slot {
  Operation *variable = nullptr;
  std::string path;

  bool operator<(const Slot &other) const {
    return std::tie(variable, path) < std::tie(other.variable, other.path);
  }
};

/// A number or a vector, a place in memory, or a slot.
using Datum = std::variant<Value, MemoryPlace, Slot>;

/// What slots hold.
using Environment = std::map<Slot, Datum>;

/// Those of the module: while it is raised, others have the same names.
using Functions = llvm::StringMap<kernel::FuncOp>;

/// Raises one function.
class Raiser {
public:
  Raiser(kernel::FuncOp function, const Functions &functions,
         OpBuilder &builder)
      : function(function), functions(functions), builder(builder) {}

  /// The function that it becomes, before `function`; an error names what it
  /// stops at.
  FailureOr<func::FuncOp> run();

private:
  using Mapping = llvm::DenseMap<Value, Datum>;

  /// How a sequence of operations ended: by a result, if it is that of a
  /// function.
  struct Ending {
    std::optional<Datum> result;
  };
  /// Where a sequence stands, which says what may end it.
  enum class Within { Function, Loop, Branch };

  FailureOr<Ending> raise(Block::iterator at, Block::iterator end,
                          Within within);
  LogicalResult raiseOperation(Operation *op);
  FailureOr<Ending> raiseEarlyEnd(kernel::IfOp branch, Block::iterator rest,
                                  Block::iterator end, Within within);
  /// An scf.if whose sides are built by `fill`, which gives a result if there
  /// is `result`; slots of `written` are carried out of it.
  FailureOr<Value>
  buildIf(Location location, Value condition, Type result,
          ArrayRef<Slot> written,
          llvm::function_ref<FailureOr<std::optional<Datum>>(bool)> fill);
  LogicalResult raiseIf(kernel::IfOp branch);
  LogicalResult raiseFor(kernel::ForOp loop);
  LogicalResult raiseDo(kernel::DoOp loop);
  LogicalResult raiseConditional(kernel::ConditionalOp choice);
  LogicalResult raiseCall(kernel::CallOp call);
  LogicalResult raiseIntrinsic(kernel::IntrinsicOp op);
  LogicalResult raiseCast(kernel::CastOp cast);
  LogicalResult raiseVariable(kernel::VariableOp variable);
  LogicalResult raiseAddress(kernel::AddressOp address);
  LogicalResult raiseLoad(kernel::LoadOp load);
  LogicalResult raiseStore(kernel::StoreOp store);
  LogicalResult raiseCopy(kernel::CopyOp copy);
  FailureOr<Value> raiseBinary(kernel::BinaryOp op);
  Value raiseMath(kernel::MathOp op);

  /// The argument of the callee that `use`, of a call, is given for.
  Value calleeArgument(OpOperand &use);
  /// Whether a variable has to be in memory: its address goes elsewhere.
  bool needsMemory(Value pointer);
  /// What memory that `pointer` points to is best made of: the numbers of
  /// `object`, or bytes.
  Type memoryElement(Value pointer, Type object);
  bool isReachedAs(Value pointer, Type element, llvm::DenseSet<Value> &visited);
  /// The slots that operations write to and that are there now.
  SmallVector<Slot> slotsWritten(ArrayRef<Region *> regions);
  /// Those of `written` that have a value now.
  SmallVector<Slot> carried(const std::set<Slot> &written);
  void collectWritten(Operation *op, Mapping &aliases, std::set<Slot> &found);
  std::optional<Slot> resolve(Value pointer, const Mapping &aliases);

  /// What slots hold as values: of places, the offset.
  FailureOr<SmallVector<Value>>
  valuesOf(ArrayRef<Slot> slots, const Environment &before, Location location);
  void assign(ArrayRef<Slot> slots, ValueRange values,
              const Environment &before);

  Datum get(Value value) { return mapping.find(value)->second; }
  Value number(Value value) { return std::get<Value>(get(value)); }
  void set(Value value, Datum datum) { mapping[value] = std::move(datum); }
  FailureOr<MemoryPlace> place(Operation *op, Value pointer);
  MemoryPlace advance(Location location, MemoryPlace place, Value index,
                      int64_t bytes);
  FailureOr<Value> loadFrom(Operation *op, MemoryPlace place, Type type);
  LogicalResult storeTo(Operation *op, Value value, MemoryPlace place);
  Value asIndex(Location location, Value number, Type type);
  LogicalResult refuse(Operation *op, const llvm::Twine &what) {
    return op->emitWarning("is not raised: ") << what;
  }

  kernel::FuncOp function;
  const Functions &functions;
  OpBuilder &builder;
  func::FuncOp made;
  Mapping mapping;
  Environment slots;
  /// Of the function that is raised, or inlined, now; null if there is none.
  Type resultType;
};

} // namespace

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

/// Whether a variable of `type` can be values, one for each number in it.
static bool canBeSlots(Type type) {
  if (auto structure = dyn_cast<kernel::StructureType>(type))
    return !structure.getIsUnion() &&
           llvm::all_of(structure.getTypes(), canBeSlots);
  return !isa<kernel::ArrayType>(type);
}

/// Calls `visit` with the path and the type of each number in `type`.
static void
visitLeaves(Type type, const std::string &path,
            llvm::function_ref<void(const std::string &, Type)> visit) {
  auto structure = dyn_cast<kernel::StructureType>(type);
  if (!structure) {
    visit(path, type);
    return;
  }
  for (auto [member, each] :
       llvm::zip_equal(structure.getMembers(), structure.getTypes()))
    visitLeaves(each, path + "." + member.getValue().str(), visit);
}

static Type objectOf(Value pointer) {
  return cast<kernel::PointerType>(pointer.getType()).getObject();
}

Value Raiser::calleeArgument(OpOperand &use) {
  auto call = cast<kernel::CallOp>(use.getOwner());
  kernel::FuncOp callee = functions.lookup(call.getCallee());
  return callee.getBody().getArgument(use.getOperandNumber());
}

bool Raiser::needsMemory(Value pointer) {
  if (!canBeSlots(objectOf(pointer)))
    return true;
  for (OpOperand &use : pointer.getUses()) {
    Operation *user = use.getOwner();
    if (isa<kernel::LoadOp, kernel::CopyOp>(user) ||
        (isa<kernel::StoreOp>(user) && use.getOperandNumber() == 1))
      continue;
    if (isa<kernel::MemberOp>(user) ||
        (isa<kernel::CastOp>(user) &&
         objectOf(user->getResult(0)) == objectOf(pointer))) {
      if (needsMemory(user->getResult(0)))
        return true;
      continue;
    }
    if (isa<kernel::CallOp>(user) && !needsMemory(calleeArgument(use)))
      continue;
    return true;
  }
  return false;
}

bool Raiser::isReachedAs(Value pointer, Type element,
                         llvm::DenseSet<Value> &visited) {
  if (!visited.insert(pointer).second)
    return true;
  const auto isElement = [&](Type type) {
    return lowered(getElementTypeOrSelf(type)) == element;
  };
  for (OpOperand &use : pointer.getUses()) {
    Operation *user = use.getOwner();
    bool fits = false;
    if (auto load = dyn_cast<kernel::LoadOp>(user)) {
      fits = isElement(load.getType());
    } else if (auto store = dyn_cast<kernel::StoreOp>(user)) {
      // A pointer that is kept is reached by what reads it.
      Operation *variable = store.getPointer().getDefiningOp();
      if (use.getOperandNumber() == 1)
        fits = isElement(store.getValue().getType());
      else
        fits =
            isa_and_nonnull<kernel::VariableOp>(variable) &&
            llvm::all_of(variable->getUsers(), [&](Operation *reader) {
              return isa<kernel::LoadOp>(reader)
                         ? isReachedAs(reader->getResult(0), element, visited)
                         : isa<kernel::StoreOp>(reader);
            });
    } else if (auto intrinsic = dyn_cast<kernel::IntrinsicOp>(user)) {
      const kernel::Intrinsic *known =
          kernel::IntrinsicTable::x86().find(intrinsic.getName());
      fits = loweredType(known->parameters[use.getOperandNumber()].type.lane,
                         element.getContext()) == element;
    } else if (isa<kernel::OffsetOp, kernel::ElementsOp, kernel::MemberOp,
                   kernel::CastOp>(user)) {
      // Steps are whole numbers of such elements.
      fits = kernel::layoutOf(objectOf(user->getResult(0)))->size %
                     (element.getIntOrFloatBitWidth() / 8) ==
                 0 &&
             isReachedAs(user->getResult(0), element, visited);
    } else if (isa<kernel::CallOp>(user)) {
      fits = isReachedAs(calleeArgument(use), element, visited);
    } else if (isa<kernel::CompareOp>(user)) {
      fits = true;
    }
    if (!fits)
      return false;
  }
  return true;
}

Type Raiser::memoryElement(Value pointer, Type object) {
  llvm::DenseSet<Value> visited;
  Type element = elementOf(object);
  // What bytes or lanes of others are cast to is what they are, if it is one.
  if (element && isReachedAs(pointer, element, visited))
    return element;
  return builder.getI8Type();
}

std::optional<Slot> Raiser::resolve(Value pointer, const Mapping &aliases) {
  if (auto found = aliases.find(pointer); found != aliases.end()) {
    const auto *slot = std::get_if<Slot>(&found->second);
    return slot ? std::optional(*slot) : std::nullopt;
  }
  Operation *op = pointer.getDefiningOp();
  if (auto member = dyn_cast_if_present<kernel::MemberOp>(op)) {
    std::optional<Slot> slot = resolve(member.getStructure(), aliases);
    if (slot)
      slot->path += "." + member.getName().str();
    return slot;
  }
  if (isa_and_nonnull<kernel::CastOp>(op))
    return resolve(op->getOperand(0), aliases);
  if (isa_and_nonnull<kernel::VariableOp>(op) && !mapping.contains(pointer))
    return std::nullopt;
  auto found = mapping.find(pointer);
  const auto *slot =
      found == mapping.end() ? nullptr : std::get_if<Slot>(&found->second);
  return slot ? std::optional(*slot) : std::nullopt;
}

void Raiser::collectWritten(Operation *root, Mapping &aliases,
                            std::set<Slot> &found) {
  root->walk([&](Operation *op) {
    std::optional<Slot> written;
    if (auto store = dyn_cast<kernel::StoreOp>(op))
      written = resolve(store.getPointer(), aliases);
    else if (auto copy = dyn_cast<kernel::CopyOp>(op))
      written = resolve(copy.getTo(), aliases);
    if (written)
      for (const auto &[slot, datum] : slots)
        if (slot.variable == written->variable &&
            StringRef(slot.path).starts_with(written->path))
          found.insert(slot);
    auto call = dyn_cast<kernel::CallOp>(op);
    if (!call)
      return;
    kernel::FuncOp callee = functions.lookup(call.getCallee());
    Mapping inner;
    for (auto [argument, operand] :
         llvm::zip_equal(callee.getBody().getArguments(), call.getOperands()))
      if (isa<kernel::PointerType>(operand.getType())) {
        const std::optional<Slot> slot = resolve(operand, aliases);
        inner[argument] = slot ? Datum(*slot) : Datum(Value());
      }
    collectWritten(callee, inner, found);
  });
}

SmallVector<Slot> Raiser::slotsWritten(ArrayRef<Region *> regions) {
  std::set<Slot> found;
  Mapping none;
  for (Region *region : regions)
    for (Operation &op : region->front())
      collectWritten(&op, none, found);
  return carried(found);
}

SmallVector<Slot> Raiser::carried(const std::set<Slot> &written) {
  // A pointer that points nowhere yet is set again before it is used, or that
  // is refused there.
  SmallVector<Slot> result;
  for (const Slot &slot : written) {
    const auto *place = std::get_if<MemoryPlace>(&slots.find(slot)->second);
    if (!place || place->base)
      result.push_back(slot);
  }
  return result;
}

FailureOr<SmallVector<Value>> Raiser::valuesOf(ArrayRef<Slot> which,
                                               const Environment &before,
                                               Location location) {
  SmallVector<Value> values;
  for (const Slot &slot : which) {
    const Datum &now = slots.find(slot)->second;
    if (const auto *value = std::get_if<Value>(&now)) {
      values.push_back(*value);
      continue;
    }
    const auto *place = std::get_if<MemoryPlace>(&now);
    const auto *first = std::get_if<MemoryPlace>(&before.find(slot)->second);
    if (!place || !first || place->base != first->base)
      return emitWarning(location) << "is not raised: a pointer that is one of "
                                      "several arrays' here";
    values.push_back(place->offset);
  }
  return values;
}

void Raiser::assign(ArrayRef<Slot> which, ValueRange values,
                    const Environment &before) {
  for (auto [slot, value] : llvm::zip_equal(which, values)) {
    const Datum &old = before.find(slot)->second;
    if (const auto *place = std::get_if<MemoryPlace>(&old))
      slots[slot] = MemoryPlace{place->base, value};
    else
      slots[slot] = value;
  }
}

/// Whether memory of `type` has pointers, or truths.
static bool hasPointers(Type type) {
  if (auto array = dyn_cast<kernel::ArrayType>(type))
    return hasPointers(array.getElement());
  if (auto structure = dyn_cast<kernel::StructureType>(type))
    return llvm::any_of(structure.getTypes(), hasPointers);
  return !elementOf(type);
}

LogicalResult Raiser::raiseVariable(kernel::VariableOp variable) {
  Type object = variable.getType().getObject();
  Location location = variable.getLoc();
  if (!needsMemory(variable.getPointer())) {
    visitLeaves(object, "", [&](const std::string &path, Type type) {
      // Until something is stored it is anything.
      Datum first = MemoryPlace{};
      if (!isa<kernel::PointerType>(type))
        first = Value(arith::ConstantOp::create(
            builder, location, builder.getZeroAttr(lowered(type))));
      slots[{variable, path}] = first;
    });
    set(variable.getPointer(), Slot{variable, ""});
    return success();
  }
  if (hasPointers(object))
    return refuse(variable, "a variable of pointers in memory");
  Type element = memoryElement(variable.getPointer(), object);
  const int64_t count =
      kernel::layoutOf(object)->size * 8 / element.getIntOrFloatBitWidth();
  // Once, however often its block runs.
  OpBuilder entry = OpBuilder::atBlockBegin(&made.getBody().front());
  Value memory = memref::AllocaOp::create(
      entry, location, MemRefType::get({count}, element),
      entry.getI64IntegerAttr(
          std::max<int64_t>(64, variable.getAlignment().value_or(1))));
  memory = memref::CastOp::create(
      entry, location, MemRefType::get({ShapedType::kDynamic}, element),
      memory);
  Value zero = arith::ConstantIndexOp::create(entry, location, 0);
  set(variable.getPointer(), MemoryPlace{memory, zero});
  return success();
}

/// `numbers` as they are in memory.
static DenseElementsAttr bytesOf(DenseElementsAttr numbers) {
  Type byte = IntegerType::get(numbers.getContext(), 8);
  const unsigned bits = numbers.getElementType().getIntOrFloatBitWidth();
  SmallVector<Attribute> bytes;
  for (Attribute each : numbers.getValues<Attribute>()) {
    const APInt value = isa<FloatAttr>(each)
                            ? cast<FloatAttr>(each).getValue().bitcastToAPInt()
                            : cast<IntegerAttr>(each).getValue();
    for (unsigned bit = 0; bit < bits; bit += 8)
      bytes.push_back(IntegerAttr::get(byte, value.extractBits(8, bit)));
  }
  return DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(bytes.size())}, byte), bytes);
}

LogicalResult Raiser::raiseAddress(kernel::AddressOp address) {
  Location location = address.getLoc();
  auto table = SymbolTable::lookupNearestSymbolFrom<kernel::GlobalOp>(
      address, address.getTableAttr());
  Type element = lowered(table.getValue().getElementType());
  llvm::DenseSet<Value> visited;
  auto numbers = dyn_cast<DenseElementsAttr>(table.getValue());
  if (!numbers || element.isInteger(1))
    return refuse(address, "a table of such numbers");
  numbers = isa<FloatType>(element) ? numbers : numbers.bitcast(element);
  const bool isBytes = !isReachedAs(address.getResult(), element, visited);
  if (isBytes) {
    element = builder.getI8Type();
    numbers = bytesOf(numbers);
  }
  auto type = MemRefType::get({numbers.getNumElements()}, element);
  auto module = function->getParentOfType<ModuleOp>();
  const std::string wanted =
      table.getSymName().str() + (isBytes ? "_bytes" : "_numbers");
  std::string name = wanted;
  const auto isOther = [&](Operation *op) {
    auto global = dyn_cast<memref::GlobalOp>(op);
    return !global || global.getType() != type ||
           global.getInitialValue() != Attribute(numbers);
  };
  for (int number = 2;; ++number) {
    Operation *known = module.lookupSymbol(name);
    if (!known || !isOther(known))
      break;
    name = wanted + "_" + std::to_string(number);
  }
  if (!module.lookupSymbol(name)) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    memref::GlobalOp::create(top, table.getLoc(), name,
                             top.getStringAttr("private"), type, numbers,
                             /*constant=*/true,
                             /*alignment=*/top.getI64IntegerAttr(64));
  }
  Value memory = memref::GetGlobalOp::create(builder, location, type, name);
  memory = memref::CastOp::create(
      builder, location, MemRefType::get({ShapedType::kDynamic}, element),
      memory);
  set(address.getResult(), MemoryPlace{memory, arith::ConstantIndexOp::create(
                                                   builder, location, 0)});
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FailureOr<MemoryPlace> Raiser::place(Operation *op, Value pointer) {
  const Datum datum = get(pointer);
  const auto *place = std::get_if<MemoryPlace>(&datum);
  if (!place || !place->base)
    return refuse(op, "a pointer of which it does not show where it points to");
  return *place;
}

Value Raiser::asIndex(Location location, Value number, Type type) {
  Type index = builder.getIndexType();
  return isUnsigned(type) ? Value(arith::IndexCastUIOp::create(
                                builder, location, index, number))
                          : Value(arith::IndexCastOp::create(builder, location,
                                                             index, number));
}

MemoryPlace Raiser::advance(Location location, MemoryPlace place, Value index,
                            int64_t bytes) {
  const int64_t size = cast<MemRefType>(place.base.getType())
                           .getElementType()
                           .getIntOrFloatBitWidth() /
                       8;
  Value step = arith::ConstantIndexOp::create(builder, location, bytes / size);
  if (index)
    step = arith::MulIOp::create(builder, location, index, step);
  return {place.base,
          arith::AddIOp::create(builder, location, place.offset, step)};
}

FailureOr<Value> Raiser::loadFrom(Operation *op, MemoryPlace from, Type type) {
  Type element = lowered(getElementTypeOrSelf(type));
  if (isa<kernel::PointerType>(type) || element.isInteger(1))
    return refuse(op, "a pointer, or a truth, in memory");
  const MemoryPlace memory = viewAs(builder, op->getLoc(), from, element);
  if (auto vector = dyn_cast<VectorType>(type))
    return Value(vector::LoadOp::create(
        builder, op->getLoc(), cast<VectorType>(lowered(vector)), memory.base,
        ValueRange(memory.offset)));
  return Value(memref::LoadOp::create(builder, op->getLoc(), memory.base,
                                      ValueRange(memory.offset)));
}

LogicalResult Raiser::storeTo(Operation *op, Value value, MemoryPlace to) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(1))
    return refuse(op, "a truth in memory");
  const MemoryPlace memory = viewAs(builder, op->getLoc(), to, element);
  if (isa<VectorType>(value.getType()))
    vector::StoreOp::create(builder, op->getLoc(), value, memory.base,
                            ValueRange(memory.offset));
  else
    memref::StoreOp::create(builder, op->getLoc(), value, memory.base,
                            ValueRange(memory.offset));
  return success();
}

LogicalResult Raiser::raiseLoad(kernel::LoadOp load) {
  const Datum pointer = get(load.getPointer());
  if (const auto *slot = std::get_if<Slot>(&pointer)) {
    set(load.getResult(), slots.find(*slot)->second);
    return success();
  }
  FailureOr<MemoryPlace> from = place(load, load.getPointer());
  if (failed(from))
    return failure();
  FailureOr<Value> value = loadFrom(load, *from, load.getType());
  if (failed(value))
    return failure();
  set(load.getResult(), *value);
  return success();
}

LogicalResult Raiser::raiseStore(kernel::StoreOp store) {
  const Datum pointer = get(store.getPointer());
  const Datum value = get(store.getValue());
  if (const auto *slot = std::get_if<Slot>(&pointer)) {
    if (std::holds_alternative<Slot>(value))
      return refuse(store, "a pointer to a variable that is kept");
    slots[*slot] = value;
    return success();
  }
  FailureOr<MemoryPlace> to = place(store, store.getPointer());
  const auto *number = std::get_if<Value>(&value);
  if (failed(to))
    return failure();
  if (!number)
    return refuse(store, "a pointer in memory");
  return storeTo(store, *number, *to);
}

LogicalResult Raiser::raiseCopy(kernel::CopyOp copy) {
  const Datum from = get(copy.getFrom()), to = get(copy.getTo());
  Type object = objectOf(copy.getTo());
  // Arrays and unions go as bytes.
  if (!canBeSlots(object)) {
    FailureOr<MemoryPlace> source = place(copy, copy.getFrom()),
                           target = place(copy, copy.getTo());
    if (failed(source) || failed(target))
      return failure();
    const int64_t size = kernel::layoutOf(object)->size;
    auto bytes = VectorType::get({size}, builder.getIntegerType(8, false));
    if (size > 4096)
      return refuse(copy, "a copy of so many bytes");
    FailureOr<Value> all = loadFrom(copy, *source, bytes);
    return failed(all) ? failure() : storeTo(copy, *all, *target);
  }
  LogicalResult result = success();
  visitLeaves(object, "", [&](const std::string &path, Type type) {
    if (failed(result))
      return;
    // Where a number stands: by its path, or by its byte.
    int64_t byte = 0;
    Type at = object;
    SmallVector<StringRef> names;
    StringRef(path).split(names, '.', -1, false);
    for (StringRef name : names) {
      auto structure = cast<kernel::StructureType>(at);
      byte += kernel::offsetOf(structure, name);
      at = structure.getMember(name);
    }
    Datum value;
    if (const auto *slot = std::get_if<Slot>(&from)) {
      value = slots.find({slot->variable, slot->path + path})->second;
    } else {
      FailureOr<MemoryPlace> source = place(copy, copy.getFrom());
      FailureOr<Value> read =
          failed(source)
              ? FailureOr<Value>(failure())
              : loadFrom(copy, advance(copy.getLoc(), *source, {}, byte), type);
      if (failed(read)) {
        result = failure();
        return;
      }
      value = *read;
    }
    if (const auto *slot = std::get_if<Slot>(&to)) {
      slots[{slot->variable, slot->path + path}] = value;
      return;
    }
    FailureOr<MemoryPlace> target = place(copy, copy.getTo());
    const auto *number = std::get_if<Value>(&value);
    if (failed(target) || !number) {
      result = failed(target) ? failure() : refuse(copy, "a pointer in memory");
      return;
    }
    result = storeTo(copy, *number, advance(copy.getLoc(), *target, {}, byte));
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

FailureOr<Value> Raiser::raiseBinary(kernel::BinaryOp op) {
  using kernel::BinaryOperator;
  Location location = op.getLoc();
  Value x = number(op.getLhs()), y = number(op.getRhs());
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  const bool noSign = isUnsigned(op.getType());
  const auto make = [&]<typename Op>() {
    return Value(Op::create(builder, location, x, y));
  };
  switch (op.getKind()) {
  case BinaryOperator::Add:
    return isFloat ? make.operator()<arith::AddFOp>()
                   : make.operator()<arith::AddIOp>();
  case BinaryOperator::Subtract:
    return isFloat ? make.operator()<arith::SubFOp>()
                   : make.operator()<arith::SubIOp>();
  case BinaryOperator::Multiply:
    return isFloat ? make.operator()<arith::MulFOp>()
                   : make.operator()<arith::MulIOp>();
  case BinaryOperator::Divide:
    return isFloat  ? make.operator()<arith::DivFOp>()
           : noSign ? make.operator()<arith::DivUIOp>()
                    : make.operator()<arith::DivSIOp>();
  case BinaryOperator::Remainder:
    return noSign ? make.operator()<arith::RemUIOp>()
                  : make.operator()<arith::RemSIOp>();
  case BinaryOperator::And:
    return make.operator()<arith::AndIOp>();
  case BinaryOperator::Or:
    return make.operator()<arith::OrIOp>();
  case BinaryOperator::Xor:
    return make.operator()<arith::XOrIOp>();
  case BinaryOperator::ShiftLeft:
    return make.operator()<arith::ShLIOp>();
  case BinaryOperator::ShiftRight:
    return noSign ? make.operator()<arith::ShRUIOp>()
                  : make.operator()<arith::ShRSIOp>();
  }
  llvm_unreachable("there are no other operators");
}

Value Raiser::raiseMath(kernel::MathOp op) {
  using kernel::Function;
  Location location = op.getLoc();
  SmallVector<Value> operands;
  for (Value each : op.getOperands())
    operands.push_back(number(each));
  const auto one = [&]<typename Op>() {
    return Value(Op::create(builder, location, operands[0]));
  };
  const auto two = [&]<typename Op>() {
    return Value(Op::create(builder, location, operands[0], operands[1]));
  };
  switch (op.getFunction()) {
  case Function::Absolute:
    return one.operator()<math::AbsFOp>();
  case Function::SquareRoot:
    return one.operator()<math::SqrtOp>();
  case Function::Exponential:
    return one.operator()<math::ExpOp>();
  case Function::PowerOfTwo:
    return one.operator()<math::Exp2Op>();
  case Function::Logarithm:
    return one.operator()<math::LogOp>();
  case Function::BinaryLogarithm:
    return one.operator()<math::Log2Op>();
  case Function::Sine:
    return one.operator()<math::SinOp>();
  case Function::Cosine:
    return one.operator()<math::CosOp>();
  case Function::HyperbolicTangent:
    return one.operator()<math::TanhOp>();
  case Function::ErrorFunction:
    return one.operator()<math::ErfOp>();
  case Function::Power:
    return two.operator()<math::PowFOp>();
  case Function::Floor:
    return one.operator()<math::FloorOp>();
  case Function::Ceil:
    return one.operator()<math::CeilOp>();
  case Function::Truncate:
    return one.operator()<math::TruncOp>();
  case Function::Round:
    return one.operator()<math::RoundOp>();
  case Function::RoundToEven:
    return one.operator()<math::RoundEvenOp>();
  case Function::Minimum:
    return two.operator()<arith::MinNumFOp>();
  case Function::Maximum:
    return two.operator()<arith::MaxNumFOp>();
  case Function::Fma:
    return math::FmaOp::create(builder, location, operands[0], operands[1],
                               operands[2]);
  }
  llvm_unreachable("there are no other functions");
}

/// `value` with as many bits as `type`, as which they are read.
static Value bitcast(OpBuilder &builder, Location location, Value value,
                     Type type) {
  if (value.getType() == type)
    return value;
  if (!isa<VectorType>(value.getType()) && !isa<VectorType>(type))
    return arith::BitcastOp::create(builder, location, type, value);
  const auto asVector = [&](Type each) {
    return isa<VectorType>(each) ? cast<VectorType>(each)
                                 : VectorType::get({1}, each);
  };
  if (!isa<VectorType>(value.getType()))
    value = vector::BroadcastOp::create(builder, location,
                                        asVector(value.getType()), value);
  value = vector::BitCastOp::create(builder, location, asVector(type), value);
  return isa<VectorType>(type) ? value
                               : Value(vector::ExtractOp::create(
                                     builder, location, value, int64_t(0)));
}

LogicalResult Raiser::raiseCast(kernel::CastOp op) {
  const Datum operand = get(op.getOperand());
  if (!std::holds_alternative<Value>(operand)) {
    set(op.getResult(), operand);
    return success();
  }
  Value value = std::get<Value>(operand);
  Location location = op.getLoc();
  Type from = op.getOperand().getType(), to = op.getType();
  Type target = lowered(to);
  if (kernel::isMask(from) || kernel::isMask(to)) {
    set(op.getResult(), bitcast(builder, location, value, target));
    return success();
  }
  const bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  const unsigned fromBits = from.getIntOrFloatBitWidth(),
                 toBits = to.getIntOrFloatBitWidth();
  if (to.isInteger(1)) {
    Value zero = arith::ConstantOp::create(
        builder, location, builder.getZeroAttr(value.getType()));
    value =
        fromFloat
            ? Value(arith::CmpFOp::create(
                  builder, location, arith::CmpFPredicate::UNE, value, zero))
            : Value(arith::CmpIOp::create(
                  builder, location, arith::CmpIPredicate::ne, value, zero));
  } else if (fromFloat && toFloat) {
    if (fromBits < toBits)
      value = arith::ExtFOp::create(builder, location, target, value);
    else if (fromBits > toBits)
      value = arith::TruncFOp::create(builder, location, target, value);
    else if (from != to)
      return refuse(op, "one float of 16 bits that becomes another one");
  } else if (toFloat) {
    value =
        isUnsigned(from)
            ? Value(arith::UIToFPOp::create(builder, location, target, value))
            : Value(arith::SIToFPOp::create(builder, location, target, value));
  } else if (fromFloat) {
    value =
        isUnsigned(to)
            ? Value(arith::FPToUIOp::create(builder, location, target, value))
            : Value(arith::FPToSIOp::create(builder, location, target, value));
  } else if (fromBits < toBits) {
    value =
        isUnsigned(from)
            ? Value(arith::ExtUIOp::create(builder, location, target, value))
            : Value(arith::ExtSIOp::create(builder, location, target, value));
  } else if (fromBits > toBits) {
    value = arith::TruncIOp::create(builder, location, target, value);
  }
  set(op.getResult(), value);
  return success();
}

LogicalResult Raiser::raiseIntrinsic(kernel::IntrinsicOp op) {
  const kernel::Intrinsic &intrinsic =
      *kernel::IntrinsicTable::x86().find(op.getName());
  MLIRContext *context = op.getContext();
  SmallVector<IntrinsicOperand> operands;
  for (auto [operand, parameter] :
       llvm::zip_equal(op.getOperands(), intrinsic.parameters)) {
    const kernel::ParameterType &type = parameter.type;
    IntrinsicOperand given;
    if (type.kind == kernel::ParameterType::Kind::Pointer) {
      FailureOr<MemoryPlace> memory = place(op, operand);
      if (failed(memory))
        return failure();
      given.memory = *memory;
    } else if (type.kind == kernel::ParameterType::Kind::Immediate) {
      auto constant = operand.getDefiningOp<kernel::ConstantOp>();
      given.immediate =
          cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue();
    } else {
      Type wanted = loweredType(type.lane, context);
      if (type.lanes > 0)
        wanted = VectorType::get({type.lanes}, wanted);
      given.value = bitcast(builder, op.getLoc(), number(operand), wanted);
    }
    operands.push_back(given);
  }
  std::string reason;
  FailureOr<Value> result =
      lowerIntrinsic(builder, op.getLoc(), intrinsic, operands, reason);
  if (failed(result))
    return refuse(op, reason);
  if (op.getResult())
    set(op.getResult(), bitcast(builder, op.getLoc(), *result,
                                lowered(op.getResult().getType())));
  return success();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

FailureOr<Value> Raiser::buildIf(
    Location location, Value condition, Type result, ArrayRef<Slot> written,
    llvm::function_ref<FailureOr<std::optional<Datum>>(bool)> fill) {
  const Environment before = slots;
  SmallVector<Type> types;
  if (result)
    types.push_back(result);
  for (const Slot &slot : written) {
    const auto *value = std::get_if<Value>(&before.find(slot)->second);
    types.push_back(value ? value->getType() : Type(builder.getIndexType()));
  }
  auto branch = scf::IfOp::create(builder, location, types, condition,
                                  /*withElseRegion=*/true);
  for (const bool first : {true, false}) {
    OpBuilder::InsertionGuard guard(builder);
    Region &region = first ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      region.emplaceBlock();
    if (!region.front().empty())
      region.front().back().erase();
    builder.setInsertionPointToEnd(&region.front());
    slots = before;
    FailureOr<std::optional<Datum>> given = fill(first);
    if (failed(given))
      return failure();
    SmallVector<Value> yielded;
    if (result) {
      const auto *value = *given ? std::get_if<Value>(&**given) : nullptr;
      if (!value)
        return emitWarning(location)
               << "is not raised: a choice between places, or no result";
      yielded.push_back(*value);
    }
    FailureOr<SmallVector<Value>> values = valuesOf(written, before, location);
    if (failed(values))
      return failure();
    yielded.append(*values);
    scf::YieldOp::create(builder, location, yielded);
  }
  slots = before;
  assign(written, branch.getResults().drop_front(result ? 1 : 0), before);
  return result ? branch.getResult(0) : Value();
}

LogicalResult Raiser::raiseIf(kernel::IfOp branch) {
  const SmallVector<Slot> written =
      slotsWritten({&branch.getThen(), &branch.getOtherwise()});
  return LogicalResult(
      buildIf(branch.getLoc(), number(branch.getCondition()), Type(), written,
              [&](bool first) -> FailureOr<std::optional<Datum>> {
                Block &block =
                    (first ? branch.getThen() : branch.getOtherwise()).front();
                if (failed(raise(block.begin(), block.end(), Within::Branch)))
                  return failure();
                return std::optional<Datum>();
              }));
}

LogicalResult Raiser::raiseConditional(kernel::ConditionalOp choice) {
  const bool isUsed = !choice.getResult().use_empty();
  if (isUsed && isa<kernel::PointerType>(choice.getType()))
    return refuse(choice, "a choice between places");
  const SmallVector<Slot> written =
      slotsWritten({&choice.getThen(), &choice.getOtherwise()});
  FailureOr<Value> result = buildIf(
      choice.getLoc(), number(choice.getCondition()), lowered(choice.getType()),
      written, [&](bool first) -> FailureOr<std::optional<Datum>> {
        Block &block =
            (first ? choice.getThen() : choice.getOtherwise()).front();
        auto yield = cast<kernel::YieldOp>(block.back());
        for (Operation &op : block.without_terminator())
          if (failed(raiseOperation(&op)))
            return failure();
        return std::optional<Datum>(get(yield.getValue()));
      });
  if (failed(result))
    return failure();
  if (isUsed)
    set(choice.getResult(), *result);
  return success();
}

/// What ends `block` before its end, if anything does.
static Operation *earlyEnd(Block &block) {
  Operation *last = block.empty() ? nullptr : &block.back();
  return last && isa<kernel::ReturnOp, kernel::ContinueOp, kernel::BreakOp,
                     kernel::TrapOp>(last)
             ? last
             : nullptr;
}

FailureOr<Raiser::Ending> Raiser::raiseEarlyEnd(kernel::IfOp branch,
                                                Block::iterator rest,
                                                Block::iterator end,
                                                Within within) {
  Block &then = branch.getThen().front(),
        &otherwise = branch.getOtherwise().front();
  // What is never reached is left out.
  for (auto [ends, other] :
       {std::pair(&then, &otherwise), std::pair(&otherwise, &then)})
    if (isa_and_nonnull<kernel::TrapOp>(earlyEnd(*ends))) {
      if (failed(raise(other->begin(), other->end(), Within::Branch)))
        return failure();
      return raise(rest, end, within);
    }
  Operation *last = earlyEnd(then) ? earlyEnd(then) : earlyEnd(otherwise);
  if (isa<kernel::BreakOp>(last))
    return refuse(last, "a loop that is left early");
  if (isa<kernel::ReturnOp>(last) && within != Within::Function)
    return refuse(last, "a function that ends within a loop or a branch");
  if (isa<kernel::ContinueOp>(last) && within != Within::Loop)
    return refuse(last, "a loop that goes on within a branch");
  std::set<Slot> found;
  Mapping none;
  collectWritten(branch, none, found);
  for (auto at = rest; at != end; ++at)
    collectWritten(&*at, none, found);
  const SmallVector<Slot> written = carried(found);
  Type result = within == Within::Function ? resultType : Type();
  FailureOr<Value> value = buildIf(
      branch.getLoc(), number(branch.getCondition()), result, written,
      [&](bool first) -> FailureOr<std::optional<Datum>> {
        Block &block = first ? then : otherwise;
        if (earlyEnd(block)) {
          FailureOr<Ending> ending = raise(block.begin(), block.end(), within);
          return failed(ending) ? FailureOr<std::optional<Datum>>(failure())
                                : ending->result;
        }
        if (failed(raise(block.begin(), block.end(), Within::Branch)))
          return failure();
        FailureOr<Ending> ending = raise(rest, end, within);
        return failed(ending) ? FailureOr<std::optional<Datum>>(failure())
                              : ending->result;
      });
  if (failed(value))
    return failure();
  Ending ending;
  if (*value)
    ending.result = *value;
  return ending;
}

LogicalResult Raiser::raiseFor(kernel::ForOp loop) {
  Location location = loop.getLoc();
  const Environment before = slots;
  const SmallVector<Slot> moved =
      slotsWritten({&loop.getCondition(), &loop.getStep(), &loop.getBody()});
  FailureOr<SmallVector<Value>> first = valuesOf(moved, before, location);
  if (failed(first))
    return failure();
  const SmallVector<Type> types =
      llvm::to_vector(ValueRange(*first).getTypes());
  auto repeat = scf::WhileOp::create(builder, location, types, *first);
  OpBuilder::InsertionGuard guard(builder);
  const SmallVector<Location> places(types.size(), location);

  Block *head = builder.createBlock(&repeat.getBefore(), {}, types, places);
  assign(moved, head->getArguments(), before);
  Block &condition = loop.getCondition().front();
  for (Operation &op : condition.without_terminator())
    if (failed(raiseOperation(&op)))
      return failure();
  Value holds = number(cast<kernel::YieldOp>(condition.back()).getValue());
  FailureOr<SmallVector<Value>> passed = valuesOf(moved, before, location);
  if (failed(passed))
    return failure();
  scf::ConditionOp::create(builder, location, holds, *passed);

  Block *body = builder.createBlock(&repeat.getAfter(), {}, types, places);
  slots = before;
  assign(moved, body->getArguments(), before);
  Block &statements = loop.getBody().front();
  if (failed(raise(statements.begin(), statements.end(), Within::Loop)))
    return failure();
  Block &step = loop.getStep().front();
  if (failed(raise(step.begin(), step.end(), Within::Branch)))
    return failure();
  FailureOr<SmallVector<Value>> next = valuesOf(moved, before, location);
  if (failed(next))
    return failure();
  scf::YieldOp::create(builder, location, *next);
  slots = before;
  assign(moved, repeat.getResults(), before);
  return success();
}

LogicalResult Raiser::raiseDo(kernel::DoOp loop) {
  Location location = loop.getLoc();
  const Environment before = slots;
  const SmallVector<Slot> moved =
      slotsWritten({&loop.getBody(), &loop.getCondition()});
  FailureOr<SmallVector<Value>> first = valuesOf(moved, before, location);
  if (failed(first))
    return failure();
  const SmallVector<Type> types =
      llvm::to_vector(ValueRange(*first).getTypes());
  auto repeat = scf::WhileOp::create(builder, location, types, *first);
  OpBuilder::InsertionGuard guard(builder);
  const SmallVector<Location> places(types.size(), location);
  Block *head = builder.createBlock(&repeat.getBefore(), {}, types, places);
  assign(moved, head->getArguments(), before);
  Block &body = loop.getBody().front();
  if (failed(raise(body.begin(), body.end(), Within::Loop)))
    return failure();
  Block &condition = loop.getCondition().front();
  for (Operation &op : condition.without_terminator())
    if (failed(raiseOperation(&op)))
      return failure();
  Value holds = number(cast<kernel::YieldOp>(condition.back()).getValue());
  FailureOr<SmallVector<Value>> passed = valuesOf(moved, before, location);
  if (failed(passed))
    return failure();
  scf::ConditionOp::create(builder, location, holds, *passed);
  Block *rest = builder.createBlock(&repeat.getAfter(), {}, types, places);
  scf::YieldOp::create(builder, location, rest->getArguments());
  slots = before;
  assign(moved, repeat.getResults(), before);
  return success();
}

LogicalResult Raiser::raiseCall(kernel::CallOp call) {
  kernel::FuncOp callee = functions.lookup(call.getCallee());

  Block &body = callee.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), call.getOperands()))
    set(argument, get(operand));
  Type outer = resultType;
  const bool hasNumber =
      call.getResult() && !isa<kernel::PointerType>(call.getResult().getType());
  resultType = hasNumber ? lowered(call.getResult().getType()) : Type();
  FailureOr<Ending> ending = raise(body.begin(), body.end(), Within::Function);
  resultType = outer;
  // Its variables are gone.
  std::erase_if(slots, [&](const auto &entry) {
    return entry.first.variable->template getParentOfType<kernel::FuncOp>() ==
           callee;
  });

  if (failed(ending))
    return failure();
  if (!call.getResult())
    return success();
  if (!ending->result)
    return refuse(call, "a function that chooses between places, or ends "
                        "without its result");
  set(call.getResult(), *ending->result);
  return success();
}

LogicalResult Raiser::raiseOperation(Operation *op) {
  Location location = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](kernel::VariableOp each) { return raiseVariable(each); })
      .Case([&](kernel::AddressOp each) { return raiseAddress(each); })
      .Case([&](kernel::LoadOp each) { return raiseLoad(each); })
      .Case([&](kernel::StoreOp each) { return raiseStore(each); })
      .Case([&](kernel::CopyOp each) { return raiseCopy(each); })
      .Case([&](kernel::IfOp each) { return raiseIf(each); })
      .Case([&](kernel::ForOp each) { return raiseFor(each); })
      .Case([&](kernel::DoOp each) { return raiseDo(each); })
      .Case([&](kernel::ConditionalOp each) { return raiseConditional(each); })
      .Case([&](kernel::CallOp each) { return raiseCall(each); })
      .Case([&](kernel::IntrinsicOp each) { return raiseIntrinsic(each); })
      .Case([&](kernel::CastOp each) { return raiseCast(each); })
      .Case([&](kernel::ConstantOp constant) {
        Type type = lowered(constant.getType());
        Attribute value = constant.getValue();
        if (auto integer = dyn_cast<IntegerAttr>(value))
          value = IntegerAttr::get(type, integer.getValue());
        else if (auto dense = dyn_cast<DenseElementsAttr>(value))
          value = dense.bitcast(getElementTypeOrSelf(type));
        set(constant.getResult(),
            Value(arith::ConstantOp::create(builder, location,
                                            cast<TypedAttr>(value))));
        return success();
      })
      .Case([&](kernel::BitcastOp cast) {
        set(cast.getResult(),
            bitcast(builder, location, number(cast.getOperand()),
                    lowered(cast.getType())));
        return success();
      })
      .Case([&](kernel::BinaryOp binary) -> LogicalResult {
        FailureOr<Value> value = raiseBinary(binary);
        if (failed(value))
          return failure();
        set(binary.getResult(), *value);
        return success();
      })
      .Case([&](kernel::MathOp math) {
        set(math.getResult(), raiseMath(math));
        return success();
      })
      .Case([&](kernel::UnaryOp unary) {
        Value x = number(unary.getOperand());
        if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) {
          set(unary.getResult(),
              Value(arith::NegFOp::create(builder, location, x)));
          return success();
        }
        const bool negates = unary.getKind() == kernel::UnaryOperator::Negate;
        Type type = x.getType();
        APInt bits(getElementTypeOrSelf(type).getIntOrFloatBitWidth(), 0);
        if (!negates)
          bits.setAllBits();
        TypedAttr attribute = isa<VectorType>(type)
                                  ? TypedAttr(SplatElementsAttr::get(
                                        cast<VectorType>(type), bits))
                                  : TypedAttr(IntegerAttr::get(type, bits));
        Value constant =
            arith::ConstantOp::create(builder, location, attribute);
        set(unary.getResult(),
            negates
                ? Value(arith::SubIOp::create(builder, location, constant, x))
                : Value(arith::XOrIOp::create(builder, location, x, constant)));
        return success();
      })
      .Case([&](kernel::CompareOp compare) -> LogicalResult {
        using kernel::Comparison;
        const Datum lhs = get(compare.getLhs()), rhs = get(compare.getRhs());
        Value x, y;
        bool noSign = true;
        if (const auto *first = std::get_if<MemoryPlace>(&lhs)) {
          const auto *second = std::get_if<MemoryPlace>(&rhs);
          if (!second || first->base != second->base)
            return refuse(op, "pointers that are compared");
          x = first->offset;
          y = second->offset;
          noSign = false;
        } else if (std::holds_alternative<Value>(lhs)) {
          x = std::get<Value>(lhs);
          y = std::get<Value>(rhs);
          noSign = isUnsigned(compare.getLhs().getType());
        } else {
          return refuse(op, "pointers that are compared");
        }
        const auto which = static_cast<size_t>(compare.getComparison());
        if (isa<FloatType>(x.getType())) {
          using P = arith::CmpFPredicate;
          static constexpr P predicates[] = {P::OEQ, P::UNE, P::OLT,
                                             P::OLE, P::OGT, P::OGE};
          set(compare.getResult(),
              Value(arith::CmpFOp::create(builder, location, predicates[which],
                                          x, y)));
          return success();
        }
        using P = arith::CmpIPredicate;
        static constexpr P with[] = {P::eq,  P::ne,  P::slt,
                                     P::sle, P::sgt, P::sge};
        static constexpr P without[] = {P::eq,  P::ne,  P::ult,
                                        P::ule, P::ugt, P::uge};
        set(compare.getResult(),
            Value(arith::CmpIOp::create(builder, location,
                                        noSign ? without[which] : with[which],
                                        x, y)));
        return success();
      })
      .Case([&](kernel::OffsetOp offset) -> LogicalResult {
        FailureOr<MemoryPlace> from = place(op, offset.getPointer());
        if (failed(from))
          return failure();
        Value index = asIndex(location, number(offset.getIndex()),
                              offset.getIndex().getType());
        set(offset.getResult(),
            advance(location, *from, index,
                    kernel::layoutOf(objectOf(offset.getResult()))->size));
        return success();
      })
      .Case([&](kernel::ElementsOp elements) -> LogicalResult {
        FailureOr<MemoryPlace> from = place(op, elements.getArray());
        if (failed(from))
          return failure();
        set(elements.getResult(), *from);
        return success();
      })
      .Case([&](kernel::MemberOp member) -> LogicalResult {
        const Datum datum = get(member.getStructure());
        if (const auto *slot = std::get_if<Slot>(&datum)) {
          set(member.getResult(),
              Slot{slot->variable, slot->path + "." + member.getName().str()});
          return success();
        }
        FailureOr<MemoryPlace> from = place(op, member.getStructure());
        if (failed(from))
          return failure();
        const int64_t bytes = kernel::offsetOf(
            cast<kernel::StructureType>(objectOf(member.getStructure())),
            member.getName());
        set(member.getResult(), advance(location, *from, {}, bytes));
        return success();
      })
      .Default([&](Operation *other) {
        return refuse(other, "an operation of this kind");
      });
}

FailureOr<Raiser::Ending> Raiser::raise(Block::iterator at, Block::iterator end,
                                        Within within) {
  for (; at != end; ++at) {
    Operation *op = &*at;
    if (auto back = dyn_cast<kernel::ReturnOp>(op)) {
      if (within != Within::Function)
        return refuse(op, "a function that ends within a loop or a branch");
      Ending ending;
      if (back.getValue())
        ending.result = get(back.getValue());
      return ending;
    }
    if (isa<kernel::ContinueOp>(op) && within == Within::Loop)
      return Ending();
    if (isa<kernel::ContinueOp, kernel::BreakOp>(op))
      return refuse(op, "a loop that is left early");
    auto branch = dyn_cast<kernel::IfOp>(op);
    if (branch && (earlyEnd(branch.getThen().front()) ||
                   earlyEnd(branch.getOtherwise().front())))
      return raiseEarlyEnd(branch, std::next(at), end, within);
    if (failed(raiseOperation(op)))
      return failure();
  }
  return Ending();
}

FailureOr<func::FuncOp> Raiser::run() {
  SmallVector<Type> arguments, results;
  for (BlockArgument each : function.getBody().getArguments()) {
    auto pointer = dyn_cast<kernel::PointerType>(each.getType());
    arguments.push_back(pointer ? Type(MemRefType::get(
                                      {ShapedType::kDynamic},
                                      memoryElement(each, pointer.getObject())))
                                : lowered(each.getType()));
  }
  for (Type each : function.getResultTypes()) {
    if (isa<kernel::PointerType>(each))
      return refuse(function, "a function that returns a pointer");
    results.push_back(lowered(each));
  }
  Location location = function.getLoc();
  builder.setInsertionPoint(function);
  made = func::FuncOp::create(builder, location, function.getSymName(),
                              builder.getFunctionType(arguments, results));
  Block *entry = made.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  for (auto [argument, value] : llvm::zip_equal(
           function.getBody().getArguments(), entry->getArguments())) {
    value.setLoc(argument.getLoc());
    if (isa<kernel::PointerType>(argument.getType()))
      set(argument, MemoryPlace{value, arith::ConstantIndexOp::create(
                                           builder, location, 0)});
    else
      set(argument, value);
  }
  resultType = results.empty() ? Type() : results.front();
  Block &body = function.getBody().front();
  FailureOr<Ending> ending = raise(body.begin(), body.end(), Within::Function);
  if (succeeded(ending) && resultType && !ending->result)
    ending = refuse(function, "a function that ends without its result");
  if (failed(ending)) {
    made.erase();
    return failure();
  }
  SmallVector<Value> returned;
  if (ending->result && resultType)
    returned.push_back(std::get<Value>(*ending->result));
  func::ReturnOp::create(builder, location, returned);
  return made;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Makes `loop` one that counts, if it is one. Upstream's rewrite takes the
/// index behind the loop for that of the last turn, so that is computed here.
static void countLoop(IRRewriter &rewriter, scf::WhileOp loop) {
  auto condition = cast<scf::ConditionOp>(loop.getBefore().front().back());
  auto compare = condition.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || condition.getArgs() != loop.getBeforeArguments() ||
      (compare.getPredicate() != arith::CmpIPredicate::slt &&
       compare.getPredicate() != arith::CmpIPredicate::ult))
    return;
  auto index = dyn_cast<BlockArgument>(compare.getLhs());
  if (!index || index.getOwner() != loop.getBeforeBody())
    return;
  const unsigned number = index.getArgNumber();
  auto next =
      loop.getYieldOp().getOperand(number).getDefiningOp<arith::AddIOp>();
  IntegerAttr step;
  if (!next || next.getLhs() != loop.getAfterArguments()[number] ||
      !matchPattern(next.getRhs(), m_Constant(&step)) ||
      !step.getValue().isStrictlyPositive())
    return;
  // What is known of both may stand in the loop, and nothing else of it.
  for (Value bound : {compare.getRhs(), next.getRhs()}) {
    if (!loop->isAncestor(bound.getParentBlock()->getParentOp()))
      continue;
    if (!isa_and_nonnull<arith::ConstantOp>(bound.getDefiningOp()))
      return;
    bound.getDefiningOp()->moveBefore(loop);
  }
  OpResult last = cast<OpResult>(loop.getResult(number));
  const bool isUsed = !last.use_empty();
  Value first = loop.getInits()[number], end = compare.getRhs();
  // As many whole steps as lead from the first one to the end or beyond.
  const auto computeLast = [&](Location location) -> Value {
    Type type = first.getType();
    Value by = arith::ConstantOp::create(rewriter, location, step);
    Value one = arith::ConstantOp::create(rewriter, location,
                                          rewriter.getIntegerAttr(type, 1));
    Value runs = arith::CmpIOp::create(rewriter, location,
                                       compare.getPredicate(), first, end);
    Value span = arith::SubIOp::create(rewriter, location, end, first);
    Value turns = arith::SubIOp::create(rewriter, location, span, one);
    turns = arith::DivUIOp::create(rewriter, location, turns, by);
    turns = arith::AddIOp::create(rewriter, location, turns, one);
    Value all = arith::MulIOp::create(rewriter, location, turns, by);
    all = arith::AddIOp::create(rewriter, location, first, all);
    return arith::SelectOp::create(rewriter, location, runs, all, first);
  };
  if (isUsed && !isa<IntegerType>(first.getType()))
    return;
  Location location = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Value correct = isUsed ? computeLast(location) : Value();
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : last.getUses())
    uses.push_back(&use);
  FailureOr<scf::ForOp> counted = scf::upliftWhileToForLoop(rewriter, loop);
  if (failed(counted) || !isUsed)
    return;
  for (OpOperand *use : uses)
    use->set(correct);
}

/// A call by which `function`, or what it calls, comes to one of `callers`
/// again; null if there is none.
static kernel::CallOp findRecursion(kernel::FuncOp function,
                                    const Functions &functions,
                                    llvm::DenseSet<Operation *> &callers) {
  kernel::CallOp found;
  callers.insert(function);
  function.walk([&](kernel::CallOp call) {
    kernel::FuncOp callee = functions.lookup(call.getCallee());
    found = callers.contains(callee)
                ? call
                : findRecursion(callee, functions, callers);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  callers.erase(function);
  return found;
}

namespace {
struct KernelToVector : sandwich::impl::KernelToVectorBase<KernelToVector> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder(&getContext());
    Functions functions;
    for (auto function : module.getOps<kernel::FuncOp>())
      functions[function.getSymName()] = function;
    SmallVector<kernel::FuncOp> raised;
    for (auto function :
         llvm::make_early_inc_range(module.getOps<kernel::FuncOp>())) {
      if (SymbolTable::getSymbolVisibility(function) !=
          SymbolTable::Visibility::Public)
        continue;
      llvm::DenseSet<Operation *> callers;
      if (kernel::CallOp call = findRecursion(function, functions, callers)) {
        call.emitWarning("is not raised: a function that calls itself");
        continue;
      }
      FailureOr<func::FuncOp> made = Raiser(function, functions, builder).run();
      if (failed(made))
        continue;
      raised.push_back(function);
    }
    // One that is called by what stays goes on under another name.
    for (kernel::FuncOp each : raised) {
      const StringRef old = each.getSymName();
      std::string name = old.str() + "_kernel";
      for (int number = 2; module.lookupSymbol(name); ++number)
        name = old.str() + "_kernel_" + std::to_string(number);
      module.walk([&](kernel::CallOp call) {
        if (call.getCallee() == old)
          call.setCallee(name);
      });
      SymbolTable::setSymbolName(each, name);
      SymbolTable::setSymbolVisibility(each, SymbolTable::Visibility::Private);
    }
    // What only those used is not needed any more.
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
        auto called = dyn_cast<kernel::FuncOp>(op);
        if (((called && called.isPrivate()) || isa<kernel::GlobalOp>(op)) &&
            SymbolTable::symbolKnownUseEmpty(&op, module)) {
          op.erase();
          changed = true;
        }
      }
    }
    SmallVector<scf::WhileOp> loops;
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::WhileOp loop : loops)
      countLoop(rewriter, loop);
  }
};
} // namespace
