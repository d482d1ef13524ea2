//===- JitTest.h - Running phase programs in tests --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// Compiles the text of a phase program for this CPU, in memory, and calls it
/// as each thread of its team in turn, which is what a step does where there
/// is no barrier inside.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CONVERSION_JITTEST_H
#define SANDWICH_UNITTESTS_CONVERSION_JITTEST_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

namespace sandwich::test {

struct CompileOptions {
  /// A textual pass pipeline from the program to loop IR.
  std::string passes;
  /// The target the machine code may use the features of.
  std::string target = "host";
  /// An option of `loops-to-llvm`.
  bool expandBF16 = false;
};

/// The target whose code runs in place of code for `name`: another one where
/// tiles are emulated.
std::string targetToRun(const std::string &name);

/// Whether instructions of `isa` are emulated: AMX where this CPU has none.
bool emulates(MatrixISA isa);

/// The first target that has instructions of `isa`.
Target targetOf(MatrixISA isa);

/// What code of `isa` is compiled for to run here: the target with the least
/// features, as everybody has them, where `isa` is emulated.
Target targetToRun(MatrixISA isa);

/// A phase program called `program`, in machine code.
class CompiledProgram {
public:
  /// Errors: what MLIR or LLVM reports.
  static Result<std::unique_ptr<CompiledProgram>>
  compile(const std::string &source, const CompileOptions &options);
  virtual ~CompiledProgram() = default;

  /// Runs the program as thread `thread`. Barriers do nothing.
  virtual void run(SandwichStep step, int32_t thread) = 0;

  /// Runs the program on a team of threads that meet at its barriers.
  void runTeam(SandwichStep step, int32_t threads);

protected:
  /// Runs the program as it is, with the barrier of `step`.
  virtual void call(const SandwichStep &step, int32_t thread) = 0;
};

/// The arguments of a phase program in IR, as every program declares them:
/// `%token_ids` to `%team`, logits over a vocabulary of 16. `cache` is the
/// type of the cache's buffer.
std::string
programArguments(const std::string &cache = "memref<?x1x1x2x16xf16>");

/// `#phase.program` of a team.
std::string programAttribute(int64_t threads, int64_t maxTokens);

/// Whether this CPU runs code for `target`.
bool hostRuns(const std::string &target);
/// Whether `target` rounds to bf16 by an instruction.
bool hasBF16(const std::string &target);

/// Memory aligned to 64 bytes, as the runtime gives it to programs.
class AlignedBytes {
public:
  explicit AlignedBytes(size_t bytes)
      : storage(bytes + 64),
        begin(storage.data() +
              (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64) {}
  unsigned char *data() { return begin; }
  template <typename T> T *as(size_t offset = 0) {
    return reinterpret_cast<T *>(begin + offset);
  }

private:
  std::vector<unsigned char> storage;
  unsigned char *begin;
};

/// bf16 as its bits, rounded to nearest even.
inline uint16_t toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float fromBF16(uint16_t value) {
  uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

/// `lm.gelu` of `x`, of the kind "exact" or "tanh".
inline double gelu(double x, const std::string &kind) {
  if (kind == "exact")
    return x * (1 + std::erf(x / std::numbers::sqrt2)) / 2;
  return x *
         (1 + std::tanh(std::sqrt(2 / std::numbers::pi) *
                        (x + 0.044715 * x * x * x))) /
         2;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CONVERSION_JITTEST_H
