//===- Description.h - What an artifact tells, for C ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_DESCRIPTION_H
#define SANDWICH_LIB_RUNTIME_CAPI_DESCRIPTION_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Runtime/sandwich.h"

#include <optional>
#include <string>

struct sandwich_description {
  std::string artifactPath;
  sandwich::proto::ModelConfiguration model;
  std::optional<sandwich::Tokenizer> tokenizer;
};

namespace sandwich::capi {

/// Errors: files of a tokenizer that cannot be read.
Result<sandwich_description> describe(const Artifact &artifact);

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_DESCRIPTION_H
