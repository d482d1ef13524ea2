/*===- hash_model.h - The arithmetic of hash_model.c ---------------*- C -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef SANDWICH_UNITTESTS_RUNTIME_HASH_MODEL_H
#define SANDWICH_UNITTESTS_RUNTIME_HASH_MODEL_H

#include <stdint.h>

/* One token for each byte, and four special ones. */
#define HASH_MODEL_VOCABULARY 260
/* The weight of a token behind which all logits are no numbers: the last one, in
 * artifacts that do not ask for anything else. */
#define HASH_MODEL_SPOILING 0
#define HASH_MODEL_START 0x9e3779b97f4a7c15u

/* What a step of several ranks does whose first text begins with one of these
 * tokens; the numbers are those of the tokens behind it. Every other step works
 * not at all before its only collective. */
enum {
  /* Works 10 ms, more or less, for each unit of the first number before each of
   * the second number's collectives; rank 1 works for as many times as long as
   * the third one says. */
  HASH_MODEL_WORK = 250,
  /* A thread of the rank of the first number never ends. */
  HASH_MODEL_LOOP,
  /* A thread of that rank leaves the others in the middle of the step. */
  HASH_MODEL_LEAVE
};

/* What a step marks. */
enum {
  HASH_MODEL_APPEND,
  HASH_MODEL_BARRIER,
  HASH_MODEL_ATTEND,
  HASH_MODEL_LOGITS,
  HASH_MODEL_OPERATIONS
};

static inline uint64_t hashModelMix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  return value ^ (value >> 32);
}

static inline uint64_t hashModelEntry(int32_t token, int32_t position,
                                      uint32_t weight) {
  return hashModelMix(((uint64_t)(uint32_t)token << 32 | (uint32_t)position) +
                      hashModelMix(weight));
}

/* In [0, 16); the token that spoils the logits is never chosen. */
static inline float hashModelLogit(uint64_t state, int32_t token,
                                   uint32_t weight) {
  if (token == HASH_MODEL_VOCABULARY - 1)
    return -__builtin_inff();
  return (float)(hashModelMix(state + hashModelMix((uint64_t)weight << 32 |
                                                   (uint32_t)token)) >>
                 40) *
         0x1p-20f;
}

#endif /* SANDWICH_UNITTESTS_RUNTIME_HASH_MODEL_H */
