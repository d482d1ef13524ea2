//===- PromptLookup.h - Proposals from the text itself ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PROMPTLOOKUP_H
#define SANDWICH_SERVING_PROMPTLOOKUP_H

#include "sandwich/Serving/Proposer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace sandwich {

/// Where the last tokens of a text were in it before. Places that end with the
/// same few tokens are chained by a hash, as LZ77 compressors do (RFC 1951,
/// section 4): a token takes constant time, whatever the text, since chains are
/// followed for a few places only, and two words of memory.
class RepetitionIndex {
public:
  /// What is proposed follows on at least so many tokens that were there
  /// before.
  static constexpr size_t leastMatch = 3;
  /// Places that are compared, and tokens of each.
  static constexpr size_t mostPlaces = 16, longestMatch = 64;

  /// Up to `most` tokens that followed the last tokens of `tokens` where the
  /// longest run of these was there before, the last of several such places.
  /// What goes beyond the end of the text goes on with the proposal itself.
  /// `tokens` begins with those of the call before.
  std::vector<int32_t> propose(std::span<const int32_t> tokens, size_t most);

private:
  void index(std::span<const int32_t> tokens);
  void enter(std::span<const int32_t> tokens, size_t last);
  void grow(std::span<const int32_t> tokens, size_t buckets);
  size_t bucketOf(std::span<const int32_t> tokens, size_t last) const;

  /// One more than the last place in each bucket, 0 for none; as many as a
  /// power of two. A place is the index of the last of `leastMatch` tokens.
  std::vector<uint32_t> heads;
  /// The same of the place before in its bucket, for each place.
  std::vector<uint32_t> before;
};

/// Prompt lookup decoding (Saxena 2023): texts that repeat what is in them, as
/// summaries, edits and code do, are proposed to go on as they did before.
class PromptLookup : public Proposer {
public:
  std::vector<std::vector<int32_t>>
  propose(std::span<const ProposalRequest> texts) override;
  void forget(RequestId request) override;

private:
  std::map<std::pair<RequestId, uint32_t>, RepetitionIndex> indexes;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PROMPTLOOKUP_H
