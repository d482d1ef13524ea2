//===- ReadCalls.cpp - Functions of kernels -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

bool KernelReader::checkCall(const Expression &call, size_t fewest, size_t most,
                             ArrayRef<StringRef> keywords) {
  const size_t given = call.operands.size() - call.keywords.size();
  for (const std::string &keyword : call.keywords)
    if (!llvm::is_contained(keywords, keyword)) {
      error(call.place) << "'" << call.text << "' has no '" << keyword << "='";
      return false;
    }
  if (given >= fewest && given <= most)
    return true;
  InFlightDiagnostic wrong = error(call.place);
  wrong << "'" << call.text << "' takes ";
  if (fewest != most)
    wrong << fewest << " to " << most;
  else
    wrong << fewest;
  wrong << (most == 1 ? " operand" : " operands") << ", has " << given;
  return false;
}

std::optional<const Expression *> KernelReader::keyword(const Expression &call,
                                                        StringRef name) {
  const size_t first = call.operands.size() - call.keywords.size();
  for (auto [number, each] : llvm::enumerate(call.keywords))
    if (each == name)
      return call.operands[first + number].get();
  return std::nullopt;
}

MaybeOperand KernelReader::readCall(const Expression &call) {
  const std::string &name = call.text;
  if (Type type = typeNamed(name, context))
    return readConversion(call, type);
  if (auto found = types.find(name); found != types.end())
    return readConversion(call, found->second);
  if (std::optional<ReductionKind> kind = reductionNamed(name))
    return readReduction(call, *kind);
  if (name == "zeros" || name == "full")
    return readFull(call);
  if (name == "where")
    return readWhere(call);
  if (name == "block")
    return readBlockOf(call);
  if (name == "inside" || name == "positions") {
    if (!checkCall(call, 1, 1))
      return std::nullopt;
    MaybeOperand range = read(*call.operands[0]);
    if (!range)
      return std::nullopt;
    if (!range->value || !isa<RangeType>(range->value.getType()))
      return refuse(call.place, "'" + name + "' is for ranges");
    if (name == "positions")
      return Operand{withoutRange(location(call.place), range->value)};
    SizeAttr size = cast<RangeType>(range->value.getType()).getSize();
    return Operand{InsideOp::create(builder, location(call.place),
                                    blockOf(size, builder.getI1Type()),
                                    range->value)
                       .getResult()};
  }
  if (name == "size") {
    std::optional<SizeAttr> size =
        checkCall(call, 1, 1) ? readSize(*call.operands[0]) : std::nullopt;
    if (!size)
      return std::nullopt;
    return Operand{
        SizeOp::create(builder, location(call.place), *size).getResult()};
  }
  if (name == "scratch")
    return readScratch(call);
  if (name == "broadcast") {
    if (!checkCall(call, 2, 1 + mostDimensions))
      return std::nullopt;
    MaybeOperand operand = read(*call.operands[0]);
    if (!operand)
      return std::nullopt;
    if (!operand->value || !block::isBlock(operand->value.getType()))
      return refuse(call.place, "'broadcast' is for blocks");
    std::optional<SmallVector<SizeAttr>> given =
        readSizes(ArrayRef(call.operands).drop_front());
    if (!given)
      return std::nullopt;
    SmallVector<SizeAttr> &sizes = *given;
    std::optional<SmallVector<SizeAttr>> both =
        broadcastSizes(sizes, sizesOf(operand->value.getType()));
    if (!both || *both != sizes)
      return refuse(call.place, describe(operand->value.getType()) +
                                    " is not repeated to these sizes");
    return Operand{BroadcastOp::create(
                       builder, location(call.place),
                       blockOf(sizes, getElementTypeOrSelf(operand->value)),
                       operand->value)
                       .getResult()};
  }
  if (name == "bitcast") {
    if (!checkCall(call, 2, 2))
      return std::nullopt;
    MaybeOperand operand = read(*call.operands[0]);
    std::optional<Type> element =
        operand ? readElementType(*call.operands[1]) : std::nullopt;
    if (!element)
      return std::nullopt;
    Type from;
    if (operand->value && !isa<MemRefType>(operand->value.getType()))
      from = getElementTypeOrSelf(operand->value);
    if (!from || !from.isIntOrFloat() || !element->isIntOrFloat() ||
        from.getIntOrFloatBitWidth() != element->getIntOrFloatBitWidth())
      return refuse(call.place, "'bitcast' is for numbers of as many bits");
    return Operand{arith::BitcastOp::create(
                       builder, location(call.place),
                       blockOf(sizesOrNone(operand->value.getType()), *element),
                       operand->value)
                       .getResult()};
  }
  if (name == "interleave")
    return readInterleave(call);
  if (name == "matmul")
    return readMatmul(call);
  if (name == "prefetch")
    return refuse(call.place, "'prefetch' gives no value");
  return readElementwise(call);
}

std::optional<SmallVector<Operand>>
KernelReader::readOperands(const Expression &call) {
  SmallVector<Operand> operands;
  for (const syntax::ExpressionPointer &each : call.operands) {
    MaybeOperand operand = read(*each);
    if (!operand)
      return std::nullopt;
    operands.push_back(*operand);
  }
  return operands;
}

std::optional<bool> KernelReader::truthOf(const Expression &call,
                                          StringRef name) {
  std::optional<const Expression *> given = keyword(call, name);
  if (!given)
    return false;
  if ((*given)->kind == Expression::Kind::Truth)
    return (*given)->integer != 0;
  error((*given)->place) << "'" << name << "=' is True or False";
  return std::nullopt;
}

/// `scratch(f32, A, B)`, or `scratch(bf16, A, 2, B, pairs=True)`.
MaybeOperand KernelReader::readScratch(const Expression &call) {
  if (!checkCall(call, 2, 1 + mostDimensions, {"pairs"}))
    return std::nullopt;
  std::optional<bool> pairs = truthOf(call, "pairs");
  std::optional<Type> element =
      pairs ? readElementType(*call.operands[0]) : std::nullopt;
  if (!element)
    return std::nullopt;
  std::optional<SmallVector<SizeAttr>> sizes = readSizes(
      ArrayRef(call.operands).drop_front().drop_back(call.keywords.size()));
  if (!sizes)
    return std::nullopt;
  if (element->isIndex() || element->isInteger(1))
    return refuse(call.place, "memory has no numbers of index or i1");
  const auto two = SizeAttr::get(context, 2, {});
  if (*pairs && (sizes->size() < 2 || sizes->end()[-2] != two))
    return refuse(call.place, "memory in pairs has 2 in the dimension before "
                              "the last");
  return Operand{ScratchOp::create(builder, location(call.place),
                                   memoryOf(*sizes, *element),
                                   SizesAttr::get(context, *sizes), *pairs)
                     .getResult()};
}

/// `matmul(a, b)`, or `matmul(a, b, sums)`.
MaybeOperand KernelReader::readMatmul(const Expression &call) {
  if (!checkCall(call, 2, 3))
    return std::nullopt;
  std::optional<SmallVector<Operand>> operands = readOperands(call);
  if (!operands)
    return std::nullopt;
  SmallVector<Value, 3> matrices;
  for (auto [each, operand] : llvm::zip_equal(call.operands, *operands)) {
    if (!operand.value || !block::isBlock(operand.value.getType()))
      return refuse(each->place, "'matmul' is for blocks");
    matrices.push_back(operand.value);
  }
  const ArrayRef<SizeAttr> lhs = sizesOf(matrices[0].getType()),
                           rhs = sizesOf(matrices[1].getType());
  const auto describeBoth = [&] {
    return describe(matrices[0].getType()) + " and " +
           describe(matrices[1].getType());
  };
  const Type element = getElementTypeOrSelf(matrices[0]);
  if (element != getElementTypeOrSelf(matrices[1]) ||
      !(element.isF32() || element.isF16() || element.isBF16()))
    return refuse(call.place,
                  "'matmul' is for blocks of bf16, f16 or f32, both "
                  "of the same, and is given " +
                      describeBoth());
  if (lhs.size() != 2 || rhs.size() < 2 || productOf(rhs.drop_back()) != lhs[1])
    return refuse(call.place,
                  "'matmul' takes a block of [rows, k] and one of [k, "
                  "columns], whose k may have several dimensions, "
                  "and is given " +
                      describeBoth());
  Location where = location(call.place);
  const Type type = blockOf({lhs[0], rhs.back()}, builder.getF32Type());
  if (matrices.size() == 2) {
    Value zero =
        arith::ConstantOp::create(builder, where, builder.getF32FloatAttr(0));
    matrices.push_back(SplatOp::create(builder, where, type, zero));
  }
  if (matrices[2].getType() != type)
    return refuse(call.place, "'matmul' adds to " + describe(type) +
                                  ", and is given " +
                                  describe(matrices[2].getType()));
  return Operand{
      MatmulOp::create(builder, where, matrices[0], matrices[1], matrices[2])
          .getResult()};
}

MaybeOperand KernelReader::readInterleave(const Expression &call) {
  if (!checkCall(call, 2, 2))
    return std::nullopt;
  MaybeOperand lhs = read(*call.operands[0]);
  MaybeOperand rhs = lhs ? read(*call.operands[1]) : std::nullopt;
  std::optional<SmallVector<Value>> values =
      rhs ? unify(call.place, {*lhs, *rhs}) : std::nullopt;
  if (!values)
    return std::nullopt;
  Type type = (*values)[0].getType();
  SmallVector<SizeAttr> sizes;
  if (block::isBlock(type))
    sizes = interleavedSizes(sizesOf(type));
  if (sizes.empty())
    return refuse(call.place, "'interleave' is for blocks");
  return Operand{
      InterleaveOp::create(builder, location(call.place),
                           blockOf(sizes, getElementTypeOrSelf(type)),
                           (*values)[0], (*values)[1])
          .getResult()};
}

MaybeOperand KernelReader::readElementwise(const Expression &call) {
  const size_t count = call.operands.size();
  const bool isKnown =
      llvm::any_of(elementwiseWords(), [&](const ElementwiseWord &each) {
        return each.word == call.text && each.precedence == 0;
      });
  if (!isKnown)
    return refuse(call.place,
                  "there is no function '" + call.text + "' of kernels");
  size_t takes = 0;
  for (const ElementwiseWord &each : elementwiseWords())
    if (each.word == call.text)
      takes = each.operands;
  if (!checkCall(call, takes, takes))
    return std::nullopt;
  std::optional<SmallVector<Operand>> given = readOperands(call);
  if (!given)
    return std::nullopt;
  SmallVector<Operand> &operands = *given;
  // A function of integers alone is one of floats, unless it is for both.
  if (llvm::none_of(operands, [](const Operand &each) { return each.value; }) &&
      !findWord(call.text, NumberKind::Integer, count))
    for (Operand &each : operands)
      if (each.literal == NumberKind::Integer)
        each = Operand::ofFloat(double(each.integer));
  std::optional<SmallVector<Value>> values = unify(call.place, operands);
  if (!values)
    return std::nullopt;
  Type type = getElementTypeOrSelf((*values)[0]);
  const ElementwiseWord *found = findWord(call.text, kindOf(type), count);
  if (!found || !found->isFor(type))
    return refuse(
        call.place,
        "'" + call.text + "' is not for " + nameOf(type) +
            (isa<FloatType>(type) ? ": convert it, as in f32(x)" : ""));
  Operation *op = builder.create(location(call.place),
                                 builder.getStringAttr(found->operation),
                                 *values, (*values)[0].getType());
  return Operand{op->getResult(0)};
}

MaybeOperand KernelReader::readConversion(const Expression &call, Type type) {
  if (!checkCall(call, 1, 1, {"unsigned"}))
    return std::nullopt;
  const std::optional<bool> given = truthOf(call, "unsigned");
  if (!given)
    return std::nullopt;
  bool isUnsigned = *given;
  MaybeOperand operand = read(*call.operands[0]);
  if (!operand)
    return std::nullopt;
  if (!operand->value) {
    std::optional<Value> constant = valueOf(call.place, *operand, type);
    return constant ? MaybeOperand(Operand{*constant}) : std::nullopt;
  }
  Location where = location(call.place);
  if (isa<MemRefType>(operand->value.getType()))
    return refuse(call.place, "memory is read by its elements, as in x[i]");
  Value value = withoutRange(where, operand->value);
  Type from = getElementTypeOrSelf(value);
  Type to = blockOf(sizesOrNone(value.getType()), type);
  if (from == type)
    return Operand{value};
  const auto convert = [&](StringRef operation) {
    return Operand{
        builder.create(where, builder.getStringAttr(operation), value, to)
            ->getResult(0)};
  };
  const bool isFromFloat = isa<FloatType>(from),
             isToFloat = isa<FloatType>(type);
  const auto widthOf = [](Type each) {
    return each.isIndex() ? 64 : each.getIntOrFloatBitWidth();
  };
  if (type.isInteger(1))
    return refuse(call.place, "truth comes from a comparison, as x != 0");
  if (isFromFloat && isToFloat) {
    if (from.isF64() && widthOf(type) == 16)
      return refuse(call.place, "convert to f32 first");
    if (widthOf(from) == widthOf(type)) {
      // Between bf16 and f16 there is no other way.
      value = arith::ExtFOp::create(
          builder, where,
          blockOf(sizesOrNone(value.getType()), builder.getF32Type()), value);
      return convert("arith.truncf");
    }
    return convert(widthOf(from) < widthOf(type) ? "arith.extf"
                                                 : "arith.truncf");
  }
  if (isFromFloat) {
    if (type.isIndex())
      return refuse(call.place, "convert to i64 first");
    return convert(isUnsigned ? "arith.fptoui" : "arith.fptosi");
  }
  // Truth counts as 0 and 1.
  isUnsigned |= from.isInteger(1);
  if (isToFloat) {
    if (from.isIndex()) {
      value = arith::IndexCastOp::create(
          builder, where,
          blockOf(sizesOrNone(value.getType()), builder.getI64Type()), value);
    }
    return convert(isUnsigned ? "arith.uitofp" : "arith.sitofp");
  }
  if (from.isIndex() || type.isIndex())
    return convert(isUnsigned ? "arith.index_castui" : "arith.index_cast");
  return convert(widthOf(from) > widthOf(type) ? "arith.trunci"
                 : isUnsigned                  ? "arith.extui"
                                               : "arith.extsi");
}

MaybeOperand KernelReader::readReduction(const Expression &call,
                                         ReductionKind kind) {
  if (!checkCall(call, 1, 1, {"axis"}))
    return std::nullopt;
  MaybeOperand operand = read(*call.operands[0]);
  if (!operand)
    return std::nullopt;
  Location where = location(call.place);
  if (!operand->value || isa<MemRefType>(operand->value.getType()))
    return refuse(call.place, "'" + call.text + "' is for blocks");
  Value value = withoutRange(where, operand->value);
  if (!block::isBlock(value.getType()) ||
      getElementTypeOrSelf(value).isInteger(1))
    return refuse(call.place, "'" + call.text + "' is for blocks of numbers");
  SmallVector<SizeAttr> sizes(sizesOf(value.getType()));
  IntegerAttr axis;
  if (std::optional<const Expression *> given = keyword(call, "axis")) {
    MaybeOperand number = read(**given);
    if (!number)
      return std::nullopt;
    const int64_t rank = static_cast<int64_t>(sizes.size());
    if (number->value || number->literal != NumberKind::Integer ||
        number->integer < -rank || number->integer >= rank)
      return refuse((*given)->place,
                    describe(value.getType()) + " has no such axis");
    const int64_t which =
        number->integer < 0 ? number->integer + rank : number->integer;
    axis = builder.getI64IntegerAttr(which);
    sizes.erase(sizes.begin() + which);
  } else {
    sizes.clear();
  }
  return Operand{ReduceOp::create(builder, where,
                                  blockOf(sizes, getElementTypeOrSelf(value)),
                                  kind, value, axis)
                     .getResult()};
}

/// `zeros(A, B)`, of f32, and `full(x, A, B)`.
MaybeOperand KernelReader::readFull(const Expression &call) {
  const bool isFull = call.text == "full";
  if (!checkCall(call, isFull ? 2 : 1, (isFull ? 1 : 0) + mostDimensions))
    return std::nullopt;
  Operand number = Operand::ofFloat(0);
  if (isFull) {
    MaybeOperand given = read(*call.operands[0]);
    if (!given)
      return std::nullopt;
    number = *given;
  }
  std::optional<Value> value = valueOf(call.place, number);
  if (!value)
    return std::nullopt;
  if (!block::isNumber(value->getType()))
    return refuse(call.place, "'full' is for one number");
  std::optional<SmallVector<SizeAttr>> sizes =
      readSizes(ArrayRef(call.operands).drop_front(isFull ? 1 : 0));
  if (!sizes)
    return std::nullopt;
  return Operand{SplatOp::create(builder, location(call.place),
                                 blockOf(*sizes, value->getType()), *value)
                     .getResult()};
}

MaybeOperand KernelReader::readWhere(const Expression &call) {
  if (!checkCall(call, 3, 3))
    return std::nullopt;
  std::optional<SmallVector<Operand>> given = readOperands(call);
  if (!given)
    return std::nullopt;
  SmallVector<Operand> &operands = *given;
  Location where = location(call.place);
  std::optional<Value> condition = valueOf(call.place, operands[0]);
  std::optional<SmallVector<Value>> values =
      condition ? unify(call.place, {operands[1], operands[2]}) : std::nullopt;
  if (!values)
    return std::nullopt;
  if (!getElementTypeOrSelf(*condition).isInteger(1))
    return refuse(call.place, "the condition must be true or false");
  // One truth chooses between whole blocks; else all have the same sizes.
  std::optional<SmallVector<SizeAttr>> sizes = broadcastSizes(
      sizesOrNone(condition->getType()), sizesOrNone((*values)[0].getType()));
  if (!sizes)
    return refuse(call.place, "sizes do not go together: " +
                                  describe(condition->getType()) + " and " +
                                  describe((*values)[0].getType()));
  if (block::isBlock(condition->getType()))
    condition = broadcastTo(where, *condition, *sizes);
  Value yes = broadcastTo(where, (*values)[0], *sizes);
  Value no = broadcastTo(where, (*values)[1], *sizes);
  return Operand{
      arith::SelectOp::create(builder, where, *condition, yes, no).getResult()};
}

/// `block(first, SIZE)` or `block(first, SIZE, end)`.
MaybeOperand KernelReader::readBlockOf(const Expression &call) {
  if (!checkCall(call, 2, 3))
    return std::nullopt;
  MaybeOperand start = read(*call.operands[0]);
  std::optional<Value> first =
      start ? indexOf(call.operands[0]->place, *start) : std::nullopt;
  std::optional<SizeAttr> size =
      first ? readSize(*call.operands[1]) : std::nullopt;
  if (!size)
    return std::nullopt;
  Value end;
  if (call.operands.size() == 3) {
    MaybeOperand given = read(*call.operands[2]);
    std::optional<Value> index =
        given ? indexOf(call.operands[2]->place, *given) : std::nullopt;
    if (!index)
      return std::nullopt;
    end = *index;
  }
  return Operand{RangeOp::create(builder, location(call.place),
                                 RangeType::get(context, *size), *first, end)
                     .getResult()};
}
