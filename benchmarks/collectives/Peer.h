//===- Peer.h - What all-reduce is compared with ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_COLLECTIVES_PEER_H
#define SANDWICH_BENCHMARKS_COLLECTIVES_PEER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sandwich::benchmark {

/// Another implementation of what ranks exchange, in this process.
class Peer {
public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual int32_t rank() const = 0;
  virtual int32_t ranks() const = 0;
  /// Replaces `data` by its sum over the ranks.
  virtual void allReduce(float *data, int64_t count) = 0;
  /// Puts the sum of `data` over the ranks into `sum`.
  virtual void allReduce(const float *data, float *sum, int64_t count) = 0;
  /// Replaces `data` by rank 0's.
  virtual void broadcast(void *data, size_t bytes) = 0;
};

/// The command that starts `ranks` processes of `program` that can call
/// `joinPeer`; empty where this benchmark was built without a peer.
std::vector<std::string> peerCommand(int32_t ranks, const std::string &program);

/// Called in the processes that `peerCommand` started.
std::unique_ptr<Peer> joinPeer();

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_COLLECTIVES_PEER_H
