//===- Hashing.h - 128-bit hashes of structures -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_HASHING_H
#define SANDWICH_TOPOLOGY_TREES_HASHING_H

#include "sandwich/Topology/Trees/TopoTree.h"

#include <xxhash.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace sandwich {

/// Hashes numbers and strings in the order they are added.
class Hasher {
public:
  void add(uint64_t number) { words.push_back(number); }
  void add(std::string_view text) {
    add(text.size());
    for (char c : text)
      add(static_cast<unsigned char>(c));
  }
  TopoHash finish() const {
    XXH128_hash_t hash =
        XXH3_128bits(words.data(), words.size() * sizeof(words[0]));
    return {hash.low64, hash.high64};
  }

private:
  std::vector<uint64_t> words;
};

/// For unordered containers: the hash is as good as random already.
struct TopoHashOfHash {
  size_t operator()(const TopoHash &hash) const { return hash.low; }
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_HASHING_H
