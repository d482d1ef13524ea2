//===- WeightStorage.h - The one resident copy of the weights ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Weights are mapped from the file, or read once into huge pages. Either way
/// the process holds one copy of them, which every phase reads.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_WEIGHTSTORAGE_H
#define SANDWICH_ARTIFACT_WEIGHTSTORAGE_H

#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sandwich {

/// Told how many bytes of `total` are done, from the calling thread.
using ProgressCallback = std::function<void(uint64_t done, uint64_t total)>;

enum class WeightPlacement {
  /// Pages of the page cache, shared with every process that maps the file.
  /// Where the filesystem can (ext4 of Linux 6.16), those are huge pages, for
  /// `ArtifactWriter` writes in whole ones. Cutting the file while it is mapped
  /// is a signal, SIGBUS.
  Mapped,
  /// A private copy, in huge pages as far as the kernel has them. Takes as much
  /// memory again as the page cache, and where that memory is new to a virtual
  /// machine, ten times as long as `Mapped`.
  HugePages,
};

struct WeightLoadOptions {
  WeightPlacement placement = WeightPlacement::Mapped;
  /// Threads that map or read at the same time, the caller among them.
  unsigned threads = 1;
  /// Map every page now instead of at its first use. `HugePages` always reads
  /// everything.
  bool populate = true;
  ProgressCallback progress = {};
  /// Asked between pieces, by all threads at once: whether there is no use in
  /// the rest, so that loading ends with an error.
  std::function<bool()> isStopped = {};
};

/// A part of the file.
struct WeightRegion {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// Whether several processes read it, so that it is mapped wherever the rest
  /// goes.
  bool shared = false;
};

/// Bytes of `weights.bin` in memory, read-only, aligned to 4096 bytes.
/// Moves, never copies.
class WeightStorage {
public:
  /// Loads the first `size` (not zero) bytes of the file open as `descriptor`,
  /// which may be closed afterwards. Errors do not name the file: not enough
  /// memory, unreadable, shorter than `size`, or stopped.
  static Result<WeightStorage> load(int descriptor, uint64_t size,
                                    const WeightLoadOptions &options) {
    const WeightRegion whole[] = {{0, size}};
    return load(descriptor, whole, options);
  }

  /// Loads `regions`, none of them empty, one right behind the other; all but
  /// the first begin and end at multiples of 4096, as the first one ends.
  static Result<WeightStorage> load(int descriptor,
                                    std::span<const WeightRegion> regions,
                                    const WeightLoadOptions &options);

  WeightStorage(WeightStorage &&other) noexcept;
  WeightStorage &operator=(WeightStorage &&other) noexcept;
  ~WeightStorage();

  std::span<const std::byte> bytes() const { return contents; }
  WeightPlacement placement() const {
    return isMapped ? WeightPlacement::Mapped : WeightPlacement::HugePages;
  }

  /// How many of the bytes lie in huge pages now, as /proc/self/smaps tells;
  /// zero where it cannot be read.
  uint64_t hugePageBytes() const;

private:
  WeightStorage() = default;

  Status mapRegions(int descriptor, std::span<const WeightRegion> regions,
                    const WeightLoadOptions &options);
  Status copyRegions(int descriptor, std::span<const WeightRegion> regions,
                     const WeightLoadOptions &options);

  std::span<const std::byte> contents;
  /// Whether all `contents` are pages of the file.
  bool isMapped = false;
  /// Where they are not, what holds them.
  AnonymousMemory copy;
};

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_WEIGHTSTORAGE_H
