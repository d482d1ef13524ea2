//===- Export.cpp - From dialect kernel to C++ ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Export.h"

#include "CppFunction.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

/// The first of `rest`, as many as `type` holds, in braces; `rest` is left
/// without them.
static std::string tableText(Type type, ArrayRef<Attribute> &rest,
                             CppTypes &types) {
  auto array = dyn_cast<ArrayType>(type);
  if (!array) {
    Attribute number = rest.front();
    rest = rest.drop_front();
    return cppNumber(number, type, types);
  }
  std::string text;
  for (int64_t i = 0; i < array.getSize(); ++i)
    text += (i > 0 ? ", " : "") + tableText(array.getElement(), rest, types);
  return "{" + text + "}";
}

/// An error if a value has a type that intrinsics have none for.
static LogicalResult checkVectors(ModuleOp module) {
  const auto isKnown = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      return true;
    return isMask(type)
               ? llvm::is_contained({8, 16, 32, 64}, vector.getNumElements())
               : llvm::is_contained({64, 128, 256, 512}, bitWidthOf(type));
  };
  LogicalResult result = success();
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (!isKnown(type) && succeeded(result))
        result = op->emitOpError("gives ") << type
                                           << ", which C++ has no name "
                                              "for";
  });
  return result;
}

LogicalResult kernel::exportCpp(ModuleOp module, raw_ostream &stream) {
  CppTypes types;
  for (Operation &op : *module.getBody())
    if (!isa<FuncOp, GlobalOp>(op))
      return op.emitOpError("is no function or table of dialect kernel");
  if (failed(checkVectors(module)))
    return failure();
  types.nameAll(module);
  std::string tables, heads, functions;
  for (Operation &op : *module.getBody()) {
    if (auto global = dyn_cast<GlobalOp>(op)) {
      auto numbers = llvm::to_vector(global.getValue().getValues<Attribute>());
      ArrayRef<Attribute> rest = numbers;
      tables +=
          "alignas(64) static const " +
          types.declare(global.getType(), types.symbol(global.getSymName())) +
          " = " + tableText(global.getType(), rest, types) + ";\n";
      continue;
    }
    auto function = cast<FuncOp>(op);
    CppFunction writer(function, types);
    heads += writer.head() + ";\n";
    FailureOr<std::string> text = writer.write();
    if (failed(text))
      return failure();
    functions += "\n" + *text;
  }
  stream << "#include <cmath>\n#include <cstdint>\n#include <cstring>\n"
            "#include <immintrin.h>\n\n"
            "template <typename Element, int64_t size>\n"
            "using Array = Element[size];\n"
         << types.definitions() << tables << "\n"
         << heads << functions;
  return success();
}
