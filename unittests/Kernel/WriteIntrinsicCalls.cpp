//===- WriteIntrinsicCalls.cpp - Intrinsics as functions ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes a function for each intrinsic of the table, and for some of its
/// immediate numbers, that calls it as the compiler's own header has it, with
/// bytes as arguments and result: see IntrinsicCalls.h.
///
//===----------------------------------------------------------------------===//

#include "IntrinsicCalls.h"
#include "sandwich/Kernel/Intrinsics.h"

#include <iostream>
#include <random>

using namespace sandwich;
using namespace sandwich::kernel;

/// Those that are tested: all, or a dozen of many.
static std::vector<int64_t> immediatesOf(const Intrinsic &intrinsic) {
  constexpr int64_t most = 40, some = 12;
  for (const Parameter &each : intrinsic.parameters) {
    if (each.type.kind != ParameterType::Kind::Immediate)
      continue;
    std::vector<int64_t> numbers;
    const int64_t count = each.type.last - each.type.first + 1;
    if (count <= most) {
      for (int64_t i = 0; i < count; ++i)
        numbers.push_back(each.type.first + i);
      return numbers;
    }
    std::mt19937 random(1);
    for (int64_t i = 0; i < some; ++i)
      numbers.push_back(
          each.type.first +
          static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
    return numbers;
  }
  return {0};
}

static void writeCall(const Intrinsic &intrinsic, int64_t immediate,
                      size_t number) {
  std::cout << "__attribute__((target(\"" << intrinsic.features
            << "\"))) static void call" << number
            << "(const unsigned char *in, unsigned char *out) {\n";
  std::string arguments;
  for (size_t i = 0; i < intrinsic.parameters.size(); ++i) {
    const ParameterType &type = intrinsic.parameters[i].type;
    const std::string place = std::to_string(i * argumentBytes);
    if (i > 0)
      arguments += ", ";
    if (type.kind == ParameterType::Kind::Immediate) {
      arguments += std::to_string(immediate);
    } else if (type.kind == ParameterType::Kind::Pointer) {
      std::cout << "  memcpy(out + " << resultBytes << " + " << place
                << ", in + " << place << ", " << argumentBytes << ");\n";
      arguments += "(" + cTypeOf(type) + ")(out + " +
                   std::to_string(resultBytes) + " + " + place + ")";
    } else {
      const std::string name = "a" + std::to_string(i);
      std::cout << "  " << cTypeOf(type) << " " << name << ";\n  memcpy(&"
                << name << ", in + " << place << ", sizeof " << name << ");\n";
      arguments += name;
    }
  }
  const std::string call = intrinsic.name + "(" + arguments + ");\n";
  if (intrinsic.result)
    std::cout << "  " << cTypeOf(*intrinsic.result) << " result = " << call
              << "  memcpy(out, &result, sizeof result);\n";
  else
    std::cout << "  " << call;
  std::cout << "}\n";
}

int main() {
  std::cout << "// Generated from X86.intrinsics.\n"
               "#include \"IntrinsicCalls.h\"\n"
               "#include <immintrin.h>\n"
               "#include <cstdint>\n"
               "#include <cstring>\n";
  std::string list;
  size_t number = 0;
  for (const auto &[name, intrinsic] : IntrinsicTable::x86().all())
    for (int64_t immediate : immediatesOf(intrinsic)) {
      writeCall(intrinsic, immediate, number);
      list += "    {\"" + name + "\", " + std::to_string(immediate) + ", call" +
              std::to_string(number) + "},\n";
      ++number;
    }
  std::cout << "static const IntrinsicCall calls[] = {\n"
            << list
            << "};\n"
               "std::span<const IntrinsicCall> intrinsicCalls() { return "
               "calls; }\n";
}
