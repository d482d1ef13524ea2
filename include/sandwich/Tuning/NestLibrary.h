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
/// it is first asked for; slices, strips of rows, prefetch distances and the
/// parts of threads are arguments of its nest. It is the code of `gemm.nest`,
/// by the passes that compile models.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_NESTLIBRARY_H
#define SANDWICH_TUNING_NESTLIBRARY_H

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

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

/// One thread's part of a matmul, whose sums are stored as f32.
struct NestCall {
  /// Rows of the input, `rowStride(K, bytes of an element)` apart.
  BytesDescriptor input;
  /// The packed weight.
  BytesDescriptor weight;
  /// [rows, resultStride] f32, whole vectors of which may be written: the
  /// distance of rows is a multiple of a panel.
  BytesDescriptor result;
  /// bM * bN f32 and 64 bytes, aligned to 64 bytes.
  BytesDescriptor scratch;
  int64_t resultStride = 0;
  int64_t rowBegin = 0, rowEnd = 0;
  int64_t columnBegin = 0, columnEnd = 0;
  int64_t kBegin = 0, kEnd = 0;
};

/// Runs the nest of a schedule on a part.
class NestFunction {
public:
  NestFunction() = default;
  /// `schedule` is one that the function was asked for.
  void operator()(NestCall &call, const Schedule &schedule) const {
    function(&call.input, &call.weight, &call.result, &call.scratch,
             call.resultStride, call.rowBegin, call.rowEnd, call.columnBegin,
             call.columnEnd, call.kBegin, call.kEnd, schedule.slice[0],
             schedule.slice[1], schedule.slice[2], schedule.microKernel.rows,
             schedule.prefetchDistance);
  }

private:
  friend class NestLibrary;
  using Function = void (*)(BytesDescriptor *input, BytesDescriptor *weight,
                            BytesDescriptor *result, BytesDescriptor *scratch,
                            int64_t resultStride, int64_t rowBegin,
                            int64_t rowEnd, int64_t columnBegin,
                            int64_t columnEnd, int64_t kBegin, int64_t kEnd,
                            int64_t sliceRows, int64_t sliceColumns,
                            int64_t sliceK, int64_t stripRows,
                            int64_t prefetchDistance);
  explicit NestFunction(Function function) : function(function) {}
  Function function = nullptr;
};

/// Compiles nests for one target and keeps them loaded.
class NestLibrary {
public:
  /// Errors: a target whose instructions this CPU lacks.
  static Result<std::unique_ptr<NestLibrary>> create(const Target &target);
  NestLibrary(const NestLibrary &) = delete;
  NestLibrary &operator=(const NestLibrary &) = delete;
  ~NestLibrary();

  /// The nest for `schedule`, which fits `shape`. It stays valid as long as the
  /// library. Errors: the system refuses to load code.
  Result<NestFunction> get(const MatmulShape &shape, const Schedule &schedule);

  /// How often `get` compiled, and the seconds that took.
  int64_t compilations() const { return compiled; }
  double compileSeconds() const { return seconds; }

private:
  struct Key;
  struct Loaded;
  struct Session;
  explicit NestLibrary(const Target &target);
  Result<Loaded> compile(const Key &key);

  const Target target;
  std::unique_ptr<Session> session;
  std::map<Key, Loaded> loaded;
  int64_t compiled = 0;
  double seconds = 0;
};

} // namespace sandwich

#endif // SANDWICH_TUNING_NESTLIBRARY_H
