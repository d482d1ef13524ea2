//===- LoadedModel.h - A model that is ready to be asked --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_LOADEDMODEL_H
#define SANDWICH_LIB_SERVER_LOADEDMODEL_H

#include "ToolCallParser.h"

#include "sandwich/Grammar/GrammarCache.h"
#include "sandwich/Service/Service.h"
#include "sandwich/Template/ModelTemplates.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sandwich {

/// Immutable but for its service and what is cached.
struct LoadedModel {
  std::string name;
  /// Tokens of a prompt and its text together.
  uint64_t contextLength = 0;
  /// Prompts, and their tokens, that may wait for their first step.
  uint64_t maxWaitingRequests = 0;
  uint64_t maxWaitingTokens = 0;
  /// Seconds since 1970.
  int64_t created = 0;
  /// The same as long as artifact and program are the same: OpenAI's
  /// "system_fingerprint".
  std::string fingerprint;
  std::unique_ptr<Service> service;
  /// Nothing: there are none, or none that could be used, as the problem says.
  std::optional<ModelTemplates> templates = {};
  std::string templateProblem = "has no chat template";
  /// How it writes calls of tools; nothing: it does not know any.
  std::optional<ToolCallSyntax> toolCalls = {};
  /// Null: texts cannot be constrained, as the problem says.
  std::unique_ptr<GrammarCache> grammars = {};
  std::string grammarProblem = "the model has no tokenizer";

  const std::optional<Tokenizer> &tokenizer() const {
    return service->tokenizer();
  }
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_LOADEDMODEL_H
