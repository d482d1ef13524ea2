//===- GrammarCache.cpp - Grammars compiled once --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Grammar/GrammarCache.h"

#include "SourceText.h"

#include <exception>
#include <iterator>
#include <utility>

using namespace sandwich;

GrammarCache::GrammarCache(std::shared_ptr<const TokenVocabulary> vocabulary,
                           Limits limits, const GrammarOptions &options)
    : vocabulary(std::move(vocabulary)), limits(limits), options(options) {}

Result<std::shared_ptr<const Grammar>>
GrammarCache::find(const GrammarSource &source) {
  SANDWICH_ASSIGN_OR_RETURN(std::string key, grammar::textOf(source));
  std::promise<Compiled> promise;
  Entries::iterator entry;
  {
    std::unique_lock lock(mutex);
    if (const auto known = entryOf.find(key); known != entryOf.end()) {
      entries.splice(entries.begin(), entries, known->second);
      const std::shared_future<Compiled> grammar = known->second->grammar;
      lock.unlock();
      return grammar.get();
    }
    entries.push_front(
        {.key = std::move(key), .grammar = promise.get_future().share()});
    entry = entries.begin();
    entryOf.emplace(entry->key, entry);
  }
  return compile(source, entry, std::move(promise));
}

GrammarCache::Compiled GrammarCache::compile(const GrammarSource &source,
                                             Entries::iterator entry,
                                             std::promise<Compiled> promise) {
  // Whatever happens, the others that wait must hear of it.
  const Compiled compiled = [&]() -> Compiled {
    try {
      return Grammar::compile(source, vocabulary, options);
    } catch (const std::exception &exception) {
      return makeError(ErrorKind::Internal,
                       "cannot compile the grammar: ", exception.what());
    }
  }();
  keep(entry, compiled);
  promise.set_value(compiled);
  return compiled;
}

void GrammarCache::keep(Entries::iterator entry, const Compiled &grammar) {
  const std::lock_guard lock(mutex);
  ++compiled;
  if (!grammar) {
    entryOf.erase(entry->key);
    entries.erase(entry);
    return;
  }
  entry->bytes = 2 * entry->key.size() + (*grammar)->bytes();
  bytes += entry->bytes;
  evict();
}

void GrammarCache::evict() {
  for (auto last = entries.end();
       last != entries.begin() &&
       (entries.size() > limits.grammars || bytes > limits.bytes);) {
    const auto entry = std::prev(last);
    // Whoever compiles it refers to it.
    if (entry->bytes == 0) {
      last = entry;
      continue;
    }
    bytes -= entry->bytes;
    entryOf.erase(entry->key);
    entries.erase(entry);
  }
}

size_t GrammarCache::size() const {
  const std::lock_guard lock(mutex);
  return entries.size();
}

uint64_t GrammarCache::compilations() const {
  const std::lock_guard lock(mutex);
  return compiled;
}
