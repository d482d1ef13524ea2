//===- Functions.cpp - The words of the language --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "sandwich/Kernel/Syntax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

NumberKind kernel::kindOf(Type element) {
  if (isa<FloatType>(element))
    return NumberKind::Float;
  return element.isInteger(1) ? NumberKind::Truth : NumberKind::Integer;
}

static constexpr int predicateOf(arith::CmpFPredicate predicate) {
  return static_cast<int>(predicate);
}
static constexpr int predicateOf(arith::CmpIPredicate predicate) {
  return static_cast<int>(predicate);
}

ArrayRef<ElementwiseWord> kernel::elementwiseWords() {
  using enum NumberKind;
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  constexpr unsigned compare = comparisonPrecedence;
  static constexpr ElementwiseWord words[] = {
      {"or", "arith.ori", Truth, 2, -1, 1},
      {"and", "arith.andi", Truth, 2, -1, 2},
      {"==", "arith.cmpf", Float, 2, predicateOf(F::OEQ), compare},
      {"!=", "arith.cmpf", Float, 2, predicateOf(F::UNE), compare},
      {"<", "arith.cmpf", Float, 2, predicateOf(F::OLT), compare},
      {"<=", "arith.cmpf", Float, 2, predicateOf(F::OLE), compare},
      {">", "arith.cmpf", Float, 2, predicateOf(F::OGT), compare},
      {">=", "arith.cmpf", Float, 2, predicateOf(F::OGE), compare},
      {"==", "arith.cmpi", Integer, 2, predicateOf(I::eq), compare},
      {"!=", "arith.cmpi", Integer, 2, predicateOf(I::ne), compare},
      {"<", "arith.cmpi", Integer, 2, predicateOf(I::slt), compare},
      {"<=", "arith.cmpi", Integer, 2, predicateOf(I::sle), compare},
      {">", "arith.cmpi", Integer, 2, predicateOf(I::sgt), compare},
      {">=", "arith.cmpi", Integer, 2, predicateOf(I::sge), compare},
      {"|", "arith.ori", Integer, 2, -1, 5},
      {"|", "arith.ori", Truth, 2, -1, 5},
      {"^", "arith.xori", Integer, 2, -1, 6},
      {"^", "arith.xori", Truth, 2, -1, 6},
      {"&", "arith.andi", Integer, 2, -1, 7},
      {"&", "arith.andi", Truth, 2, -1, 7},
      {"<<", "arith.shli", Integer, 2, -1, 8},
      {">>", "arith.shrsi", Integer, 2, -1, 8},
      {"+", "arith.addf", Float, 2, -1, 9},
      {"+", "arith.addi", Integer, 2, -1, 9},
      {"-", "arith.subf", Float, 2, -1, 9},
      {"-", "arith.subi", Integer, 2, -1, 9},
      {"*", "arith.mulf", Float, 2, -1, 10},
      {"*", "arith.muli", Integer, 2, -1, 10},
      {"/", "arith.divf", Float, 2, -1, 10},
      {"//", "arith.floordivsi", Integer, 2, -1, 10},
      {"-", "arith.negf", Float, 1, -1, unaryPrecedence},
      {"shift_right_unsigned", "arith.shrui", Integer, 2},
      {"divide", "arith.divsi", Integer, 2},
      {"divide_unsigned", "arith.divui", Integer, 2},
      {"remainder", "arith.remsi", Integer, 2},
      {"remainder_unsigned", "arith.remui", Integer, 2},
      {"maximum", "arith.maximumf", Float, 2},
      {"maximum", "arith.maxsi", Integer, 2},
      {"minimum", "arith.minimumf", Float, 2},
      {"minimum", "arith.minsi", Integer, 2},
      {"fma", "math.fma", Float, 3, -1, 0, FloatTypes::SingleOrDouble},
      {"exp", "math.exp", Float, 1, -1, 0, FloatTypes::Single},
      {"exp2", "math.exp2", Float, 1, -1, 0, FloatTypes::Single},
      {"log", "math.log", Float, 1, -1, 0, FloatTypes::Single},
      {"log2", "math.log2", Float, 1, -1, 0, FloatTypes::Single},
      {"sqrt", "math.sqrt", Float, 1, -1, 0, FloatTypes::SingleOrDouble},
      {"rsqrt", "math.rsqrt", Float, 1, -1, 0, FloatTypes::Single},
      {"tanh", "math.tanh", Float, 1, -1, 0, FloatTypes::Single},
      {"erf", "math.erf", Float, 1, -1, 0, FloatTypes::Single},
      {"sin", "math.sin", Float, 1, -1, 0, FloatTypes::Single},
      {"cos", "math.cos", Float, 1, -1, 0, FloatTypes::Single},
      {"abs", "math.absf", Float, 1},
      {"abs", "math.absi", Integer, 1},
      {"floor", "math.floor", Float, 1, -1, 0, FloatTypes::SingleOrDouble},
      {"ceil", "math.ceil", Float, 1, -1, 0, FloatTypes::SingleOrDouble},
      {"trunc", "math.trunc", Float, 1, -1, 0, FloatTypes::SingleOrDouble},
      {"round", "math.roundeven", Float, 1, -1, 0, FloatTypes::SingleOrDouble},
  };
  return words;
}

const ElementwiseWord *kernel::findWord(StringRef word, NumberKind kind,
                                        unsigned operands) {
  for (const ElementwiseWord &each : elementwiseWords())
    if (each.word == word && each.kind == kind && each.operands == operands)
      return &each;
  return nullptr;
}

bool ElementwiseWord::isFor(Type element) const {
  if (kindOf(element) != kind)
    return false;
  switch (types) {
  case FloatTypes::All:
    return true;
  case FloatTypes::Single:
    return element.isF32();
  case FloatTypes::SingleOrDouble:
    return element.isF32() || element.isF64();
  }
  llvm_unreachable("all are handled");
}

const ElementwiseWord *kernel::findWord(Operation *op) {
  if (op->getNumOperands() == 0)
    return nullptr;
  const NumberKind kind = kindOf(getElementTypeOrSelf(op->getOperand(0)));
  int predicate = -1;
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    predicate = predicateOf(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    predicate = predicateOf(compare.getPredicate());
  // `and` and `or` are for one truth, `&` and `|` for many.
  const bool isBlock = block::isBlock(op->getOperand(0).getType());
  for (const ElementwiseWord &each : elementwiseWords())
    if (each.operation == op->getName().getStringRef() && each.kind == kind &&
        each.predicate == predicate &&
        (!isBlock || (each.word != "and" && each.word != "or")))
      return &each;
  return nullptr;
}

Type kernel::typeNamed(StringRef name, MLIRContext *context) {
  Builder builder(context);
  return llvm::StringSwitch<Type>(name)
      .Case("f32", builder.getF32Type())
      .Case("f64", builder.getF64Type())
      .Case("f16", builder.getF16Type())
      .Case("bf16", builder.getBF16Type())
      .Case("i1", builder.getI1Type())
      .Case("i8", builder.getI8Type())
      .Case("i16", builder.getI16Type())
      .Case("i32", builder.getI32Type())
      .Case("i64", builder.getI64Type())
      .Case("index", builder.getIndexType())
      .Default(Type());
}

std::string kernel::nameOf(Type number) {
  std::string name;
  llvm::raw_string_ostream(name) << number;
  return name;
}

std::optional<block::ReductionKind> kernel::reductionNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<block::ReductionKind>>(name)
      .Case("sum", block::ReductionKind::Add)
      .Case("prod", block::ReductionKind::Multiply)
      .Case("max", block::ReductionKind::Maximum)
      .Case("min", block::ReductionKind::Minimum)
      .Default(std::nullopt);
}

StringRef kernel::nameOf(block::ReductionKind kind) {
  switch (kind) {
  case block::ReductionKind::Add:
    return "sum";
  case block::ReductionKind::Multiply:
    return "prod";
  case block::ReductionKind::Maximum:
    return "max";
  case block::ReductionKind::Minimum:
    return "min";
  }
  llvm_unreachable("all kinds are handled");
}

bool kernel::isMessage(StringRef text) {
  return text.find_first_of("\"\\\n\r") == StringRef::npos;
}

bool kernel::isReserved(StringRef name) {
  static constexpr StringLiteral others[] = {
      "range",    "blocks",     "unroll",    "block",    "zeros",   "full",
      "where",    "inside",     "positions", "size",     "scratch", "broadcast",
      "bitcast",  "tune",       "type",      "constant", "inf",     "nan",
      "prefetch", "interleave", "matmul"};
  return syntax::isKeyword(name) || llvm::is_contained(others, name) ||
         reductionNamed(name) ||
         llvm::any_of(elementwiseWords(),
                      [&](auto &each) { return each.word == name; }) ||
         llvm::is_contained({"f32", "f64", "f16", "bf16", "i1", "i8", "i16",
                             "i32", "i64", "index"},
                            name);
}
