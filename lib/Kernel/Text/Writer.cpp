//===- Writer.cpp - From dialect block to text ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

#include "sandwich/Kernel/Syntax.h"
#include "sandwich/Kernel/Text.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Value KernelWriter::variableOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (result && isa<scf::ForOp>(result.getOwner()))
    return cast<scf::ForOp>(result.getOwner())
        .getRegionIterArg(result.getResultNumber());
  return value;
}

StringRef KernelWriter::hintOf(Value value, unsigned depth) {
  // Names are looked for along what turns and sides give, which goes round in
  // loops.
  constexpr unsigned deepest = 6;
  if (depth > deepest)
    return "";
  value = variableOf(value);
  const auto nameAt = [](Location location) {
    auto named = location->findInstanceOf<NameLoc>();
    return named ? named.getName().getValue() : StringRef();
  };
  const auto firstNameOf = [&](std::initializer_list<Value> values) {
    StringRef name;
    for (Value each : values)
      if (name.empty())
        name = hintOf(each, depth + 1);
    return name;
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (StringRef name = nameAt(argument.getLoc()); !name.empty())
      return name;
    // IR as text has no names of a region's arguments. A loop is called as
    // what it counts.
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return "";
    if (argument == loop.getInductionVar())
      return nameAt(loop.getLoc());
    return firstNameOf({loop.getTiedLoopYieldedValue(argument)->get(),
                        loop.getTiedLoopInit(argument)->get()});
  }
  // What a branch gives is called as what its sides give.
  auto result = cast<OpResult>(value);
  if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
    const unsigned number = result.getResultNumber();
    return firstNameOf({branch.thenYield().getOperand(number),
                        branch.elseYield().getOperand(number)});
  }
  return nameAt(result.getOwner()->getLoc());
}

std::string KernelWriter::nameFor(Value value) {
  value = variableOf(value);
  if (auto known = names.find(value); known != names.end())
    return known->second;
  std::string name = hintOf(value).str();
  if (auto wanted = named.find(value); name.empty() && wanted != named.end())
    name = wanted->second;
  const bool isUsable = block::isName(name) && !isReserved(name) &&
                        !parametersOf(kernel).find(name) &&
                        !findDimension(kernel, name);
  if (!isUsable)
    name = "value";
  if (!isUsable || unique.contains(value))
    name = makeName(name);
  names[value] = name;
  return name;
}

std::string KernelWriter::makeName(StringRef base) {
  for (unsigned number = 1;; ++number) {
    std::string name = (base + "_" + Twine(number)).str();
    if (taken.insert(name).second)
      return name;
  }
}

void KernelWriter::nameNext(Value value, StringRef hint) {
  again |= named.try_emplace(value, hint.str()).second;
}

void KernelWriter::conflict(Value value, Value holder) {
  // The value of a loop keeps its name, which all turns share.
  if (holder && variableOf(value) != variableOf(holder) &&
      isa<scf::ForOp>(value.getParentBlock()->getParentOp()) &&
      isa<BlockArgument>(value) && kept.insert(value).second) {
    again = true;
    return;
  }
  if (unique.insert(variableOf(value)).second ||
      (holder && unique.insert(variableOf(holder)).second))
    again = true;
}

void KernelWriter::set(const std::string &name, Value value) {
  for (Scope &scope : llvm::reverse(scopes)) {
    if (scope.foreign.contains(name))
      conflict(value, Value());
    if (scope.set.insert(name).second)
      scope.order.push_back(name);
    // Who comes behind sets it as well.
    if (scope.results.contains(name))
      break;
  }
  holders[name] = value;
}

void KernelWriter::keep(const std::string &name) {
  auto holder = holders.find(name);
  if (holder == holders.end() || !kept.contains(holder->second))
    return;
  Value value = holder->second;
  std::string other = makeName(name);
  otherNames[value] = other;
  line(other + " = " + name);
  set(other, value);
}

std::string KernelWriter::use(Value value) {
  std::string name = nameFor(value);
  auto holder = holders.find(name);
  if (auto other = otherNames.find(value);
      other != otherNames.end() &&
      (holder == holders.end() || holder->second != value)) {
    name = other->second;
    holder = holders.find(name);
  }
  if (holder == holders.end() || holder->second != value)
    conflict(value, holder == holders.end() ? Value() : holder->second);
  return name;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::string KernelWriter::writeHeading() {
  std::string heading;
  auto fused = kernel.getLoc()->findInstanceOf<FusedLocWith<StringAttr>>();
  if (fused) {
    SmallVector<StringRef> lines;
    fused.getMetadata().getValue().split(lines, '\n');
    for (StringRef each : lines)
      heading += StringRef("# " + each.str()).rtrim().str() + "\n";
  }
  SmallVector<std::string> arguments;
  for (BlockArgument argument : kernel.getArguments()) {
    std::string name = nameFor(argument);
    if (holders.contains(name))
      conflict(argument, Value());
    holders[name] = argument;
    SizesAttr sizes = sizesOfArgument(kernel, argument.getArgNumber());
    std::string type = nameOf(getElementTypeOrSelf(argument));
    arguments.push_back(name + ": " + type +
                        (sizes ? "[" + sizesText(sizes.getSizes()) + "]" : ""));
  }
  bool hasValue = false;
  for (ParameterAttr parameter : parametersOf(kernel).getParameters()) {
    std::string text = parameter.getName().str() + ": ";
    if (!parameter.isTuned()) {
      arguments.push_back(text + "constant");
      continue;
    }
    text += "tune(" +
            llvm::join(llvm::map_range(parameter.getChoices(),
                                       [](int64_t choice) {
                                         return std::to_string(choice);
                                       }),
                       ", ") +
            ")";
    // Behind one that has a value, as Python wants it.
    hasValue |= parameter.getUntuned() != parameter.getChoices().front();
    if (hasValue)
      text += " = " + std::to_string(parameter.getUntuned());
    arguments.push_back(text);
  }
  // As many in a line as fit.
  heading += "def " + kernel.getSymName().str() + "(";
  const std::string whole = llvm::join(arguments, ", ");
  constexpr size_t width = 100;
  if (heading.size() - heading.rfind('\n') + whole.size() + 2 <= width) {
    heading += whole;
  } else {
    for (const std::string &each : arguments)
      heading += "\n        " + each + ",";
    heading.pop_back();
  }
  heading += "):\n";
  if (auto text =
          kernel->getAttrOfType<StringAttr>(BlockDialect::documentationName))
    heading += "    \"\"\"" + text.str() + "\"\"\"\n";
  return heading;
}

FailureOr<std::string> KernelWriter::run() {
  if (!kernel.getFunctionType().getResults().empty() ||
      !llvm::hasSingleElement(kernel.getBody()))
    return kernel.emitOpError(
        "gives results, or has several blocks, which kernels in text "
        "have not");
  if (isReserved(kernel.getSymName()) || !block::isName(kernel.getSymName()))
    return kernel.emitOpError("has a name that is none of a kernel in text");
  for (ParameterAttr parameter : parametersOf(kernel).getParameters())
    if (isReserved(parameter.getName()))
      return kernel.emitOpError("has a parameter ")
             << parameter.getName() << ", which is a word of text of kernels";
  StringRef documentation;
  if (auto text =
          kernel->getAttrOfType<StringAttr>(BlockDialect::documentationName))
    documentation = text;
  if (documentation.contains("\"\"\"") || documentation.contains('\\') ||
      documentation.ends_with("\""))
    return kernel.emitOpError("has documentation with quotes or backslashes "
                              "that text cannot have");
  do {
    again = false;
    out.clear();
    depth = 1;
    comments.clear();
    pending.clear();
    names.clear();
    otherNames.clear();
    taken.clear();
    holders.clear();
    scopes.clear();
    // A name that is made up is no other value's.
    kernel.walk([&](Operation *op) {
      for (Value result : op->getResults())
        taken.insert(hintOf(result));
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            taken.insert(hintOf(argument));
    });
    std::string heading = writeHeading();
    if (failed(writeBlock(kernel.getBody().front())))
      return failure();
    for (const Pending &each : pending)
      nameNext(each.computed);
    if (out.empty())
      line("pass");
    out = heading + out;
  } while (again);
  // What nests too deep, or a name or a text that Python keeps for itself.
  syntax::SyntaxError wrong;
  if (!syntax::parse(out, wrong))
    return kernel.emitOpError("has no text that could be read: ")
           << wrong.message;
  return out;
}

LogicalResult kernel::writeText(ModuleOp module, raw_ostream &stream) {
  std::string text;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || !block::isKernel(function))
      return op.emitOpError("is no kernel: a function with '")
             << BlockDialect::parametersName << "'";
    FailureOr<std::string> each = KernelWriter(function).run();
    if (failed(each))
      return failure();
    text += (text.empty() ? "" : "\n\n") + *each;
  }
  stream << text;
  return success();
}
