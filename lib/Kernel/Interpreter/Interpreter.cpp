//===- Interpreter.cpp - What kernels compute -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Interpreter.h"

#include "sandwich/Kernel/Lanes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <memory>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

namespace {

/// A pointer: bytes behind the first one of a piece of memory.
struct Address {
  int64_t memory = 0;
  int64_t offset = 0;
};

/// What an operation gives.
using Datum = std::variant<std::vector<Lane>, Address>;

/// How statements end.
enum class Flow { Next, Break, Continue, Return };

/// Runs one function and what it calls.
class Run {
public:
  explicit Run(const InterpreterLimits &limits) : limits(limits) {}

  FailureOr<Datum> call(FuncOp function, std::vector<Datum> arguments);
  Address addMemory(std::span<std::byte> bytes);

private:
  using Values = llvm::DenseMap<Value, Datum>;

  FailureOr<Flow> runBlock(Block &block, Values &values);
  FailureOr<Flow> runOperation(Operation *op, Values &values);
  FailureOr<Datum> compute(Operation *op, Values &values);
  FailureOr<Datum> computeIntrinsic(IntrinsicOp op, Values &values);
  FailureOr<Datum> computeMath(MathOp op, Values &values);
  FailureOr<Datum> computeBinary(BinaryOp op, Values &values);
  FailureOr<Datum> computeCompare(CompareOp op, Values &values);
  FailureOr<Datum> computeCast(CastOp op, Values &values);
  FailureOr<Datum> evaluateRegion(Region &region, Values &values);
  FailureOr<bool> holds(Region &condition, Values &values);
  FailureOr<Flow> runLoop(ForOp loop, Values &values);
  FailureOr<Flow> runLoop(DoOp loop, Values &values);

  FailureOr<Datum> load(Operation *op, Address address, Type type);
  LogicalResult store(Operation *op, const Datum &datum, Address address,
                      Type type);
  /// The `size` bytes at `address`.
  FailureOr<std::span<std::byte>> bytesAt(Operation *op, Address address,
                                          int64_t size);
  FailureOr<Address> makeVariable(Operation *op, Type type);

  /// Variables are gone where their block ends, unless a table is behind them.
  class Scope {
  public:
    explicit Scope(Run &run)
        : run(run), memories(run.memories.size()),
          variables(run.variables.size()), tables(run.tables.size()),
          bytes(run.variableBytes) {}
    ~Scope() {
      if (run.tables.size() != tables)
        return;
      run.memories.resize(memories);
      run.variables.resize(variables);
      run.variableBytes = bytes;
    }

  private:
    Run &run;
    size_t memories, variables;
    unsigned tables;
    int64_t bytes;
  };

  const InterpreterLimits &limits;
  uint64_t operations = 0;
  int depth = 0;
  int64_t variableBytes = 0;
  std::vector<std::span<std::byte>> memories;
  std::vector<std::unique_ptr<std::byte[]>> variables;
  llvm::DenseMap<Operation *, Address> tables;
  std::optional<Datum> result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Lanes and bytes
//===----------------------------------------------------------------------===//

static LaneType laneTypeOf(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isInteger(1))
    return LaneType::Bool;
  if (type.isF16())
    return LaneType::F16;
  if (type.isBF16())
    return LaneType::BF16;
  if (type.isF32())
    return LaneType::F32;
  if (type.isF64())
    return LaneType::F64;
  const std::string name = (type.isUnsignedInteger() ? "u" : "i") +
                           std::to_string(type.getIntOrFloatBitWidth());
  return *laneTypeNamed(name);
}

static int64_t lanesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

/// The bytes of lanes behind each other; of truths a bit each.
static std::vector<std::byte> pack(ArrayRef<Lane> lanes) {
  const int64_t bits = bitsOf(lanes.front().type);
  std::vector<std::byte> bytes(
      static_cast<size_t>(llvm::divideCeil(lanes.size() * bits, 8)));
  for (auto [number, lane] : llvm::enumerate(lanes)) {
    if (bits == 1)
      bytes[number / 8] |=
          static_cast<std::byte>((lane.bits & 1) << (number % 8));
    else
      std::memcpy(bytes.data() + number * static_cast<size_t>(bits / 8),
                  &lane.bits, static_cast<size_t>(bits / 8));
  }
  return bytes;
}

static std::vector<Lane> unpack(std::span<const std::byte> bytes, LaneType type,
                                int64_t count) {
  const int64_t bits = bitsOf(type);
  std::vector<Lane> lanes;
  for (int64_t i = 0; i < count; ++i) {
    Lane lane{type, 0};
    if (bits == 1)
      lane.bits =
          static_cast<uint64_t>(bytes[static_cast<size_t>(i / 8)] >> (i % 8)) &
          1;
    else
      std::memcpy(&lane.bits, bytes.data() + i * bits / 8,
                  static_cast<size_t>(bits / 8));
    lanes.push_back(lane);
  }
  return lanes;
}

/// Lanes of the same bits, as `type` has them.
static std::vector<Lane> reinterpret(ArrayRef<Lane> lanes, Type type) {
  return unpack(pack(lanes), laneTypeOf(type), lanesOf(type));
}

/// Pointers in memory are numbers: which memory, and where in it.
static constexpr int offsetBits = 40;

static Lane toLane(Address address) {
  return {LaneType::U64,
          (static_cast<uint64_t>(address.memory + 1) << offsetBits) |
              (static_cast<uint64_t>(address.offset) &
               ((uint64_t{1} << offsetBits) - 1))};
}

static Address toAddress(Lane lane) {
  // The offset has a sign.
  const auto offset =
      static_cast<int64_t>(lane.bits << (64 - offsetBits)) >> (64 - offsetBits);
  return {static_cast<int64_t>(lane.bits >> offsetBits) - 1, offset};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Address Run::addMemory(std::span<std::byte> bytes) {
  memories.push_back(bytes);
  return {static_cast<int64_t>(memories.size()) - 1, 0};
}

FailureOr<std::span<std::byte>> Run::bytesAt(Operation *op, Address address,
                                             int64_t size) {
  if (address.memory < 0 ||
      address.memory >= static_cast<int64_t>(memories.size()))
    return op->emitError("reaches memory by a pointer that has no value");
  const std::span<std::byte> memory =
      memories[static_cast<size_t>(address.memory)];
  const auto all = static_cast<int64_t>(memory.size());
  if (address.offset < 0 || size > all || address.offset > all - size)
    return op->emitError("reaches ")
           << size << " bytes at byte " << address.offset << " of " << all;
  return memory.subspan(static_cast<size_t>(address.offset),
                        static_cast<size_t>(size));
}

FailureOr<Address> Run::makeVariable(Operation *op, Type type) {
  const std::optional<Layout> layout = layoutOf(type);
  // Each has a number that pointers in memory hold.
  constexpr size_t mostMemories = size_t{1} << 22;
  if (!layout || layout->size > limits.variableBytes - variableBytes ||
      memories.size() >= mostMemories)
    return op->emitError("has no room for a variable of ") << type;
  variableBytes += layout->size;
  const auto size = static_cast<size_t>(layout->size);
  variables.push_back(std::make_unique<std::byte[]>(size));
  return addMemory({variables.back().get(), size});
}

FailureOr<Datum> Run::load(Operation *op, Address address, Type type) {
  FailureOr<std::span<std::byte>> bytes =
      bytesAt(op, address, layoutOf(type)->size);
  if (failed(bytes))
    return failure();
  if (isa<PointerType>(type))
    return Datum(toAddress(unpack(*bytes, LaneType::U64, 1).front()));
  return Datum(unpack(*bytes, laneTypeOf(type), lanesOf(type)));
}

LogicalResult Run::store(Operation *op, const Datum &datum, Address address,
                         Type type) {
  FailureOr<std::span<std::byte>> bytes =
      bytesAt(op, address, layoutOf(type)->size);
  if (failed(bytes))
    return failure();
  const auto *pointer = std::get_if<Address>(&datum);
  const std::vector<std::byte> packed =
      pack(pointer ? std::vector<Lane>{toLane(*pointer)}
                   : std::get<std::vector<Lane>>(datum));
  llvm::copy(packed, bytes->begin());
  return success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static const std::vector<Lane> &lanesIn(const Datum &datum) {
  return std::get<std::vector<Lane>>(datum);
}

static std::vector<Lane> lanesOfConstant(ConstantOp op) {
  const LaneType type = laneTypeOf(op.getType());
  const auto lane = [&](Attribute value) {
    const APInt bits = isa<FloatAttr>(value)
                           ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                           : cast<IntegerAttr>(value).getValue();
    return Lane{type, bits.getZExtValue()};
  };
  if (auto elements = dyn_cast<DenseElementsAttr>(op.getValue())) {
    std::vector<Lane> lanes;
    for (Attribute each : elements.getValues<Attribute>())
      lanes.push_back(lane(each));
    return lanes;
  }
  return {lane(op.getValue())};
}

/// What the table of intrinsics calls `kind`.
static Expression::Kind expressionOf(BinaryOperator kind) {
  using Kind = Expression::Kind;
  static constexpr Kind kinds[] = {
      Kind::Add,       Kind::Subtract,  Kind::Multiply, Kind::Divide,
      Kind::Remainder, Kind::And,       Kind::Or,       Kind::Xor,
      Kind::ShiftLeft, Kind::ShiftRight};
  return kinds[static_cast<size_t>(kind)];
}

FailureOr<Datum> Run::computeBinary(BinaryOp op, Values &values) {
  const std::vector<Lane> &lhs = lanesIn(values[op.getLhs()]),
                          &rhs = lanesIn(values[op.getRhs()]);
  const bool shifts = op.getKind() == BinaryOperator::ShiftLeft ||
                      op.getKind() == BinaryOperator::ShiftRight;
  std::vector<Lane> lanes;
  for (auto [x, y] : llvm::zip_equal(lhs, rhs)) {
    if (shifts && (toInteger(y) < 0 || toInteger(y) >= bitsOf(x.type)))
      return op.emitError("shifts ")
             << bitsOf(x.type) << " bits by " << toInteger(y);
    const Lane operands[] = {x, y};
    sandwich::Result<Lane> lane =
        computeLane(expressionOf(op.getKind()), operands);
    if (!lane)
      return op.emitError(lane.error().message);
    lanes.push_back(*lane);
  }
  return Datum(lanes);
}

FailureOr<Datum> Run::computeCompare(CompareOp op, Values &values) {
  const auto asLane = [&](Value value) {
    const Datum &datum = values[value];
    const auto *pointer = std::get_if<Address>(&datum);
    return pointer ? toLane(*pointer) : lanesIn(datum).front();
  };
  const Lane x = asLane(op.getLhs()), y = asLane(op.getRhs());
  using Kind = Expression::Kind;
  const Comparison comparison = op.getComparison();
  const bool swaps = comparison == Comparison::Greater ||
                     comparison == Comparison::GreaterEqual;
  const Kind kind =
      comparison == Comparison::Equal      ? Kind::Equal
      : comparison == Comparison::NotEqual ? Kind::NotEqual
      : comparison == Comparison::Less || comparison == Comparison::Greater
          ? Kind::Less
          : Kind::LessEqual;
  const Lane operands[] = {swaps ? y : x, swaps ? x : y};
  sandwich::Result<Lane> lane = computeLane(kind, operands);
  if (!lane)
    return op.emitError(lane.error().message);
  return Datum(std::vector<Lane>{*lane});
}

FailureOr<Datum> Run::computeCast(CastOp op, Values &values) {
  const Datum &operand = values[op.getOperand()];
  if (std::holds_alternative<Address>(operand))
    return operand;
  const Type from = op.getOperand().getType(), to = op.getType();
  if (isMask(from) || isMask(to))
    return Datum(reinterpret(lanesIn(operand), to));
  const Lane lane = lanesIn(operand).front();
  // To a truth: whether it is other than zero.
  if (to.isInteger(1))
    return Datum(std::vector<Lane>{
        {LaneType::Bool,
         isFloat(lane.type) ? toDouble(lane) != 0 : toInteger(lane) != 0}});
  return Datum(std::vector<Lane>{convertLane(lane, laneTypeOf(to))});
}

/// `function` of numbers, computed as `Float`.
template <typename Float>
static Float callLibrary(Function function, Float x, Float y, Float z) {
  switch (function) {
  case Function::Absolute:
    return std::fabs(x);
  case Function::SquareRoot:
    return std::sqrt(x);
  case Function::Exponential:
    return std::exp(x);
  case Function::PowerOfTwo:
    return std::exp2(x);
  case Function::Logarithm:
    return std::log(x);
  case Function::BinaryLogarithm:
    return std::log2(x);
  case Function::Sine:
    return std::sin(x);
  case Function::Cosine:
    return std::cos(x);
  case Function::HyperbolicTangent:
    return std::tanh(x);
  case Function::ErrorFunction:
    return std::erf(x);
  case Function::Power:
    return std::pow(x, y);
  case Function::Floor:
    return std::floor(x);
  case Function::Ceil:
    return std::ceil(x);
  case Function::Truncate:
    return std::trunc(x);
  case Function::Round:
    return std::round(x);
  case Function::RoundToEven:
    return std::nearbyint(x);
  case Function::Minimum:
    return std::fmin(x, y);
  case Function::Maximum:
    return std::fmax(x, y);
  case Function::Fma:
    return std::fma(x, y, z);
  }
  llvm_unreachable("there are no other functions");
}

FailureOr<Datum> Run::computeMath(MathOp op, Values &values) {
  double numbers[3] = {};
  for (auto [number, operand] : llvm::enumerate(op.getOperands()))
    numbers[number] = toDouble(lanesIn(values[operand]).front());
  const LaneType type = laneTypeOf(op.getType());
  const double result =
      type == LaneType::F64
          ? callLibrary<double>(op.getFunction(), numbers[0], numbers[1],
                                numbers[2])
          : callLibrary<float>(op.getFunction(), static_cast<float>(numbers[0]),
                               static_cast<float>(numbers[1]),
                               static_cast<float>(numbers[2]));
  return Datum(std::vector<Lane>{fromDouble(result, type)});
}

FailureOr<Datum> Run::computeIntrinsic(IntrinsicOp op, Values &values) {
  const kernel::Intrinsic &intrinsic =
      *IntrinsicTable::x86().find(op.getName());
  std::vector<Argument> arguments;
  for (auto [operand, parameter] :
       llvm::zip_equal(op.getOperands(), intrinsic.parameters)) {
    const Datum &datum = values[operand];
    Argument argument;
    if (const auto *address = std::get_if<Address>(&datum)) {
      FailureOr<std::span<std::byte>> none = bytesAt(op, *address, 0);
      if (failed(none))
        return failure();
      argument.memory = memories[static_cast<size_t>(address->memory)].subspan(
          static_cast<size_t>(address->offset));
    } else {
      argument.lanes = reinterpret(
          lanesIn(datum), kernel::typeOf(parameter.type, op.getContext()));
    }
    arguments.push_back(std::move(argument));
  }
  sandwich::Result<std::vector<Lane>> lanes = evaluate(intrinsic, arguments);
  if (!lanes)
    return op.emitError(lanes.error().message);
  if (!op.getResult())
    return Datum();
  return Datum(reinterpret(*lanes, op.getResult().getType()));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

FailureOr<Datum> Run::compute(Operation *op, Values &values) {
  using Result = FailureOr<Datum>;
  const auto address = [&](Value pointer) {
    return std::get<Address>(values[pointer]);
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) -> Result {
        return Datum(lanesOfConstant(constant));
      })
      .Case([&](VariableOp variable) -> Result {
        FailureOr<Address> made =
            makeVariable(op, variable.getType().getObject());
        return failed(made) ? Result(failure()) : Result(Datum(*made));
      })
      .Case([&](AddressOp table) -> Result {
        auto global = SymbolTable::lookupNearestSymbolFrom<GlobalOp>(
            op, table.getTableAttr());
        auto [found, isNew] = tables.try_emplace(global, Address());
        if (!isNew)
          return Datum(found->second);
        FailureOr<Address> made = makeVariable(op, global.getType());
        if (failed(made))
          return failure();
        const Type element = global.getValue().getElementType();
        const int64_t size = layoutOf(element)->size;
        Address at = *made;
        for (Attribute each : global.getValue().getValues<Attribute>()) {
          const APInt bits =
              isa<FloatAttr>(each)
                  ? cast<FloatAttr>(each).getValue().bitcastToAPInt()
                  : cast<IntegerAttr>(each).getValue();
          if (failed(store(
                  op,
                  std::vector<Lane>{{laneTypeOf(element), bits.getZExtValue()}},
                  at, element)))
            return failure();
          at.offset += size;
        }
        tables[global] = *made;
        return Datum(*made);
      })
      .Case([&](LoadOp read) -> Result {
        return load(op, address(read.getPointer()), read.getType());
      })
      .Case([&](OffsetOp offset) -> Result {
        Address at = address(offset.getPointer());
        const int64_t index =
            toInteger(lanesIn(values[offset.getIndex()]).front());
        const int64_t size =
            layoutOf(cast<PointerType>(offset.getType()).getObject())->size;
        int64_t bytes = 0;
        if (llvm::MulOverflow(index, size, bytes) ||
            llvm::AddOverflow(at.offset, bytes, at.offset))
          return op->emitError("is too far from where it begins");
        return Datum(at);
      })
      .Case([&](ElementsOp elements) -> Result {
        return Datum(address(elements.getArray()));
      })
      .Case([&](MemberOp member) -> Result {
        Address at = address(member.getStructure());
        at.offset += offsetOf(
            cast<StructureType>(
                cast<PointerType>(member.getStructure().getType()).getObject()),
            member.getName());
        return Datum(at);
      })
      .Case([&](BinaryOp binary) { return computeBinary(binary, values); })
      .Case([&](UnaryOp unary) -> Result {
        std::vector<Lane> lanes;
        for (Lane each : lanesIn(values[unary.getOperand()])) {
          const Lane operands[] = {each};
          sandwich::Result<Lane> lane =
              computeLane(unary.getKind() == UnaryOperator::Negate
                              ? Expression::Kind::Negate
                              : Expression::Kind::Not,
                          operands);
          if (!lane)
            return op->emitError(lane.error().message);
          lanes.push_back(*lane);
        }
        return Datum(lanes);
      })
      .Case([&](CompareOp compare) { return computeCompare(compare, values); })
      .Case([&](CastOp cast) { return computeCast(cast, values); })
      .Case([&](BitcastOp cast) -> Result {
        return Datum(
            reinterpret(lanesIn(values[cast.getOperand()]), cast.getType()));
      })
      .Case([&](MathOp math) { return computeMath(math, values); })
      .Case([&](IntrinsicOp intrinsic) {
        return computeIntrinsic(intrinsic, values);
      })
      .Case([&](ConditionalOp choice) {
        const bool first =
            lanesIn(values[choice.getCondition()]).front().bits != 0;
        return evaluateRegion(first ? choice.getThen() : choice.getOtherwise(),
                              values);
      })
      .Case([&](CallOp callOp) -> Result {
        auto callee = SymbolTable::lookupNearestSymbolFrom<FuncOp>(
            op, callOp.getCalleeAttr());
        std::vector<Datum> arguments;
        for (Value operand : callOp.getOperands())
          arguments.push_back(values[operand]);
        return call(callee, std::move(arguments));
      })
      .Default([](Operation *other) -> Result {
        return other->emitError("cannot be interpreted");
      });
}

FailureOr<Datum> Run::evaluateRegion(Region &region, Values &values) {
  Block &block = region.front();
  for (Operation &op : block) {
    if (auto yield = dyn_cast<YieldOp>(op))
      return values[yield.getValue()];
    if (failed(runOperation(&op, values)))
      return failure();
  }
  llvm_unreachable("verified to end by a yield");
}

FailureOr<bool> Run::holds(Region &condition, Values &values) {
  const Scope scope(*this);
  FailureOr<Datum> truth = evaluateRegion(condition, values);
  if (failed(truth))
    return failure();
  return lanesIn(*truth).front().bits != 0;
}

FailureOr<Flow> Run::runLoop(ForOp loop, Values &values) {
  for (;;) {
    FailureOr<bool> more = holds(loop.getCondition(), values);
    if (failed(more))
      return failure();
    if (!*more)
      return Flow::Next;
    FailureOr<Flow> flow = runBlock(loop.getBody().front(), values);
    if (failed(flow) || *flow == Flow::Return)
      return flow;
    if (*flow == Flow::Break)
      return Flow::Next;
    if (failed(runBlock(loop.getStep().front(), values)))
      return failure();
  }
}

FailureOr<Flow> Run::runLoop(DoOp loop, Values &values) {
  for (;;) {
    FailureOr<Flow> flow = runBlock(loop.getBody().front(), values);
    if (failed(flow) || *flow == Flow::Return)
      return flow;
    if (*flow == Flow::Break)
      return Flow::Next;
    FailureOr<bool> more = holds(loop.getCondition(), values);
    if (failed(more))
      return failure();
    if (!*more)
      return Flow::Next;
  }
}

FailureOr<Flow> Run::runOperation(Operation *op, Values &values) {
  if (++operations > limits.operations)
    return op->emitError("is reached after ")
           << limits.operations << " operations: the kernel does not end";
  using Result = FailureOr<Flow>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](StoreOp write) -> Result {
        if (failed(store(op, values[write.getValue()],
                         std::get<Address>(values[write.getPointer()]),
                         write.getValue().getType())))
          return failure();
        return Flow::Next;
      })
      .Case([&](CopyOp copy) -> Result {
        const int64_t size = layoutOf(copy.getTo().getType().getObject())->size;
        FailureOr<std::span<std::byte>> from =
            bytesAt(op, std::get<Address>(values[copy.getFrom()]), size);
        FailureOr<std::span<std::byte>> to =
            bytesAt(op, std::get<Address>(values[copy.getTo()]), size);
        if (failed(from) || failed(to))
          return failure();
        std::memmove(to->data(), from->data(), static_cast<size_t>(size));
        return Flow::Next;
      })
      .Case([&](IfOp branch) -> Result {
        const bool holds =
            lanesIn(values[branch.getCondition()]).front().bits != 0;
        return runBlock(holds ? branch.getThen().front()
                              : branch.getOtherwise().front(),
                        values);
      })
      .Case([&](ForOp loop) { return runLoop(loop, values); })
      .Case([&](DoOp loop) { return runLoop(loop, values); })
      .Case([&](BreakOp) -> Result { return Flow::Break; })
      .Case([&](ContinueOp) -> Result { return Flow::Continue; })
      .Case([&](TrapOp) -> Result {
        return op->emitError("is reached: the arguments are not allowed");
      })
      .Case([&](ReturnOp end) -> Result {
        result.reset();
        if (end.getValue())
          result = values[end.getValue()];
        return Flow::Return;
      })
      .Default([&](Operation *) -> Result {
        FailureOr<Datum> datum = compute(op, values);
        if (failed(datum))
          return failure();
        if (op->getNumResults() == 1)
          values[op->getResult(0)] = std::move(*datum);
        return Flow::Next;
      });
}

FailureOr<Flow> Run::runBlock(Block &block, Values &values) {
  const Scope scope(*this);
  Flow flow = Flow::Next;
  for (Operation &op : block) {
    FailureOr<Flow> next = runOperation(&op, values);
    if (failed(next))
      return failure();
    flow = *next;
    if (flow != Flow::Next)
      break;
  }
  return flow;
}

FailureOr<Datum> Run::call(FuncOp function, std::vector<Datum> arguments) {
  // Kernels do not call themselves, and not through many others.
  constexpr int deepest = 256;
  if (depth == deepest)
    return function.emitError("is called by too many others within each other");
  ++depth;
  const llvm::scope_exit leave([&] { --depth; });
  Values values;
  Block &body = function.getBody().front();
  for (auto [parameter, argument] :
       llvm::zip_equal(body.getArguments(), arguments))
    values[parameter] = argument;
  result.reset();
  if (failed(runBlock(body, values)))
    return failure();
  if (!function.getResultTypes().empty() && !result)
    return function.emitError("ends without its result");
  return result ? std::exchange(result, std::nullopt).value() : Datum();
}

FailureOr<std::vector<Lane>>
kernel::interpret(FuncOp function, std::span<const KernelArgument> arguments,
                  const InterpreterLimits &limits) {
  const ArrayRef<Type> types = function.getArgumentTypes();
  if (types.size() != arguments.size())
    return function.emitError("has ")
           << types.size() << " arguments, not " << arguments.size();
  Run run(limits);
  std::vector<Datum> data;
  for (auto [number, type] : llvm::enumerate(types)) {
    const KernelArgument &given = arguments[number];
    const auto *memory = std::get_if<std::span<std::byte>>(&given);
    if (isa<PointerType>(type) != (memory != nullptr))
      return function.emitError("argument ")
             << number << " must be " << (memory ? "a value" : "memory");
    if (memory) {
      data.emplace_back(run.addMemory(*memory));
      continue;
    }
    const auto &lanes = std::get<std::vector<Lane>>(given);
    if (static_cast<int64_t>(lanes.size()) != lanesOf(type) ||
        llvm::any_of(lanes, [&](const Lane &lane) {
          return lane.type != laneTypeOf(type);
        }))
      return function.emitError("argument ") << number << " must be " << type;
    data.emplace_back(lanes);
  }
  FailureOr<Datum> result = run.call(function, std::move(data));
  if (failed(result))
    return failure();
  const auto *lanes = std::get_if<std::vector<Lane>>(&*result);
  return lanes ? *lanes : std::vector<Lane>();
}
