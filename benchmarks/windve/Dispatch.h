//===- Dispatch.h - What a dispatch takes -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BENCHMARKS_WINDVE_DISPATCH_H
#define BENCHMARKS_WINDVE_DISPATCH_H

#include "sandwich/Support/Result.h"

namespace sandwich::benchmark {

struct DispatchOptions {
  double queriesPerSecond = 2000;
  /// For each length of answers.
  double seconds = 5;
};

/// Prints the time from `submit` until a device has the query, and until the
/// completion has the answer, for answers of 8 and of 1,024 numbers. The device
/// takes no time. Beside it the same of a device without a dispatcher, at the
/// same time: one wake-up of a thread, which is the machine's.
Status printDispatch(const DispatchOptions &options);

} // namespace sandwich::benchmark

#endif // BENCHMARKS_WINDVE_DISPATCH_H
