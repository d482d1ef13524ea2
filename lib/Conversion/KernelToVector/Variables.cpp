//===- Variables.cpp - Variables as values or memory ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raiser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::raising;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type raising::lowered(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), lowered(vector.getElementType()));
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

bool raising::isUnsigned(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isUnsignedInteger() || type.isInteger(1);
}

Type raising::elementOf(Type type) {
  if (auto array = dyn_cast<kernel::ArrayType>(type))
    return elementOf(array.getElement());
  if (isa<kernel::PointerType, kernel::StructureType>(type))
    return {};
  Type element = lowered(getElementTypeOrSelf(type));
  return element.isInteger(1) ? Type() : element;
}

Type raising::objectOf(Value pointer) {
  return cast<kernel::PointerType>(pointer.getType()).getObject();
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Location raising::named(const Slot &slot, Location location) {
  auto variable = cast<kernel::VariableOp>(slot.variable);
  const StringRef name = slot.path.empty()
                             ? variable.getName()
                             : StringRef(slot.path).rsplit('.').second;
  return name.empty()
             ? location
             : NameLoc::get(StringAttr::get(variable.getContext(), name),
                            location);
}

bool raising::canBeSlots(Type type) {
  if (auto structure = dyn_cast<kernel::StructureType>(type))
    return !structure.getIsUnion() &&
           llvm::all_of(structure.getTypes(), canBeSlots);
  return !isa<kernel::ArrayType>(type);
}

void raising::visitLeaves(
    Type type, const std::string &path,
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

/// `number` as an integer of `type` has it, if that is a small one.
static std::optional<int64_t> asInteger(const APInt &number, Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  const unsigned width = integer.getWidth();
  APInt cut = integer.isUnsigned() ? number.zextOrTrunc(width).zext(width + 1)
                                   : number.sextOrTrunc(width);
  constexpr unsigned mostBits = 32;
  return cut.getSignificantBits() > mostBits
             ? std::nullopt
             : std::optional(cut.getSExtValue());
}

/// The integer that `value` is known to be: a constant, or one that is cast or
/// multiplied with another.
static std::optional<int64_t> knownInteger(Value value, unsigned depth = 0) {
  constexpr unsigned deepest = 8;
  Operation *op = depth > deepest ? nullptr : value.getDefiningOp();
  if (auto constant = dyn_cast_if_present<kernel::ConstantOp>(op)) {
    auto number = dyn_cast<IntegerAttr>(constant.getValue());
    return number ? asInteger(number.getValue(), value.getType())
                  : std::nullopt;
  }
  if (isa_and_nonnull<kernel::CastOp>(op) &&
      isa<IntegerType>(op->getOperand(0).getType())) {
    std::optional<int64_t> number = knownInteger(op->getOperand(0), depth + 1);
    return number ? asInteger(APInt(64, *number, /*isSigned=*/true),
                              value.getType())
                  : std::nullopt;
  }
  auto product = dyn_cast_if_present<kernel::BinaryOp>(op);
  if (!product || product.getKind() != kernel::BinaryOperator::Multiply)
    return std::nullopt;
  // Both have 32 bits at most.
  std::optional<int64_t> lhs = knownInteger(product.getLhs(), depth + 1),
                         rhs = knownInteger(product.getRhs(), depth + 1);
  return lhs && rhs ? asInteger(APInt(64, *lhs * *rhs, /*isSigned=*/true),
                                value.getType())
                    : std::nullopt;
}

std::optional<int64_t> raising::knownIndex(kernel::OffsetOp offset) {
  return knownInteger(offset.getIndex());
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
      // Steps are whole numbers of such elements; of bytes, if it is known how
      // many.
      int64_t step = kernel::layoutOf(objectOf(user->getResult(0)))->size;
      if (auto offset = dyn_cast<kernel::OffsetOp>(user))
        step *= knownIndex(offset).value_or(1);
      if (isa<kernel::CastOp>(user))
        step = 0;
      fits = step % (element.getIntOrFloatBitWidth() / 8) == 0 &&
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
      entry, named({variable, ""}, location), MemRefType::get({count}, element),
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
