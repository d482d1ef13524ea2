//===- NoPeer.cpp - Where oneDNN is not installed -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

using namespace sandwich::benchmark;

std::unique_ptr<Peer> sandwich::benchmark::createPeer(
    const Operands &operands, int64_t n, int64_t k, bool bf16, int64_t layers,
    int64_t maxRows, int64_t threads, const std::vector<unsigned> &cpus) {
  return nullptr;
}
