//===- HttpMessage.cpp - What clients and servers say ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpMessage.h"

#include <boost/beast/core/string.hpp>

#include <charconv>

using namespace sandwich;

std::optional<std::string_view> sandwich::findHeader(const HttpHeaders &headers,
                                                     std::string_view name) {
  for (const auto &[each, value] : headers)
    if (boost::beast::iequals(each, name))
      return value;
  return std::nullopt;
}

std::optional<std::string> sandwich::decodePercents(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    size_t taken = 1;
    unsigned char byte = static_cast<unsigned char>(text.front());
    if (byte == '%') {
      taken = 3;
      const char *digits = text.data() + 1;
      if (text.size() < taken ||
          std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
        return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    text.remove_prefix(taken);
  }
  return decoded;
}
