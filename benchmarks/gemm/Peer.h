//===- Peer.h - Somebody else's matmul --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_GEMM_PEER_H
#define SANDWICH_BENCHMARKS_GEMM_PEER_H

#include "Operands.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sandwich::benchmark {

/// The same matmul by a library: the same operands, f32 results, weights packed
/// beforehand in the layout it likes best for the number of rows.
class Peer {
public:
  virtual ~Peer() = default;

  /// Name and version.
  virtual std::string name() const = 0;
  /// Gets ready for `rows` rows of x; packs the weights if it wants another
  /// layout for so many.
  virtual void prepare(int64_t rows) = 0;
  /// Multiplies with `count` layers from `first` on.
  virtual void run(int64_t first, int64_t count) = 0;
  /// Row `row` of the last result, N elements.
  virtual const float *result(int64_t row) const = 0;
};

/// oneDNN on `threads` threads, which stay on `cpus`; null if this program was
/// built without it.
std::unique_ptr<Peer> createPeer(const Operands &operands, int64_t n, int64_t k,
                                 bool bf16, int64_t layers, int64_t maxRows,
                                 int64_t threads,
                                 const std::vector<unsigned> &cpus);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_GEMM_PEER_H
