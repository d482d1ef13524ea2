//===- Matcher.h - Follows a text through a grammar -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_MATCHER_H
#define SANDWICH_LIB_GRAMMAR_MATCHER_H

#include "Positions.h"
#include "VocabularyIndex.h"

#include "sandwich/Grammar/Grammar.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sandwich {

/// What a grammar was compiled into.
struct Grammar::Parts {
  std::shared_ptr<const TokenVocabulary> vocabulary;
  grammar::Network network;
};

} // namespace sandwich

namespace sandwich::grammar {

/// The constraint of one text.
class Matcher final : public TokenConstraint {
public:
  explicit Matcher(std::shared_ptr<const Grammar> grammar);

  std::span<const uint64_t> allowedTokens() override;
  bool accept(int32_t token) override;
  std::unique_ptr<TokenConstraint> clone() const override;

private:
  Matcher(const Matcher &other);

  void allow(uint32_t token) {
    mask[token / 64] |= uint64_t(1) << (token % 64);
  }
  void allowEnd();
  void allowFrom(const Place &place);
  void allowInside(const TextStep &step, const TextPosition &position,
                   const StateTokens &tokens);
  /// Allows tokens that go on beyond the end of `place`.
  void allowBeyond(const Place &place, const TextStep &step,
                   const TextPosition &position, const StateTokens &tokens);

  std::shared_ptr<const Grammar> grammar;
  const Network &network;
  const TokenVocabulary::Index &vocabulary;
  Follower follower;
  Positions positions;
  bool ended = false;
  std::vector<uint64_t> mask;
  bool maskIsKnown = false;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_MATCHER_H
