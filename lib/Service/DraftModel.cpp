//===- DraftModel.cpp - Proposals of a smaller model ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DraftModel.h"

#include "TeamTasks.h"

#include "sandwich/Artifact/Format.h"

#include <algorithm>
#include <utility>

using namespace sandwich;

Result<std::unique_ptr<DraftModel>>
DraftModel::create(std::unique_ptr<Engine> engine, const Artifact &target,
                   LogCallback log) {
  const Artifact &draft = engine->artifact();
  const uint64_t vocabulary = target.manifest().model().vocab_size();
  if (engine->vocabSize() != vocabulary)
    return makeError(ErrorKind::InvalidArgument, draft.path(),
                     ": cannot propose tokens for ", target.path(), ": it has ",
                     engine->vocabSize(), " tokens, and that ", vocabulary);
  const auto tokenizer = draft.file(artifact::tokenizerFile);
  const auto other = target.file(artifact::tokenizerFile);
  if (tokenizer && other && *tokenizer != *other)
    return makeError(ErrorKind::InvalidArgument, draft.path(),
                     ": cannot propose tokens for ", target.path(),
                     ": their tokenizers are different");
  return std::unique_ptr<DraftModel>(
      new DraftModel(std::move(engine), std::move(log)));
}

Sequence &DraftModel::sequenceOf(const ProposalRequest &text) {
  auto [place, isNew] = sequences.try_emplace(TextName(text.request, text.text),
                                              engine->newSequence());
  Sequence &sequence = place->second;
  if (isNew) {
    // Texts of one request begin alike.
    const auto sibling = sequences.lower_bound({text.request, 0});
    if (sibling != place)
      sequence = sibling->second.fork();
    else
      (void)sequence.claimPrefix(text.tokens);
  }
  // The last token is computed again for its logits, if need be.
  const std::span<const int32_t> before =
      text.tokens.first(text.tokens.size() - 1);
  const auto different = std::ranges::mismatch(sequence.tokens(), before).in2;
  sequence.truncate(static_cast<uint64_t>(different - before.begin()));
  return sequence;
}

Status DraftModel::step(std::span<const Segment> segments,
                        std::span<Draft *const> drafts) {
  CoreLease cores;
  SANDWICH_ASSIGN_OR_RETURN(StepResult result, engine->step(segments, &cores));
  const SamplingOptions mostProbable;
  std::vector<Sampler> samplers(drafts.size(), Sampler(mostProbable));
  std::vector<SamplingRow> rows;
  std::vector<Draft *> drawn;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].rows == LogitRows::None)
      continue;
    rows.push_back({&samplers[i], result.logits.subspan(result.firstRows[i] *
                                                            engine->vocabSize(),
                                                        engine->vocabSize())});
    drawn.push_back(drafts[i]);
  }
  PhaseTeam &team = engine->team(PhaseKind::Decode);
  const std::vector<Result<SampledToken>> tokens =
      sampleBatch(rows, team.size(), parallelOn(team));
  for (size_t i = 0; i < tokens.size(); ++i)
    // Where logits are no numbers, there is no proposal.
    if (tokens[i])
      drawn[i]->proposal.push_back(tokens[i]->token);
  return {};
}

Status DraftModel::catchUp(std::span<Draft> drafts) {
  const StepLimits &limits = engine->limits(PhaseKind::Prefill);
  uint64_t room = limits.tokens;
  std::vector<Segment> segments;
  std::vector<Draft *> computed;
  for (Draft &draft : drafts) {
    if (room == 0 || segments.size() == limits.logitRows)
      break;
    const auto due = draft.asked->tokens.subspan(draft.sequence->length());
    const auto tokens = due.first(std::min<size_t>(due.size(), room));
    // The others go on in the next step.
    segments.push_back(
        {draft.sequence, tokens,
         tokens.size() == due.size() ? LogitRows::Last : LogitRows::None});
    computed.push_back(&draft);
    room -= tokens.size();
  }
  return step(segments, computed);
}

Status DraftModel::goOn(std::span<Draft> drafts) {
  std::vector<Segment> segments;
  std::vector<Draft *> computed;
  for (size_t depth = 1;; ++depth) {
    segments.clear();
    computed.clear();
    for (Draft &draft : drafts) {
      const std::vector<int32_t> &proposal = draft.proposal;
      if (proposal.size() != depth || depth == draft.asked->most ||
          draft.sequence->length() == engine->contextLength())
        continue;
      segments.push_back(
          {draft.sequence, std::span(proposal).last(1), LogitRows::Last});
      computed.push_back(&draft);
    }
    if (segments.empty())
      return {};
    SANDWICH_RETURN_IF_ERROR(step(segments, computed));
  }
}

std::vector<std::vector<int32_t>>
DraftModel::propose(std::span<const ProposalRequest> texts) {
  std::vector<std::vector<int32_t>> proposals(texts.size());
  if (failed)
    return proposals;
  const uint64_t most = engine->limits(PhaseKind::Decode).logitRows;
  std::vector<Draft> drafts;
  for (size_t i = 0; i < texts.size() && drafts.size() < most; ++i) {
    if (texts[i].tokens.size() > engine->contextLength())
      continue;
    drafts.push_back({&texts[i], i, &sequenceOf(texts[i])});
  }
  if (drafts.empty())
    return proposals;
  // Those that lack least come first, so that one prompt leaves room for all.
  std::ranges::stable_sort(drafts, {}, &Draft::due);
  Status status = catchUp(drafts);
  if (status)
    status = goOn(drafts);
  for (Draft &draft : drafts)
    proposals[draft.place] = std::move(draft.proposal);
  if (status)
    return proposals;
  // It lacks blocks, which others than these texts may have; or it is broken.
  sequences.clear();
  failed = status.error().kind != ErrorKind::CacheFull;
  if (failed)
    report(log, LogLevel::Warning,
           "no tokens are proposed any more: " + status.error().message);
  return proposals;
}

void DraftModel::forget(RequestId request) {
  sequences.erase(sequences.lower_bound({request, 0}),
                  sequences.lower_bound({request + 1, 0}));
}
