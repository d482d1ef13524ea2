//===- SourceText.cpp - A grammar's source as one text --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceText.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::grammar;

/// Sources and values in each other.
static constexpr int mostNesting = 2 * maxJsonDepth;

static bool isTooDeep(const Json &value, int left) {
  return left == 0 || (value.is_structured() &&
                       std::ranges::any_of(value, [=](const Json &member) {
                         return isTooDeep(member, left - 1);
                       }));
}

/// `source` as JSON; null if it is nested too deep.
static Json jsonOf(const GrammarSource &source, int left) {
  if (left == 0 || isTooDeep(source.schema, left))
    return nullptr;
  Json parts = Json::array();
  for (const GrammarSource &part : source.parts) {
    Json each = jsonOf(part, left - 1);
    if (each.is_null())
      return nullptr;
    parts.push_back(std::move(each));
  }
  return Json::array({static_cast<int>(source.kind), source.schema, source.text,
                      source.choices, source.token, std::move(parts)});
}

Result<std::string> sandwich::grammar::textOf(const GrammarSource &source) {
  const Json json = jsonOf(source, mostNesting);
  if (json.is_null())
    return makeError(ErrorKind::InvalidArgument,
                     "the grammar is nested too deep");
  try {
    return json.dump();
  } catch (const Json::exception &) {
    return makeError(ErrorKind::InvalidArgument, "the grammar is not UTF-8");
  }
}
