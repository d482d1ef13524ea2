//===- Describe.h - Untrusted values in error messages ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a checkpoint's files say is quoted in error messages so that they stay
/// one printable line of sensible length.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_DESCRIBE_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_DESCRIBE_H

#include "sandwich/Support/Json.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

/// `value` as JSON on one line in ASCII, cut to at most 120 characters.
std::string describe(const Json &value);

/// `name` between quotation marks, with special characters escaped, cut as
/// `describe` does.
std::string quote(std::string_view name);

/// A shape as "[2048, 256]".
std::string describeShape(std::span<const int64_t> shape);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_DESCRIBE_H
