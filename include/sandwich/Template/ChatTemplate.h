//===- ChatTemplate.h - Conversations to prompts ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the subset of Jinja that chat templates are written in, with the
/// results of Python's jinja2 as Hugging Face's transformers configures it
/// (trim_blocks, lstrip_blocks, loop controls, immutable values), within limits
/// and without access to anything but its variables. What is not supported is
/// an error of `parse`. docs/RationaleTemplates.md says why, and what the
/// subset is.
///
/// A rendered text says which of its bytes the template wrote, so that a
/// tokenizer takes special tokens from nowhere else.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TEMPLATE_CHATTEMPLATE_H
#define SANDWICH_TEMPLATE_CHATTEMPLATE_H

#include "sandwich/Support/ByteRange.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// What a template may take. Beyond any of them is an error that names it.
struct TemplateLimits {
  /// Of the template's text.
  size_t sourceBytes = size_t{1} << 20;
  /// Statements and expressions in the template.
  size_t nodes = 100'000;
  /// Statements and expressions that lie in each other.
  size_t nesting = 200;
  /// Statements and expressions evaluated by one `render`, where handling 64
  /// bytes or one element counts as one more.
  uint64_t steps = 10'000'000;
  /// Of the rendered text.
  size_t outputBytes = size_t{64} << 20;
  /// Of all values at a time, those of the variables among them.
  size_t memoryBytes = size_t{256} << 20;
  /// Evaluations that lie in each other: of nested expressions, and of macros
  /// and loops that call themselves.
  size_t recursion = 1000;
};

/// What `ChatTemplate::render` takes beside the variables from a request.
struct RenderOptions {
  /// Variables whose text counts as the template's own: `bos_token` and other
  /// names of special tokens. An object.
  Json trustedVariables = Json::object();
  /// Roles of messages whose text counts as the template's own, as templates
  /// make special tokens of them ("<|" + message.role + "|>"): choosing one of
  /// these words is no way to write another token. They count where they are
  /// the whole of a message's `role`.
  std::vector<std::string> trustedRoles = {"system", "developer", "user",
                                           "assistant", "tool"};
  /// What `strftime_now` prints: local time, broken down.
  std::tm now = {};
};

/// A text, UTF-8, and which of its bytes are the template's: the others come
/// from the request.
struct RenderedText {
  std::string text;
  /// In order, none empty, and none touches the next.
  std::vector<ByteRange> trusted;
};

/// A template as it was parsed. Copies share one immutable description; all
/// members may be called from several threads at once.
class ChatTemplate {
public:
  /// Errors name the line: no Jinja, Jinja that is not supported, or beyond
  /// `limits`, which hold for `render` too.
  static Result<ChatTemplate> parse(std::string_view source,
                                    const TemplateLimits &limits = {});

  /// The prompt that `variables` make: an object of `messages`, `tools`,
  /// `documents`, `add_generation_prompt` and what else the template reads.
  /// Templates are written for transformers, which defines these four in any
  /// case, as null where there is nothing.
  ///
  /// Every error is of the kind `InvalidArgument`: the variables are not what
  /// the template needs, or too much for its limits. What the template itself
  /// raised (`raise_exception`) is the whole message of the error; others name
  /// the line.
  Result<RenderedText> render(const Json &variables,
                              const RenderOptions &options = {}) const;

private:
  struct Description;
  explicit ChatTemplate(std::shared_ptr<const Description> description);
  std::shared_ptr<const Description> description;
};

} // namespace sandwich

#endif // SANDWICH_TEMPLATE_CHATTEMPLATE_H
