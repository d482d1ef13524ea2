//===- ReadSignature.cpp - Arguments and parameters -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

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

std::optional<SmallVector<SizeAttr>>
KernelReader::readSizes(ArrayRef<syntax::ExpressionPointer> expressions) {
  SmallVector<SizeAttr> sizes;
  for (const syntax::ExpressionPointer &each : expressions) {
    std::optional<SizeAttr> size = readSize(*each);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::optional<Type>
KernelReader::readElementType(const Expression &expression) {
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

/// `range(8, 257, 8)` among choices.
bool KernelReader::readChoices(const Expression &range,
                               SmallVectorImpl<int64_t> &choices) {
  if (!checkCall(range, 1, 3))
    return false;
  SmallVector<int64_t> bounds;
  for (const syntax::ExpressionPointer &each : range.operands) {
    if (each->kind != Expression::Kind::Integer) {
      error(each->place) << "what is tuned must be a number";
      return false;
    }
    bounds.push_back(each->integer);
  }
  const size_t before = choices.size();
  int64_t next = bounds.size() == 1 ? 0 : bounds[0];
  const int64_t end = bounds.size() == 1 ? bounds[0] : bounds[1];
  const int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  // One beyond the most is told as such.
  while (next < end && choices.size() <= ParameterAttr::mostChoices) {
    choices.push_back(next);
    if (step < 1 || llvm::AddOverflow(next, step, next))
      break;
  }
  if (step >= 1 && choices.size() > before)
    return true;
  error(range.place) << "'range' gives no choices";
  return false;
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
    if (each->kind == Expression::Kind::Call && each->text == "range") {
      if (!readChoices(*each, choices))
        return std::nullopt;
      continue;
    }
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
  ParameterAttr parameter =
      ParameterAttr::getChecked([&] { return error(argument.place); }, context,
                                name, ArrayRef(choices), untuned);
  if (!parameter)
    return std::nullopt;
  return parameter;
}

/// What `T` of arguments is, by what is known of them; empty if nothing is.
std::string KernelReader::typeFromArguments(StringRef name) {
  size_t number = 0;
  for (const syntax::Argument &argument : kernel.arguments) {
    const Expression *type = argument.type.get();
    if (type->kind == Expression::Kind::Call || type->text == "constant")
      continue;
    if (type->kind == Expression::Kind::Subscript)
      type = type->operands[0].get();
    if (number < options.argumentTypes.size() &&
        type->kind == Expression::Kind::Name && type->text == name)
      return nameOf(options.argumentTypes[number]);
    ++number;
  }
  return "";
}

/// `type(f32, bf16)`, as the options have it.
std::optional<Type>
KernelReader::readTypeChoice(const syntax::Argument &argument) {
  const Expression &choices = *argument.type;
  if (!choices.keywords.empty() || choices.operands.empty() || argument.untuned)
    return refuse(choices.place, "'type' needs types to choose from, and "
                                 "nothing behind it");
  std::string wanted = typeFromArguments(argument.name);
  if (auto chosen = options.types.find(argument.name);
      chosen != options.types.end())
    wanted = chosen->second;
  Type result;
  for (const syntax::ExpressionPointer &each : choices.operands) {
    std::optional<Type> type = readElementType(*each);
    if (!type)
      return std::nullopt;
    if (!result && (wanted.empty() || wanted == nameOf(*type)))
      result = *type;
  }
  if (!result)
    return refuse(choices.place,
                  "type " + argument.name + " must not be " + wanted);
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
    std::optional<SmallVector<SizeAttr>> shape =
        readSizes(ArrayRef(type.operands).drop_front());
    if (!shape)
      return failure();
    SmallVector<SizeAttr> &sizes = *shape;
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
