//===- MicroKernelProgram.h - Micro-kernels alone ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// Compiles micro-kernels without any matmul around them, and runs them: in
/// this process, or, for AArch64, as a freestanding program under qemu-aarch64.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CONVERSION_MICROKERNELPROGRAM_H
#define SANDWICH_UNITTESTS_CONVERSION_MICROKERNELPROGRAM_H

#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <memory>
#include <string>
#include <vector>

namespace sandwich::test {

/// A call of a micro-kernel. Buffers are places in one memory, in bytes.
struct MicroKernelCall {
  /// Which of the compiled micro-kernels.
  int64_t kernel = 0;
  int64_t input = 0, firstRow = 0, firstK = 0, k = 0;
  int64_t weight = 0, weightOffset = 0, panelStride = 0;
  int64_t sums = 0, sumsRow = 0, sumsColumn = 0;
  /// Elements from one row of the sums to the next.
  int64_t sumsStride = 0;
  bool accumulate = false;
  int64_t prefetchOffset = 0, prefetchStride = 0, prefetchStreamStride = 0;
  /// Of tiles.
  int64_t tileRows = 1, lastTileRow = 0;
  /// Elements from one row of the input to the next, where the code does not
  /// know.
  int64_t inputStride = 0;
};

/// Micro-kernels as optimized code for one target.
class MicroKernelProgram {
public:
  /// With `emulateAMX`, AMX becomes vectors. Errors: what MLIR or LLVM reports.
  static Result<std::unique_ptr<MicroKernelProgram>>
  compile(const std::vector<MicroKernelSpecialization> &kernels,
          const Target &target, bool emulateAMX = false);
  virtual ~MicroKernelProgram() = default;

  /// Where every micro-kernel is the function it is named for.
  virtual Result<std::string> assembly() = 0;

  /// Makes `calls` in order with `memory`, aligned to 64 bytes. A CPU that is
  /// emulated has scalable vectors of `vectorBytes`.
  virtual Status run(const std::vector<MicroKernelCall> &calls,
                     unsigned char *memory, size_t size,
                     int64_t vectorBytes) = 0;
};

/// Why code for `target` is not run here; empty if it is.
std::string whyNotRun(const Target &target);

/// Where qemu-aarch64 is; empty if it is not installed.
std::string findAArch64Emulator();

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CONVERSION_MICROKERNELPROGRAM_H
