//===- CoreMeasurement.cpp - How fast a core multiplies -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"

#include "sandwich/Support/Statistics.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::measuring;

Result<double> sandwich::measureCoreFlops(unsigned cpu, MatrixElement element,
                                          const MeasurementProgress &progress) {
  constexpr std::string_view stage = "multiplying matrices";
  SANDWICH_RETURN_IF_ERROR(report(progress, stage, 0));
  SANDWICH_RETURN_IF_ERROR(createPinnedTeam({cpu}));
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  MeasuringOptions options;
  options.cpus = {cpu};
  // Only what caches hold is read.
  options.weightBytes = uint64_t{16} << 20;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<MeasuringEvaluator> evaluator,
                            MeasuringEvaluator::create(target, options));
  MatmulShape shape;
  shape.n = shape.k = 2048;
  if (element == MatrixElement::BF16)
    shape.storage = StorageFormat::bf16();
  if (element == MatrixElement::Int8) {
    SANDWICH_ASSIGN_OR_RETURN(shape.storage,
                              StorageFormat::parseOption(name(element)));
    shape.roundsInput = true;
  }
  // As the schedule rule prefers them.
  const std::optional<MatrixISA> isa = instructionsFor(shape, target);
  if (!isa || (element == MatrixElement::Int8 && !multipliesIntegers(*isa)))
    return makeError("this CPU has no instructions for ", name(element));
  constexpr size_t runs = 7;
  std::vector<double> flops;
  while (flops.size() < runs) {
    SANDWICH_ASSIGN_OR_RETURN(double run,
                              evaluator->measureFlopsInCache(shape, *isa));
    flops.push_back(run);
    SANDWICH_RETURN_IF_ERROR(
        report(progress, stage, static_cast<double>(flops.size()) / runs));
  }
  return median(std::move(flops));
}
