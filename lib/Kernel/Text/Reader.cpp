//===- Reader.cpp - From text to dialect block ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "sandwich/Kernel/Syntax.h"
#include "sandwich/Kernel/Text.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;
using syntax::Expression;
using syntax::Place;
using syntax::Statement;

namespace {

/// What an expression gives: a value, or a number that has the type of whatever
/// it meets.
struct Operand {
  Value value;
  /// Of a number: what it is, and which of both members has it.
  NumberKind literal = NumberKind::Integer;
  int64_t integer = 0;
  double number = 0;

  static Operand ofInteger(int64_t integer) {
    return {{}, NumberKind::Integer, integer, static_cast<double>(integer)};
  }
  static Operand ofFloat(double number) {
    return {{}, NumberKind::Float, 0, number};
  }
  static Operand ofTruth(bool truth) {
    return {{}, NumberKind::Truth, truth ? 1 : 0, 0};
  }
};
using MaybeOperand = std::optional<Operand>;

/// Reads one kernel.
class KernelReader {
public:
  KernelReader(const syntax::Kernel &kernel, StringRef file,
               const TextOptions &options, OpBuilder &builder)
      : kernel(kernel), file(file), options(options), builder(builder),
        context(builder.getContext()) {}

  /// Adds it where the builder is.
  LogicalResult run();

private:
  //===--------------------------------------------------------------------===//
  // Errors and places
  //===--------------------------------------------------------------------===//

  Location location(Place place) {
    return FileLineColLoc::get(context, file, place.line, place.column);
  }
  InFlightDiagnostic error(Place place) { return emitError(location(place)); }
  std::nullopt_t refuse(Place place, const Twine &what) {
    error(place) << what;
    return std::nullopt;
  }

  //===--------------------------------------------------------------------===//
  // Signatures
  //===--------------------------------------------------------------------===//

  std::optional<SizeAttr> readSize(const Expression &expression);
  std::optional<Type> readElementType(const Expression &expression);
  std::optional<ParameterAttr> readParameter(const syntax::Argument &argument);
  std::optional<Type> readTypeChoice(const syntax::Argument &argument);
  LogicalResult readArguments();
  bool isSizeName(StringRef name) {
    return parameters.contains(name) || dimensions.contains(name);
  }
  bool checkName(Place place, StringRef name);

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  LogicalResult readBody(const syntax::Body &body);
  LogicalResult readStatement(const Statement &statement);
  LogicalResult readAssignment(const Statement &statement);
  LogicalResult assign(const Expression &target, Operand value);
  LogicalResult store(const Expression &target, Operand value);
  LogicalResult readFor(const Statement &statement);
  LogicalResult readIf(const Statement &statement);
  /// The names that `body` sets, in the order that it does so first.
  static void findSet(const syntax::Body &body, SmallVector<StringRef> &names);

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  MaybeOperand read(const Expression &expression);
  MaybeOperand readName(const Expression &expression);
  MaybeOperand readUnary(const Expression &expression);
  MaybeOperand readBinary(const Expression &expression);
  MaybeOperand combine(Place place, StringRef word, Operand lhs, Operand rhs);
  MaybeOperand fold(Place place, StringRef word, Operand lhs, Operand rhs);
  MaybeOperand readCall(const Expression &expression);
  MaybeOperand readElementwise(const Expression &call);
  MaybeOperand readConversion(const Expression &call, Type type);
  MaybeOperand readReduction(const Expression &call, ReductionKind kind);
  MaybeOperand readFull(const Expression &call);
  MaybeOperand readWhere(const Expression &call);
  MaybeOperand readBlockOf(const Expression &call);
  MaybeOperand readSubscript(const Expression &expression);
  MaybeOperand expand(Place place, Value block, ArrayRef<unsigned> axes);
  struct Access {
    Value memory;
    SmallVector<Value> indices = {};
    /// Sizes of the ranges, and the axes of size 1 that the subscript adds.
    SmallVector<SizeAttr> sizes = {};
    SmallVector<unsigned> axes = {};
  };
  std::optional<Access> readAccess(const Expression &subscript);

  /// A value; a number becomes a constant of `type`, or, if that is null, of
  /// `f32`, `index` or `i1`.
  std::optional<Value> valueOf(Place place, Operand operand, Type type = {});
  /// A single `index`.
  std::optional<Value> indexOf(Place place, const Operand &operand);
  /// As numpy does with operands of one function: they get one type of numbers
  /// and the same sizes.
  std::optional<SmallVector<Value>> unify(Place place,
                                          ArrayRef<Operand> operands);
  Value broadcastTo(Location where, Value value, ArrayRef<SizeAttr> sizes);
  /// Where the numbers of a range are, of all else itself.
  Value withoutRange(Location where, Value value);
  std::optional<const Expression *> keyword(const Expression &call,
                                            StringRef name);
  bool checkCall(const Expression &call, size_t fewest, size_t most,
                 ArrayRef<StringRef> keywords = {});
  static SmallVector<SizeAttr> sizesOrNone(Type type) {
    return block::isBlock(type) ? llvm::to_vector(sizesOf(type))
                                : SmallVector<SizeAttr>();
  }
  std::string describe(Type type);

  const syntax::Kernel &kernel;
  StringRef file;
  const TextOptions &options;
  OpBuilder &builder;
  MLIRContext *context;

  llvm::StringSet<> parameters, dimensions;
  llvm::StringMap<Type> types;
  llvm::StringMap<Value> variables;
  /// Names that were set where they do not hold any more.
  llvm::StringSet<> outOfReach;
  /// Of statements that made no operation.
  std::string comment;
};

} // namespace

std::string KernelReader::describe(Type type) {
  if (isa<MemRefType>(type))
    return "memory";
  if (auto range = dyn_cast<RangeType>(type))
    return "a range of " + range.getSize().str();
  if (!block::isBlock(type))
    return nameOf(type);
  SmallVector<std::string> sizes = llvm::map_to_vector(
      sizesOf(type), [](SizeAttr size) { return size.str(); });
  return nameOf(getElementTypeOrSelf(type)) + "[" + llvm::join(sizes, ", ") +
         "]";
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

bool KernelReader::checkName(Place place, StringRef name) {
  if (isReserved(name) || isSizeName(name) || types.contains(name)) {
    error(place) << "'" << name
                 << "' has a meaning already, and is no name to set";
    return false;
  }
  return true;
}

std::optional<SizeAttr> KernelReader::readSize(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::Integer:
    if (expression.integer < 1 || expression.integer > SizeAttr::largestFactor)
      return refuse(expression.place, "a size must be between 1 and " +
                                          Twine(SizeAttr::largestFactor));
    return SizeAttr::get(context, expression.integer, {});
  case Expression::Kind::Name:
    if (!isSizeName(expression.text))
      return refuse(expression.place,
                    "'" + expression.text +
                        "' is no size: neither a parameter, nor one of an "
                        "argument in memory");
    return SizeAttr::getSorted(context, 1, {expression.text});
  case Expression::Kind::Binary:
    if (expression.text == "*") {
      std::optional<SizeAttr> lhs = readSize(*expression.operands[0]);
      std::optional<SizeAttr> rhs =
          lhs ? readSize(*expression.operands[1]) : std::nullopt;
      if (!rhs)
        return std::nullopt;
      const int64_t factor = lhs->getFactor() * rhs->getFactor();
      SmallVector<StringRef> names;
      for (SizeAttr each : {*lhs, *rhs})
        for (StringAttr name : each.getNames())
          names.push_back(name);
      if (factor > SizeAttr::largestFactor || names.size() > mostDimensions)
        return refuse(expression.place, "the size has too many factors");
      return SizeAttr::getSorted(context, factor, names);
    }
    [[fallthrough]];
  default:
    return refuse(expression.place,
                  "a size is a number, a name, or a product of them");
  }
}

std::optional<Type> KernelReader::readElementType(const Expression &expression) {
  if (expression.kind == Expression::Kind::Name) {
    if (Type type = typeNamed(expression.text, context))
      return type;
    if (auto found = types.find(expression.text); found != types.end())
      return found->second;
  }
  return refuse(expression.place,
                "this is no type of numbers: f32, f64, f16, bf16, i1, i8, i16, "
                "i32, i64, index, or an argument 'T: type(f32, bf16)'");
}

/// `tune(8, 16) = 16`, or `constant`.
std::optional<ParameterAttr>
KernelReader::readParameter(const syntax::Argument &argument) {
  const Expression &type = *argument.type;
  const StringAttr name = StringAttr::get(context, argument.name);
  if (type.kind == Expression::Kind::Name) {
    if (argument.untuned)
      return refuse(argument.untuned->place,
                    "a constant is given by whoever uses the kernel");
    return ParameterAttr::get(context, name, {}, 0);
  }
  SmallVector<int64_t> choices;
  if (!type.keywords.empty() || type.operands.empty())
    return refuse(type.place, "'tune' needs numbers to choose from");
  for (const syntax::ExpressionPointer &each : type.operands) {
    if (each->kind != Expression::Kind::Integer)
      return refuse(each->place, "what is tuned must be a number");
    choices.push_back(each->integer);
  }
  int64_t untuned = choices.front();
  if (argument.untuned) {
    if (argument.untuned->kind != Expression::Kind::Integer)
      return refuse(argument.untuned->place, "this must be a number");
    untuned = argument.untuned->integer;
  }
  ParameterAttr parameter = ParameterAttr::getChecked(
      [&] { return error(argument.place); }, context, name, ArrayRef(choices),
      untuned);
  if (!parameter)
    return std::nullopt;
  return parameter;
}

/// `type(f32, bf16)`, as the options have it.
std::optional<Type>
KernelReader::readTypeChoice(const syntax::Argument &argument) {
  const Expression &choices = *argument.type;
  if (!choices.keywords.empty() || choices.operands.empty() ||
      argument.untuned)
    return refuse(choices.place, "'type' needs types to choose from, and "
                                 "nothing behind it");
  const auto chosen = options.types.find(argument.name);
  Type result;
  for (const syntax::ExpressionPointer &each : choices.operands) {
    std::optional<Type> type = readElementType(*each);
    if (!type)
      return std::nullopt;
    if (!result && (chosen == options.types.end() ||
                    chosen->second == nameOf(*type)))
      result = *type;
  }
  if (!result)
    return refuse(choices.place, "type " + argument.name + " must not be " +
                                     chosen->second);
  return result;
}

LogicalResult KernelReader::readArguments() {
  SmallVector<Type> argumentTypes;
  SmallVector<SizesAttr> argumentSizes;
  SmallVector<const syntax::Argument *> given;
  SmallVector<ParameterAttr> all;
  const auto isCall = [](const Expression &type, StringRef name) {
    return type.kind == Expression::Kind::Call && type.text == name;
  };
  // Parameters and types first, which may stand behind where they are used.
  llvm::StringSet<> names;
  for (const syntax::Argument &argument : kernel.arguments) {
    const Expression &type = *argument.type;
    if (isReserved(argument.name) || !names.insert(argument.name).second) {
      error(argument.place) << "'" << argument.name
                            << "' has a meaning already, and is no name of an "
                               "argument";
      return failure();
    }
    if (isCall(type, "type")) {
      std::optional<Type> chosen = readTypeChoice(argument);
      if (!chosen)
        return failure();
      types[argument.name] = *chosen;
    } else if (isCall(type, "tune") || (type.kind == Expression::Kind::Name &&
                                        type.text == "constant")) {
      std::optional<ParameterAttr> parameter = readParameter(argument);
      if (!parameter)
        return failure();
      all.push_back(*parameter);
      parameters.insert(argument.name);
    } else if (argument.untuned) {
      error(argument.untuned->place)
          << "only parameters that are tuned have a value of their own";
      return failure();
    } else {
      given.push_back(&argument);
    }
  }
  // A name that is alone in a dimension is a size, unless it is a parameter.
  for (const syntax::Argument *argument : given)
    if (argument->type->kind == Expression::Kind::Subscript)
      for (const auto &size : llvm::drop_begin(argument->type->operands))
        if (size->kind == Expression::Kind::Name) {
          if (isReserved(size->text) || types.contains(size->text) ||
              (names.contains(size->text) && !parameters.contains(size->text)))
            return refuse(size->place, "'" + size->text +
                                           "' has a meaning already, and is "
                                           "no name of a size"),
                   failure();
          if (!parameters.contains(size->text))
            dimensions.insert(size->text);
        }
  for (const syntax::Argument *argument : given) {
    const Expression &type = *argument->type;
    const bool isMemory = type.kind == Expression::Kind::Subscript;
    std::optional<Type> element =
        readElementType(isMemory ? *type.operands[0] : type);
    if (!element)
      return failure();
    if (!isMemory) {
      argumentTypes.push_back(*element);
      argumentSizes.push_back(SizesAttr());
      continue;
    }
    SmallVector<SizeAttr> sizes;
    for (const auto &each : llvm::drop_begin(type.operands)) {
      std::optional<SizeAttr> size = readSize(*each);
      if (!size)
        return failure();
      sizes.push_back(*size);
    }
    if (sizes.size() > mostDimensions || element->isIndex() ||
        element->isInteger(1)) {
      error(type.place) << "memory has at most " << mostDimensions
                        << " dimensions, and no numbers of index or i1";
      return failure();
    }
    argumentTypes.push_back(memoryOf(sizes, *element));
    argumentSizes.push_back(SizesAttr::get(context, sizes));
  }

  Location where = location(kernel.place);
  if (!kernel.comment.empty())
    where = FusedLoc::get(context, {where},
                          StringAttr::get(context, kernel.comment));
  auto function = func::FuncOp::create(
      builder, where, kernel.name, builder.getFunctionType(argumentTypes, {}));
  function->setAttr(BlockDialect::parametersName,
                    ParametersAttr::get(context, all));
  if (kernel.documentation)
    function->setAttr(BlockDialect::documentationName,
                      builder.getStringAttr(*kernel.documentation));
  Block *body = function.addEntryBlock();
  for (auto [number, argument] : llvm::enumerate(given)) {
    if (argumentSizes[number])
      function.setArgAttr(number, BlockDialect::sizesName,
                          argumentSizes[number]);
    Value value = body->getArgument(number);
    value.setLoc(NameLoc::get(builder.getStringAttr(argument->name),
                              location(argument->place)));
    variables[argument->name] = value;
  }
  builder.setInsertionPointToStart(body);
  return success();
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void KernelReader::findSet(const syntax::Body &body,
                           SmallVector<StringRef> &names) {
  for (const Statement &statement : body) {
    for (const syntax::ExpressionPointer &target : statement.targets)
      if (target->kind == Expression::Kind::Name &&
          !llvm::is_contained(names, target->text))
        names.push_back(target->text);
    findSet(statement.body, names);
    findSet(statement.otherwise, names);
  }
}

LogicalResult KernelReader::readBody(const syntax::Body &body) {
  for (const Statement &statement : body) {
    Block *block = builder.getInsertionBlock();
    // What stands behind the insertion point stays there.
    Operation *before = builder.getInsertionPoint() == block->begin()
                            ? nullptr
                            : &*std::prev(builder.getInsertionPoint());
    if (failed(readStatement(statement)))
      return failure();
    if (!statement.comment.empty())
      comment += (comment.empty() ? "" : "\n") + statement.comment;
    Operation *last = builder.getInsertionPoint() == block->begin()
                          ? nullptr
                          : &*std::prev(builder.getInsertionPoint());
    if (comment.empty() || last == before)
      continue;
    last->setLoc(FusedLoc::get(context, {last->getLoc()},
                               builder.getStringAttr(comment)));
    comment.clear();
  }
  comment.clear();
  return success();
}

LogicalResult KernelReader::readStatement(const Statement &statement) {
  switch (statement.kind) {
  case Statement::Kind::Pass:
    return success();
  case Statement::Kind::For:
    return readFor(statement);
  case Statement::Kind::If:
    return readIf(statement);
  case Statement::Kind::Assign:
    return readAssignment(statement);
  case Statement::Kind::Update: {
    MaybeOperand before = read(*statement.targets[0]);
    MaybeOperand by = before ? read(*statement.values[0]) : std::nullopt;
    MaybeOperand after =
        by ? combine(statement.place, statement.text, *before, *by)
           : std::nullopt;
    return after ? assign(*statement.targets[0], *after) : failure();
  }
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult KernelReader::readAssignment(const Statement &statement) {
  // All values are those from before.
  SmallVector<Operand> values;
  for (const syntax::ExpressionPointer &each : statement.values) {
    MaybeOperand value = read(*each);
    if (!value)
      return failure();
    values.push_back(*value);
  }
  for (auto [target, value] : llvm::zip_equal(statement.targets, values))
    if (failed(assign(*target, value)))
      return failure();
  return success();
}

LogicalResult KernelReader::assign(const Expression &target, Operand operand) {
  if (target.kind == Expression::Kind::Subscript)
    return store(target, operand);
  if (!checkName(target.place, target.text))
    return failure();
  auto known = variables.find(target.text);
  if (known != variables.end() && isa<MemRefType>(known->second.getType())) {
    error(target.place) << "'" << target.text << "' is memory: set an element";
    return failure();
  }
  std::optional<Value> value = valueOf(target.place, operand);
  if (!value)
    return failure();
  variables[target.text] = *value;
  // What has just been computed for it has its name.
  Operation *op = value->getDefiningOp();
  if (op && !op->getLoc()->findInstanceOf<NameLoc>() &&
      op->getNumResults() == 1 && !isa<scf::ForOp, scf::IfOp>(op))
    op->setLoc(
        NameLoc::get(builder.getStringAttr(target.text), op->getLoc()));
  return success();
}

LogicalResult KernelReader::store(const Expression &target, Operand operand) {
  std::optional<Access> access = readAccess(target);
  if (!access)
    return failure();
  Type element = cast<MemRefType>(access->memory.getType()).getElementType();
  std::optional<Value> value = valueOf(target.place, operand, element);
  if (!value)
    return failure();
  Location where = location(target.place);
  Value stored = withoutRange(where, *value);
  if (!access->axes.empty()) {
    error(target.place) << "what is set must not have 'None' as an axis";
    return failure();
  }
  SmallVector<SizeAttr> given = sizesOrNone(stored.getType());
  std::optional<SmallVector<SizeAttr>> both =
      broadcastSizes(access->sizes, given);
  if (isa<MemRefType>(stored.getType()) || !both || *both != access->sizes ||
      getElementTypeOrSelf(stored) != element) {
    error(target.place) << "'" << target.operands[0]->text << "' has "
                        << describe(blockOf(access->sizes, element))
                        << " there, which " << describe(stored.getType())
                        << " does not fit";
    return failure();
  }
  stored = broadcastTo(where, stored, access->sizes);
  if (access->sizes.empty())
    memref::StoreOp::create(builder, where, stored, access->memory,
                            access->indices);
  else
    StoreOp::create(builder, where, stored, access->memory, access->indices);
  return success();
}

LogicalResult KernelReader::readFor(const Statement &statement) {
  const Expression &range = *statement.values[0];
  const bool isBlocks = range.text == "blocks";
  if (range.kind != Expression::Kind::Call ||
      !llvm::is_contained({"range", "blocks", "unroll"}, range.text)) {
    error(range.place) << "loops are over range(first, end, step), "
                          "unroll(first, end, step) or "
                          "blocks(first, end, SIZE)";
    return failure();
  }
  if (!checkCall(range, isBlocks ? 2 : 1, 3) ||
      !checkName(statement.place, statement.text))
    return failure();
  const size_t count = range.operands.size();
  const bool hasStep = isBlocks || count == 3;
  const bool hasFirst = count - (hasStep ? 1 : 0) == 2;
  Location where = location(statement.place);
  const auto readIndex = [&](size_t number) -> std::optional<Value> {
    MaybeOperand operand = read(*range.operands[number]);
    return operand ? indexOf(range.operands[number]->place, *operand)
                   : std::nullopt;
  };
  std::optional<Value> first =
      hasFirst ? readIndex(0)
               : arith::ConstantIndexOp::create(builder, where, 0).getResult();
  std::optional<Value> end = first ? readIndex(hasFirst ? 1 : 0) : std::nullopt;
  if (!end)
    return failure();
  SizeAttr size = SizeAttr::get(context, 1, {});
  if (hasStep) {
    std::optional<SizeAttr> given = readSize(*range.operands.back());
    if (!given)
      return failure();
    size = *given;
  }
  Value step =
      size.isStatic()
          ? arith::ConstantIndexOp::create(builder, where, size.getFactor())
                .getResult()
          : SizeOp::create(builder, where, size).getResult();

  // What the loop sets and knew before goes from turn to turn.
  SmallVector<StringRef> set, carried;
  findSet(statement.body, set);
  SmallVector<Value> before;
  for (StringRef name : set)
    if (auto known = variables.find(name); known != variables.end()) {
      if (isa<MemRefType, RangeType>(known->second.getType())) {
        error(statement.place) << "'" << name << "' is "
                               << describe(known->second.getType())
                               << " and must not be set in the loop";
        return failure();
      }
      carried.push_back(name);
      before.push_back(known->second);
    }
  auto loop = scf::ForOp::create(builder, where, *first, *end, step, before);
  if (range.text == "unroll")
    loop->setAttr(BlockDialect::unrollName, builder.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(builder);
    llvm::StringMap<Value> outside = variables;
    builder.setInsertionPointToStart(loop.getBody());
    Location named = NameLoc::get(builder.getStringAttr(statement.text), where);
    for (auto [name, value] :
         llvm::zip_equal(carried, loop.getRegionIterArgs())) {
      value.setLoc(NameLoc::get(builder.getStringAttr(name), where));
      variables[name] = value;
    }
    if (isBlocks) {
      loop.getInductionVar().setLoc(where);
      variables[statement.text] =
          RangeOp::create(builder, named, RangeType::get(context, size),
                          loop.getInductionVar(), *end);
    } else {
      loop.getInductionVar().setLoc(named);
      variables[statement.text] = loop.getInductionVar();
    }
    if (failed(readBody(statement.body)))
      return failure();
    SmallVector<Value> after;
    for (auto [name, value] : llvm::zip_equal(carried, before)) {
      after.push_back(variables[name]);
      if (after.back().getType() != value.getType()) {
        error(statement.place)
            << "'" << name << "' is " << describe(value.getType())
            << " before the loop and " << describe(after.back().getType())
            << " after a turn of it";
        return failure();
      }
    }
    if (!carried.empty())
      scf::YieldOp::create(builder, where, after);
    for (const auto &each : variables)
      if (!outside.contains(each.first()))
        outOfReach.insert(each.first());
    variables = std::move(outside);
  }
  for (auto [name, value] : llvm::zip_equal(carried, loop.getResults()))
    variables[name] = value;
  return success();
}

LogicalResult KernelReader::readIf(const Statement &statement) {
  MaybeOperand read = this->read(*statement.values[0]);
  std::optional<Value> condition =
      read ? valueOf(statement.place, *read) : std::nullopt;
  if (!condition)
    return failure();
  if (!condition->getType().isInteger(1)) {
    error(statement.values[0]->place)
        << "a condition is " << describe(condition->getType())
        << ", and must be true or false";
    return failure();
  }
  Location where = location(statement.place);
  const bool hasElse = !statement.otherwise.empty();
  // Which results there are is known when both sides are read.
  auto branch = scf::IfOp::create(builder, where, TypeRange(), *condition,
                                  /*withElseRegion=*/true);
  const llvm::StringMap<Value> outside = variables;
  SmallVector<llvm::StringMap<Value>, 2> sides;
  for (auto [body, block] :
       {std::pair(&statement.body, branch.thenBlock()),
        std::pair(&statement.otherwise, branch.elseBlock())}) {
    OpBuilder::InsertionGuard guard(builder);
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToStart(block);
    variables = outside;
    if (failed(readBody(*body)))
      return failure();
    sides.push_back(variables);
  }
  SmallVector<StringRef> set, changed;
  findSet(statement.body, set);
  findSet(statement.otherwise, set);
  SmallVector<Type> types;
  for (StringRef name : set) {
    auto lhs = sides[0].find(name), rhs = sides[1].find(name);
    if (lhs == sides[0].end() || rhs == sides[1].end()) {
      outOfReach.insert(name);
      continue;
    }
    if (lhs->second.getType() != rhs->second.getType() ||
        isa<RangeType>(lhs->second.getType())) {
      error(statement.place) << "'" << name << "' is "
                             << describe(lhs->second.getType())
                             << " after one side and "
                             << describe(rhs->second.getType())
                             << " after the other";
      return failure();
    }
    changed.push_back(name);
    types.push_back(lhs->second.getType());
  }
  for (size_t number : {0, 1}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(number == 0 ? branch.thenBlock()
                                               : branch.elseBlock());
    SmallVector<Value> results;
    for (StringRef name : changed)
      results.push_back(sides[number].lookup(name));
    scf::YieldOp::create(builder, where, results);
  }
  auto whole = scf::IfOp::create(builder, where, types, *condition,
                                 hasElse || !changed.empty());
  whole.getThenRegion().takeBody(branch.getThenRegion());
  if (hasElse || !changed.empty())
    whole.getElseRegion().takeBody(branch.getElseRegion());
  branch.erase();
  variables = outside;
  for (auto [name, value] : llvm::zip_equal(changed, whole.getResults()))
    variables[name] = value;
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<Value> KernelReader::valueOf(Place place, Operand operand,
                                           Type type) {
  if (operand.value)
    return operand.value;
  Location where = location(place);
  const bool isFloat = operand.literal == NumberKind::Float;
  if (!type)
    type = isFloat ? Type(builder.getF32Type())
           : operand.literal == NumberKind::Truth
               ? Type(builder.getI1Type())
               : Type(builder.getIndexType());
  const NumberKind kind = kindOf(type);
  if ((kind == NumberKind::Truth) != (operand.literal == NumberKind::Truth) ||
      (isFloat && kind != NumberKind::Float)) {
    refuse(place, "a number here is none of type " + nameOf(type));
    return std::nullopt;
  }
  if (kind == NumberKind::Float) {
    const double given = isFloat ? operand.number : double(operand.integer);
    bool loses = false;
    APFloat number(given);
    number.convert(cast<FloatType>(type).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &loses);
    if (number.isInfinity() && !std::isinf(given)) {
      refuse(place, "the number is too large for " + nameOf(type));
      return std::nullopt;
    }
    return arith::ConstantOp::create(builder, where,
                                     builder.getFloatAttr(type, number))
        .getResult();
  }
  const unsigned width =
      type.isIndex() ? 64 : cast<IntegerType>(type).getWidth();
  if (kind == NumberKind::Integer && !llvm::isIntN(width, operand.integer) &&
      !llvm::isUIntN(width, operand.integer)) {
    refuse(place, "the number does not fit into " + nameOf(type));
    return std::nullopt;
  }
  const APInt bits(width, static_cast<uint64_t>(operand.integer),
                   /*isSigned=*/true, /*implicitTrunc=*/true);
  return arith::ConstantOp::create(builder, where,
                                   builder.getIntegerAttr(type, bits))
      .getResult();
}

std::optional<Value> KernelReader::indexOf(Place place,
                                           const Operand &operand) {
  std::optional<Value> value =
      valueOf(place, operand, operand.value ? Type() : builder.getIndexType());
  if (value && !value->getType().isIndex()) {
    refuse(place, "this is " + describe(value->getType()) +
                      ", and must be one number of type index");
    return std::nullopt;
  }
  return value;
}

Value KernelReader::withoutRange(Location where, Value value) {
  auto range = dyn_cast<RangeType>(value.getType());
  if (!range)
    return value;
  return PositionsOp::create(
      builder, where, blockOf(range.getSize(), builder.getIndexType()), value);
}

Value KernelReader::broadcastTo(Location where, Value value,
                                ArrayRef<SizeAttr> sizes) {
  if (sizesOrNone(value.getType()) == sizes)
    return value;
  Type type = blockOf(sizes, getElementTypeOrSelf(value));
  if (!block::isBlock(value.getType()))
    return SplatOp::create(builder, where, type, value);
  return BroadcastOp::create(builder, where, type, value);
}

std::optional<SmallVector<Value>>
KernelReader::unify(Place place, ArrayRef<Operand> operands) {
  Location where = location(place);
  Type element;
  for (const Operand &each : operands) {
    if (!each.value)
      continue;
    if (isa<MemRefType>(each.value.getType())) {
      refuse(place, "memory is read by its elements, as in x[i]");
      return std::nullopt;
    }
    Type type = isa<RangeType>(each.value.getType())
                    ? Type(builder.getIndexType())
                    : getElementTypeOrSelf(each.value);
    if (element && type != element) {
      refuse(place, nameOf(element) + " and " + nameOf(type) +
                        " do not go together: convert one, as in " +
                        nameOf(element) + "(x)");
      return std::nullopt;
    }
    element = type;
  }
  // Numbers alone: floats, if one is.
  if (!element && llvm::any_of(operands, [](const Operand &each) {
        return each.literal == NumberKind::Float;
      }))
    element = builder.getF32Type();
  SmallVector<Value> values;
  SmallVector<SizeAttr> sizes;
  for (const Operand &each : operands) {
    std::optional<Value> value = valueOf(place, each, element);
    if (!value)
      return std::nullopt;
    values.push_back(withoutRange(where, *value));
    SmallVector<SizeAttr> own = sizesOrNone(values.back().getType());
    std::optional<SmallVector<SizeAttr>> both = broadcastSizes(sizes, own);
    if (!both) {
      refuse(place, "sizes do not go together: " +
                        describe(blockOf(sizes, getElementTypeOrSelf(values.back()))) +
                        " and " + describe(values.back().getType()));
      return std::nullopt;
    }
    sizes = *both;
  }
  for (Value &value : values)
    value = broadcastTo(where, value, sizes);
  return values;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

MaybeOperand KernelReader::read(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::Integer:
    return Operand::ofInteger(expression.integer);
  case Expression::Kind::Float:
    return Operand::ofFloat(expression.number);
  case Expression::Kind::Truth:
    return Operand::ofTruth(expression.integer != 0);
  case Expression::Kind::None:
  case Expression::Kind::All:
    return refuse(expression.place, "'None' and ':' stand only in subscripts");
  case Expression::Kind::Name:
    return readName(expression);
  case Expression::Kind::Unary:
    return readUnary(expression);
  case Expression::Kind::Binary:
    return readBinary(expression);
  case Expression::Kind::Call:
    return readCall(expression);
  case Expression::Kind::Subscript:
    return readSubscript(expression);
  }
  llvm_unreachable("all kinds are handled");
}

MaybeOperand KernelReader::readName(const Expression &expression) {
  const std::string &name = expression.text;
  if (auto found = variables.find(name); found != variables.end())
    return Operand{found->second};
  if (isSizeName(name))
    return Operand{SizeOp::create(builder, location(expression.place),
                                  SizeAttr::getSorted(context, 1, {name}))
                       .getResult()};
  if (name == "inf")
    return Operand::ofFloat(HUGE_VAL);
  if (name == "nan")
    return Operand::ofFloat(std::nan(""));
  if (outOfReach.contains(name))
    return refuse(expression.place,
                  "'" + name + "' is set only within a loop, or on one side of "
                               "a branch, before this");
  return refuse(expression.place, "'" + name + "' is not set before this");
}

MaybeOperand KernelReader::readUnary(const Expression &expression) {
  MaybeOperand operand = read(*expression.operands[0]);
  if (!operand)
    return std::nullopt;
  const Place place = expression.place;
  if (expression.text == "-") {
    if (!operand->value) {
      if (operand->literal == NumberKind::Truth)
        return refuse(place, "truth has no sign");
      operand->integer = static_cast<int64_t>(
          0 - static_cast<uint64_t>(operand->integer));
      operand->number = -operand->number;
      return operand;
    }
    if (isa<FloatType>(getElementTypeOrSelf(operand->value))) {
      Value value = operand->value;
      return Operand{
          arith::NegFOp::create(builder, location(place), value).getResult()};
    }
    return combine(place, "-", Operand::ofInteger(0), *operand);
  }
  // `not` of truth, and `~` of bits.
  const bool isTruth =
      operand->value
          ? getElementTypeOrSelf(operand->value).isInteger(1)
          : operand->literal == NumberKind::Truth;
  if (expression.text == "not" && !isTruth)
    return refuse(place, "'not' is for what is true or false");
  if (!operand->value && isTruth)
    return Operand::ofTruth(operand->integer == 0);
  return combine(place, "^", *operand,
                 isTruth ? Operand::ofTruth(true) : Operand::ofInteger(-1));
}

MaybeOperand KernelReader::fold(Place place, StringRef word, Operand lhs,
                                Operand rhs) {
  const auto isTruth = [](const Operand &each) {
    return each.literal == NumberKind::Truth;
  };
  if (isTruth(lhs) != isTruth(rhs))
    return refuse(place, "truth and numbers do not go together");
  const bool isFloat = lhs.literal == NumberKind::Float ||
                       rhs.literal == NumberKind::Float || word == "/";
  const double a = isFloat && lhs.literal == NumberKind::Integer
                       ? double(lhs.integer)
                       : lhs.number;
  const double b = isFloat && rhs.literal == NumberKind::Integer
                       ? double(rhs.integer)
                       : rhs.number;
  if (isTruth(lhs)) {
    if (word == "and" || word == "&")
      return Operand::ofTruth(lhs.integer & rhs.integer);
    if (word == "or" || word == "|")
      return Operand::ofTruth(lhs.integer | rhs.integer);
    if (word == "^")
      return Operand::ofTruth(lhs.integer != rhs.integer);
    return refuse(place, "'" + word + "' is not for truth");
  }
  if (llvm::is_contained({"<", "<=", ">", ">=", "==", "!="}, word)) {
    const auto compare = [&](auto x, auto y) {
      return word == "<"    ? x < y
             : word == "<=" ? x <= y
             : word == ">"  ? x > y
             : word == ">=" ? x >= y
             : word == "==" ? x == y
                            : x != y;
    };
    return Operand::ofTruth(isFloat ? compare(a, b)
                                    : compare(lhs.integer, rhs.integer));
  }
  if (isFloat) {
    if (word == "+")
      return Operand::ofFloat(a + b);
    if (word == "-")
      return Operand::ofFloat(a - b);
    if (word == "*")
      return Operand::ofFloat(a * b);
    if (word == "/" && b != 0)
      return Operand::ofFloat(a / b);
    return refuse(place, "'" + word + "' is not for these numbers");
  }
  int64_t result = 0;
  bool overflows = false;
  if (word == "+")
    overflows = llvm::AddOverflow(lhs.integer, rhs.integer, result);
  else if (word == "-")
    overflows = llvm::SubOverflow(lhs.integer, rhs.integer, result);
  else if (word == "*")
    overflows = llvm::MulOverflow(lhs.integer, rhs.integer, result);
  else if (word == "//" && rhs.integer > 0)
    result = llvm::divideFloorSigned(lhs.integer, rhs.integer);
  else if (word == "%" && rhs.integer > 0)
    result = llvm::mod(lhs.integer, rhs.integer);
  else if (word == "<<" && rhs.integer >= 0 && rhs.integer < 63)
    overflows = llvm::MulOverflow(lhs.integer, int64_t(1) << rhs.integer, result);
  else if (word == ">>" && rhs.integer >= 0 && rhs.integer < 64)
    result = lhs.integer >> rhs.integer;
  else if (word == "&")
    result = lhs.integer & rhs.integer;
  else if (word == "|")
    result = lhs.integer | rhs.integer;
  else if (word == "^")
    result = lhs.integer ^ rhs.integer;
  else
    return refuse(place, "'" + word + "' is not for these numbers");
  if (overflows)
    return refuse(place, "the number is too large");
  return Operand::ofInteger(result);
}

MaybeOperand KernelReader::readBinary(const Expression &expression) {
  MaybeOperand lhs = read(*expression.operands[0]);
  MaybeOperand rhs = lhs ? read(*expression.operands[1]) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  return combine(expression.place, expression.text, *lhs, *rhs);
}

MaybeOperand KernelReader::combine(Place place, StringRef word, Operand lhs,
                                   Operand rhs) {
  if (!lhs.value && !rhs.value)
    return fold(place, word, lhs, rhs);
  Location where = location(place);
  // A range goes on or back as a whole.
  const auto isRange = [](const Operand &operand) {
    return operand.value && isa<RangeType>(operand.value.getType());
  };
  const auto isOneIndex = [](const Operand &operand) {
    return operand.value ? operand.value.getType().isIndex()
                         : operand.literal == NumberKind::Integer;
  };
  if (word == "+" && isRange(rhs) && isOneIndex(lhs))
    std::swap(lhs, rhs);
  if (isRange(lhs) && isOneIndex(rhs) && (word == "+" || word == "-")) {
    if (word == "-") {
      MaybeOperand negated =
          rhs.value ? combine(place, "-", Operand::ofInteger(0), rhs)
                    : Operand::ofInteger(static_cast<int64_t>(
                          0 - static_cast<uint64_t>(rhs.integer)));
      rhs = *negated;
    }
    std::optional<Value> by = indexOf(place, rhs);
    if (!by)
      return std::nullopt;
    return Operand{
        ShiftOp::create(builder, where, lhs.value, *by).getResult()};
  }
  std::optional<SmallVector<Value>> values = unify(place, {lhs, rhs});
  if (!values)
    return std::nullopt;
  Type type = getElementTypeOrSelf((*values)[0]);
  if (word == "%" && kindOf(type) == NumberKind::Integer) {
    // As Python does: it has the divisor's sign.
    Value quotient = arith::FloorDivSIOp::create(builder, where, (*values)[0],
                                                 (*values)[1]);
    Value whole =
        arith::MulIOp::create(builder, where, quotient, (*values)[1]);
    return Operand{
        arith::SubIOp::create(builder, where, (*values)[0], whole).getResult()};
  }
  const ElementwiseWord *found = findWord(word, kindOf(type), 2);
  if (!found)
    return refuse(place, "'" + word + "' is not for " + nameOf(type));
  if (kindOf(type) == NumberKind::Float && found->predicate >= 0)
    return Operand{arith::CmpFOp::create(builder, where,
                                         static_cast<arith::CmpFPredicate>(
                                             found->predicate),
                                         (*values)[0], (*values)[1])
                       .getResult()};
  if (found->predicate >= 0)
    return Operand{arith::CmpIOp::create(builder, where,
                                         static_cast<arith::CmpIPredicate>(
                                             found->predicate),
                                         (*values)[0], (*values)[1])
                       .getResult()};
  Operation *op = builder.create(where, builder.getStringAttr(found->operation),
                                 *values, (*values)[0].getType());
  return Operand{op->getResult(0)};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

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
  if (name == "scratch") {
    if (!checkCall(call, 2, 1 + mostDimensions))
      return std::nullopt;
    std::optional<Type> element = readElementType(*call.operands[0]);
    if (!element)
      return std::nullopt;
    SmallVector<SizeAttr> sizes;
    for (const auto &each : llvm::drop_begin(call.operands)) {
      std::optional<SizeAttr> size = readSize(*each);
      if (!size)
        return std::nullopt;
      sizes.push_back(*size);
    }
    if (element->isIndex() || element->isInteger(1))
      return refuse(call.place, "memory has no numbers of index or i1");
    return Operand{ScratchOp::create(builder, location(call.place),
                                     memoryOf(sizes, *element),
                                     SizesAttr::get(context, sizes))
                       .getResult()};
  }
  if (name == "broadcast") {
    if (!checkCall(call, 2, 1 + mostDimensions))
      return std::nullopt;
    MaybeOperand operand = read(*call.operands[0]);
    if (!operand)
      return std::nullopt;
    if (!operand->value || !block::isBlock(operand->value.getType()))
      return refuse(call.place, "'broadcast' is for blocks");
    SmallVector<SizeAttr> sizes;
    for (const auto &each : llvm::drop_begin(call.operands)) {
      std::optional<SizeAttr> size = readSize(*each);
      if (!size)
        return std::nullopt;
      sizes.push_back(*size);
    }
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
    Type from = operand->value ? getElementTypeOrSelf(operand->value) : Type();
    if (!from || !from.isIntOrFloat() || !element->isIntOrFloat() ||
        from.getIntOrFloatBitWidth() != element->getIntOrFloatBitWidth())
      return refuse(call.place, "'bitcast' is for numbers of as many bits");
    return Operand{
        arith::BitcastOp::create(
            builder, location(call.place),
            blockOf(sizesOrNone(operand->value.getType()), *element),
            operand->value)
            .getResult()};
  }
  return readElementwise(call);
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
  SmallVector<Operand> operands;
  for (const syntax::ExpressionPointer &each : call.operands) {
    MaybeOperand operand = read(*each);
    if (!operand)
      return std::nullopt;
    operands.push_back(*operand);
  }
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
  if (!found)
    return refuse(call.place,
                  "'" + call.text + "' is not for " + nameOf(type));
  Operation *op =
      builder.create(location(call.place), builder.getStringAttr(found->operation),
                     *values, (*values)[0].getType());
  return Operand{op->getResult(0)};
}

MaybeOperand KernelReader::readConversion(const Expression &call, Type type) {
  if (!checkCall(call, 1, 1, {"unsigned"}))
    return std::nullopt;
  bool isUnsigned = false;
  if (std::optional<const Expression *> given = keyword(call, "unsigned")) {
    if ((*given)->kind != Expression::Kind::Truth)
      return refuse((*given)->place, "'unsigned=' is True or False");
    isUnsigned = (*given)->integer != 0;
  }
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
    return Operand{builder
                       .create(where, builder.getStringAttr(operation), value,
                               to)
                       ->getResult(0)};
  };
  const bool isFromFloat = isa<FloatType>(from), isToFloat = isa<FloatType>(type);
  const auto widthOf = [](Type each) {
    return each.isIndex() ? 64 : each.getIntOrFloatBitWidth();
  };
  if (isFromFloat && isToFloat) {
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
  if (type.isInteger(1))
    return refuse(call.place, "truth comes from a comparison, as x != 0");
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
  SmallVector<SizeAttr> sizes;
  for (const auto &each :
       llvm::drop_begin(call.operands, isFull ? 1 : 0)) {
    std::optional<SizeAttr> size = readSize(*each);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return Operand{SplatOp::create(builder, location(call.place),
                                 blockOf(sizes, value->getType()), *value)
                     .getResult()};
}

MaybeOperand KernelReader::readWhere(const Expression &call) {
  if (!checkCall(call, 3, 3))
    return std::nullopt;
  SmallVector<Operand, 3> operands;
  for (const syntax::ExpressionPointer &each : call.operands) {
    MaybeOperand operand = read(*each);
    if (!operand)
      return std::nullopt;
    operands.push_back(*operand);
  }
  Location where = location(call.place);
  std::optional<Value> condition = valueOf(call.place, operands[0]);
  std::optional<SmallVector<Value>> values =
      condition ? unify(call.place, {operands[1], operands[2]}) : std::nullopt;
  if (!values)
    return std::nullopt;
  if (!getElementTypeOrSelf(*condition).isInteger(1))
    return refuse(call.place, "the condition must be true or false");
  // One truth chooses between whole blocks; else all have the same sizes.
  std::optional<SmallVector<SizeAttr>> sizes =
      broadcastSizes(sizesOrNone(condition->getType()),
                     sizesOrNone((*values)[0].getType()));
  if (!sizes)
    return refuse(call.place,
                  "sizes do not go together: " + describe(condition->getType()) +
                      " and " + describe((*values)[0].getType()));
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

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

std::optional<KernelReader::Access>
KernelReader::readAccess(const Expression &subscript) {
  const Expression &base = *subscript.operands[0];
  MaybeOperand memory = read(base);
  if (!memory)
    return std::nullopt;
  if (!memory->value || !isa<MemRefType>(memory->value.getType())) {
    refuse(subscript.place, "only memory has elements to set");
    return std::nullopt;
  }
  Access access{memory->value};
  for (const auto &each : llvm::drop_begin(subscript.operands)) {
    if (each->kind == Expression::Kind::None) {
      access.axes.push_back(access.sizes.size() + access.axes.size());
      continue;
    }
    if (each->kind == Expression::Kind::All) {
      refuse(each->place, "memory is read by ranges: block(0, SIZE) for ':'");
      return std::nullopt;
    }
    MaybeOperand index = read(*each);
    if (!index)
      return std::nullopt;
    if (index->value && isa<RangeType>(index->value.getType())) {
      access.sizes.push_back(cast<RangeType>(index->value.getType()).getSize());
      access.indices.push_back(index->value);
      continue;
    }
    std::optional<Value> one = indexOf(each->place, *index);
    if (!one)
      return std::nullopt;
    access.indices.push_back(*one);
  }
  const int64_t rank = cast<MemRefType>(access.memory.getType()).getRank();
  if (static_cast<int64_t>(access.indices.size()) != rank) {
    refuse(subscript.place, "memory of " + Twine(rank) + " dimensions has " +
                                Twine(access.indices.size()) + " indices");
    return std::nullopt;
  }
  return access;
}

MaybeOperand KernelReader::expand(Place place, Value value,
                                  ArrayRef<unsigned> axes) {
  for (unsigned axis : axes) {
    SmallVector<SizeAttr> sizes(sizesOrNone(value.getType()));
    if (sizes.empty() || sizes.size() == mostDimensions)
      return refuse(place, "one number has no axes, and a block has at most " +
                               Twine(mostDimensions));
    sizes.insert(sizes.begin() + axis, SizeAttr::get(context, 1, {}));
    value = ExpandOp::create(builder, location(place),
                             blockOf(sizes, getElementTypeOrSelf(value)), value,
                             axis);
  }
  return Operand{value};
}

MaybeOperand KernelReader::readSubscript(const Expression &expression) {
  const Expression &base = *expression.operands[0];
  // Memory has a name; all else is a block.
  auto known = base.kind == Expression::Kind::Name ? variables.find(base.text)
                                                   : variables.end();
  if (known != variables.end() && isa<MemRefType>(known->second.getType())) {
    std::optional<Access> access = readAccess(expression);
    if (!access)
      return std::nullopt;
    Location where = location(expression.place);
    Type element = cast<MemRefType>(access->memory.getType()).getElementType();
    Value loaded =
        access->sizes.empty()
            ? memref::LoadOp::create(builder, where, access->memory,
                                     access->indices)
                  .getResult()
            : LoadOp::create(builder, where, blockOf(access->sizes, element),
                             access->memory, access->indices)
                  .getResult();
    return expand(expression.place, loaded, access->axes);
  }
  MaybeOperand operand = read(base);
  if (!operand)
    return std::nullopt;
  if (!operand->value)
    return refuse(expression.place, "a number has no elements");
  Value value = withoutRange(location(expression.place), operand->value);
  SmallVector<unsigned> axes;
  size_t dimensions = 0;
  for (auto [position, each] :
       llvm::enumerate(llvm::drop_begin(expression.operands))) {
    if (each->kind == Expression::Kind::None)
      axes.push_back(position);
    else if (each->kind == Expression::Kind::All)
      ++dimensions;
    else
      return refuse(each->place, "of a block no elements are taken: its "
                                 "subscript has ':' and 'None'");
  }
  if (!block::isBlock(value.getType()) ||
      dimensions != sizesOf(value.getType()).size())
    return refuse(expression.place,
                  describe(value.getType()) + " has not as many dimensions as "
                                              "the subscript has ':'");
  return expand(expression.place, value, axes);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult KernelReader::run() {
  OpBuilder::InsertionGuard guard(builder);
  if (failed(readArguments()) || failed(readBody(kernel.body)))
    return failure();
  func::ReturnOp::create(builder, location(kernel.place));
  return success();
}

OwningOpRef<ModuleOp> kernel::readText(StringRef text, StringRef name,
                                       const TextOptions &options,
                                       MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, block::BlockDialect,
                      func::FuncDialect, math::MathDialect,
                      memref::MemRefDialect, scf::SCFDialect>();
  syntax::SyntaxError wrong;
  std::optional<std::vector<syntax::Kernel>> kernels =
      syntax::parse(std::string_view(text.data(), text.size()), wrong);
  const auto locate = [&](Place place) {
    return FileLineColLoc::get(&context, name, place.line, place.column);
  };
  if (!kernels) {
    emitError(locate(wrong.place)) << wrong.message;
    return nullptr;
  }
  if (kernels->empty()) {
    emitError(locate({1, 1})) << "the text has no kernel: 'def' begins one";
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(locate({1, 1}));
  OpBuilder builder(module->getBodyRegion());
  builder.setInsertionPointToEnd(module->getBody());
  llvm::StringSet<> names;
  for (const syntax::Kernel &kernel : *kernels) {
    if (isReserved(kernel.name) || !names.insert(kernel.name).second) {
      emitError(locate(kernel.place))
          << "'" << kernel.name
          << "' has a meaning already, and is no name of a kernel";
      return nullptr;
    }
    if (failed(KernelReader(kernel, name, options, builder).run()))
      return nullptr;
  }
  if (failed(verify(*module)))
    return nullptr;
  return module;
}
