//===- DraftModel.h - Proposals of a smaller model --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVICE_DRAFTMODEL_H
#define SANDWICH_LIB_SERVICE_DRAFTMODEL_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Serving/Proposer.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sandwich {

/// Proposes what a smaller model takes to be the most probable continuation
/// (Leviathan et al. 2023). It computes the texts of all requests in steps of
/// its own, with blocks of its own, and follows them: what was proposed and not
/// drawn is forgotten, and what was drawn instead is computed. A text that it
/// lacks blocks or time for has no proposals.
class DraftModel : public Proposer {
public:
  /// For the texts of `target`. Errors (InvalidArgument): the models have other
  /// vocabularies or tokenizers.
  static Result<std::unique_ptr<DraftModel>>
  create(std::unique_ptr<Engine> engine, const Artifact &target,
         LogCallback log);

  std::vector<std::vector<int32_t>>
  propose(std::span<const ProposalRequest> texts) override;
  void forget(RequestId request) override;

private:
  using TextName = std::pair<RequestId, uint32_t>;
  /// A text that is being continued.
  struct Draft {
    const ProposalRequest *asked;
    /// Of those that were asked for.
    size_t place;
    Sequence *sequence;
    std::vector<int32_t> proposal = {};

    /// Known tokens that are not computed.
    uint64_t due() const { return asked->tokens.size() - sequence->length(); }
  };

  DraftModel(std::unique_ptr<Engine> engine, LogCallback log)
      : engine(std::move(engine)), log(std::move(log)) {}

  /// The sequence of a text, with nothing but tokens of it, and not its last.
  Sequence &sequenceOf(const ProposalRequest &text);
  /// Computes the tokens that are known, as many as one step takes; those that
  /// have them all get their first proposal.
  Status catchUp(std::span<Draft> drafts);
  /// One token more for each of those that have some.
  Status goOn(std::span<Draft> drafts);
  /// A step for `drafts`, and proposals from its rows of logits.
  Status step(std::span<const Segment> segments,
              std::span<Draft *const> drafts);

  std::unique_ptr<Engine> engine;
  LogCallback log;
  std::map<TextName, Sequence> sequences;
  /// No step will run any more.
  bool failed = false;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVICE_DRAFTMODEL_H
