//===- NumberRange.h - Options that are numbers -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMMANDLINE_NUMBERRANGE_H
#define SANDWICH_COMMANDLINE_NUMBERRANGE_H

#include <CLI/CLI.hpp>

#include <cmath>
#include <string>

namespace sandwich::tool {

/// Accepts numbers from `smallest` to `largest`, as CLI::Range does but for
/// what is no number.
inline CLI::Validator numberRange(double smallest, double largest) {
  const CLI::Range range(smallest, largest);
  auto check = [range](std::string &text) {
    double number = 0;
    // It is neither below nor above anything, so that CLI11 lets it pass.
    if (CLI::detail::lexical_cast(text, number) && std::isnan(number))
      return "'" + text + "' is not a number";
    return range(text);
  };
  return CLI::Validator(check, range.get_description());
}

} // namespace sandwich::tool

#endif // SANDWICH_COMMANDLINE_NUMBERRANGE_H
