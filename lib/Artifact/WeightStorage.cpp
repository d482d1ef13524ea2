//===- WeightStorage.cpp - The one resident copy of the weights -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/WeightStorage.h"

#include "sandwich/Support/CheckedMath.h"

#include "sandwich/Support/HugePages.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {

/// What a thread maps or reads before it takes the next piece.
constexpr uint64_t pieceBytes = uint64_t(8) << 20;

/// Splits `total` bytes into pieces and calls `work(offset, length)`, which
/// returns 0 or an errno, from several threads. Returns the first errno.
template <typename Work>
int inPieces(uint64_t total, const WeightLoadOptions &options, Work work) {
  std::atomic<uint64_t> next = 0, done = 0;
  std::atomic<int> failure = 0;
  auto takePieces = [&](bool reports) {
    while (failure == 0) {
      uint64_t offset = next.fetch_add(pieceBytes);
      if (offset >= total)
        return;
      if (options.isStopped && options.isStopped()) {
        failure = ECANCELED;
        return;
      }
      uint64_t length = std::min(pieceBytes, total - offset);
      if (int error = work(offset, length)) {
        failure = error;
        return;
      }
      uint64_t sum = done += length;
      if (reports && options.progress)
        options.progress(sum, total);
    }
  };
  std::vector<std::jthread> helpers;
  try {
    uint64_t useful = (total + pieceBytes - 1) / pieceBytes;
    for (uint64_t i = 1; i < std::min<uint64_t>(options.threads, useful); ++i)
      helpers.emplace_back(takePieces, /*reports=*/false);
    // NOLINTNEXTLINE(bugprone-empty-catch): fewer threads do the same work.
  } catch (const std::system_error &) {
  }
  takePieces(/*reports=*/true);
  helpers.clear();
  if (failure == 0 && options.progress)
    options.progress(total, total);
  return failure;
}

/// Maps the pages of `[data, data + length)`; a page that cannot be read is an
/// errno here where touching it would be a signal.
int populate(std::byte *data, uint64_t length) {
  if (::madvise(data, length, MADV_POPULATE_READ) == 0)
    return 0;
  // Kernels before 5.14 do not know it; the pages are mapped as they are used.
  return errno == EINVAL ? 0 : errno;
}

int readFully(int descriptor, std::byte *data, uint64_t offset,
              uint64_t length) {
  while (length > 0) {
    ssize_t count =
        ::pread(descriptor, data, length, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      return ENODATA;
    data += count;
    offset += static_cast<uint64_t>(count);
    length -= static_cast<uint64_t>(count);
  }
  return 0;
}

} // namespace

/// The bytes of all regions, or nothing if they are more than can be counted.
static std::optional<uint64_t>
totalBytes(std::span<const WeightRegion> regions) {
  std::optional<uint64_t> total = 0;
  for (const WeightRegion &region : regions)
    total = total ? checkedAdd(*total, region.bytes) : std::nullopt;
  return total;
}

/// Calls `work(region, offset in the region, offset in memory, length)` for
/// pieces of all regions.
template <typename Work>
static Status inRegions(std::span<const WeightRegion> regions, uint64_t total,
                        const WeightLoadOptions &options, Work work) {
  int failure = inPieces(total, options, [&](uint64_t at, uint64_t length) {
    uint64_t begin = 0;
    for (const WeightRegion &region : regions) {
      const uint64_t end = begin + region.bytes;
      const uint64_t from = std::max(at, begin);
      const uint64_t to = std::min(at + length, end);
      if (from < to)
        if (int error = work(region, from - begin, from, to - from))
          return error;
      begin = end;
    }
    return 0;
  });
  if (failure)
    return makeError("cannot read the weights: ", std::strerror(failure));
  return {};
}

/// Maps `region` at `address`, which is reserved.
static Status mapRegion(int descriptor, const WeightRegion &region,
                        std::byte *address) {
  if (::mmap(address, region.bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED,
             descriptor, static_cast<off_t>(region.offset)) == MAP_FAILED)
    return systemError("map the weights");
  // What is not in the page cache yet is then read into huge pages.
  (void)::madvise(address, region.bytes, MADV_HUGEPAGE);
  return {};
}

Status WeightStorage::mapRegions(int descriptor,
                                 std::span<const WeightRegion> regions,
                                 const WeightLoadOptions &options) {
  const uint64_t size = *totalBytes(regions);
  // Of the file's own alignment where there is one region.
  void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor,
                         static_cast<off_t>(regions.front().offset));
  if (address == MAP_FAILED)
    return systemError("map the weights");
  auto *data = static_cast<std::byte *>(address);
  contents = {data, size};
  isMapped = true;
  uint64_t at = 0;
  for (const WeightRegion &region : regions) {
    SANDWICH_RETURN_IF_ERROR(mapRegion(descriptor, region, data + at));
    at += region.bytes;
  }
  if (!options.populate)
    return {};
  return inRegions(
      regions, size, options,
      [&](const WeightRegion &, uint64_t, uint64_t at, uint64_t length) {
        return populate(data + at, length);
      });
}

Status WeightStorage::copyRegions(int descriptor,
                                  std::span<const WeightRegion> regions,
                                  const WeightLoadOptions &options) {
  const uint64_t size = *totalBytes(regions);
  uint64_t shared = 0;
  for (const WeightRegion &region : regions)
    shared += region.shared ? region.bytes : 0;
  SANDWICH_ASSIGN_OR_RETURN(
      copy, AnonymousMemory::allocate(size, "the weights",
                                      shared ? AnonymousMemory::Fill::Partly
                                             : AnonymousMemory::Fill::Wholly));
  std::byte *data = copy.data();
  contents = {data, size};
  uint64_t at = 0;
  for (const WeightRegion &region : regions) {
    if (region.shared)
      SANDWICH_RETURN_IF_ERROR(mapRegion(descriptor, region, data + at));
    at += region.bytes;
  }
  SANDWICH_RETURN_IF_ERROR(inRegions(
      regions, size, options,
      [&](const WeightRegion &region, uint64_t inRegion, uint64_t at,
          uint64_t length) {
        return region.shared ? populate(data + at, length)
                             : readFully(descriptor, data + at,
                                         region.offset + inRegion, length);
      }));
  return copy.makeReadOnly();
}

Result<WeightStorage> WeightStorage::load(int descriptor,
                                          std::span<const WeightRegion> regions,
                                          const WeightLoadOptions &options) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return systemError("read the weights");
  for (const WeightRegion &region : regions)
    if (std::optional<uint64_t> end = checkedAdd(region.offset, region.bytes);
        !end || status.st_size < 0 ||
        static_cast<uint64_t>(status.st_size) < *end)
      return makeError("is ", status.st_size, " bytes long, less than the ",
                       end.value_or(UINT64_MAX), " bytes of the weights");
  if (!totalBytes(regions))
    return makeError("its weights are larger than this machine can address");
  WeightStorage storage;
  SANDWICH_RETURN_IF_ERROR(
      options.placement == WeightPlacement::Mapped
          ? storage.mapRegions(descriptor, regions, options)
          : storage.copyRegions(descriptor, regions, options));
  return storage;
}

WeightStorage::WeightStorage(WeightStorage &&other) noexcept
    : contents(std::exchange(other.contents, {})),
      isMapped(std::exchange(other.isMapped, false)),
      copy(std::move(other.copy)) {}

WeightStorage &WeightStorage::operator=(WeightStorage &&other) noexcept {
  std::swap(contents, other.contents);
  std::swap(isMapped, other.isMapped);
  std::swap(copy, other.copy);
  return *this;
}

WeightStorage::~WeightStorage() {
  if (isMapped)
    ::munmap(const_cast<std::byte *>(contents.data()), contents.size());
}

uint64_t WeightStorage::hugePageBytes() const {
  return bytesInHugePages(contents);
}
