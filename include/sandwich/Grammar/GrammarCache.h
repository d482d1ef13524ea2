//===- GrammarCache.h - Grammars compiled once ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_GRAMMAR_GRAMMARCACHE_H
#define SANDWICH_GRAMMAR_GRAMMARCACHE_H

#include "sandwich/Grammar/Grammar.h"

#include <cstddef>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace sandwich {

/// Grammars by source, for any number of threads: the same source is compiled
/// once, also where several threads ask for it at the same time, while others
/// go on.
class GrammarCache {
public:
  struct Limits {
    size_t grammars = 256;
    /// Of grammars and their sources.
    size_t bytes = size_t(128) << 20;
  };

  GrammarCache(std::shared_ptr<const TokenVocabulary> vocabulary, Limits limits,
               const GrammarOptions &options = {});
  explicit GrammarCache(std::shared_ptr<const TokenVocabulary> vocabulary,
                        const GrammarOptions &options = {})
      : GrammarCache(std::move(vocabulary), Limits(), options) {}

  /// The grammar of `source`. Errors as `Grammar::compile`; they are not kept.
  Result<std::shared_ptr<const Grammar>> find(const GrammarSource &source);

  /// Grammars kept or being compiled.
  size_t size() const;
  /// What was compiled so far.
  uint64_t compilations() const;

private:
  using Compiled = Result<std::shared_ptr<const Grammar>>;
  struct Entry {
    std::string key;
    std::shared_future<Compiled> grammar;
    /// Zero while it is being compiled.
    size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  Compiled compile(const GrammarSource &source, Entries::iterator entry,
                   std::promise<Compiled> promise);
  void keep(Entries::iterator entry, const Compiled &compiled);
  /// Forgets what was not asked for the longest, down to the limits.
  void evict();

  std::shared_ptr<const TokenVocabulary> vocabulary;
  Limits limits;
  GrammarOptions options;
  mutable std::mutex mutex;
  /// The last one asked for first.
  Entries entries;
  std::unordered_map<std::string_view, Entries::iterator> entryOf;
  size_t bytes = 0;
  uint64_t compiled = 0;
};

} // namespace sandwich

#endif // SANDWICH_GRAMMAR_GRAMMARCACHE_H
