//===- MatmulEpilogue.cpp - What becomes of sums --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/MatmulEpilogue.h"

#include <utility>

using namespace sandwich;

static constexpr std::pair<Epilogue, std::string_view> epilogueNames[] = {
    {Epilogue::None, "none"},
    {Epilogue::AddResidual, "add_residual"},
    {Epilogue::SiluMul, "silu_mul"},
    {Epilogue::RotateAppendKV, "rotate_append_kv"},
    {Epilogue::GeluExact, "gelu_exact"},
    {Epilogue::GeluTanh, "gelu_tanh"}};

std::string_view sandwich::name(Epilogue epilogue) {
  return epilogueNames[static_cast<size_t>(epilogue)].second;
}

std::optional<Epilogue> sandwich::epilogueNamed(std::string_view text) {
  for (auto [epilogue, own] : epilogueNames)
    if (own == text)
      return epilogue;
  return std::nullopt;
}
