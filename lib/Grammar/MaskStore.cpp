//===- MaskStore.cpp - Computed once, kept within bounds ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskStore.h"

using namespace sandwich::grammar;

/// What an entry costs beside its value, about.
static constexpr size_t bytesOfEntry = 160;

std::shared_ptr<const void> MaskStore::look(const Key &key) {
  const std::lock_guard lock(mutex);
  const auto found = entryOf.find(key);
  if (found == entryOf.end())
    return nullptr;
  entries.splice(entries.begin(), entries, found->second);
  return found->second->value;
}

void MaskStore::keep(const Key &key, std::shared_ptr<const void> value,
                     size_t bytes) {
  bytes += bytesOfEntry;
  const std::lock_guard lock(mutex);
  const auto [position, isNew] = entryOf.try_emplace(key);
  if (!isNew)
    return;
  entries.push_front({key, std::move(value), bytes});
  position->second = entries.begin();
  keptBytes += bytes;
  while (keptBytes > mostBytes) {
    keptBytes -= entries.back().bytes;
    entryOf.erase(entries.back().key);
    entries.pop_back();
  }
}
