//===- BlockPool.cpp - Who has which KV cache blocks ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/BlockPool.h"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <type_traits>
#include <utility>

using namespace sandwich;

static constexpr uint64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

/// Room for `size` elements, and for more where it has to move, so that growing
/// by one each time is linear.
template <typename T>
static void makeRoom(std::vector<T> &vector, size_t size) {
  if (size > vector.capacity())
    vector.reserve(std::max(size, 2 * vector.capacity()));
}

Sequence::Sequence(Sequence &&other) noexcept
    : owner(other.owner), ids(std::exchange(other.ids, {})),
      table(std::exchange(other.table, {})), salt(other.salt),
      ownNumber(std::exchange(other.ownNumber, -1)) {}

Sequence &Sequence::operator=(Sequence &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(ids, other.ids);
  std::swap(table, other.table);
  std::swap(salt, other.salt);
  std::swap(ownNumber, other.ownNumber);
  return *this;
}

void Sequence::truncate(uint64_t length) {
  if (length < ids.size())
    ids.resize(length);
  // What continues a block becomes idle, and is evicted, before the block.
  while (table.size() > BlockPool::blocksFor(ids.size())) {
    owner->drop(table.back());
    table.pop_back();
  }
  if (table.empty() && ownNumber >= 0)
    owner->freeNumbers.push_back(std::exchange(ownNumber, -1));
}

Sequence Sequence::fork() const {
  Sequence other(*owner);
  other.ids = ids;
  other.table.assign(table.begin(),
                     table.begin() + static_cast<std::ptrdiff_t>(
                                         BlockPool::blocksFor(ids.size())));
  other.salt = salt;
  for (int32_t block : other.table)
    owner->hold(block);
  return other;
}

uint64_t Sequence::claimPrefix(std::span<const int32_t> tokens, uint64_t salt) {
  assert(ids.empty() && "only what begins can claim a prefix");
  clear();
  this->salt = salt;
  makeRoom(table, BlockPool::blocksFor(tokens.size()));
  makeRoom(ids, tokens.size());
  owner->counts.promptTokensQueried += tokens.size();
  owner->forEachCached(tokens, salt, [&](int32_t block) {
    owner->hold(block);
    table.push_back(block);
  });
  const auto found = tokens.first(table.size() * blockTokens);
  ids.assign(found.begin(), found.end());
  owner->counts.promptTokensHit += found.size();
  return found.size();
}

void Sequence::append(std::span<const int32_t> tokens) {
  const size_t full = ids.size() / blockTokens;
  assert(BlockPool::blocksFor(ids.size() + tokens.size()) <= table.size() &&
         "reserve comes before append");
  assert((tokens.empty() || owner->at(table[full]).references == 1) &&
         "a fork comes before reserve");
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  if (!owner->keepsPrefixes)
    return;
  for (size_t index = full; index < ids.size() / blockTokens; ++index)
    owner->enter(*this, index);
}

Result<std::unique_ptr<BlockPool>>
BlockPool::create(uint64_t blocks, const BlockPoolOptions &options) {
  if (blocks > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return makeError("a KV cache of ", blocks,
                     " blocks has more than can be numbered");
  std::array<unsigned char, 16> key;
  static_assert(sizeof(key) == crypto_shorthash_KEYBYTES);
  if (options.hashKey) {
    key = *options.hashKey;
  } else {
    if (sodium_init() < 0)
      return makeError("the system gives no random numbers");
    crypto_shorthash_keygen(key.data());
  }
  return std::unique_ptr<BlockPool>(
      new BlockPool(blocks, options.prefixCache, key));
}

//===----------------------------------------------------------------------===//
// Reserving
//===----------------------------------------------------------------------===//

int32_t *BlockPool::partlyFilled(const Append &append) {
  const uint64_t length = append.sequence->length();
  if (append.newTokens == 0 || length % blockTokens == 0)
    return nullptr;
  return &append.sequence->table[length / blockTokens];
}

bool BlockPool::writesShared(const Append &append) const {
  // Blocks beyond the tokens are never shared.
  const int32_t *last = partlyFilled(append);
  return last && at(*last).references > 1;
}

/// Blocks that `append` adds to its table.
static uint64_t addedBlocks(const BlockPool::Append &append) {
  const uint64_t blocks =
      BlockPool::blocksFor(append.sequence->length() + append.newTokens);
  const uint64_t have = append.sequence->blocks().size();
  return blocks > have ? blocks - have : 0;
}

uint64_t BlockPool::blocksNeeded(const Append &append) const {
  return addedBlocks(append) + (writesShared(append) ? 1 : 0);
}

uint64_t BlockPool::countNeeded(std::span<const Append> appends) {
  // References are given up while counting, so that of several sequences that
  // share a block and write into it the last one keeps it.
  uint64_t needed = 0;
  std::vector<int32_t> givenUp;
  givenUp.reserve(appends.size());
  for (const Append &append : appends) {
    needed += blocksNeeded(append);
    if (!writesShared(append))
      continue;
    givenUp.push_back(*partlyFilled(append));
    --at(givenUp.back()).references;
  }
  for (int32_t block : givenUp)
    ++at(block).references;
  return needed;
}

void BlockPool::growTables(size_t blockCount) {
  const size_t have = std::min(blocks.capacity(), released.capacity());
  if (blockCount <= have)
    return;
  const size_t room = std::min(std::max(blockCount, 2 * have),
                               static_cast<size_t>(totalBlocks));
  std::vector<int32_t> larger(std::bit_ceil(room), none);
  released.reserve(room);
  blocks.reserve(room);
  // From here on nothing fails.
  buckets = std::move(larger);
  for (size_t block = 0; block < blocks.size(); ++block)
    if (blocks[block].node)
      blocks[block].nextInBucket =
          std::exchange(buckets[bucketOf(blocks[block].contents)],
                        static_cast<int32_t>(block));
}

uint64_t BlockPool::countNumbers(std::span<const Append> appends) {
  return static_cast<uint64_t>(
      std::ranges::count_if(appends, [](const Append &append) {
        return append.sequence->ownNumber < 0;
      }));
}

int32_t BlockPool::takeNumber() {
  if (freeNumbers.empty())
    return numbers++;
  const int32_t number = freeNumbers.back();
  freeNumbers.pop_back();
  return number;
}

void BlockPool::allocateFor(std::span<const Append> appends, uint64_t needed) {
  for (const Append &append : appends) {
    const uint64_t length = append.sequence->length() + append.newTokens;
    makeRoom(append.sequence->ids, length);
    makeRoom(append.sequence->table, blocksFor(length));
  }
  makeRoom(copies, copies.size() + appends.size());
  makeRoom(freeNumbers, static_cast<size_t>(numbers) + countNumbers(appends));
  growTables(static_cast<size_t>(
      std::min(totalBlocks, static_cast<uint64_t>(blocks.size()) + needed)));
}

void BlockPool::ownLastBlock(const Append &append) {
  int32_t *last = partlyFilled(append);
  if (!last)
    return;
  if (at(*last).references == 1) {
    if (at(*last).node)
      forget(*last);
    return;
  }
  const int32_t copy = take();
  copies.push_back({*last, copy});
  drop(std::exchange(*last, copy));
}

Status BlockPool::reserve(std::span<const Append> appends) {
  const uint64_t needed = countNeeded(appends);
  if (needed > freeBlocks())
    return makeError(ErrorKind::CacheFull, "the KV cache is full: ", needed,
                     " more blocks are needed, ", freeBlocks(), " of ",
                     totalBlocks, " are free");
  if (static_cast<uint64_t>(numbers) - freeNumbers.size() +
          countNumbers(appends) >
      maxNumbers)
    return makeError(ErrorKind::CacheFull, "the KV cache is shared among ",
                     maxNumbers, " sequences, which is as many as can be");
  allocateFor(appends, needed);
  for (const Append &append : appends) {
    ownLastBlock(append);
    for (uint64_t added = addedBlocks(append); added > 0; --added)
      append.sequence->table.push_back(take());
    if (append.sequence->ownNumber < 0)
      append.sequence->ownNumber = takeNumber();
  }
  return {};
}

int32_t BlockPool::take() {
  int32_t block;
  if (!released.empty()) {
    block = released.back();
    released.pop_back();
  } else if (blocks.size() < totalBlocks) {
    block = static_cast<int32_t>(blocks.size());
    blocks.emplace_back();
  } else {
    block = oldestIdle;
    removeIdle(block);
    forget(block);
    ++counts.evictions;
  }
  at(block).references = 1;
  return block;
}

void BlockPool::hold(int32_t block) {
  if (at(block).references++ == 0)
    removeIdle(block);
}

void BlockPool::drop(int32_t block) {
  if (--at(block).references > 0)
    return;
  if (at(block).node)
    addIdle(block);
  else
    released.push_back(block);
}

//===----------------------------------------------------------------------===//
// The prefix cache
//===----------------------------------------------------------------------===//

BlockPool::Contents BlockPool::contentsOf(std::span<const int32_t> tokens,
                                          size_t index, uint64_t parent,
                                          uint64_t salt) {
  Contents contents = {salt, parent, {}};
  std::ranges::copy(tokens.subspan(index * blockTokens, blockTokens),
                    contents.tokens.begin());
  return contents;
}

template <typename Visitor>
void BlockPool::forEachCached(std::span<const int32_t> tokens, uint64_t salt,
                              const Visitor &visit) const {
  uint64_t parent = 0;
  for (size_t index = 0; (index + 1) * blockTokens < tokens.size(); ++index) {
    const int32_t block = find(contentsOf(tokens, index, parent, salt));
    if (block == none)
      return;
    parent = at(block).node;
    visit(block);
  }
}

BlockPool::Prefix BlockPool::findPrefix(std::span<const int32_t> tokens,
                                        uint64_t salt) const {
  Prefix prefix;
  forEachCached(tokens, salt, [&](int32_t block) {
    prefix.tokens += blockTokens;
    prefix.freeBlocks += at(block).references == 0;
  });
  return prefix;
}

void BlockPool::enter(Sequence &sequence, size_t index) {
  const uint64_t parent = index ? at(sequence.table[index - 1]).node : 0;
  // After `clearPrefixCache` what sequences go on with could not be found.
  if (index > 0 && parent == 0)
    return;
  const Contents contents =
      contentsOf(sequence.ids, index, parent, sequence.salt);
  int32_t &own = sequence.table[index];
  if (const int32_t known = find(contents); known != none) {
    hold(known);
    drop(std::exchange(own, known));
    ++counts.duplicates;
    return;
  }
  Block &block = at(own);
  block.contents = contents;
  block.node = ++lastNode;
  block.nextInBucket = std::exchange(buckets[bucketOf(contents)], own);
  ++knownBlocks;
}

size_t BlockPool::bucketOf(const Contents &contents) const {
  static_assert(std::has_unique_object_representations_v<Contents>);
  uint64_t hash;
  static_assert(sizeof(hash) == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char *>(&hash),
                   reinterpret_cast<const unsigned char *>(&contents),
                   sizeof(contents), hashKey.data());
  return hash & (buckets.size() - 1);
}

int32_t BlockPool::find(const Contents &contents) const {
  if (buckets.empty())
    return none;
  // All of the contents are compared: a hash only tells where to look.
  int32_t block = buckets[bucketOf(contents)];
  while (block != none && at(block).contents != contents)
    block = at(block).nextInBucket;
  return block;
}

void BlockPool::forget(int32_t block) {
  int32_t *link = &buckets[bucketOf(at(block).contents)];
  while (*link != block)
    link = &at(*link).nextInBucket;
  *link = at(block).nextInBucket;
  // Blocks that continue this one are not found any more, and wait for their
  // eviction: nobody has them, as who has such a block has this one.
  at(block).node = 0;
  --knownBlocks;
}

void BlockPool::removeIdle(int32_t block) {
  const Block &idle = at(block);
  (idle.older == none ? oldestIdle : at(idle.older).newer) = idle.newer;
  (idle.newer == none ? newestIdle : at(idle.newer).older) = idle.older;
  --idleBlocks;
}

void BlockPool::addIdle(int32_t block) {
  at(block).older = newestIdle;
  at(block).newer = none;
  (newestIdle == none ? oldestIdle : at(newestIdle).newer) = block;
  newestIdle = block;
  ++idleBlocks;
}

void BlockPool::clearPrefixCache() {
  while (oldestIdle != none) {
    const int32_t block = oldestIdle;
    removeIdle(block);
    released.push_back(block);
  }
  for (Block &block : blocks)
    block.node = 0;
  std::ranges::fill(buckets, none);
  knownBlocks = 0;
}
