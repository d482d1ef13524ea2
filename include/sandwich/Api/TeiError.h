//===- TeiError.h - Errors of text-embeddings-inference ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the paths of text-embeddings-inference (TEI) say of a failure.
///
/// The statuses are those of the other paths, with two exceptions for what its
/// clients react to. More inputs than a request may have are a 413, as TEI
/// documents, on which clients divide their batch; elsewhere they are a 400.
/// What the engine did wrong is a 424, elsewhere a 500. All else that is wrong
/// with a request, bad JSON and inputs that are too long among it, stays a 400:
/// TEI's own releases changed between 413 and 422 there, so that no client can
/// depend on either.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_TEIERROR_H
#define SANDWICH_API_TEIERROR_H

#include "sandwich/Api/ApiError.h"

#include <optional>
#include <string>

namespace sandwich {

/// An error in the shape of text-embeddings-inference.
struct TeiError {
  /// Of HTTP.
  unsigned status = 400;
  std::string message;
  /// As TEI writes them: "Validation", "Empty", "Overloaded", "Unhealthy" or
  /// "Backend".
  std::string type;
  /// Seconds after which it may be worth another try.
  std::optional<unsigned> retryAfter = {};

  static TeiError of(const ApiError &error);

  /// {"error", "error_type"}
  Json toJson() const;
};

} // namespace sandwich

#endif // SANDWICH_API_TEIERROR_H
