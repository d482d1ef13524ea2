/*===- PhaseABI.h - Between compiled phases and the runtime ---------*- C
 * -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The whole interface of an artifact's shared object. Every phase is one SPMD
 * function that each thread of the phase's team calls once a step, with the
 * same step and its own thread number. Beside the function stands a constant,
 * the plan it was compiled for. There may be a function that draws a token,
 * too. The object needs no symbol from anywhere else.
 *
 * The compiler reads the field offsets from this header, so it is the only
 * place that knows them; changing it means a new SANDWICH_PHASE_ABI_VERSION.
 *
 *===----------------------------------------------------------------------===*/

#ifndef SANDWICH_RUNTIME_PHASEABI_H
#define SANDWICH_RUNTIME_PHASEABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SANDWICH_PHASE_ABI_VERSION 7

/** What the symbol of a phase's function begins with; its name follows. */
#define SANDWICH_PHASE_SYMBOL_PREFIX "sandwich_"

/** Tokens in one block of the paged KV cache. */
#define SANDWICH_KV_BLOCK_TOKENS 16
/** The f32 that the channels of a head's key, or value, of int8 share. */
#define SANDWICH_KV_SCALE_BYTES 4

/** The largest team of threads. */
#define SANDWICH_MAX_THREADS 1024

/** The most tokens of one step. */
#define SANDWICH_MAX_STEP_TOKENS 65536

/**
 * Tokens of one step that follow each other in a sequence: one, where it
 * decodes, or a piece of a prompt.
 */
typedef struct SandwichSegment {
  /** Index of the first one among the step's tokens. */
  int32_t first_token;
  /** At least 1. */
  int32_t num_tokens;
  /** The position of the first one: tokens of the sequence before it. */
  int32_t first_position;
  /**
   * Where the KV cache blocks of the sequence begin among the step's: position
   * p lies in block_tables[first_block + p / SANDWICH_KV_BLOCK_TOKENS].
   */
  int32_t first_block;
} SandwichSegment;

/**
 * The arguments of one step: any mix of segments of different sequences, in
 * either phase, at most the plan's `max_tokens`.
 */
typedef struct SandwichStep {
  /** [num_tokens] vocabulary ids, each in [0, vocab_size). */
  const int32_t *token_ids;
  /** [num_tokens] positions in their sequences. */
  const int32_t *positions;
  /**
   * [num_tokens] where each token's keys and values go: block *
   * SANDWICH_KV_BLOCK_TOKENS + place in the block.
   */
  const int32_t *cache_slots;
  /** [num_segments] ascending, each token in one of them. */
  const SandwichSegment *segments;
  /** [num_blocks] KV cache blocks of one segment's sequence after another's. */
  const int32_t *block_tables;
  /** [num_logit_rows] indexes of the tokens whose logits are wanted. */
  const int32_t *logit_rows;
  int64_t num_tokens;
  int64_t num_segments;
  int64_t num_blocks;
  int64_t num_logit_rows;
  /** The packed weights, aligned to 64 bytes. */
  const void *weights;
  /** Blocks of the manifest's `kv_block_bytes` each, aligned to 64 bytes. */
  void *kv_cache;
  /** The plan's `workspace_bytes`, aligned to 64 bytes; no state between steps.
   */
  void *workspace;
  /**
   * [num_logit_rows, columns of the plan], written by the step: logits. Of
   * phases that embed or classify, one row for each segment, which is a whole
   * text; num_logit_rows is num_segments then, or what logit_rows asks for
   * where the phase embeds tokens.
   */
  float *logits;
  /** Returns once every thread of the team has called it. */
  void (*barrier)(void *team);
  /** Passed to `barrier`. */
  void *team;
  /**
   * Null, or called by each thread whenever it has finished one of the plan's
   * operations: the time since its last call, or since it entered the phase,
   * went into that one.
   */
  void (*mark)(void *profile, int32_t thread, int32_t operation);
  /** Passed to `mark`. */
  void *profile;
  /** Of the process, in [0, ranks) of the plan. */
  int64_t rank;
  /** Passed to the next two. */
  void *ranks;
  /**
   * Adds up the `count` elements of `data` over all ranks, in the order of the
   * ranks and in place. Every thread of every rank's team calls it with the
   * same count, and thread t exchanges with the threads t of the others, so
   * that it holds no barrier of the team: all elements were written before a
   * barrier, and are read behind one. Null where the plan has one rank, as is
   * `all_gather`.
   */
  void (*all_reduce)(void *ranks, int32_t thread, float *data, int64_t count);
  /**
   * Puts the `part` of each rank, [rows, columns], into `whole` of every rank,
   * [rows, columns * ranks]: that of rank r from column r * columns on. Called
   * as `all_reduce` is.
   */
  void (*all_gather)(void *ranks, int32_t thread, const float *part,
                     float *whole, int64_t rows, int64_t columns);
  /**
   * [num_tokens] each in [0, token_types of the plan): the text of a pair that
   * the token is of. Null where the plan reads none.
   */
  const int32_t *token_types;
} SandwichStep;

/** `thread` is in [0, threads) of the phase's plan. */
typedef void (*SandwichPhaseFunction)(const SandwichStep *step, int32_t thread);

/**
 * A token that is to be drawn from a row of logits. Several threads may draw at
 * once, each its own.
 */
typedef struct SandwichSampling {
  /**
   * [vocab_size of the plans] No NaN, none infinite but for minus infinity,
   * which bars a token, and some that are finite.
   */
  const float *logits;
  /** [vocab_size] Whatever it holds; to be written. */
  float *weights;
  /** [1] Written: the token, in [0, vocab_size), that is not barred. */
  int32_t *token;
  /** Drawn from [0, 1). */
  double place;
  /** Above 0. */
  float temperature;
  /** In (0, 1]; 1 leaves no token out. */
  float top_p;
  /** In [0, 1]; 0 leaves no token out. */
  float min_p;
  /** From 0 on; 0 leaves no token out. */
  int32_t top_k;
} SandwichSampling;

typedef void (*SandwichSamplingFunction)(const SandwichSampling *sampling);

/**
 * What the symbol of a phase's SandwichPlan ends with, after the function's, and
 * of a SandwichSamplingPlan.
 */
#define SANDWICH_PLAN_SYMBOL_SUFFIX "_plan"

/**
 * What a phase's code relies on. The loader refuses a manifest that says
 * otherwise, since the code would read and write where it must not. All fields
 * are 64 bits wide.
 */
typedef struct SandwichPlan {
  /** SANDWICH_PHASE_ABI_VERSION */
  int64_t abi_version;
  /** The team must have exactly so many. */
  int64_t threads;
  /** Of one step. */
  int64_t max_tokens;
  int64_t max_logit_rows;
  /** Bytes of the workspace that are used. */
  int64_t workspace_bytes;
  /** Bytes of a rank's KV cache block, and a SandwichElementType. */
  int64_t kv_block_bytes;
  int64_t kv_element_type;
  /** Token ids are below that. */
  int64_t vocab_size;
  /**
   * Bytes of the weights that one rank reads: up to where the last one ends.
   */
  int64_t weights_bytes;
  /** Operations that `mark` tells apart, numbered from 0. */
  int64_t operations;
  /** The processes that run the phase together must be exactly so many. */
  int64_t ranks;
  /** Of the logits, or of whatever else the phase returns. */
  int64_t columns;
  /** Token types are below that; 0: it reads none. */
  int64_t token_types;
  /** Positions are below that; 0: they may be any. */
  int64_t positions;
} SandwichPlan;

/** The same of the function that draws tokens. */
typedef struct SandwichSamplingPlan {
  /** SANDWICH_PHASE_ABI_VERSION */
  int64_t abi_version;
  /** Of the logits. */
  int64_t vocab_size;
} SandwichSamplingPlan;

typedef enum SandwichElementType {
  SANDWICH_ELEMENT_F32 = 1,
  SANDWICH_ELEMENT_BF16 = 2,
  SANDWICH_ELEMENT_F16 = 3,
  SANDWICH_ELEMENT_INT8 = 4
} SandwichElementType;

#ifdef __cplusplus
}
#endif

#endif /* SANDWICH_RUNTIME_PHASEABI_H */
