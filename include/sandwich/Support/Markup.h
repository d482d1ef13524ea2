//===- Markup.h - Text in HTML and SVG --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_MARKUP_H
#define SANDWICH_SUPPORT_MARKUP_H

#include <string>
#include <string_view>

namespace sandwich {

/// `text` between tags or in an attribute with double quotes.
inline std::string escapeMarkup(std::string_view text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += c;
    }
  return escaped;
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_MARKUP_H
