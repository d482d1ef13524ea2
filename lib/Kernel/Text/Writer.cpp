//===- Writer.cpp - From dialect block to text ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

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

StringRef KernelWriter::hintOf(Value value) {
  value = variableOf(value);
  // What a branch gives is called as what its sides give.
  if (auto result = dyn_cast<OpResult>(value))
    if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
      for (Block *side : {branch.thenBlock(), branch.elseBlock()})
        if (Value given =
                side->getTerminator()->getOperand(result.getResultNumber());
            isa<BlockArgument>(given) || !isa<scf::IfOp>(given.getDefiningOp()))
          if (StringRef hint = hintOf(given); !hint.empty())
            return hint;
      return "";
    }
  auto location = value.getLoc()->findInstanceOf<NameLoc>();
  return location ? location.getName().getValue() : StringRef();
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
  if (!isUsable || unique.contains(value)) {
    const std::string base = name + "_";
    for (unsigned number = 1;; ++number) {
      name = base + std::to_string(number);
      if (taken.insert(name).second)
        break;
    }
  }
  names[value] = name;
  return name;
}

void KernelWriter::nameNext(Value value, StringRef hint) {
  again |= named.try_emplace(value, hint.str()).second;
}

void KernelWriter::conflict(Value value, Value holder) {
  if (unique.insert(variableOf(value)).second ||
      (holder && unique.insert(variableOf(holder)).second))
    again = true;
}

void KernelWriter::set(const std::string &name, Value value) {
  for (Scope &scope : llvm::reverse(scopes)) {
    if (scope.foreign.contains(name))
      conflict(value, Value());
    scope.set.insert(name);
    // Who comes behind sets it as well.
    if (scope.results.contains(name))
      break;
  }
  holders[name] = value;
}

std::string KernelWriter::use(Value value) {
  std::string name = nameFor(value);
  auto holder = holders.find(name);
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
    holders[name] = argument;
    SizesAttr sizes = sizesOfArgument(kernel, argument.getArgNumber());
    std::string type = nameOf(getElementTypeOrSelf(argument));
    arguments.push_back(name + ": " + type +
                        (sizes ? "[" + sizesText(sizes.getSizes()) + "]" : ""));
  }
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
    if (parameter.getUntuned() != parameter.getChoices().front())
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
    return kernel.emitError("kernels of text give no results and have one "
                            "block");
  if (isReserved(kernel.getSymName()) || !block::isName(kernel.getSymName()))
    return kernel.emitError("has a name that is none of a kernel in text");
  do {
    again = false;
    out.clear();
    depth = 1;
    comments.clear();
    pending.clear();
    names.clear();
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
      nameNext(each.value);
    if (out.empty())
      line("pass");
    out = heading + out;
  } while (again);
  return out;
}

LogicalResult kernel::writeText(ModuleOp module, raw_ostream &stream) {
  std::string text;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || !block::isKernel(function))
      return op.emitError("is no kernel: a function with '")
             << BlockDialect::parametersName << "'";
    FailureOr<std::string> each = KernelWriter(function).run();
    if (failed(each))
      return failure();
    text += (text.empty() ? "" : "\n\n") + *each;
  }
  stream << text;
  return success();
}
