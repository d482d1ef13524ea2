//===- RankSum.cpp - Sums in the order of ranks ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankSum.h"

#include "sandwich/Support/WidestVectors.h"

#include <algorithm>
#include <cstring>

using namespace sandwich;

namespace {
/// As many elements as a cache line holds, at any address of a float.
typedef float Line __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t lineElements = sizeof(Line) / sizeof(float);
/// Two lines are summed at once, as each waits for its previous addition.
constexpr int64_t pairElements = 2 * lineElements;
/// Lines of other cores are taken so long before they are used: as many as a
/// core's first cache has on their way at once.
constexpr int64_t elementsAhead = 16 * lineElements;
/// So long before, its second cache asks for them, which has more on their way.
constexpr int64_t elementsFarAhead = 64 * lineElements;
} // namespace

#define SANDWICH_INLINE static inline __attribute__((always_inline))

SANDWICH_INLINE const Line &lineAt(const float *first) {
  return *reinterpret_cast<const Line *>(first);
}

SANDWICH_INLINE Line &lineAt(float *first) {
  return *reinterpret_cast<Line *>(first);
}

/// Fetches a line for writing, as a read of another core's line leaves a copy
/// there, which the first write then has to get rid of.
SANDWICH_INLINE void takeLine(const float *line) {
#if defined(__x86_64__)
  // The builtin is a fetch for reading, unless compiled for newer CPUs alone;
  // older ones take this for no operation.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, /*rw=*/1);
#endif
}

/// Fetches a line as far as the second cache.
SANDWICH_INLINE void approachLine(const float *line) {
  __builtin_prefetch(line, /*rw=*/0, /*locality=*/2);
}

SANDWICH_INLINE float sumOf(const float *const *sources, int32_t ranks,
                            int64_t i) {
  float sum = sources[0][i];
  for (int32_t rank = 1; rank < ranks; ++rank)
    sum += sources[rank][i];
  return sum;
}

/// Stores the sums of a pair of lines.
SANDWICH_INLINE void sumPair(const float *const *sources, int32_t ranks,
                             float *result, int64_t i) {
  Line first = lineAt(sources[0] + i);
  Line second = lineAt(sources[0] + i + lineElements);
  for (int32_t rank = 1; rank < ranks; ++rank) {
    first += lineAt(sources[rank] + i);
    second += lineAt(sources[rank] + i + lineElements);
  }
  lineAt(result + i) = first;
  lineAt(result + i + lineElements) = second;
}

SANDWICH_WIDEST_VECTORS
void sandwich::sumRanks(const float *const *sources, int32_t ranks,
                        float *result, int64_t count) {
  int64_t i = 0;
  for (; i + pairElements <= count; i += pairElements)
    sumPair(sources, ranks, result, i);
  for (; i < count; ++i)
    result[i] = sumOf(sources, ranks, i);
}

SANDWICH_INLINE void takeLines(const float *first, int64_t count) {
  for (int64_t i = 0; i < count; i += lineElements)
    takeLine(first + i);
}

SANDWICH_INLINE void approachLines(const float *first, int64_t count) {
  for (int64_t i = 0; i < count; i += lineElements)
    approachLine(first + i);
}

void sandwich::takeBox(const float *box, int64_t count) {
  takeLines(box, count);
}

/// Begins to fetch the first lines of a box, of `count` elements.
SANDWICH_INLINE void beginBox(const float *box, int64_t count) {
  int64_t near = std::min(elementsAhead, count);
  takeLines(box, near);
  approachLines(box + near, std::min(elementsFarAhead, count) - near);
}

/// Begins to fetch what is read after element `i` of a box has been.
SANDWICH_INLINE void continueBox(const float *box, int64_t i, int64_t count) {
  if (i + elementsAhead + pairElements <= count)
    takeLines(box + i + elementsAhead, pairElements);
  if (i + elementsFarAhead + pairElements <= count)
    approachLines(box + i + elementsFarAhead, pairElements);
}

/// `sumAndAnswer`; inlined with a constant number of ranks it has no loop over
/// them.
SANDWICH_INLINE void sumAndAnswerFor(float *const *terms, int32_t rank,
                                     int32_t ranks, int64_t count,
                                     const float *answer, int64_t answerCount) {
  float *own = terms[rank];
  for (int32_t other = 0; other < ranks; ++other)
    if (other != rank)
      beginBox(terms[other], count);
  int64_t i = 0;
  for (; i + pairElements <= count; i += pairElements) {
    for (int32_t other = 0; other < ranks; ++other)
      if (other != rank)
        continueBox(terms[other], i, count);
    sumPair(terms, ranks, own, i);
    if (i + pairElements > answerCount)
      continue;
    Line first = lineAt(answer + i);
    Line second = lineAt(answer + i + lineElements);
    for (int32_t other = 0; other < ranks; ++other)
      if (other != rank) {
        lineAt(terms[other] + i) = first;
        lineAt(terms[other] + i + lineElements) = second;
      }
  }
  for (; i < count; ++i)
    own[i] = sumOf(terms, ranks, i);
  int64_t answered = answerCount / pairElements * pairElements;
  for (int32_t other = 0; other < ranks; ++other)
    if (other != rank && answered < answerCount)
      std::memcpy(terms[other] + answered, answer + answered,
                  static_cast<size_t>(answerCount - answered) * sizeof(float));
}

SANDWICH_WIDEST_VECTORS
void sandwich::sumAndAnswer(float *const *terms, int32_t rank, int32_t ranks,
                            int64_t count, const float *answer,
                            int64_t answerCount) {
  if (ranks == 2)
    sumAndAnswerFor(terms, rank, 2, count, answer, answerCount);
  else
    sumAndAnswerFor(terms, rank, ranks, count, answer, answerCount);
}
