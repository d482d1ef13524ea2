//===- Declarations.cpp - Intrinsics as C declares them -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Intrinsics.h"

#include <array>

using namespace sandwich;
using namespace sandwich::kernel;

std::string kernel::cTypeOf(LaneType type) {
  switch (type) {
  case LaneType::F32:
    return "float";
  case LaneType::F64:
    return "double";
  case LaneType::F16:
  case LaneType::BF16:
  case LaneType::Bool:
    return "uint16_t";
  default:
    return (isSigned(type) ? "int" : "uint") + std::to_string(bitsOf(type)) +
           "_t";
  }
}

std::string kernel::cVectorType(LaneType type, int64_t lanes) {
  const std::string prefix = "__m" + std::to_string(bitsOf(type) * lanes);
  switch (type) {
  case LaneType::F32:
    return prefix;
  case LaneType::F64:
    return prefix + "d";
  case LaneType::BF16:
    return prefix + "bh";
  default:
    return prefix + "i";
  }
}

std::string kernel::cTypeOf(const ParameterType &type) {
  switch (type.kind) {
  case ParameterType::Kind::Number:
    return cTypeOf(type.lane);
  case ParameterType::Kind::Vector:
    return cVectorType(type.lane, type.lanes);
  case ParameterType::Kind::Mask:
    return "__mmask" + std::to_string(type.lanes);
  case ParameterType::Kind::Pointer:
    return std::string(type.isConst ? "const " : "") +
           (type.lanes > 0 ? cVectorType(type.lane, type.lanes)
                           : cTypeOf(type.lane)) +
           " *";
  case ParameterType::Kind::Immediate:
    return "int";
  }
  __builtin_unreachable();
}

/// The predicates of comparisons, in the order of their numbers.
static constexpr std::array comparisons = {
    "EQ_OQ",  "LT_OS",   "LE_OS",  "UNORD_Q", "NEQ_UQ",   "NLT_US",  "NLE_US",
    "ORD_Q",  "EQ_UQ",   "NGE_US", "NGT_US",  "FALSE_OQ", "NEQ_OQ",  "GE_OS",
    "GT_OS",  "TRUE_UQ", "EQ_OS",  "LT_OQ",   "LE_OQ",    "UNORD_S", "NEQ_US",
    "NLT_UQ", "NLE_UQ",  "ORD_S",  "EQ_US",   "NGE_UQ",   "NGT_UQ",  "FALSE_OS",
    "NEQ_OS", "GE_OQ",   "GT_OQ",  "TRUE_US"};

/// Types and macros that come with the intrinsics.
static std::string x86Prelude() {
  std::string text = "#pragma once\n#include <stdint.h>\n";
  for (const int64_t bytes : {16, 32, 64}) {
    const auto define = [&](const char *element, const char *suffix) {
      const std::string size = std::to_string(bytes);
      for (const bool aligned : {true, false})
        text += std::string("typedef ") + element + " __m" +
                std::to_string(bytes * 8) + suffix + (aligned ? "" : "_u") +
                " __attribute__((__vector_size__(" + size + "), __aligned__(" +
                (aligned ? size : "1") + ")));\n";
    };
    define("float", "");
    define("double", "d");
    define("long long", "i");
    define("__bf16", "bh");
  }
  text += "typedef long long __m64 __attribute__((__vector_size__(8)));\n";
  for (const int bits : {8, 16, 32, 64})
    text += "typedef uint" + std::to_string(bits) + "_t __mmask" +
            std::to_string(bits) + ";\n";
  for (size_t i = 0; i < comparisons.size(); ++i)
    text += std::string("#define _CMP_") + comparisons[i] + " " +
            std::to_string(i) + "\n";
  return text + "#define _MM_SHUFFLE(z, y, x, w) "
                "(((z) << 6) | ((y) << 4) | ((x) << 2) | (w))\n"
                "#define _MM_FROUND_TO_NEAREST_INT 0\n"
                "#define _MM_FROUND_TO_NEG_INF 1\n"
                "#define _MM_FROUND_TO_POS_INF 2\n"
                "#define _MM_FROUND_TO_ZERO 3\n"
                "#define _MM_FROUND_CUR_DIRECTION 4\n"
                "#define _MM_FROUND_NO_EXC 8\n"
                "#define _MM_ROUND_NEAREST 0\n"
                "#define _MM_HINT_NTA 0\n"
                "#define _MM_HINT_T0 3\n"
                "#define _MM_HINT_T1 2\n"
                "#define _MM_HINT_T2 1\n"
                "#define _mm_prefetch(place, hint) "
                "__builtin_prefetch((const void *)(place))\n"
                "#ifdef __cplusplus\n"
                "extern \"C\" {\n"
                "#endif\n"
                "void _mm256_zeroupper(void);\n"
                "void _mm256_zeroall(void);\n";
}

std::string kernel::declareX86Intrinsics() {
  std::string text = x86Prelude();
  for (const auto &[name, intrinsic] : IntrinsicTable::x86().all()) {
    text += (intrinsic.result ? cTypeOf(*intrinsic.result) : "void") + " " +
            name + "(";
    std::string separator;
    for (const Parameter &each : intrinsic.parameters) {
      // Headers differ about what is pointed to.
      text += separator +
              (each.type.kind == ParameterType::Kind::Pointer
                   ? std::string(each.type.isConst ? "const " : "") + "void *"
                   : cTypeOf(each.type));
      separator = ", ";
    }
    text += separator.empty() ? "void);\n" : ");\n";
  }
  return text + "#ifdef __cplusplus\n}\n#endif\n";
}
