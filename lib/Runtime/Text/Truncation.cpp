//===- Truncation.cpp - Texts cut to a number of tokens -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Truncation.h"

#include <algorithm>
#include <limits>

using namespace sandwich;
using namespace sandwich::tokenizer;

/// The member `direction`: whether it is "Left". What a file from before the
/// field was written means is "Right".
static Result<bool> readIsLeft(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::string direction,
                            field.stringMember("direction", "Right"));
  if (direction != "Left" && direction != "Right")
    return field.member("direction")->unsupported();
  return direction == "Left";
}

Result<Truncation> tokenizer::readTruncation(const JsonField &field) {
  Truncation truncation;
  SANDWICH_ASSIGN_OR_RETURN(JsonField most, field.member("max_length"));
  SANDWICH_ASSIGN_OR_RETURN(truncation.maxTokens, most.unsignedInteger());
  SANDWICH_ASSIGN_OR_RETURN(JsonField strategy, field.member("strategy"));
  SANDWICH_ASSIGN_OR_RETURN(std::string name, strategy.string());
  using Strategy = Truncation::Strategy;
  if (name == "LongestFirst")
    truncation.strategy = Strategy::LongestFirst;
  else if (name == "OnlyFirst")
    truncation.strategy = Strategy::OnlyFirst;
  else if (name == "OnlySecond")
    truncation.strategy = Strategy::OnlySecond;
  else
    return strategy.unsupported();
  SANDWICH_ASSIGN_OR_RETURN(truncation.fromLeft, readIsLeft(field));
  // It is about the parts that are cut off, which nobody gets.
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> stride,
                            field.optionalMember("stride"));
  if (stride)
    SANDWICH_RETURN_IF_ERROR(stride->unsignedInteger());
  return truncation;
}

Result<Padding> tokenizer::readPadding(const JsonField &field) {
  auto readId = [&](const char *key) -> Result<int32_t> {
    SANDWICH_ASSIGN_OR_RETURN(JsonField id, field.member(key));
    return id.tokenId(std::numeric_limits<int32_t>::max());
  };
  Padding padding;
  SANDWICH_ASSIGN_OR_RETURN(padding.id, readId("pad_id"));
  SANDWICH_ASSIGN_OR_RETURN(padding.typeId, readId("pad_type_id"));
  SANDWICH_ASSIGN_OR_RETURN(padding.token, field.stringMember("pad_token"));
  // How much there would be of it, and where.
  SANDWICH_RETURN_IF_ERROR(readIsLeft(field));
  SANDWICH_ASSIGN_OR_RETURN(JsonField strategy, field.member("strategy"));
  if (strategy.json() != "BatchLongest") {
    if (!strategy.json().is_object())
      return strategy.unsupported();
    SANDWICH_ASSIGN_OR_RETURN(JsonField fixed, strategy.member("Fixed"));
    SANDWICH_RETURN_IF_ERROR(fixed.unsignedInteger());
  }
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> multiple,
                            field.optionalMember("pad_to_multiple_of"));
  if (multiple)
    SANDWICH_RETURN_IF_ERROR(multiple->unsignedInteger());
  return padding;
}

/// How many tokens of texts of `first` and `second` tokens stay if `most` may,
/// which is less than both together: all of the shorter one while it takes no
/// more than its half, and an odd token goes to the longer one.
static std::pair<size_t, size_t> keptOfPair(size_t first, size_t second,
                                            size_t most) {
  const bool isSwapped = first > second;
  if (isSwapped)
    std::swap(first, second);
  first = std::min(first, most / 2);
  second = most - first;
  if (isSwapped)
    std::swap(first, second);
  return {first, second};
}

Status tokenizer::truncate(const Truncation &truncation, size_t specialTokens,
                           std::vector<int32_t> &first,
                           std::vector<int32_t> *second) {
  const size_t firstCount = first.size();
  const size_t secondCount = second ? second->size() : 0;
  if (specialTokens > truncation.maxTokens)
    return makeError(ErrorKind::InvalidArgument, "at most ",
                     truncation.maxTokens, " tokens are too few for the ",
                     specialTokens, " special tokens");
  const size_t most = truncation.maxTokens - specialTokens;
  if (firstCount + secondCount <= most)
    return {};
  const size_t excess = firstCount + secondCount - most;
  auto keep = [&](std::vector<int32_t> &ids, size_t count) {
    const auto removed = static_cast<ptrdiff_t>(ids.size() - count);
    if (truncation.fromLeft)
      ids.erase(ids.begin(), ids.begin() + removed);
    else
      ids.erase(ids.end() - removed, ids.end());
  };
  if (most == 0 || truncation.strategy == Truncation::Strategy::LongestFirst) {
    const auto [firstKept, secondKept] =
        second ? keptOfPair(firstCount, secondCount, most)
               : std::pair(most, size_t(0));
    keep(first, firstKept);
    if (second)
      keep(*second, secondKept);
    return {};
  }
  const bool isFirst = truncation.strategy == Truncation::Strategy::OnlyFirst;
  if (!isFirst && !second)
    return makeError(ErrorKind::InvalidArgument,
                     "only the second text may be cut, and there is none");
  std::vector<int32_t> &cut = isFirst ? first : *second;
  // Something of the text stays, as in Hugging Face's library.
  if (cut.size() <= excess)
    return makeError(ErrorKind::InvalidArgument, "the ",
                     isFirst ? "first" : "second", " text has ", cut.size(),
                     " tokens and would have to lose ", excess);
  keep(cut, cut.size() - excess);
  return {};
}
