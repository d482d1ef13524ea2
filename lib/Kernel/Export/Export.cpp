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

LogicalResult kernel::exportCpp(ModuleOp module, raw_ostream &stream) {
  CppTypes types;
  std::string tables, heads, functions;
  for (Operation &op : *module.getBody()) {
    if (auto global = dyn_cast<GlobalOp>(op)) {
      std::string numbers;
      Type element = global.getValue().getElementType();
      for (Attribute each : global.getValue().getValues<Attribute>())
        numbers +=
            (numbers.empty() ? "" : ", ") + cppNumber(each, element, types);
      tables += "static const " +
                types.declare(global.getType(), cppName(global.getSymName())) +
                " = {" + numbers + "};\n";
      continue;
    }
    auto function = dyn_cast<FuncOp>(op);
    if (!function)
      return op.emitOpError("is no function or table of dialect kernel");
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
