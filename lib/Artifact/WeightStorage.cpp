//===- WeightStorage.cpp - The one resident copy of the weights -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/WeightStorage.h"

#include "sandwich/Support/HugePages.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
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
constexpr uint64_t pieceBytes = uint64_t(32) << 20;

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

Result<WeightStorage> WeightStorage::load(int descriptor, uint64_t size,
                                          const WeightLoadOptions &options) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return systemError("read the weights");
  if (status.st_size < 0 || static_cast<uint64_t>(status.st_size) < size)
    return makeError("is ", status.st_size, " bytes long, less than the ", size,
                     " bytes of the weights");

  WeightStorage storage;
  int failure = 0;
  if (options.placement == WeightPlacement::Mapped) {
    void *address =
        ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED)
      return systemError("map the weights");
    auto *data = static_cast<std::byte *>(address);
    storage.contents = {data, size};
    storage.isMapped = true;
    // What is not in the page cache yet is then read into huge pages.
    (void)::madvise(data, size, MADV_HUGEPAGE);
    if (options.populate)
      failure = inPieces(size, options, [&](uint64_t offset, uint64_t length) {
        return populate(data + offset, length);
      });
  } else {
    SANDWICH_ASSIGN_OR_RETURN(
        storage.copy, AnonymousMemory::allocate(size, "the weights",
                                                AnonymousMemory::Fill::Wholly));
    std::byte *data = storage.copy.data();
    storage.contents = {data, size};
    failure = inPieces(size, options, [&](uint64_t offset, uint64_t piece) {
      return readFully(descriptor, data + offset, offset, piece);
    });
    SANDWICH_RETURN_IF_ERROR(storage.copy.makeReadOnly());
  }
  if (failure)
    return makeError("cannot read the weights: ", std::strerror(failure));
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
