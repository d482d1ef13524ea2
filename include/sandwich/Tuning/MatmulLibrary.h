//===- MatmulLibrary.h - Matmuls for measuring ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machine code for measuring schedules. While searching, a program of one
/// matmul has most of its schedule as arguments, and calls micro-kernels that
/// are compiled once, when they are first needed: hardly a candidate needs a
/// compiler. What is chosen from in the end is compiled as it ships.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MATMULLIBRARY_H
#define SANDWICH_TUNING_MATMULLIBRARY_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/NestParameters.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Tuning/MatmulProgram.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace sandwich::measuring {
class CodeLoader;
class ParallelCompiler;
struct CompileSession;
} // namespace sandwich::measuring

namespace sandwich {

/// A program of one matmul, ready to run.
struct MatmulCode {
  SandwichPhaseFunction function = nullptr;
  MatmulWorkspace workspace;
  /// Of the workspace, with what threads need beside the operands.
  int64_t workspaceBytes = 0;
  /// Nothing where the schedule's numbers are constants.
  std::optional<NestParameters> parameters = std::nullopt;

  /// Puts the parameters, and the parts of the threads in their order, where
  /// the program looks for them.
  void writeParameters(std::byte *workspaceBegin,
                       const std::vector<ThreadPart> &parts) const;
};

/// Compiles programs of one matmul, and micro-kernels, for one target and keeps
/// them loaded.
class MatmulLibrary {
public:
  /// Compiles on up to `threads` threads at once. `stop` is asked, on the
  /// thread that calls, whether to give up. Errors: a target whose instructions
  /// this CPU lacks.
  static Result<std::unique_ptr<MatmulLibrary>>
  create(const Target &target, unsigned threads,
         std::function<bool()> stop = {});
  MatmulLibrary(const MatmulLibrary &) = delete;
  MatmulLibrary &operator=(const MatmulLibrary &) = delete;
  ~MatmulLibrary();

  /// The program with the numbers of `schedule`, which fits its shape, as
  /// parameters, for parts of `minRows` to `maxRows` rows. Code stays valid as
  /// long as the library. Asks whether to stop first and between compilations,
  /// and keeps what was compiled by then. Errors: it is to stop; the system
  /// refuses to load code.
  Result<MatmulCode> prepare(const MatmulProgram &program,
                             const Schedule &schedule, int64_t minRows,
                             int64_t maxRows);

  /// The same with a micro-kernel that loads each operand once and then does
  /// nothing but multiply, for parts of as many rows as it has: k may be any.
  /// Errors: those of `prepare`.
  Result<MatmulCode> preparePeak(const MatmulProgram &program,
                                 const Schedule &schedule);

  /// The program with each of `tables` as it ships, for steps of as many
  /// tokens as `tokensBetween` promises. Errors: those of `prepare`; those of
  /// passes, for schedules that the program cannot have.
  Result<std::vector<MatmulCode>>
  prepareAsShipped(const MatmulProgram &program,
                   const std::vector<ScheduleTable> &tables,
                   std::array<int64_t, 2> tokensBetween);

  /// Compiles what `prepare` will need for one slice of each of `schedules`, on
  /// all threads at once. Errors: those of `prepare`.
  Status compileSlices(const MatmulProgram &program,
                       const std::vector<Schedule> &schedules);

  /// How many programs and micro-kernels were compiled, and the seconds that
  /// were spent on that.
  int64_t compilations() const { return static_cast<int64_t>(loaded.size()); }
  double compileSeconds() const { return seconds; }

private:
  struct MicroKernelKey;
  struct ProgramKey;
  struct Key;
  struct Loaded;
  struct Compiled;
  struct Plan;
  MatmulLibrary(const Target &target, unsigned threads,
                std::unique_ptr<measuring::CodeLoader> loader,
                std::function<bool()> stop);
  static Plan plan(const MatmulProgram &program, const Schedule &schedule,
                   int64_t minRows, int64_t maxRows);
  Result<MatmulCode> prepare(const MatmulProgram &program,
                             const Schedule &schedule, const Plan &plan);
  MatmulCode codeOf(const Key &key) const;
  Status compileMissing(const std::set<Key> &needed);
  Result<Compiled> compile(const Key &key,
                           measuring::CompileSession &session) const;
  Result<Loaded> load(const Key &key, const Compiled &code);

  const Target target;
  const std::function<bool()> stop;
  const std::unique_ptr<measuring::ParallelCompiler> compiler;
  /// Holds the machine code.
  std::unique_ptr<measuring::CodeLoader> loader;
  std::map<Key, Loaded> loaded;
  double seconds = 0;
};

} // namespace sandwich

#endif // SANDWICH_TUNING_MATMULLIBRARY_H
