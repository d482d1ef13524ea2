//===- TokenConstraint.h - Which tokens may come next -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SAMPLING_TOKENCONSTRAINT_H
#define SANDWICH_SAMPLING_TOKENCONSTRAINT_H

#include <cstdint>
#include <memory>
#include <span>

namespace sandwich {

/// What the tokens of one text must keep to, such as a grammar. It follows the
/// text token by token; used by one thread at a time.
class TokenConstraint {
public:
  virtual ~TokenConstraint() = default;

  /// A bit for each token of the model: token i may come next if bit i % 64 of
  /// word i / 64 is set, and there is at least one that may. Tokens that end the
  /// text are among them exactly where it may end. Valid until `accept`.
  virtual std::span<const uint64_t> allowedTokens() = 0;

  /// The text goes on with `token`. False, and nothing has changed: it may not.
  virtual bool accept(int32_t token) = 0;

  /// One that goes on from here by itself.
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

} // namespace sandwich

#endif // SANDWICH_SAMPLING_TOKENCONSTRAINT_H
