/*===- sum_model.c - Phases of the tests' encoder -------------------------===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * A text's vector is the sum of its ids, their number, the sum of their types
 * and the sum of their positions; a token's vector is that of a text of it. The
 * id SPOILING_ID makes a vector of no numbers.
 *
 *===----------------------------------------------------------------------===*/

#include "sandwich/Runtime/PhaseABI.h"

#include "../SumModel.h"

#define EXPORTED __attribute__((visibility("default")))

#define PLAN                                                                   \
  {SANDWICH_PHASE_ABI_VERSION,                                                 \
   SUM_MODEL_THREADS,                                                          \
   SUM_MODEL_TOKENS,                                                           \
   SUM_MODEL_TOKENS,                                                           \
   64,                                                                         \
   SANDWICH_KV_BLOCK_TOKENS * 2 * sizeof(float),                               \
   SANDWICH_ELEMENT_F32,                                                       \
   SUM_MODEL_VOCABULARY,                                                       \
   64,                                                                         \
   0,                                                                          \
   1,                                                                          \
   SUM_MODEL_COLUMNS,                                                          \
   SUM_MODEL_TYPES,                                                            \
   SUM_MODEL_CONTEXT}

EXPORTED const SandwichPlan sum_model_embed_plan = PLAN;
EXPORTED const SandwichPlan sum_model_embed_tokens_plan = PLAN;

static void addToken(const SandwichStep *step, int64_t token, float *row) {
  int32_t id = step->token_ids[token];
  row[0] += (float)id;
  row[1] += 1;
  row[2] += (float)step->token_types[token];
  row[3] += (float)step->positions[token];
  if (id == SUM_MODEL_SPOILING_ID)
    row[0] = row[0] / (row[1] - row[1]);
}

static void clear(float *row) {
  for (int i = 0; i < SUM_MODEL_COLUMNS; ++i)
    row[i] = 0;
}

EXPORTED void sum_model_embed(const SandwichStep *step, int32_t thread) {
  for (int64_t i = thread; i < step->num_segments; i += SUM_MODEL_THREADS) {
    const SandwichSegment *segment = &step->segments[i];
    float *row = step->logits + i * SUM_MODEL_COLUMNS;
    clear(row);
    for (int32_t t = 0; t < segment->num_tokens; ++t)
      addToken(step, segment->first_token + t, row);
  }
  step->barrier(step->team);
}

EXPORTED void sum_model_embed_tokens(const SandwichStep *step,
                                     int32_t thread) {
  for (int64_t i = thread; i < step->num_logit_rows; i += SUM_MODEL_THREADS) {
    float *row = step->logits + i * SUM_MODEL_COLUMNS;
    clear(row);
    addToken(step, step->logit_rows[i], row);
  }
}
