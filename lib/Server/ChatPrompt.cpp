//===- ChatPrompt.cpp - A conversation as a prompt ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatPrompt.h"

using namespace sandwich;

std::variant<ChatPrompt, ApiError>
sandwich::renderChat(const LoadedModel &model, const ChatRequest &) {
  return ApiError{.message = "the model '" + model.name +
                             "' has no chat template; use /v1/completions",
                  .code = "chat_template_missing"};
}
