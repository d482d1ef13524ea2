//===- PromptLookup.cpp - Proposals from the text itself ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/PromptLookup.h"

#include <algorithm>
#include <bit>

using namespace sandwich;

size_t RepetitionIndex::bucketOf(std::span<const int32_t> tokens,
                                 size_t last) const {
  uint64_t hash = 0;
  for (size_t i = last + 1 - leastMatch; i <= last; ++i)
    // Knuth's multiplicative hashing: the upper bits depend on all tokens.
    hash = (hash + static_cast<uint32_t>(tokens[i])) * 0x9e3779b97f4a7c15U;
  return static_cast<size_t>(hash >> 32) & (heads.size() - 1);
}

void RepetitionIndex::enter(std::span<const int32_t> tokens, size_t last) {
  if (last + 1 < leastMatch)
    return;
  uint32_t &head = heads[bucketOf(tokens, last)];
  before[last] = head;
  head = static_cast<uint32_t>(last + 1);
}

void RepetitionIndex::grow(std::span<const int32_t> tokens, size_t buckets) {
  heads.assign(buckets, 0);
  for (size_t last = 0; last < before.size(); ++last)
    enter(tokens, last);
}

void RepetitionIndex::index(std::span<const int32_t> tokens) {
  constexpr size_t leastBuckets = 64;
  const size_t known = before.size();
  if (tokens.size() > heads.size())
    grow(tokens, std::bit_ceil(std::max(tokens.size(), leastBuckets)));
  before.resize(tokens.size());
  for (size_t last = known; last < tokens.size(); ++last)
    enter(tokens, last);
}

/// How many tokens up to `place` are those at the end.
static size_t matchLength(std::span<const int32_t> tokens, size_t place) {
  const size_t most = std::min(place + 1, RepetitionIndex::longestMatch);
  size_t length = 0;
  while (length < most &&
         tokens[place - length] == tokens[tokens.size() - 1 - length])
    ++length;
  return length;
}

std::vector<int32_t> RepetitionIndex::propose(std::span<const int32_t> tokens,
                                              size_t most) {
  index(tokens);
  std::vector<int32_t> proposal;
  if (tokens.size() < leastMatch)
    return proposal;
  size_t longest = leastMatch - 1, next = 0;
  uint32_t place = before.back();
  for (size_t i = 0; i < mostPlaces && place > 0; ++i) {
    if (const size_t length = matchLength(tokens, place - 1);
        length > longest) {
      longest = length;
      next = place;
    }
    place = before[place - 1];
  }
  if (longest < leastMatch)
    return proposal;
  for (size_t i = next; proposal.size() < most; ++i)
    proposal.push_back(i < tokens.size() ? tokens[i]
                                         : proposal[i - tokens.size()]);
  return proposal;
}

std::vector<std::vector<int32_t>>
PromptLookup::propose(std::span<const ProposalRequest> texts) {
  std::vector<std::vector<int32_t>> proposals;
  proposals.reserve(texts.size());
  for (const ProposalRequest &text : texts)
    proposals.push_back(indexes[{text.request, text.text}].propose(
        text.tokens, static_cast<size_t>(text.most)));
  return proposals;
}

void PromptLookup::forget(RequestId request) {
  indexes.erase(indexes.lower_bound({request, 0}),
                indexes.lower_bound({request + 1, 0}));
}
