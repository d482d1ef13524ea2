//===- Characterization.h - What a phase asks of a machine ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The figures by which the paper tells prefill from decode (section 3.1 of its
/// first version, 2.1 of the second): whether cores compute, or wait for what
/// they share.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_CHARACTERIZATION_H
#define SANDWICH_RUNTIME_MEASUREMENT_CHARACTERIZATION_H

#include "sandwich/Runtime/Measurement/HardwareCounters.h"
#include "sandwich/Support/Result.h"

#include <vector>

namespace sandwich {

struct WorkloadFigure {
  /// The paper's abbreviation, or one like it: "IPC".
  const char *name;
  /// As a JSON key: "ipc".
  const char *key;
  /// "instructions per cycle".
  const char *meaning;
  /// Error: which event is missing, and why.
  Result<double> value;
};

/// All figures, in the paper's order, whether they have a value or not.
std::vector<WorkloadFigure> workloadFigures(const CounterReading &reading);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_CHARACTERIZATION_H
