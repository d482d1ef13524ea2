//===- BlockDialect.cpp - The dialect of kernels over blocks --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Block/IR/Block.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

#include "sandwich/Dialect/Block/IR/BlockDialect.cpp.inc"

void BlockDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Block/IR/BlockOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool block::isKernel(func::FuncOp function) {
  return function->hasAttrOfType<ParametersAttr>(BlockDialect::parametersName);
}

ParametersAttr block::parametersOf(func::FuncOp kernel) {
  return kernel->getAttrOfType<ParametersAttr>(BlockDialect::parametersName);
}

SizesAttr block::sizesOfArgument(func::FuncOp kernel, unsigned number) {
  return kernel.getArgAttrOfType<SizesAttr>(number, BlockDialect::sizesName);
}

std::optional<std::pair<unsigned, unsigned>>
block::findDimension(func::FuncOp kernel, StringRef name) {
  for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
    if (SizesAttr sizes = sizesOfArgument(kernel, number))
      for (auto [dimension, size] : llvm::enumerate(sizes.getSizes()))
        if (size.getFactor() == 1 && size.getNames().size() == 1 &&
            size.getNames()[0].getValue() == name)
          return std::pair(number, static_cast<unsigned>(dimension));
  return std::nullopt;
}

std::optional<std::pair<StringRef, int64_t>>
block::readBinding(StringRef text) {
  auto [name, value] = text.split('=');
  int64_t number = 0;
  if (!isName(name) || value.getAsInteger(10, number) || number < 0 ||
      number > largestSize)
    return std::nullopt;
  return std::pair(name, number);
}

LogicalResult block::bindParameters(func::FuncOp kernel, Bindings &bindings) {
  for (ParameterAttr parameter : parametersOf(kernel).getParameters()) {
    StringRef name = parameter.getName();
    auto bound = bindings.find(name);
    if (bound == bindings.end()) {
      if (!parameter.isTuned())
        return kernel.emitError("needs its constant '") << name << "'";
      bindings[name] = parameter.getUntuned();
      continue;
    }
    if (parameter.isTuned() &&
        !llvm::is_contained(parameter.getChoices(), bound->second))
      return kernel.emitError("must not have ")
             << name << " = " << bound->second << ", which is no choice";
  }
  return success();
}

std::optional<int64_t> block::knownSize(SizeAttr size,
                                        const Bindings &bindings) {
  int64_t known = size.getFactor();
  for (StringAttr name : size.getNames()) {
    auto found = bindings.find(name.getValue());
    if (found == bindings.end() ||
        llvm::MulOverflow(known, found->second, known))
      return std::nullopt;
  }
  return known;
}

/// Checks (C3): the names of `size` are known.
static LogicalResult verifyNames(func::FuncOp kernel, SizeAttr size) {
  for (StringAttr name : size.getNames())
    if (!parametersOf(kernel).find(name) && !findDimension(kernel, name))
      return kernel.emitOpError("(C3) has no parameter ")
             << name << ", and no argument of that size";
  return success();
}

static LogicalResult verifyKernel(func::FuncOp kernel) {
  for (unsigned number = 0; number < kernel.getNumArguments(); ++number) {
    const Type type = kernel.getArgumentTypes()[number];
    auto memory = dyn_cast<MemRefType>(type);
    SizesAttr sizes = sizesOfArgument(kernel, number);
    const bool isMemory = memory && isNumber(memory.getElementType()) &&
                          memory.getRank() > 0 &&
                          memory.getRank() <= int64_t(mostDimensions);
    if (!isMemory && !isNumber(type))
      return kernel.emitOpError("(C2) has argument ")
             << number << " of type " << type
             << ", which is neither a number nor memory of numbers, of at most "
             << mostDimensions << " dimensions";
    if (memory && !sizes)
      return kernel.emitOpError("(C2) has memory without '")
             << BlockDialect::sizesName << "' as argument " << number;
    if (!sizes)
      continue;
    for (SizeAttr size : sizes.getSizes())
      if (failed(verifyNames(kernel, size)))
        return failure();
  }
  return success();
}

LogicalResult BlockDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == unrollName) {
    if (op->getName().getStringRef() != "scf.for" ||
        !isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError("(C1) is no loop that is unrolled: '")
             << unrollName << "' is a unit attribute of scf.for";
    return success();
  }
  if (attribute.getName() == documentationName &&
      isa<StringAttr>(attribute.getValue()))
    return success();
  if (attribute.getName() != parametersName)
    return op->emitOpError("(C1) has an unknown attribute '")
           << attribute.getName().getValue() << "'";
  auto kernel = dyn_cast<func::FuncOp>(op);
  if (!kernel || kernel.isExternal() ||
      !isa<ParametersAttr>(attribute.getValue()))
    return op->emitOpError("(C1) is no function with a body, whose '")
           << parametersName << "' are parameters";
  return verifyKernel(kernel);
}

LogicalResult BlockDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned number,
                                                     NamedAttribute attribute) {
  auto kernel = dyn_cast<func::FuncOp>(op);
  auto sizes = dyn_cast<SizesAttr>(attribute.getValue());
  auto memory = kernel && number < kernel.getNumArguments()
                    ? dyn_cast<MemRefType>(kernel.getArgumentTypes()[number])
                    : MemRefType();
  if (attribute.getName() != sizesName || !kernel || !isKernel(kernel) ||
      !sizes || !memory || !memory.getLayout().isIdentity())
    return op->emitOpError("(C1) has '")
           << attribute.getName().getValue() << "' at argument " << number
           << ", which is no memory of a kernel with '" << sizesName << "'";
  if (memory != memoryOf(sizes.getSizes(), memory.getElementType()))
    return op->emitOpError("(C2) has argument ")
           << number << " of type " << memory << ", whose sizes are " << sizes;
  return success();
}
