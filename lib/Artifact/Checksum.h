//===- Checksum.h - Streaming checksums -------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_ARTIFACT_CHECKSUM_H
#define SANDWICH_LIB_ARTIFACT_CHECKSUM_H

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace sandwich::artifact {

/// XXH3 with 64 bits of bytes that come in pieces.
class Checksum {
public:
  Checksum() : state(XXH3_createState()) {
    if (!state)
      throw std::bad_alloc();
    XXH3_64bits_reset(state.get());
  }

  void update(std::span<const std::byte> bytes) {
    XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
  }
  uint64_t digest() const { return XXH3_64bits_digest(state.get()); }

private:
  struct Free {
    void operator()(XXH3_state_t *state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state;
};

} // namespace sandwich::artifact

#endif // SANDWICH_LIB_ARTIFACT_CHECKSUM_H
