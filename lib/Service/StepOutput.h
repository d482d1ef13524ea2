//===- StepOutput.h - What a step's logits make of its texts ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVICE_STEPOUTPUT_H
#define SANDWICH_LIB_SERVICE_STEPOUTPUT_H

#include "LiveRequest.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace sandwich {

/// The texts that get tokens from a step, and these tokens; and the tokens of
/// prompts that it scores.
class StepOutput {
public:
  using LiveRequests = std::map<RequestId, std::shared_ptr<LiveRequest>>;

  /// Of a step that is going to be computed; `live` has all its requests.
  StepOutput(const StepPlan &plan, const LiveRequests &live);

  /// Chooses the tokens from the logits of the step that was computed, on the
  /// threads of `engine`'s decode team. A request for which that fails, such as
  /// one whose logits are no numbers, has its failure then.
  void choose(const StepPlan &plan, const StepResult &result, Engine &engine);

  /// What the scheduler is told.
  std::vector<ChosenToken> chosen() const;
  /// The requests that failed.
  std::vector<RequestId> failed() const;

  /// Calls the callbacks of the tokens that the scheduler took.
  void tell(const StepEvents &events);

  /// Forgets everything.
  void clear();

private:
  /// A text, and the tokens that it got: more than one where some were
  /// proposed.
  struct Row {
    /// Of the plan.
    size_t segment;
    RequestId request;
    std::shared_ptr<LiveRequest> live;
    uint32_t text;
    std::vector<GeneratedToken> tokens = {};

    LiveText &liveText() const { return live->texts[text]; }
  };
  /// A token of a prompt, and how probable it is.
  struct Score {
    RequestId request;
    std::shared_ptr<LiveRequest> live;
    ScoredToken scored;
  };

  void sample(const StepPlan &plan, const StepResult &result, Engine &engine);
  void score(const StepPlan &plan, const StepResult &result, Engine &engine);
  /// Gives the row's text its next token.
  static void take(Row &row, Result<SampledToken> sampled,
                   const Engine &engine);
  void tellScores(const StepEvents &events);

  /// In the order of the plan's segments.
  std::vector<Row> rows;
  std::vector<Score> scores;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVICE_STEPOUTPUT_H
