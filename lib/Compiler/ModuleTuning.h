//===- ModuleTuning.h - Schedules measured for a module ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_MODULETUNING_H
#define SANDWICH_LIB_COMPILER_MODULETUNING_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace sandwich {

/// The threads that run `phase` in each process.
int64_t threadsOf(const CompileOptions &options, lm::Phase phase);

/// Tunes the matmuls of `module`, model IR, that have no schedules yet, into
/// the database that `options` name, and gives them what was found; the module
/// has all schedules and packings then. `model` is the name of the model, for
/// the report. Errors: files that `options` name cannot be read or written;
/// those of `tuneModel`; the progress callback's. `summary` may be null.
Status tuneModule(mlir::ModuleOp module, const CompileOptions &options,
                  const Target &target, const std::string &model,
                  const CompileProgress &progress, TuningSummary *summary);

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_MODULETUNING_H
