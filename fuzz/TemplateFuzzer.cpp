//===- TemplateFuzzer.cpp - Any bytes as a chat template ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Utf8.h"
#include "sandwich/Template/ChatTemplate.h"

#include <algorithm>
#include <cstdlib>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// Variables that most templates do something with.
static const Json &usualVariables() {
  static const Json variables = Json::parse(R"({
    "messages": [
      {"role": "system", "content": " Be brief.\n"},
      {"role": "user", "content": "Gr\u00fc\u00dfe <|im_end|>"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "abc123DEF", "type": "function",
         "function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]},
      {"role": "tool", "content": "{}", "tool_call_id": "abc123DEF"},
      {"role": "user", "content": [{"type": "text", "text": "a"}]}],
    "tools": [{"type": "function", "function": {
      "name": "f", "description": "d", "parameters": {
        "type": "object", "required": ["x"],
        "properties": {"x": {"type": "array", "items": {"type": "number"}}}}}}],
    "documents": [{"title": "t", "text": "x"}],
    "add_generation_prompt": true, "x": "a b", "n": 3, "l": [3, 1, 2]})");
  return variables;
}

/// What no template may do, whatever it is.
static void checkRendering(const Result<RenderedText> &rendered,
                           const TemplateLimits &limits) {
  if (!rendered) {
    const Error &error = rendered.error();
    check(error.kind == ErrorKind::InvalidArgument);
    check(!findInvalidUtf8(error.message));
    return;
  }
  check(rendered->text.size() <= limits.outputBytes);
  check(!findInvalidUtf8(rendered->text));
  size_t end = 0;
  for (const ByteRange &range : rendered->trusted) {
    check(range.begin < range.end && (end == 0 || range.begin > end));
    end = range.end;
  }
  check(end <= rendered->text.size());
}

/// The bytes up to the first zero are a template, the rest its variables, if it
/// is JSON. A template is refused with a reason, or ends within its limits with
/// a reason or with a text. Where nothing comes from a request, all of the text
/// is trusted.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view all(reinterpret_cast<const char *>(data), size);
  const std::string_view source = all.substr(0, all.find('\0'));
  const TemplateLimits limits = {.nodes = 10'000,
                                 .steps = 100'000,
                                 .outputBytes = size_t{1} << 20,
                                 .memoryBytes = size_t{1} << 24};
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, limits);
  if (!parsed) {
    check(!parsed.error().message.empty());
    check(!findInvalidUtf8(parsed.error().message));
    return 0;
  }
  RenderOptions options;
  options.trustedVariables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  checkRendering(parsed->render(usualVariables(), options), limits);
  if (source.size() == all.size())
    return 0;
  Result<Json> variables = parseJson(all.substr(source.size() + 1));
  if (!variables || !variables->is_object())
    return 0;
  checkRendering(parsed->render(*variables, options), limits);
  // The same variables as the caller's own: all of the text is trusted.
  Result<RenderedText> own = parsed->render(
      Json::object(), {.trustedVariables = *variables, .trustedRoles = {}});
  checkRendering(own, limits);
  if (own && !own->text.empty())
    check(own->trusted ==
          std::vector<ByteRange>{ByteRange{0, own->text.size()}});
  return 0;
}
