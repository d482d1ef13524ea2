//===- KernelUse.cpp - Kernels in the place of operations -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/Utils/KernelUse.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// The channels of a row that kernels get at once: those of the first weight,
/// or all.
static int64_t channelsOf(ArrayRef<KernelArgument> arguments, Operation *op,
                          SymbolTableCollection &symbols) {
  for (const KernelArgument &argument : arguments)
    if (argument.vector)
      return lookupWeight(symbols, op, argument.vector)
          .getTensorType()
          .getDimSize(0);
  for (const KernelArgument &argument : arguments)
    if (argument.isActivation)
      return cast<ShapedType>(op->getOperand(0).getType()).getDimSize(1);
  return 0;
}

SmallVector<KernelArgument>
lm::kernelArguments(KernelOpInterface op, SymbolTableCollection &symbols) {
  SmallVector<KernelArgument> arguments = op.getKernelArguments();
  const int64_t channels = channelsOf(arguments, op, symbols);
  for (KernelArgument &argument : arguments) {
    if (argument.vector) {
      argument.element = lookupWeight(symbols, op, argument.vector)
                             .getTensorType()
                             .getElementType();
      argument.extents = {channels};
    } else if (argument.isActivation && argument.extents.empty()) {
      argument.extents = {"rows", channels};
    }
  }
  return arguments;
}

SmallVector<Type> lm::kernelElementTypes(ArrayRef<KernelArgument> arguments) {
  return llvm::map_to_vector(
      arguments, [](const KernelArgument &each) { return each.element; });
}

/// Whether `size` may be `extent`; its only name that is unknown is known from
/// then on.
static bool bind(block::SizeAttr size, int64_t extent,
                 block::Bindings &bindings) {
  int64_t known = size.getFactor();
  StringAttr unknown;
  for (StringAttr name : size.getNames()) {
    auto bound = bindings.find(name.getValue());
    if (bound == bindings.end()) {
      if (unknown)
        return false;
      unknown = name;
    } else if (llvm::MulOverflow(known, bound->second, known)) {
      return false;
    }
  }
  if (!unknown)
    return known == extent;
  if (known == 0 || extent % known != 0)
    return false;
  bindings[unknown.getValue()] = extent / known;
  return true;
}

/// `[rows, 64]`.
static std::string toString(ArrayRef<KernelExtent> extents) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(extents, stream, [&](const KernelExtent &extent) {
    if (extent.name.empty())
      stream << extent.known;
    else
      stream << extent.name;
  });
  stream << "]";
  return text;
}

FailureOr<block::Bindings> lm::bindKernel(Operation *op, func::FuncOp kernel,
                                          ArrayRef<KernelArgument> arguments,
                                          ArrayRef<KernelConstant> constants,
                                          DictionaryAttr parameters) {
  const auto refuse = [&](const Twine &what) {
    return op->emitOpError("cannot be computed by kernel ")
           << kernel.getSymName() << ": " << what;
  };
  block::Bindings bindings;
  for (NamedAttribute parameter :
       parameters ? parameters.getValue() : ArrayRef<NamedAttribute>()) {
    auto value = dyn_cast<IntegerAttr>(parameter.getValue());
    if (!value || !value.getType().isSignlessInteger(64) ||
        !block::parametersOf(kernel).find(parameter.getName()))
      return refuse("'" + parameter.getName().getValue() +
                    "' is no parameter of it, or no number"),
             failure();
    bindings[parameter.getName()] = value.getInt();
  }
  for (const KernelConstant &constant : constants)
    if (block::ParameterAttr parameter =
            block::parametersOf(kernel).find(constant.name);
        parameter && !parameter.isTuned())
      bindings.try_emplace(constant.name, constant.value);
  if (arguments.size() != kernel.getNumArguments())
    return refuse("it takes " + Twine(kernel.getNumArguments()) +
                  " arguments, and is given " + Twine(arguments.size())),
           failure();
  // What the kernel calls the extents that have names, and the way back.
  llvm::StringMap<block::SizeAttr> names;
  llvm::DenseMap<block::SizeAttr, StringRef> extentsOfNames;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    const Type type = kernel.getArgumentTypes()[number];
    block::SizesAttr sizes = block::sizesOfArgument(kernel, number);
    const auto differs = [&](const Twine &what) {
      return refuse("its argument " + Twine(number) + ", the " + argument.name +
                    ", must be " + what),
             failure();
    };
    if (getElementTypeOrSelf(type) != argument.element ||
        argument.extents.empty() != !sizes) {
      std::string element;
      llvm::raw_string_ostream(element) << argument.element;
      return differs(
          (argument.extents.empty() ? "a number of " : "memory of ") + element);
    }
    if (!sizes)
      continue;
    const std::string expected = toString(argument.extents);
    if (sizes.getSizes().size() != argument.extents.size())
      return differs(expected);
    for (auto [size, extent] : llvm::zip(sizes.getSizes(), argument.extents)) {
      if (extent.name.empty()) {
        if (!bind(size, extent.known, bindings))
          return differs(expected);
        continue;
      }
      block::SizeAttr &named = names[extent.name];
      if (!named)
        named = size;
      if (size != named || size.getFactor() != 1 ||
          size.getNames().size() != 1 ||
          block::parametersOf(kernel).find(size.getNames()[0]) ||
          extentsOfNames.try_emplace(size, extent.name).first->second !=
              extent.name)
        return differs(expected + ", with one name of its own for the " +
                       extent.name + " of all arguments");
    }
  }
  // A size of one must not be known from another.
  for (const auto &[extent, size] : names)
    if (bindings.contains(size.getNames()[0].getValue()))
      return refuse("'" + size.getNames()[0].getValue() + "' are the " +
                    extent + ", and something else"),
             failure();
  std::string problem;
  {
    ScopedDiagnosticHandler handler(op->getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      problem = diagnostic.str();
                                      return success();
                                    });
    if (succeeded(block::bindParameters(kernel, bindings)))
      return bindings;
  }
  return refuse(problem), failure();
}

func::FuncOp lm::findKernel(ModuleOp module, StringRef operation) {
  if (auto kernel = module.lookupSymbol<func::FuncOp>(operation))
    return kernel;
  auto all = module.getOps<func::FuncOp>();
  return llvm::hasSingleElement(all) ? *all.begin() : func::FuncOp();
}

FailureOr<std::optional<KernelUse>>
lm::findKernelUse(Operation *op, SymbolTableCollection &symbols) {
  auto use = op->getAttrOfType<KernelAttr>(kernelAttributeName);
  if (!use)
    return std::optional<KernelUse>();
  auto kernel =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(op, use.getName());
  if (!kernel || !block::isKernel(kernel))
    return op->emitOpError("is computed by ")
           << use.getName() << ", which is no kernel of the module";
  auto computed = cast<KernelOpInterface>(op);
  FailureOr<block::Bindings> bindings =
      bindKernel(op, kernel, kernelArguments(computed, symbols),
                 computed.getKernelConstants(), use.getParameters());
  if (failed(bindings))
    return failure();
  return std::optional<KernelUse>({kernel, std::move(*bindings)});
}
