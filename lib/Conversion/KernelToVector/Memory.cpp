//===- Memory.cpp - Loads, stores and copies ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raiser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::raising;

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
    // What is computed for a variable is called so.
    if (const auto *number = std::get_if<Value>(&value))
      if (Operation *op = number->getDefiningOp();
          op && !op->hasTrait<OpTrait::ConstantLike>() &&
          !op->getLoc()->findInstanceOf<NameLoc>())
        op->setLoc(named(*slot, op->getLoc()));
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
