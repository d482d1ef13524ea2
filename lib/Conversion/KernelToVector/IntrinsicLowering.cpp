//===- IntrinsicLowering.cpp - Intrinsics as vector operations ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of intrinsics has an expression for lane `i`. It is evaluated here
/// for all lanes at once: what depends on `i` alone is known for each, and all
/// else is a vector. So `a[i] + b[i]` becomes an addition, `a[2 * i + 1]` a
/// shuffle, `i < 4 ? a[i] : b[i - 4]` another one, `k[i] ? p[i] : 0` a masked
/// load, and a fold over `j` is an expression of as many times more lanes,
/// whose halves are combined.
///
//===----------------------------------------------------------------------===//

#include "IntrinsicLowering.h"

#include "sandwich/Dialect/Kernel/IR/Kernel.h"
#include "sandwich/Kernel/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace sandwich;
using kernel::Expression;
using kernel::LaneType;
using kernel::ParameterType;
using Kind = Expression::Kind;

Type sandwich::loweredType(LaneType type, MLIRContext *context) {
  Type lane = kernel::typeOf(type, context);
  return isa<IntegerType>(lane)
             ? IntegerType::get(context, lane.getIntOrFloatBitWidth())
             : lane;
}

MemoryPlace sandwich::viewAs(OpBuilder &builder, Location location,
                             MemoryPlace place, Type element) {
  auto type = cast<MemRefType>(place.base.getType());
  if (type.getElementType() == element)
    return place;
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Value zero = arith::ConstantIndexOp::create(builder, location, 0);
  Value all = memref::DimOp::create(builder, location, place.base, zero);
  Value rest = arith::SubIOp::create(builder, location, all, place.offset);
  Value size = arith::ConstantIndexOp::create(builder, location, bytes);
  Value count = arith::DivUIOp::create(builder, location, rest, size);
  Value view = memref::ViewOp::create(
      builder, location, MemRefType::get({ShapedType::kDynamic}, element),
      place.base, place.offset, count);
  return {view, zero};
}

namespace {

/// All lanes of an expression: known numbers, or a value; an index if there is
/// no type.
struct Lanes {
  std::optional<LaneType> type;
  std::optional<SmallVector<int64_t>> known;
  Value value;
};

/// Which lanes there are: the index of each by its name, and whether anything
/// depends on it.
struct Domain {
  std::map<std::string, SmallVector<int64_t>, std::less<>> indices;
  llvm::BitVector needed;

  int64_t size() const { return static_cast<int64_t>(needed.size()); }
};

class Lowering {
public:
  Lowering(OpBuilder &builder, Location location,
           const kernel::Intrinsic &intrinsic,
           ArrayRef<IntrinsicOperand> operands, std::string &reason)
      : builder(builder), location(location), intrinsic(intrinsic),
        operands(operands), reason(reason) {}

  FailureOr<Value> run();

private:
  using Result = FailureOr<Lanes>;

  Result evaluate(const Expression &expression, const Domain &domain);
  Result evaluateArgument(const Expression &expression, const Domain &domain);
  Result evaluateVector(Value vector, LaneType type, const Lanes &index,
                        const Domain &domain);
  Result evaluateMemory(const MemoryPlace &place, LaneType type,
                        const Lanes &index, const Domain &domain);
  Result evaluateSelect(const Expression &expression, const Domain &domain);
  Result evaluateFold(const Expression &expression, const Domain &domain);
  /// A number times a power of two, of which `product` is the product.
  Result evaluateScaled(const Expression &product, const Domain &domain);
  Result convert(Lanes lanes, std::optional<LaneType> type,
                 const Domain &domain);
  Result combine(Kind kind, LaneType type, ArrayRef<Lanes> lanes,
                 const Domain &domain);
  Result combineKnown(Kind kind, std::optional<LaneType> type,
                      ArrayRef<Lanes> lanes, const Domain &domain);
  LogicalResult store();

  /// The lanes as one value of `domain`'s size.
  Value materialize(const Lanes &lanes, const Domain &domain);
  Type typeOf(LaneType type, int64_t lanes) {
    Type element = loweredType(type, builder.getContext());
    return lanes == 1 ? element : Type(VectorType::get({lanes}, element));
  }
  Value constant(LaneType type, ArrayRef<int64_t> numbers);
  Value splat(LaneType type, int64_t lanes, int64_t number) {
    return constant(type,
                    SmallVector<int64_t>(static_cast<size_t>(lanes), number));
  }
  Value broadcast(Value number, int64_t lanes);
  Value index(int64_t number) {
    return arith::ConstantIndexOp::create(builder, location, number);
  }
  Value advance(Value offset, int64_t by);
  template <typename Op, typename... Operands> Value make(Operands &&...given) {
    return Op::create(builder, location, std::forward<Operands>(given)...)
        .getResult();
  }
  Result fail(const llvm::Twine &why) {
    reason = intrinsic.name + ": " + why.str();
    return failure();
  }

  OpBuilder &builder;
  Location location;
  const kernel::Intrinsic &intrinsic;
  ArrayRef<IntrinsicOperand> operands;
  std::string &reason;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Lowering::constant(LaneType type, ArrayRef<int64_t> numbers) {
  Type element = loweredType(type, builder.getContext());
  SmallVector<Attribute> values;
  for (const int64_t number : numbers)
    values.push_back(
        kernel::isFloat(type)
            ? Attribute(FloatAttr::get(element, static_cast<double>(number)))
            : Attribute(IntegerAttr::get(element,
                                         APInt(element.getIntOrFloatBitWidth(),
                                               static_cast<uint64_t>(number),
                                               /*isSigned=*/true,
                                               /*implicitTrunc=*/true))));
  if (values.size() == 1)
    return arith::ConstantOp::create(builder, location,
                                     cast<TypedAttr>(values.front()));
  auto shape = VectorType::get({static_cast<int64_t>(values.size())}, element);
  return arith::ConstantOp::create(builder, location,
                                   DenseElementsAttr::get(shape, values));
}

Value Lowering::materialize(const Lanes &lanes, const Domain &domain) {
  if (lanes.value)
    return lanes.value;
  return constant(lanes.type.value_or(LaneType::I64), *lanes.known);
}

Value Lowering::broadcast(Value number, int64_t lanes) {
  if (lanes == 1)
    return number;
  return vector::BroadcastOp::create(
      builder, location, VectorType::get({lanes}, number.getType()), number);
}

Value Lowering::advance(Value offset, int64_t by) {
  return by == 0 ? offset
                 : Value(arith::AddIOp::create(builder, location, offset,
                                               index(by)));
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Lowering::Result Lowering::evaluateVector(Value vector, LaneType type,
                                          const Lanes &index,
                                          const Domain &domain) {
  const int64_t size = domain.size();
  const int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  Lanes result{.type = type, .known = {}, .value = {}};
  if (!index.known) {
    // Which lane is only known when it runs.
    Value made = splat(type, size, 0);
    for (int64_t i = 0; i < size; ++i) {
      Value place =
          size == 1 ? index.value : make<vector::ExtractOp>(index.value, i);
      place = make<arith::IndexCastOp>(builder.getIndexType(), place);
      Value lane = make<vector::ExtractOp>(vector, OpFoldResult(place));
      made = size == 1 ? lane : make<vector::InsertOp>(lane, made, i);
    }
    result.value = made;
    return result;
  }
  SmallVector<int64_t> mask;
  bool isIdentity = size == lanes;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t at = (*index.known)[static_cast<size_t>(i)];
    const bool isNeeded = domain.needed[static_cast<unsigned>(i)];
    if (isNeeded && (at < 0 || at >= lanes))
      return fail("reads a lane that is not there");
    mask.push_back(isNeeded ? at : ShapedType::kDynamic);
    isIdentity &= !isNeeded || at == i;
  }
  if (isIdentity) {
    result.value = vector;
    return result;
  }
  // Lanes that do not matter are the first one.
  for (int64_t &each : mask)
    each = each < 0 ? 0 : each;
  if (size == 1)
    result.value = make<vector::ExtractOp>(vector, mask.front());
  else
    result.value = make<vector::ShuffleOp>(vector, vector, mask);
  return result;
}

Lowering::Result Lowering::evaluateMemory(const MemoryPlace &place,
                                          LaneType type, const Lanes &index,
                                          const Domain &domain) {
  const int64_t size = domain.size();
  const MemoryPlace memory =
      viewAs(builder, location, place, loweredType(type, builder.getContext()));
  Lanes result{.type = type, .known = {}, .value = {}};
  const auto load = [&](Value offset) {
    return make<memref::LoadOp>(memory.base, ValueRange(offset));
  };
  if (index.known) {
    const SmallVector<int64_t> &known = *index.known;
    const int first = domain.needed.find_first();
    const int64_t begin = known[static_cast<size_t>(first)];
    bool isSame = true, isContiguous = domain.needed.all();
    for (const unsigned i : domain.needed.set_bits()) {
      isSame &= known[i] == begin;
      isContiguous &= known[i] == begin + static_cast<int64_t>(i);
    }
    if (isSame) {
      result.value = broadcast(load(advance(memory.offset, begin)), size);
      return result;
    }
    if (isContiguous) {
      result.value = make<vector::LoadOp>(
          VectorType::get({size}, loweredType(type, builder.getContext())),
          memory.base, ValueRange(advance(memory.offset, begin)));
      return result;
    }
  }
  // One by one.
  Value made = splat(type, size, 0);
  for (const unsigned i : domain.needed.set_bits()) {
    Value offset;
    if (index.known) {
      offset = advance(memory.offset, (*index.known)[i]);
    } else {
      Value at = size == 1 ? index.value
                           : make<vector::ExtractOp>(index.value,
                                                     static_cast<int64_t>(i));
      at = make<arith::IndexCastOp>(builder.getIndexType(), at);
      offset = make<arith::AddIOp>(memory.offset, at);
    }
    made = size == 1 ? load(offset)
                     : make<vector::InsertOp>(load(offset), made,
                                              static_cast<int64_t>(i));
  }
  result.value = made;
  return result;
}

Lowering::Result Lowering::evaluateArgument(const Expression &expression,
                                            const Domain &domain) {
  const auto number = static_cast<size_t>(expression.number);
  const ParameterType &type = intrinsic.parameters[number].type;
  const IntrinsicOperand &operand = operands[number];
  if (type.kind == ParameterType::Kind::Number)
    return Lanes{.type = type.lane,
                 .known = {},
                 .value = broadcast(operand.value, domain.size())};
  Result index = evaluate(expression.operands.front(), domain);
  if (failed(index))
    return failure();
  if (type.kind == ParameterType::Kind::Pointer)
    return evaluateMemory(operand.memory, type.lane, *index, domain);
  return evaluateVector(operand.value, type.lane, *index, domain);
}

//===----------------------------------------------------------------------===//
// Choices and folds
//===----------------------------------------------------------------------===//

/// Whether memory is read for `expression`.
static bool readsMemory(const Expression &expression,
                        const kernel::Intrinsic &intrinsic) {
  return (expression.kind == Kind::Argument &&
          intrinsic.parameters[static_cast<size_t>(expression.number)]
                  .type.kind == ParameterType::Kind::Pointer) ||
         llvm::any_of(expression.operands, [&](const Expression &each) {
           return readsMemory(each, intrinsic);
         });
}

Lowering::Result Lowering::evaluateSelect(const Expression &expression,
                                          const Domain &domain) {
  Result condition = evaluate(expression.operands[0], domain);
  if (failed(condition))
    return failure();
  const Expression &then = expression.operands[1],
                   &otherwise = expression.operands[2];
  if (condition->known) {
    Domain first = domain, second = domain;
    for (const unsigned i : domain.needed.set_bits())
      ((*condition->known)[i] != 0 ? second : first).needed.reset(i);
    if (second.needed.none())
      return evaluate(then, domain);
    if (first.needed.none())
      return evaluate(otherwise, domain);
    Result one = evaluate(then, first), other = evaluate(otherwise, second);
    if (failed(one) || failed(other))
      return failure();
    if (one->known && other->known) {
      Lanes both{.type = expression.type, .known = one->known, .value = {}};
      for (const unsigned i : second.needed.set_bits())
        (*both.known)[i] = (*other->known)[i];
      return both;
    }
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < domain.size(); ++i)
      mask.push_back(
          first.needed[static_cast<unsigned>(i)] ? i : domain.size() + i);
    return Lanes{.type = expression.type,
                 .known = {},
                 .value = make<vector::ShuffleOp>(materialize(*one, domain),
                                                  materialize(*other, domain),
                                                  mask)};
  }
  // Memory is read only where the condition holds.
  if (readsMemory(then, intrinsic) || readsMemory(otherwise, intrinsic)) {
    if (then.kind != Kind::Argument || readsMemory(otherwise, intrinsic) ||
        domain.size() == 1)
      return fail("reads memory in a way that depends on lanes");
    Result index = evaluate(then.operands.front(), domain);
    Result other = evaluate(otherwise, domain);
    if (failed(index) || failed(other))
      return failure();
    if (!index->known || !domain.needed.all())
      return fail("reads memory in a way that depends on lanes");
    for (int64_t i = 0; i < domain.size(); ++i)
      if ((*index->known)[static_cast<size_t>(i)] != i)
        return fail("reads memory in a way that depends on lanes");
    const MemoryPlace memory = viewAs(
        builder, location, operands[static_cast<size_t>(then.number)].memory,
        loweredType(*expression.type, builder.getContext()));
    Value passThrough = materialize(*other, domain);
    return Lanes{.type = expression.type,
                 .known = {},
                 .value = make<vector::MaskedLoadOp>(
                     cast<VectorType>(passThrough.getType()), memory.base,
                     ValueRange(memory.offset), condition->value, passThrough)};
  }
  Result one = evaluate(then, domain), other = evaluate(otherwise, domain);
  if (failed(one) || failed(other))
    return failure();
  return Lanes{.type = expression.type,
               .known = {},
               .value = make<arith::SelectOp>(condition->value,
                                              materialize(*one, domain),
                                              materialize(*other, domain))};
}

Lowering::Result Lowering::evaluateFold(const Expression &expression,
                                        const Domain &domain) {
  // Lanes of all values of the variable, those of the first one first.
  const int64_t lanes = domain.size(), count = expression.number;
  Domain wide;
  wide.needed.resize(static_cast<unsigned>(lanes * count), true);
  for (const auto &[name, numbers] : domain.indices)
    for (int64_t j = 0; j < count; ++j)
      wide.indices[name].append(numbers);
  SmallVector<int64_t> &variable = wide.indices[expression.name];
  variable.clear();
  for (int64_t j = 0; j < count; ++j)
    variable.append(static_cast<size_t>(lanes), j);
  Result all = evaluate(expression.operands.front(), wide);
  if (failed(all))
    return failure();
  const Kind kind = expression.kind == Kind::FoldAdd       ? Kind::Add
                    : expression.kind == Kind::FoldMinimum ? Kind::Minimum
                    : expression.kind == Kind::FoldMaximum ? Kind::Maximum
                                                           : Kind::Or;
  Value value = materialize(*all, wide);
  for (int64_t rest = count; rest > 1; rest /= 2) {
    Domain half;
    const int64_t size = lanes * rest / 2;
    half.needed.resize(static_cast<unsigned>(size), true);
    SmallVector<int64_t> first, second;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t j = i / lanes, lane = i % lanes;
      first.push_back(expression.pairs ? 2 * j * lanes + lane : i);
      second.push_back(expression.pairs ? (2 * j + 1) * lanes + lane
                                        : size + i);
    }
    const auto take = [&](ArrayRef<int64_t> mask) {
      return size == 1 ? make<vector::ExtractOp>(value, mask.front())
                       : make<vector::ShuffleOp>(value, value, mask);
    };
    const Lanes halves[] = {{expression.type, {}, take(first)},
                            {expression.type, {}, take(second)}};
    Result combined = combine(kind, *expression.type, halves, half);
    if (failed(combined))
      return failure();
    value = combined->value;
  }
  return Lanes{.type = expression.type, .known = {}, .value = value};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Lowering::Result Lowering::convert(Lanes lanes, std::optional<LaneType> type,
                                   const Domain &domain) {
  const bool fromFloat = lanes.type && kernel::isFloat(*lanes.type);
  const bool toFloat = type && kernel::isFloat(*type);
  if (lanes.known && !fromFloat) {
    if (toFloat)
      return Lanes{
          .type = type, .known = {}, .value = constant(*type, *lanes.known)};
    // What the type does not hold is cut off.
    if (type)
      for (int64_t &each : *lanes.known) {
        const auto bits = static_cast<unsigned>(kernel::bitsOf(*type));
        const APInt cut(bits, static_cast<uint64_t>(each), true, true);
        each = kernel::isSigned(*type)
                   ? cut.getSExtValue()
                   : static_cast<int64_t>(cut.getZExtValue());
      }
    lanes.type = type;
    return lanes;
  }
  const LaneType from = lanes.type.value_or(LaneType::I64);
  const LaneType to = type.value_or(LaneType::I64);
  const int64_t size = domain.size();
  Type target = typeOf(to, size);
  Value value = lanes.value;
  const int64_t fromBits = kernel::bitsOf(from), toBits = kernel::bitsOf(to);
  if (fromFloat && toFloat) {
    // Those of 16 bits become each other by way of f32.
    if (fromBits == toBits && from != to)
      value = make<arith::ExtFOp>(typeOf(LaneType::F32, size), value);
    const int64_t bits = fromBits == toBits && from != to ? 32 : fromBits;
    if (bits < toBits)
      value = make<arith::ExtFOp>(target, value);
    else if (bits > toBits)
      value = make<arith::TruncFOp>(target, value);
  } else if (toFloat) {
    value = kernel::isSigned(from) ? make<arith::SIToFPOp>(target, value)
                                   : make<arith::UIToFPOp>(target, value);
  } else if (fromFloat) {
    if (!kernel::isSigned(to))
      return fail("makes unsigned integers of floats");
    // What is no such integer becomes the most negative one.
    Value most =
        constant(from, SmallVector<int64_t>(static_cast<size_t>(size),
                                            int64_t(1) << (toBits - 2)));
    most = make<arith::AddFOp>(most, most);
    Value least = make<arith::NegFOp>(most);
    Value isBelow = make<arith::CmpFOp>(arith::CmpFPredicate::OLT, value, most);
    Value isAbove =
        make<arith::CmpFOp>(arith::CmpFPredicate::OGE, value, least);
    Value fits = make<arith::AndIOp>(isBelow, isAbove);
    Value zero =
        constant(from, SmallVector<int64_t>(static_cast<size_t>(size), 0));
    Value safe = make<arith::SelectOp>(fits, value, zero);
    value = make<arith::SelectOp>(
        fits, make<arith::FPToSIOp>(target, safe),
        splat(to, size, int64_t(uint64_t(1) << (toBits - 1))));
  } else if (fromBits < toBits) {
    value = kernel::isSigned(from) ? make<arith::ExtSIOp>(target, value)
                                   : make<arith::ExtUIOp>(target, value);
  } else if (fromBits > toBits) {
    value = make<arith::TruncIOp>(target, value);
  }
  return Lanes{.type = type, .known = {}, .value = value};
}

/// The predicate of integers, or of floats, which is true of no number that is
/// none but for `NotEqual`.
static arith::CmpIPredicate integerPredicate(Kind kind, bool isSigned) {
  switch (kind) {
  case Kind::Equal:
    return arith::CmpIPredicate::eq;
  case Kind::NotEqual:
    return arith::CmpIPredicate::ne;
  case Kind::Less:
    return isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
  default:
    return isSigned ? arith::CmpIPredicate::sle : arith::CmpIPredicate::ule;
  }
}

static arith::CmpFPredicate floatPredicate(Kind kind) {
  switch (kind) {
  case Kind::Equal:
    return arith::CmpFPredicate::OEQ;
  case Kind::NotEqual:
    return arith::CmpFPredicate::UNE;
  case Kind::Less:
    return arith::CmpFPredicate::OLT;
  default:
    return arith::CmpFPredicate::OLE;
  }
}

/// What is known is computed here.
Lowering::Result Lowering::combineKnown(Kind kind, std::optional<LaneType> type,
                                        ArrayRef<Lanes> lanes,
                                        const Domain &domain) {
  SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < domain.size(); ++i) {
    SmallVector<kernel::Lane> operands;
    for (const Lanes &each : lanes)
      operands.push_back(
          kernel::fromInteger((*each.known)[static_cast<size_t>(i)],
                              each.type.value_or(LaneType::I64)));
    sandwich::Result<kernel::Lane> lane = kernel::computeLane(kind, operands);
    // A lane that nobody needs may have no such number.
    if (!lane && domain.needed[static_cast<unsigned>(i)])
      return fail(lane.error().message);
    numbers.push_back(lane ? kernel::toInteger(*lane) : 0);
  }
  return Lanes{.type = type, .known = numbers, .value = {}};
}

Lowering::Result Lowering::combine(Kind kind, LaneType type,
                                   ArrayRef<Lanes> lanes,
                                   const Domain &domain) {
  const int64_t size = domain.size();
  Value x = materialize(lanes[0], domain),
        y = lanes.size() > 1 ? materialize(lanes[1], domain) : Value();
  const LaneType operand = lanes[0].type.value_or(LaneType::I64);
  const bool isFloat = kernel::isFloat(operand),
             isSigned = kernel::isSigned(operand);
  const auto give = [&](Value value) {
    return Lanes{.type = type, .known = {}, .value = value};
  };
  switch (kind) {
  case Kind::Negate:
    return give(isFloat ? make<arith::NegFOp>(x)
                        : make<arith::SubIOp>(splat(operand, size, 0), x));
  case Kind::Not:
    return give(make<arith::XOrIOp>(x, splat(operand, size, -1)));
  case Kind::Add:
    return give(isFloat ? make<arith::AddFOp>(x, y)
                        : make<arith::AddIOp>(x, y));
  case Kind::Subtract:
    return give(isFloat ? make<arith::SubFOp>(x, y)
                        : make<arith::SubIOp>(x, y));
  case Kind::Multiply:
    return give(isFloat ? make<arith::MulFOp>(x, y)
                        : make<arith::MulIOp>(x, y));
  case Kind::Divide:
    if (isFloat)
      return give(make<arith::DivFOp>(x, y));
    return fail("divides integers");
  case Kind::And:
    return give(make<arith::AndIOp>(x, y));
  case Kind::Or:
    return give(make<arith::OrIOp>(x, y));
  case Kind::Xor:
    return give(make<arith::XOrIOp>(x, y));
  case Kind::ShiftLeft:
  case Kind::ShiftRight: {
    const int64_t bits = kernel::bitsOf(operand);
    // By as many bits or more nothing is left, or the sign alone.
    if (lanes[1].known && llvm::any_of(*lanes[1].known, [&](int64_t count) {
          return count >= bits;
        })) {
      if (kind == Kind::ShiftLeft || !isSigned)
        return give(splat(operand, size, 0));
      return give(make<arith::ShRSIOp>(x, splat(operand, size, bits - 1)));
    }
    Result count = convert(lanes[1], operand, domain);
    if (failed(count))
      return failure();
    Value by = materialize(*count, domain);
    if (kind == Kind::ShiftLeft)
      return give(make<arith::ShLIOp>(x, by));
    return give(isSigned ? make<arith::ShRSIOp>(x, by)
                         : make<arith::ShRUIOp>(x, by));
  }
  case Kind::Equal:
  case Kind::NotEqual:
  case Kind::Less:
  case Kind::LessEqual:
    return give(
        isFloat ? make<arith::CmpFOp>(floatPredicate(kind), x, y)
                : make<arith::CmpIOp>(integerPredicate(kind, isSigned), x, y));
  case Kind::Fma:
    return give(make<math::FmaOp>(x, y, materialize(lanes[2], domain)));
  case Kind::SquareRoot:
    return give(make<math::SqrtOp>(x));
  case Kind::Absolute:
    return give(isFloat ? make<math::AbsFOp>(x) : make<math::AbsIOp>(x));
  case Kind::Round:
    return give(make<math::RoundEvenOp>(x));
  case Kind::Floor:
    return give(make<math::FloorOp>(x));
  case Kind::Ceil:
    return give(make<math::CeilOp>(x));
  case Kind::Truncate:
    return give(make<math::TruncOp>(x));
  case Kind::Minimum:
    return give(isFloat    ? make<arith::MinimumFOp>(x, y)
                : isSigned ? make<arith::MinSIOp>(x, y)
                           : make<arith::MinUIOp>(x, y));
  case Kind::Maximum:
    return give(isFloat    ? make<arith::MaximumFOp>(x, y)
                : isSigned ? make<arith::MaxSIOp>(x, y)
                           : make<arith::MaxUIOp>(x, y));
  case Kind::PowerOfTwo: {
    // Of an integer that is an exponent of f64: its bits.
    if (operand != LaneType::F64)
      return fail("takes powers of two of other than f64");
    Type integers = typeOf(LaneType::I64, size);
    Value exponent = make<arith::FPToSIOp>(integers, x);
    Value biased =
        make<arith::AddIOp>(exponent, splat(LaneType::I64, size, 1023));
    Value bits = make<arith::ShLIOp>(biased, splat(LaneType::I64, size, 52));
    return give(make<arith::BitcastOp>(typeOf(LaneType::F64, size), bits));
  }
  default:
    return fail("has an operation that vectors have not");
  }
}

/// Whether `expression` is an f32 times a power of two, computed in f64.
static bool isScaled(const Expression &expression) {
  if (expression.kind != Kind::Convert || expression.type != LaneType::F32 ||
      expression.operands.front().kind != Kind::Multiply)
    return false;
  const std::vector<Expression> &factors = expression.operands.front().operands;
  return factors[0].kind == Kind::Convert &&
         factors[0].operands.front().type == LaneType::F32 &&
         factors[1].kind == Kind::PowerOfTwo;
}

Lowering::Result Lowering::evaluateScaled(const Expression &product,
                                          const Domain &domain) {
  Result number = evaluate(product.operands[0].operands.front(), domain);
  // Of an f32 that was widened for nothing.
  const Expression *power = &product.operands[1].operands.front();
  if (power->kind == Kind::Convert &&
      power->operands.front().type == LaneType::F32)
    power = &power->operands.front();
  Result exponent = evaluate(*power, domain);
  if (failed(number) || failed(exponent))
    return failure();
  // Three exponents of f32 whose sum it is: no f64 is needed, and beyond them
  // whatever f32 it is of is infinite or zero. Only what is subnormal may be
  // rounded twice.
  const int64_t size = domain.size();
  Type integers = typeOf(LaneType::I32, size);
  const auto clamp = [&](Value value, int64_t least, int64_t most) -> Value {
    value = make<arith::MaxSIOp>(value, splat(LaneType::I32, size, least));
    return make<arith::MinSIOp>(value, splat(LaneType::I32, size, most));
  };
  Value rest = make<arith::FPToSIOp>(integers, materialize(*exponent, domain));
  rest = clamp(rest, -378, 381);
  Value half = make<arith::ShRSIOp>(rest, splat(LaneType::I32, size, 1));
  Value scaled = materialize(*number, domain);
  for (const bool isLast : {false, false, true}) {
    Value part = isLast ? rest : clamp(half, -126, 127);
    rest = make<arith::SubIOp>(rest, part);
    half = rest;
    Value biased = make<arith::AddIOp>(part, splat(LaneType::I32, size, 127));
    Value bits = make<arith::ShLIOp>(biased, splat(LaneType::I32, size, 23));
    scaled = make<arith::MulFOp>(
        scaled, make<arith::BitcastOp>(typeOf(LaneType::F32, size), bits));
  }
  return Lanes{.type = LaneType::F32, .known = {}, .value = scaled};
}

Lowering::Result Lowering::evaluate(const Expression &expression,
                                    const Domain &domain) {
  const auto known = [&](int64_t number) {
    return Lanes{.type = expression.type,
                 .known = SmallVector<int64_t>(
                     static_cast<size_t>(domain.size()), number),
                 .value = {}};
  };
  switch (expression.kind) {
  case Kind::Constant:
    return known(expression.number);
  case Kind::Undefined:
    return known(0);
  case Kind::Immediate:
    return known(operands[static_cast<size_t>(expression.number)].immediate);
  case Kind::Index:
    return Lanes{.type = {},
                 .known = domain.indices.find(expression.name)->second,
                 .value = {}};
  case Kind::Argument:
    return evaluateArgument(expression, domain);
  case Kind::Select:
    return evaluateSelect(expression, domain);
  case Kind::FoldAdd:
  case Kind::FoldMinimum:
  case Kind::FoldMaximum:
  case Kind::FoldOr:
    return evaluateFold(expression, domain);
  default:
    break;
  }
  if (isScaled(expression))
    return evaluateScaled(expression.operands.front(), domain);
  SmallVector<Lanes> lanes;
  for (const Expression &each : expression.operands) {
    Result operand = evaluate(each, domain);
    if (failed(operand))
      return failure();
    lanes.push_back(*operand);
  }
  if (expression.kind == Kind::Convert)
    return convert(lanes[0], expression.type, domain);
  if (expression.kind == Kind::Reinterpret)
    return Lanes{
        .type = expression.type,
        .known = {},
        .value = make<arith::BitcastOp>(typeOf(*expression.type, domain.size()),
                                        materialize(lanes[0], domain))};
  if (expression.kind == Kind::Saturate) {
    const LaneType from = *lanes[0].type, to = *expression.type;
    if (kernel::isFloat(from) || !kernel::isSigned(from))
      return fail("saturates other than signed integers");
    const int64_t bits = kernel::bitsOf(to), size = domain.size();
    const bool isSigned = kernel::isSigned(to);
    Value value = materialize(lanes[0], domain);
    value = make<arith::MaxSIOp>(
        value, splat(from, size, isSigned ? -(int64_t(1) << (bits - 1)) : 0));
    value = make<arith::MinSIOp>(
        value,
        splat(from, size, (int64_t(1) << (isSigned ? bits - 1 : bits)) - 1));
    return convert({.type = from, .known = {}, .value = value}, to, domain);
  }
  const bool areKnown =
      llvm::all_of(lanes, [](const Lanes &each) { return each.known; });
  return areKnown
             ? combineKnown(expression.kind, expression.type, lanes, domain)
             : combine(expression.kind, expression.type.value_or(LaneType::I64),
                       lanes, domain);
}

//===----------------------------------------------------------------------===//
// Intrinsics
//===----------------------------------------------------------------------===//

static Domain lanesOf(int64_t count) {
  Domain domain;
  domain.needed.resize(static_cast<unsigned>(count), true);
  for (int64_t i = 0; i < count; ++i)
    domain.indices["i"].push_back(i);
  return domain;
}

LogicalResult Lowering::store() {
  const kernel::Store &store = *intrinsic.store;
  const Domain domain = lanesOf(store.lanes);
  const auto number = static_cast<size_t>(store.parameter);
  const LaneType type = intrinsic.parameters[number].type.lane;
  Result value = evaluate(store.value, domain);
  Result at = evaluate(store.index, domain);
  if (failed(value) || failed(at))
    return failure();
  if (!at->known)
    return fail("writes to places that depend on lanes");
  for (int64_t i = 0; i < store.lanes; ++i)
    if ((*at->known)[static_cast<size_t>(i)] != i)
      return fail("writes to places that are apart");
  const MemoryPlace memory = viewAs(builder, location, operands[number].memory,
                                    loweredType(type, builder.getContext()));
  Value lanes = materialize(*value, domain);
  if (store.condition) {
    Result mask = evaluate(*store.condition, domain);
    if (failed(mask))
      return failure();
    vector::MaskedStoreOp::create(builder, location, memory.base,
                                  ValueRange(memory.offset),
                                  materialize(*mask, domain), lanes);
    return success();
  }
  if (store.lanes == 1)
    memref::StoreOp::create(builder, location, lanes, memory.base,
                            ValueRange(memory.offset));
  else
    vector::StoreOp::create(builder, location, lanes, memory.base,
                            ValueRange(memory.offset));
  return success();
}

FailureOr<Value> Lowering::run() {
  if (intrinsic.store)
    return failed(store()) ? FailureOr<Value>(failure())
                           : FailureOr<Value>(Value());
  const Domain domain = lanesOf(std::max<int64_t>(intrinsic.result->lanes, 1));
  Result lanes = evaluate(intrinsic.value, domain);
  if (failed(lanes))
    return failure();
  Result typed = convert(*lanes, intrinsic.result->lane, domain);
  if (failed(typed))
    return failure();
  return materialize(*typed, domain);
}

FailureOr<Value> sandwich::lowerIntrinsic(OpBuilder &builder, Location location,
                                          const kernel::Intrinsic &intrinsic,
                                          ArrayRef<IntrinsicOperand> operands,
                                          std::string &reason) {
  return Lowering(builder, location, intrinsic, operands, reason).run();
}
