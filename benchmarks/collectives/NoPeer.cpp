//===- NoPeer.cpp - All-reduce compared with nothing ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

using namespace sandwich::benchmark;

std::vector<std::string> sandwich::benchmark::peerCommand(int32_t,
                                                          const std::string &) {
  return {};
}

std::unique_ptr<Peer> sandwich::benchmark::joinPeer() { return nullptr; }
