//===- HttpMessage.cpp - What clients and servers say ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpMessage.h"

#include <algorithm>
#include <cctype>

using namespace sandwich;

static bool isSameName(std::string_view first, std::string_view second) {
  return std::ranges::equal(first, second, [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

std::optional<std::string_view> sandwich::findHeader(const HttpHeaders &headers,
                                                     std::string_view name) {
  for (const auto &[each, value] : headers)
    if (isSameName(each, name))
      return value;
  return std::nullopt;
}
