/*===- hash_model.c - A language model that is no neural network ---*- C -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Compiled phases for the runtime's tests. A token's entry in the KV cache is
 * a hash of its id, position and weight, and the logits after a token are a
 * hash of all entries up to its position, in order. So a wrong block table,
 * position, chunk, thread split or logit row changes the logits, and no
 * tolerance is needed to see it: HashModel.cpp computes the same from the
 * token ids alone.
 *
 * Feeding the last token of the vocabulary makes the logits NaN.
 *
 * All ranks compute the same, and meet in collectives without a meaning; some
 * tokens make them slow or let them hang.
 *
 *===----------------------------------------------------------------------===*/

#include "hash_model.h"

#include "sandwich/Runtime/PhaseABI.h"

/* The part [*begin, *end) of `count` items that `thread` works on. */
static void split(int64_t count, int32_t thread, int64_t *begin, int64_t *end) {
  *begin = count * thread / HASH_MODEL_THREADS;
  *end = count * (thread + 1) / HASH_MODEL_THREADS;
}

static const uint64_t *cacheEntry(const SandwichStep *step,
                                  const SandwichSegment *segment,
                                  int64_t position) {
  const int32_t *table = step->block_tables + segment->first_block;
  return (const uint64_t *)step->kv_cache +
         (int64_t)table[position / SANDWICH_KV_BLOCK_TOKENS] *
             SANDWICH_KV_BLOCK_TOKENS +
         position % SANDWICH_KV_BLOCK_TOKENS;
}

/* The state after the token `i` of a step, which is in `segment`. */
static uint64_t hashOfTokens(const SandwichStep *step,
                             const SandwichSegment *segment, int64_t i) {
  uint64_t state = HASH_MODEL_START;
  int64_t last = segment->first_position + i - segment->first_token;
  for (int64_t position = 0; position <= last; ++position)
    state = hashModelMix(state ^ *cacheEntry(step, segment, position));
  return state;
}

static void mark(const SandwichStep *step, int32_t thread, int32_t operation) {
  if (step->mark)
    step->mark(step->profile, thread, operation);
}

/* Waits, and marks what came before and the waiting. */
static void endOperation(const SandwichStep *step, int32_t thread,
                         int32_t operation) {
  mark(step, thread, operation);
  step->barrier(step->team);
  mark(step, thread, HASH_MODEL_BARRIER);
}

/* Returns false where the thread is to leave the step. */
static int meetRanks(const SandwichStep *step, int32_t thread) {
  const int64_t count = 64;
  int64_t units = 0, collectives = 1, slowness = 1;
  /* The logits are not there yet. */
  float *sums = step->logits;
  /* Only a prompt that begins with them: any text may come to such tokens. */
  const int64_t asked =
      step->positions[0] == 0 ? step->segments[0].num_tokens : 0;
  if (asked >= 4 && step->token_ids[0] == HASH_MODEL_WORK) {
    units = step->token_ids[1];
    collectives = step->token_ids[2];
    slowness = step->rank == 1 ? step->token_ids[3] : 1;
  }
  if (asked >= 2 && step->rank == step->token_ids[1] &&
      thread == HASH_MODEL_THREADS - 1) {
    volatile int forever = 1;
    while (step->token_ids[0] == HASH_MODEL_LOOP && forever) {
    }
    if (step->token_ids[0] == HASH_MODEL_LEAVE)
      return 0;
  }
  for (int64_t i = 0; i < collectives; ++i) {
    volatile uint64_t state = 1;
    for (int64_t j = 0; j < units * slowness * 2000000; ++j)
      state = hashModelMix(state);
    step->barrier(step->team);
    step->all_reduce(step->ranks, thread, sums, count);
    step->barrier(step->team);
  }
  return 1;
}

static void runStep(const SandwichStep *step, int32_t thread) {
  const uint32_t *weights = (const uint32_t *)step->weights;
  uint64_t *states = (uint64_t *)step->workspace;
  int64_t begin;
  int64_t end;

  split(step->num_tokens, thread, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    int32_t token = step->token_ids[i];
    ((uint64_t *)step->kv_cache)[step->cache_slots[i]] =
        hashModelEntry(token, step->positions[i], weights[token]);
  }
  endOperation(step, thread, HASH_MODEL_APPEND);

  for (int64_t s = 0; s < step->num_segments; ++s) {
    const SandwichSegment *segment = &step->segments[s];
    for (int64_t i = segment->first_token;
         i < segment->first_token + segment->num_tokens; ++i)
      if (i >= begin && i < end)
        states[i] = hashOfTokens(step, segment, i);
  }
  endOperation(step, thread, HASH_MODEL_ATTEND);

  if (step->ranks && !meetRanks(step, thread))
    return;

  split(HASH_MODEL_VOCABULARY, thread, &begin, &end);
  for (int64_t row = 0; row < step->num_logit_rows; ++row) {
    int64_t token = step->logit_rows[row];
    for (int64_t v = begin; v < end; ++v)
      step->logits[row * HASH_MODEL_VOCABULARY + v] =
          weights[step->token_ids[token]] == HASH_MODEL_SPOILING
              ? __builtin_nanf("")
              : hashModelLogit(states[token], (int32_t)v, weights[v]);
  }
  mark(step, thread, HASH_MODEL_LOGITS);
}

#define EXPORTED __attribute__((visibility("default")))

/* The code takes any step, so HashModel.cpp fills in the -1 with what a test
 * asks for. */
#define PLAN                                                                   \
  {SANDWICH_PHASE_ABI_VERSION,                                                 \
   HASH_MODEL_THREADS,                                                         \
   -1,                                                                         \
   -1,                                                                         \
   -1,                                                                         \
   SANDWICH_KV_BLOCK_TOKENS * sizeof(uint64_t),                                \
   SANDWICH_ELEMENT_F32,                                                       \
   HASH_MODEL_VOCABULARY,                                                      \
   HASH_MODEL_VOCABULARY * sizeof(uint32_t),                                   \
   HASH_MODEL_OPERATIONS,                                                      \
   1,                                                                          \
   HASH_MODEL_VOCABULARY}

EXPORTED const SandwichPlan hash_model_prefill_plan = PLAN;
EXPORTED const SandwichPlan hash_model_decode_plan = PLAN;

EXPORTED void hash_model_prefill(const SandwichStep *step, int32_t thread) {
  runStep(step, thread);
}

EXPORTED void hash_model_decode(const SandwichStep *step, int32_t thread) {
  runStep(step, thread);
}
