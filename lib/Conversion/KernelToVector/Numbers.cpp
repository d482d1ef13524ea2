//===- Numbers.cpp - Arithmetic, casts and intrinsics ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raiser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::raising;

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
  // Integers with a sign do not overflow in C; vectors of them do, and what is
  // smaller than an int, and only seems to be computed as such.
  const bool mayOverflow = noSign || !x.getType().isIntOrFloat() ||
                           x.getType().getIntOrFloatBitWidth() < 32;
  const auto flags = mayOverflow ? arith::IntegerOverflowFlags::none
                                 : arith::IntegerOverflowFlags::nsw;
  const auto makeInteger = [&]<typename Op>() {
    return builder.createOrFold<Op>(location, x, y, flags);
  };
  switch (op.getKind()) {
  case BinaryOperator::Add:
    return isFloat ? make.operator()<arith::AddFOp>()
                   : makeInteger.operator()<arith::AddIOp>();
  case BinaryOperator::Subtract:
    return isFloat ? make.operator()<arith::SubFOp>()
                   : makeInteger.operator()<arith::SubIOp>();
  case BinaryOperator::Multiply:
    return isFloat ? make.operator()<arith::MulFOp>()
                   : makeInteger.operator()<arith::MulIOp>();
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

Value raising::bitcast(OpBuilder &builder, Location location, Value value,
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
    value = isUnsigned(from)
                ? builder.createOrFold<arith::ExtUIOp>(location, target, value)
                : builder.createOrFold<arith::ExtSIOp>(location, target, value);
  } else if (fromBits > toBits) {
    value = builder.createOrFold<arith::TruncIOp>(location, target, value);
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
