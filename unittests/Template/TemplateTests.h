//===- TemplateTests.h - Rendering in the tests -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_TEMPLATE_TEMPLATETESTS_H
#define SANDWICH_UNITTESTS_TEMPLATE_TEMPLATETESTS_H

#include "sandwich/Template/ChatTemplate.h"

#include <gtest/gtest.h>

#include <string>

namespace sandwich {

/// `source` run with `variables`, or its error.
inline Result<RenderedText> render(std::string_view source,
                                   const Json &variables = Json::object(),
                                   const RenderOptions &options = {},
                                   const TemplateLimits &limits = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, limits);
  if (!parsed)
    return parsed.error();
  return parsed->render(variables.is_null() ? Json::object() : variables,
                        options);
}

/// The rendered text, which must be there.
inline std::string rendered(std::string_view source,
                            const Json &variables = Json::object(),
                            const RenderOptions &options = {}) {
  Result<RenderedText> result = render(source, variables, options);
  if (!result) {
    ADD_FAILURE() << source << ": " << result.error().message;
    return {};
  }
  return result->text;
}

/// The message of the error, which there must be.
inline std::string failure(std::string_view source,
                           const Json &variables = Json::object(),
                           const TemplateLimits &limits = {}) {
  Result<RenderedText> result = render(source, variables, {}, limits);
  EXPECT_FALSE(result) << source;
  return result ? std::string() : result.error().message;
}

/// The rendered text with what comes from a request in brackets.
inline std::string marked(std::string_view source, const Json &variables,
                          const RenderOptions &options = {}) {
  Result<RenderedText> result = render(source, variables, options);
  if (!result) {
    ADD_FAILURE() << source << ": " << result.error().message;
    return {};
  }
  std::string text;
  size_t done = 0;
  auto addData = [&](size_t end) {
    if (done < end)
      text += "[" + result->text.substr(done, end - done) + "]";
  };
  for (const ByteRange &range : result->trusted) {
    EXPECT_LT(range.begin, range.end);
    EXPECT_TRUE(done == 0 || done < range.begin);
    addData(range.begin);
    text += result->text.substr(range.begin, range.size());
    done = range.end;
  }
  addData(result->text.size());
  return text;
}

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_TEMPLATE_TEMPLATETESTS_H
