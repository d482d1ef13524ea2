//===- NestLibrary.h - Micro-kernels for measuring --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machine code for measuring schedules. A micro-kernel is compiled once, when
/// it is first needed; slices, strips of rows, prefetch distances and the parts
/// of threads are arguments of a nest that calls it. It is the code of
/// `gemm.nest`, by the passes that compile models.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_NESTLIBRARY_H
#define SANDWICH_TUNING_NESTLIBRARY_H

#include "sandwich/Conversion/NestParameters.h"
#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace sandwich::measuring {
class CodeLoader;
class ParallelCompiler;
struct CompileSession;
} // namespace sandwich::measuring

namespace sandwich {

/// One-dimensional memory as MLIR passes it to functions.
struct BytesDescriptor {
  void *allocated = nullptr;
  void *aligned = nullptr;
  int64_t offset = 0;
  int64_t size = 0;
  int64_t stride = 1;

  BytesDescriptor() = default;
  BytesDescriptor(void *data, int64_t bytes)
      : allocated(data), aligned(data), size(bytes) {}
};

/// The sums of the largest block, a cache line as phases have it, and the
/// largest packed input.
inline constexpr int64_t nestScratchBytes =
    maxBlockSums * 4 + 64 + maxPackedInput * 2;

/// One thread's part of a matmul, whose sums are stored as f32.
struct NestCall {
  /// Rows of the input, `rowStride(K, bytes of an element)` apart.
  BytesDescriptor input;
  /// The packed weight.
  BytesDescriptor weight;
  /// [rows, resultStride] f32, whole vectors of which may be written: the
  /// distance of rows is a multiple of a panel.
  BytesDescriptor result;
  /// `nestScratchBytes`, aligned to 64 bytes.
  BytesDescriptor scratch;
  int64_t resultStride = 0;
  int64_t rowBegin = 0, rowEnd = 0;
  int64_t columnBegin = 0, columnEnd = 0;
  int64_t kBegin = 0, kEnd = 0;
};

/// The nest of one schedule, ready to run on parts of some numbers of rows.
class PreparedNest {
public:
  void operator()(NestCall &call) const {
    BytesDescriptor arguments(const_cast<NestParameters *>(&parameters),
                              sizeof(NestParameters) / sizeof(int64_t));
    function(&call.input, &call.weight, &call.result, &call.scratch, &arguments,
             call.resultStride, call.rowBegin, call.rowEnd, call.columnBegin,
             call.columnEnd, call.kBegin, call.kEnd);
  }

private:
  friend class NestLibrary;
  using Function = void (*)(BytesDescriptor *input, BytesDescriptor *weight,
                            BytesDescriptor *result, BytesDescriptor *scratch,
                            BytesDescriptor *parameters, int64_t resultStride,
                            int64_t rowBegin, int64_t rowEnd,
                            int64_t columnBegin, int64_t columnEnd,
                            int64_t kBegin, int64_t kEnd);
  Function function = nullptr;
  NestParameters parameters = {};
};

/// Compiles nests and micro-kernels for one target and keeps them loaded.
class NestLibrary {
public:
  /// Compiles on up to `threads` threads at once. `stop` is asked, on the
  /// thread that calls `prepare`, whether to give up. Errors: a target whose
  /// instructions this CPU lacks.
  static Result<std::unique_ptr<NestLibrary>>
  create(const Target &target, unsigned threads,
         std::function<bool()> stop = {});
  NestLibrary(const NestLibrary &) = delete;
  NestLibrary &operator=(const NestLibrary &) = delete;
  ~NestLibrary();

  /// The nest for `schedule`, which fits `shape`, on parts of `minRows` to
  /// `maxRows` rows. It stays valid as long as the library. Asks whether to
  /// stop first and between compilations, and keeps what was compiled by then.
  /// Errors: it is to stop; the system refuses to load code.
  Result<PreparedNest> prepare(const MatmulShape &shape,
                               const Schedule &schedule, int64_t minRows,
                               int64_t maxRows);

  /// A nest of `schedule` for as many rows as its micro-kernel has, which loads
  /// each operand once and then does nothing but multiply: k may be any.
  /// Errors: those of `prepare`.
  Result<PreparedNest> preparePeak(const MatmulShape &shape,
                                   const Schedule &schedule);

  /// Compiles what `prepare` will need for one slice of each of `schedules`, on
  /// all threads at once. Errors: those of `prepare`.
  Status compileSlices(const MatmulShape &shape,
                       const std::vector<Schedule> &schedules);

  /// How many nests and micro-kernels were compiled, and the seconds that
  /// `prepare` spent on that.
  int64_t compilations() const { return static_cast<int64_t>(loaded.size()); }
  double compileSeconds() const { return seconds; }

private:
  struct Key;
  struct Loaded;
  struct Compiled;
  struct Plan;
  NestLibrary(const Target &target, unsigned threads,
              std::unique_ptr<measuring::CodeLoader> loader,
              std::function<bool()> stop);
  static Plan plan(const MatmulShape &shape, const Schedule &schedule,
                   int64_t minRows, int64_t maxRows);
  Result<PreparedNest> prepare(const Schedule &schedule, const Plan &plan);
  Status compileMissing(const std::set<Key> &needed);
  Result<Compiled> compile(const Key &key,
                           measuring::CompileSession &session) const;
  Result<Loaded> load(const Compiled &code);

  const Target target;
  const std::function<bool()> stop;
  const std::unique_ptr<measuring::ParallelCompiler> compiler;
  /// Holds the machine code.
  std::unique_ptr<measuring::CodeLoader> loader;
  std::map<Key, Loaded> loaded;
  double seconds = 0;
};

} // namespace sandwich

#endif // SANDWICH_TUNING_NESTLIBRARY_H
