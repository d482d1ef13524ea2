//===- MaskStore.h - Computed once, kept within bounds ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_MASKSTORE_H
#define SANDWICH_LIB_GRAMMAR_MASKSTORE_H

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sandwich::grammar {

/// What has been computed for states of automata, for any number of threads.
/// What was not asked for the longest goes first; whoever has it keeps it.
class MaskStore {
public:
  /// What was computed for a state: the type that `find` is asked for.
  enum class Kind : uint16_t { Tokens, ByCharacters, Limited, Beyond };

  struct Key {
    uint64_t automaton;
    uint32_t state;
    Kind kind;
    /// Of `Limited`.
    uint16_t limit = 0;

    bool operator==(const Key &) const = default;
  };

  explicit MaskStore(size_t mostBytes) : mostBytes(mostBytes) {}

  /// What `compute()` returned for `key`, now or before. Two threads may
  /// compute the same at once.
  template <typename T, typename Compute>
  std::shared_ptr<const T> find(const Key &key, Compute compute) {
    if (std::shared_ptr<const void> known = look(key))
      return std::static_pointer_cast<const T>(std::move(known));
    auto value = std::make_shared<const T>(compute());
    keep(key, value, value->bytes());
    return value;
  }

private:
  struct Hash {
    size_t operator()(const Key &key) const {
      const uint64_t parts = key.automaton * 0x9E3779B97F4A7C15u ^
                             (uint64_t(key.state) << 24) ^
                             (uint64_t(key.kind) << 16) ^ key.limit;
      return parts ^ (parts >> 29);
    }
  };
  struct Entry {
    Key key;
    std::shared_ptr<const void> value;
    size_t bytes;
  };

  std::shared_ptr<const void> look(const Key &key);
  void keep(const Key &key, std::shared_ptr<const void> value, size_t bytes);

  std::mutex mutex;
  size_t mostBytes;
  size_t keptBytes = 0;
  /// The last one asked for first.
  std::list<Entry> entries;
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> entryOf;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_MASKSTORE_H
