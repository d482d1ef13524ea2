//===- Automaton.h - Deterministic automata over bytes ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_AUTOMATON_H
#define SANDWICH_LIB_GRAMMAR_AUTOMATON_H

#include "Expression.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sandwich::grammar {

/// The smallest deterministic automaton of an expression, from each of whose
/// states but `dead` a text can be completed. Immutable.
class Automaton {
public:
  static constexpr uint32_t dead = 0;
  /// A grammar whose expressions need more states is refused.
  static constexpr size_t mostStates = 32768;
  /// The same for entries of the table.
  static constexpr size_t mostEntries = size_t(1) << 21;

  /// The automaton of the texts of `expression` that consist of `available`
  /// bytes. Null if it would have more than `mostStates` states or
  /// `mostEntries` entries, or the pool's budget is exhausted.
  static std::shared_ptr<const Automaton>
  build(ExpressionPool &pool, Expression expression, const ByteSet &available);

  /// `dead` if there is no text.
  uint32_t start() const { return startState; }

  uint32_t step(uint32_t state, uint8_t byte) const {
    return table[state * classCount + classOf[byte]];
  }

  /// Whether a text may end here.
  bool isAccepting(uint32_t state) const { return accepting[state] != 0; }
  /// Whether a text may go on from here.
  bool isOpen(uint32_t state) const { return open[state] != 0; }
  /// Whether all of `TokenTrie::isPlain` leads from `state` to itself.
  bool staysOnPlain(uint32_t state) const { return plain[state] != 0; }

  size_t states() const { return accepting.size(); }
  size_t bytes() const {
    return sizeof(*this) + table.size() * sizeof(uint16_t) + 3 * states();
  }

  /// Of all automata of this process, this one.
  uint64_t id() const { return identity; }

private:
  Automaton() = default;

  /// Numbers states and bytes anew so that there are as few as possible.
  void minimize();
  void mergeClasses();
  void describeStates();

  uint32_t startState = dead;
  uint32_t classCount = 1;
  std::array<uint8_t, 256> classOf{};
  /// The next state, by state and class of byte.
  std::vector<uint16_t> table;
  std::vector<uint8_t> accepting, open, plain;
  uint64_t identity = 0;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_AUTOMATON_H
