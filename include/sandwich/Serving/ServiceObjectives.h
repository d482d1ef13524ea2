//===- ServiceObjectives.h - What requests are to get -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_SERVICEOBJECTIVES_H
#define SANDWICH_SERVING_SERVICEOBJECTIVES_H

#include <optional>

namespace sandwich {

/// What requests are to get; seconds.
struct ServiceObjectives {
  /// From the arrival to the first token (TTFT).
  std::optional<double> firstToken;
  /// The mean of each token after it (TPOT).
  std::optional<double> token;

  bool any() const { return firstToken || token; }

  ServiceObjectives scaled(double scale) const {
    ServiceObjectives result = *this;
    for (std::optional<double> *each : {&result.firstToken, &result.token})
      if (*each)
        **each *= scale;
    return result;
  }
};

} // namespace sandwich

#endif // SANDWICH_SERVING_SERVICEOBJECTIVES_H
