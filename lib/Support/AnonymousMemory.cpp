//===- AnonymousMemory.cpp - Large zeroed memory --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/AnonymousMemory.h"

#include "sandwich/Support/CheckedMath.h"

#include <limits>
#include <memory>
#include <sys/mman.h>
#include <utility>

using namespace sandwich;

/// The size of a huge page on x86-64, and of AArch64 with 4 KiB pages.
static constexpr uint64_t hugePageBytes = uint64_t{2} << 20;

Result<AnonymousMemory> AnonymousMemory::allocate(uint64_t bytes,
                                                  const std::string &purpose,
                                                  Fill fill) {
  AnonymousMemory memory;
  if (bytes == 0)
    return memory;
  bool huge = bytes >= hugePageBytes;
  // mmap aligns to a page only, so room for moving up to a huge page is added;
  // the pages left out are never touched.
  std::optional<uint64_t> total =
      huge ? checkedAdd(bytes, hugePageBytes) : std::optional(bytes);
  if (!total || *total > std::numeric_limits<size_t>::max() / 2)
    return makeError(purpose, " would take ", bytes,
                     " bytes, more than this machine can address");
  int reservation = fill == Fill::Partly ? MAP_NORESERVE : 0;
  void *address = ::mmap(nullptr, *total, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | reservation, -1, 0);
  if (address == MAP_FAILED)
    return systemError("allocate " + std::to_string(bytes) + " bytes for " +
                       purpose);
  void *aligned = address;
  if (huge) {
    size_t room = *total;
    std::align(hugePageBytes, bytes, aligned, room);
    // Only a matter of speed: a kernel without huge pages serves small ones.
    ::madvise(aligned, bytes, MADV_HUGEPAGE);
  }
  memory.mapping = address;
  memory.mappedBytes = *total;
  memory.start = static_cast<std::byte *>(aligned);
  memory.bytes = bytes;
  return memory;
}

AnonymousMemory::AnonymousMemory(AnonymousMemory &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)),
      mappedBytes(std::exchange(other.mappedBytes, 0)),
      start(std::exchange(other.start, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

AnonymousMemory &AnonymousMemory::operator=(AnonymousMemory &&other) noexcept {
  std::swap(mapping, other.mapping);
  std::swap(mappedBytes, other.mappedBytes);
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

Status AnonymousMemory::makeReadOnly() {
  if (mapping && ::mprotect(mapping, mappedBytes, PROT_READ) != 0)
    return systemError("protect memory");
  return {};
}

AnonymousMemory::~AnonymousMemory() {
  if (mapping)
    ::munmap(mapping, mappedBytes);
}
