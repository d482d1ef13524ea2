//===- ParsedConfig.h - What becomes of a configuration ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_FRONTEND_PARSEDCONFIG_H
#define SANDWICH_UNITTESTS_FRONTEND_PARSEDCONFIG_H

#include "TestFiles.h"

#include "sandwich/Frontend/ModelConfig.h"

namespace sandwich::test {

/// What `config` says. Fails the test if it is refused.
inline ModelConfig accept(const Json &config) {
  auto parsed = parseModelConfig(config.dump());
  if (parsed)
    return *parsed;
  ADD_FAILURE() << parsed.error().message;
  return {};
}

/// Why `config` is refused.
inline std::string refusal(const Json &config) {
  return messageOf(parseModelConfig(config.dump()));
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_FRONTEND_PARSEDCONFIG_H
