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

SmallVector<Type> lm::kernelElementTypes(StepOpInterface op,
                                         SymbolTableCollection &symbols) {
  SmallVector<Type> types;
  for (const KernelArgument &argument : op.getKernelArguments()) {
    switch (argument.kind) {
    case KernelArgument::Kind::Rows:
      types.push_back(getElementTypeOrSelf(argument.type));
      break;
    case KernelArgument::Kind::Vector:
      types.push_back(lookupWeight(symbols, op, argument.vector)
                          .getTensorType()
                          .getElementType());
      break;
    case KernelArgument::Kind::Number:
      types.push_back(argument.number.getType());
      break;
    }
  }
  return types;
}

int64_t lm::kernelChannels(StepOpInterface op, SymbolTableCollection &symbols) {
  int64_t channels = 0;
  for (const KernelArgument &argument : op.getKernelArguments()) {
    if (argument.kind == KernelArgument::Kind::Vector)
      return lookupWeight(symbols, op, argument.vector)
          .getTensorType()
          .getDimSize(0);
    if (argument.kind == KernelArgument::Kind::Rows && channels == 0)
      channels = cast<ShapedType>(argument.type).getDimSize(1);
  }
  return channels;
}

/// Whether `size` may be `extent`; a name alone is from then on.
static bool bind(block::SizeAttr size, int64_t extent,
                 block::Bindings &bindings) {
  if (size.getFactor() == 1 && size.getNames().size() == 1)
    return bindings.try_emplace(size.getNames()[0].getValue(), extent)
               .first->second == extent;
  return block::knownSize(size, bindings) == extent;
}

FailureOr<block::Bindings> lm::bindKernel(StepOpInterface op,
                                          func::FuncOp kernel,
                                          DictionaryAttr parameters,
                                          SymbolTableCollection &symbols) {
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
  const SmallVector<KernelArgument> given = op.getKernelArguments();
  if (given.size() != kernel.getNumArguments())
    return refuse("it takes " + Twine(kernel.getNumArguments()) +
                  " arguments, and is given " + Twine(given.size())),
           failure();
  const SmallVector<Type> elements = kernelElementTypes(op, symbols);
  const int64_t channels = kernelChannels(op, symbols);
  // What the first rows call how many there are.
  block::SizeAttr rows;
  for (auto [number, argument] : llvm::enumerate(given)) {
    const Type type = kernel.getArgumentTypes()[number];
    block::SizesAttr sizes = block::sizesOfArgument(kernel, number);
    const auto differs = [&](const Twine &what) {
      return refuse("its argument " + Twine(number) + ", the " + argument.name +
                    ", must be " + what),
             failure();
    };
    if (getElementTypeOrSelf(type) != elements[number] ||
        (argument.kind == KernelArgument::Kind::Number) != !sizes) {
      std::string element;
      llvm::raw_string_ostream(element) << elements[number];
      return differs((argument.kind == KernelArgument::Kind::Number
                          ? "a number of "
                          : "memory of ") +
                     element);
    }
    if (!sizes)
      continue;
    ArrayRef<block::SizeAttr> own = sizes.getSizes();
    const bool isRows = argument.kind == KernelArgument::Kind::Rows;
    if (isRows) {
      if (!rows && own.size() == 2)
        rows = own[0];
      if (own.size() != 2 || own[0] != rows || own[0].getFactor() != 1 ||
          own[0].getNames().size() != 1 ||
          block::parametersOf(kernel).find(own[0].getNames()[0]))
        return differs("[rows, channels], with one name of rows in all");
      if (cast<ShapedType>(argument.type).getDimSize(1) % channels != 0)
        return differs("of a multiple of " + Twine(channels) + " channels");
    } else if (own.size() != 1) {
      return differs("[channels]");
    }
    if ((rows && own.back() == rows) || !bind(own.back(), channels, bindings))
      return differs("of " + Twine(channels) + " channels");
  }
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
  FailureOr<block::Bindings> bindings = bindKernel(
      cast<StepOpInterface>(op), kernel, use.getParameters(), symbols);
  if (failed(bindings))
    return failure();
  return std::optional<KernelUse>({kernel, std::move(*bindings)});
}
