//===- KernelOps.cpp - Operations of kernel -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Kernel/IR/Kernel.h"
#include "sandwich/Kernel/Intrinsics.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

#define GET_OP_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto makeType = [](Builder &builder, ArrayRef<Type> arguments,
                     ArrayRef<Type> results,
                     function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), makeType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  if (getBody().empty())
    return emitOpError("(C3) has a body");
  for (auto [number, type] : llvm::enumerate(getArgumentTypes()))
    if (!isValue(type))
      return emitOpError("(C1) argument ")
             << number << " must be a number, a vector or a pointer, not "
             << type;
  if (getResultTypes().size() > 1 ||
      (getResultTypes().size() == 1 && !isValue(getResultTypes().front())))
    return emitOpError("(C2) has one result, a value, or none");
  return success();
}

LogicalResult ReturnOp::verify() {
  auto function = (*this)->getParentOfType<FuncOp>();
  if (!function)
    return emitOpError("(C1) must be in a function");
  // What has a value cannot end otherwise.
  for (Region *region = (*this)->getParentRegion();
       region != &function.getBody(); region = region->getParentRegion()) {
    auto loop = dyn_cast<ForOp>(region->getParentOp());
    auto repeat = dyn_cast<DoOp>(region->getParentOp());
    if (!isa<IfOp>(region->getParentOp()) &&
        !(loop && region == &loop.getBody()) &&
        !(repeat && region == &repeat.getBody()))
      return emitOpError("(C2) must not be in a condition, a step or a choice");
  }
  const ArrayRef<Type> results = function.getResultTypes();
  if (getOperation()->getOperandTypes() != TypeRange(results)) {
    InFlightDiagnostic error = emitOpError("(C1) must return ");
    if (results.empty())
      return error << "nothing";
    return error << results.front();
  }
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("(C1) there is no function ") << getCallee();
  if (TypeRange(getOperands()) != TypeRange(callee.getArgumentTypes()) ||
      getOperation()->getResultTypes() != TypeRange(callee.getResultTypes()))
    return emitOpError("(C2) does not fit ") << callee.getFunctionType();
  return success();
}

/// The number of numbers in `type`, arrays of such, and their type; nothing if
/// it is none.
static std::optional<std::pair<int64_t, Type>> numbersIn(Type type) {
  int64_t count = 1;
  while (auto array = dyn_cast<ArrayType>(type)) {
    if (llvm::MulOverflow(count, array.getSize(), count))
      return std::nullopt;
    type = array.getElement();
  }
  if (!isNumber(type))
    return std::nullopt;
  return std::pair(count, type);
}

LogicalResult GlobalOp::verify() {
  const auto numbers = numbersIn(getType());
  if (!numbers || !isa<ArrayType>(getType()))
    return emitOpError("(C1) must be an array of numbers, not ") << getType();
  constexpr int64_t most = int64_t{1} << 20;
  if (!isa<DenseElementsAttr>(getValue()) || numbers->first > most)
    return emitOpError("(C3) must have at most 2^20 numbers, all of them told");
  if (getValue().getNumElements() != numbers->first ||
      getValue().getElementType() != numbers->second)
    return emitOpError("(C2) must have ")
           << numbers->first << " numbers of " << numbers->second;
  return success();
}

LogicalResult AddressOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto global =
      symbols.lookupNearestSymbolFrom<GlobalOp>(*this, getTableAttr());
  if (!global)
    return emitOpError("(C1) there is no table ") << getTable();
  auto expected = PointerType::get(getContext(), global.getType(), true);
  if (getResult().getType() != expected)
    return emitOpError("(C2) the result must be ") << expected;
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult VariableOp::verify() {
  if (getType().getIsConst())
    return emitOpError("(C1) must not be const");
  const int64_t alignment =
      getAlignmentAttr() ? getAlignmentAttr().getInt() : 1;
  if (alignment < 1 || alignment > 4096 || !llvm::isPowerOf2_64(alignment))
    return emitOpError("(C2) must be aligned by a power of two up to 4096");
  return success();
}

LogicalResult StoreOp::verify() {
  if (cast<PointerType>(getPointer().getType()).getIsConst())
    return emitOpError("(C1) must not write to what is const");
  return success();
}

LogicalResult CopyOp::verify() {
  auto from = cast<PointerType>(getFrom().getType()),
       to = cast<PointerType>(getTo().getType());
  if (from.getObject() != to.getObject())
    return emitOpError("(C1) must be of objects of one type");
  if (to.getIsConst())
    return emitOpError("(C1) must not write to what is const");
  return success();
}

LogicalResult OffsetOp::verify() {
  if (!isa<IntegerType>(getIndex().getType()))
    return emitOpError("(C1) the index must be an integer, not ")
           << getIndex().getType();
  return success();
}

LogicalResult ElementsOp::verify() {
  auto from = cast<PointerType>(getArray().getType());
  auto array = dyn_cast<ArrayType>(from.getObject());
  if (!array)
    return emitOpError("(C1) must be of an array, not ") << from.getObject();
  auto expected =
      PointerType::get(getContext(), array.getElement(), from.getIsConst());
  if (getResult().getType() != expected)
    return emitOpError("(C1) the result must be ") << expected;
  return success();
}

LogicalResult MemberOp::verify() {
  auto from = cast<PointerType>(getStructure().getType());
  auto structure = dyn_cast<StructureType>(from.getObject());
  if (!structure)
    return emitOpError("(C1) must be of a structure, not ") << from.getObject();
  Type member = structure.getMember(getName());
  if (!member)
    return emitOpError("(C1) there is no member ") << getNameAttr();
  auto expected = PointerType::get(getContext(), member, from.getIsConst());
  if (getResult().getType() != expected)
    return emitOpError("(C2) the result must be ") << expected;
  return success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor /*adaptor*/) { return getValue(); }

/// Numbers of one kind, or a vector of them, as C has in its constants.
LogicalResult ConstantOp::verify() {
  const bool isNumber = isa<FloatAttr, IntegerAttr>(getValue());
  if (!isNumber && !isa<DenseElementsAttr>(getValue()))
    return emitOpError("(C1) must be a number or a dense vector");
  return success();
}

LogicalResult CompareOp::verify() {
  if (isa<VectorType>(getLhs().getType()))
    return emitOpError("(C1) is not for vectors");
  return success();
}

LogicalResult BinaryOp::verify() {
  const bool isOfBits = getKind() == BinaryOperator::And ||
                        getKind() == BinaryOperator::Or ||
                        getKind() == BinaryOperator::Xor;
  if (getResult().getType().isInteger(1) && !isOfBits)
    return emitOpError("(C2) is not for truths");
  const bool isForFloats = getKind() <= BinaryOperator::Divide;
  if (isa<FloatType>(getElementTypeOrSelf(getResult().getType())) &&
      !isForFloats)
    return emitOpError("(C1) is not for ") << getResult().getType();
  return success();
}

LogicalResult UnaryOp::verify() {
  if (getResult().getType().isInteger(1))
    return emitOpError("(C2) is not for truths");
  if (isa<FloatType>(getElementTypeOrSelf(getResult().getType())) &&
      getKind() != UnaryOperator::Negate)
    return emitOpError("(C1) is not for ") << getResult().getType();
  return success();
}

LogicalResult CastOp::verify() {
  Type from = getOperand().getType(), to = getResult().getType();
  const bool areNumbers = isNumber(from) && isNumber(to);
  const bool arePointers = isa<PointerType>(from) && isa<PointerType>(to);
  const bool areMaskAndInteger = (isMask(from) && isa<IntegerType>(to)) ||
                                 (isa<IntegerType>(from) && isMask(to));
  if (areNumbers || arePointers ||
      (areMaskAndInteger && bitWidthOf(from) == bitWidthOf(to)))
    return success();
  return emitOpError(
             "(C1) must be of numbers, of pointers, or of a mask and an "
             "integer of as many bits, not of ")
         << from << " and " << to;
}

LogicalResult BitcastOp::verify() {
  Type from = getOperand().getType(), to = getResult().getType();
  if (bitWidthOf(from) == 0 || bitWidthOf(from) != bitWidthOf(to))
    return emitOpError(
               "(C1) must be of numbers or vectors of as many bits, not ")
           << from << " and " << to;
  return success();
}

static unsigned operandsOf(Function function) {
  switch (function) {
  case Function::Power:
  case Function::Minimum:
  case Function::Maximum:
    return 2;
  case Function::Fma:
    return 3;
  default:
    return 1;
  }
}

LogicalResult MathOp::verify() {
  if (getOperands().size() != operandsOf(getFunction()))
    return emitOpError("(C1) ") << stringifyFunction(getFunction()) << " has "
                                << operandsOf(getFunction()) << " operands";
  return success();
}

//===----------------------------------------------------------------------===//
// Intrinsics
//===----------------------------------------------------------------------===//

LogicalResult IntrinsicOp::verify() {
  const kernel::Intrinsic *intrinsic = IntrinsicTable::x86().find(getName());
  if (!intrinsic)
    return emitOpError("(C1) there is no intrinsic ") << getNameAttr();
  if (getOperands().size() != intrinsic->parameters.size())
    return emitOpError("(C2) ")
           << getName() << " has " << intrinsic->parameters.size()
           << " operands, not " << getOperands().size();
  for (auto [operand, parameter] :
       llvm::zip_equal(getOperands(), intrinsic->parameters)) {
    const ParameterType &type = parameter.type;
    Type wanted = typeOf(type, getContext());
    if (!areInterchangeable(operand.getType(), wanted))
      return emitOpError("(C2) ")
             << getName() << ": " << parameter.name << " must be " << wanted
             << ", not " << operand.getType();
    if (type.kind != ParameterType::Kind::Immediate)
      continue;
    APInt number;
    if (!matchPattern(operand, m_ConstantInt(&number)) ||
        number.getSExtValue() < type.first || number.getSExtValue() > type.last)
      return emitOpError("(C2) ") << getName() << ": " << parameter.name
                                  << " must be a constant between "
                                  << type.first << " and " << type.last;
  }
  if (!intrinsic->result) {
    if (getResult())
      return emitOpError("(C3) ") << getName() << " has no result";
    return success();
  }
  Type wanted = typeOf(*intrinsic->result, getContext());
  if (!getResult() || !areInterchangeable(getResult().getType(), wanted))
    return emitOpError("(C3) ") << getName() << " gives " << wanted;
  return success();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// An error unless `region`, `what` of `op`, ends by yielding `type`.
static LogicalResult verifyYield(Operation *op, StringRef what, Region &region,
                                 Type type) {
  Block &block = region.front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValue().getType() != type)
    return op->emitOpError("(C1) ") << what << " must yield " << type;
  return success();
}

LogicalResult ConditionalOp::verify() {
  for (auto [what, region] : {std::pair("the first side", &getThen()),
                              std::pair("the second side", &getOtherwise())})
    if (failed(verifyYield(*this, what, *region, getResult().getType())))
      return failure();
  return success();
}

LogicalResult ForOp::verify() {
  if (getUnrollAttr() && getUnrollAttr().getInt() < 0)
    return emitOpError("(C2) unroll must not be negative");
  return verifyYield(*this, "the condition", getCondition(),
                     IntegerType::get(getContext(), 1));
}

LogicalResult DoOp::verify() {
  return verifyYield(*this, "the condition", getCondition(),
                     IntegerType::get(getContext(), 1));
}

/// An error unless `op` is in the body of a loop, or of branches of it.
static LogicalResult verifyJump(Operation *op) {
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion()) {
    Operation *parent = region->getParentOp();
    if (auto loop = dyn_cast<ForOp>(parent))
      if (region == &loop.getBody())
        return success();
    if (auto loop = dyn_cast<DoOp>(parent))
      if (region == &loop.getBody())
        return success();
    if (!isa<IfOp>(parent))
      break;
  }
  return op->emitOpError("(C1) must be in the body of a loop");
}

LogicalResult BreakOp::verify() { return verifyJump(*this); }

LogicalResult ContinueOp::verify() { return verifyJump(*this); }
