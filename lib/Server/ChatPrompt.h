//===- ChatPrompt.h - A conversation as a prompt ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_CHATPROMPT_H
#define SANDWICH_LIB_SERVER_CHATPROMPT_H

#include "LoadedModel.h"

#include "sandwich/Api/ChatRequest.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace sandwich {

struct ChatPrompt {
  std::vector<int32_t> tokens;
  std::string text;
};

/// The prompt that the model's template makes of a conversation. Special tokens
/// are those that the template wrote; in what the client wrote they are text.
/// Errors: the model has no template, or it refuses the conversation.
std::variant<ChatPrompt, ApiError> renderChat(const LoadedModel &model,
                                              const ChatRequest &request);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_CHATPROMPT_H
