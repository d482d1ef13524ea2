/*===- sandwich.h - Running compiled models from C -----------------*- C -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The interface of libsandwich.so. It loads an artifact, feeds it tokens, gives
 * out logits, chooses tokens and generates text. docs/CAPI.md shows a program.
 *
 * Conventions
 *
 * - A function that can fail returns a sandwich_status. With anything but
 *   SANDWICH_OK it changes none of its outputs except `*error`, which becomes
 *   one sentence for people, to be freed with sandwich_free. `error` may be
 *   NULL. Functions that only tell something return 0 or NULL for a NULL
 *   handle.
 * - Structures of options begin with their own size and may be all zero after
 *   it, which means the defaults; a program that was compiled with an older
 *   header keeps working with a newer library. A NULL instead of options means
 *   the defaults, too.
 * - What a function hands over in `*out` belongs to the caller, who frees it
 *   with the function that its type names; freeing NULL does nothing. Handles
 *   may be freed in any order.
 * - Different handles may be used from different threads. One handle is for
 *   one thread at a time, except a sandwich_model, which is for any number.
 *   Steps of one model run one after another.
 * - A process that forks loads its models afterwards: in a child of the process
 *   that loaded a model, its steps fail.
 *
 *===----------------------------------------------------------------------===*/

#ifndef SANDWICH_RUNTIME_SANDWICH_H
#define SANDWICH_RUNTIME_SANDWICH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SANDWICH_EXPORT __attribute__((visibility("default")))

/** Changes when a program must be changed or compiled again. */
#define SANDWICH_API_VERSION 2

/** The SANDWICH_API_VERSION of the library that is loaded. */
SANDWICH_EXPORT uint32_t sandwich_api_version(void);

typedef enum sandwich_status {
  SANDWICH_OK = 0,
  /** The input or the machine is at fault. */
  SANDWICH_FAILED = 1,
  /** The call is: a NULL where something is needed, a size of no structure. */
  SANDWICH_WRONG_USAGE = 2
} sandwich_status;

/** A loaded artifact; freed with sandwich_model_free. */
typedef struct sandwich_model sandwich_model;
/** A text that grows; freed with sandwich_sequence_free. */
typedef struct sandwich_sequence sandwich_sequence;
/** Chooses tokens; freed with sandwich_sampler_free. */
typedef struct sandwich_sampler sandwich_sampler;
/** Turns tokens into text; freed with sandwich_decoder_free. */
typedef struct sandwich_decoder sandwich_decoder;

/** Frees memory that is no handle: errors, token ids and texts. */
SANDWICH_EXPORT void sandwich_free(void *memory);

/* Models */

typedef enum sandwich_weights {
  /** The library chooses. */
  SANDWICH_WEIGHTS_DEFAULT = 0,
  /** Pages shared with every process that runs the same artifact. */
  SANDWICH_WEIGHTS_MAPPED = 1,
  /** A private copy in huge pages. */
  SANDWICH_WEIGHTS_HUGE_PAGES = 2
} sandwich_weights;

typedef struct sandwich_load_options {
  /** sizeof(sandwich_load_options) */
  size_t struct_size;
  /** Sequences that hold tokens at the same time; 0: one. */
  uint64_t max_sequences;
  /**
   * Tokens that all sequences together may hold; 0: `max_sequences` times the
   * model's context. Where less memory is available, the cache is smaller, and
   * a warning tells by how much. Memory is taken only for tokens that are fed.
   */
  uint64_t kv_cache_tokens;
  sandwich_weights weights;
  /** Receives what users may want to know; `warning` is 1 for warnings. */
  void (*log)(void *user_data, int warning, const char *message);
  /** Told how many bytes of weights are loaded. */
  void (*progress)(void *user_data, uint64_t done, uint64_t total);
  /** Passed to `log` and `progress`. */
  void *user_data;
  /**
   * Bytes of the KV cache, instead of `kv_cache_tokens`; 0: not given. More
   * than is available is an error.
   */
  uint64_t kv_memory;
  /**
   * The program sandwich-run, which runs the other ranks of an artifact for
   * several; NULL for the first one of: in the library's folder, in the `bin`
   * beside that folder, in the `bin` beside `lib` where that is the folder
   * around it, in the folder of the program that calls. It must be of the same
   * build as the library.
   */
  const char *rank_program;
  /** Not 0: all weights are read and compared with their checksum first. */
  int verify_weights;
} sandwich_load_options;

/** Loads the artifact in the folder `path`. */
SANDWICH_EXPORT sandwich_status
sandwich_model_load(const char *path, const sandwich_load_options *options,
                    sandwich_model **out, char **error);

SANDWICH_EXPORT void sandwich_model_free(sandwich_model *model);

/** Number of logits of a token; token ids are smaller. */
SANDWICH_EXPORT uint64_t sandwich_model_vocab_size(const sandwich_model *model);

/** Tokens that one sequence may hold. */
SANDWICH_EXPORT uint64_t
sandwich_model_context_length(const sandwich_model *model);

/** The model's name; valid as long as the model. */
SANDWICH_EXPORT const char *sandwich_model_name(const sandwich_model *model);

/** Whether the model can turn text into tokens and back. */
SANDWICH_EXPORT int sandwich_model_has_tokenizer(const sandwich_model *model);

/** Whether the model ends its text with `token`. */
SANDWICH_EXPORT int sandwich_model_is_end_token(const sandwich_model *model,
                                                int32_t token);

/* Text and tokens */

/** What sandwich_tokenize does with special tokens; to be joined with |. */
typedef enum sandwich_tokenize_flags {
  /** Adds those that begin a sequence. */
  SANDWICH_TOKENIZE_ADD_SPECIAL = 1,
  /**
   * Takes one that is written out in the text for that token, as a template
   * needs it. Without this it is text like any other, so that what a user types
   * cannot end a turn or begin one.
   */
  SANDWICH_TOKENIZE_PARSE_SPECIAL = 2
} sandwich_tokenize_flags;

/**
 * The token ids of `text`, `text_bytes` bytes of UTF-8. `flags` is 0 or some of
 * sandwich_tokenize_flags. `*out` is to be freed with sandwich_free.
 */
SANDWICH_EXPORT sandwich_status sandwich_tokenize(
    const sandwich_model *model, const char *text, size_t text_bytes, int flags,
    int32_t **out, size_t *out_count, char **error);

/**
 * The text of `tokens`, UTF-8 with a zero byte after it that `*out_bytes` does
 * not count. `*out` is to be freed with sandwich_free; `out_bytes` may be NULL.
 */
SANDWICH_EXPORT sandwich_status sandwich_detokenize(
    const sandwich_model *model, const int32_t *tokens, size_t count,
    int skip_special_tokens, char **out, size_t *out_bytes, char **error);

SANDWICH_EXPORT sandwich_status
sandwich_decoder_create(const sandwich_model *model, int skip_special_tokens,
                        sandwich_decoder **out, char **error);

SANDWICH_EXPORT void sandwich_decoder_free(sandwich_decoder *decoder);

/**
 * Takes `count` tokens as what comes before, whose text is known: a prompt that
 * is continued. What a token means may depend on those before it; some models
 * lose a space at the beginning of a text, but not of a continuation.
 */
SANDWICH_EXPORT sandwich_status sandwich_decoder_skip(sandwich_decoder *decoder,
                                                      const int32_t *tokens,
                                                      size_t count,
                                                      char **error);

/**
 * Adds one token. `*out` is the text that it completes, possibly empty: whole
 * UTF-8 characters with a zero byte after them. It belongs to the decoder and
 * is valid until the decoder's next call. `out_bytes` may be NULL.
 */
SANDWICH_EXPORT sandwich_status sandwich_decoder_add(sandwich_decoder *decoder,
                                                     int32_t token,
                                                     const char **out,
                                                     size_t *out_bytes,
                                                     char **error);

/** Ends the text: `*out` is what was held back, as in sandwich_decoder_add. */
SANDWICH_EXPORT sandwich_status
sandwich_decoder_finish(sandwich_decoder *decoder, const char **out,
                        size_t *out_bytes, char **error);

/* Sequences */

SANDWICH_EXPORT sandwich_status sandwich_sequence_create(
    sandwich_model *model, sandwich_sequence **out, char **error);

SANDWICH_EXPORT void sandwich_sequence_free(sandwich_sequence *sequence);

/**
 * A sequence that holds the same tokens and logits, and goes on by itself:
 * several continuations of one prompt. It takes no memory in the KV cache but
 * for what the two are fed from then on.
 */
SANDWICH_EXPORT sandwich_status sandwich_sequence_fork(
    const sandwich_sequence *sequence, sandwich_sequence **out, char **error);

/** Tokens fed so far. */
SANDWICH_EXPORT uint64_t
sandwich_sequence_length(const sandwich_sequence *sequence);

/** Makes the sequence empty again. */
SANDWICH_EXPORT void sandwich_sequence_clear(sandwich_sequence *sequence);

/**
 * Appends `count` (at least 1) tokens. `all_logits` is NULL, or room for the
 * logits after each of them, [count, vocab_size]. On an error the sequence is
 * as before.
 */
SANDWICH_EXPORT sandwich_status
sandwich_sequence_feed(sandwich_sequence *sequence, const int32_t *tokens,
                       size_t count, float *all_logits, char **error);

/**
 * The logits after the token fed last, [vocab_size], or NULL if none was fed.
 * They belong to the sequence and are valid until it is fed, generates, or is
 * cleared or freed.
 */
SANDWICH_EXPORT const float *
sandwich_sequence_logits(const sandwich_sequence *sequence);

/* Choosing tokens */

typedef struct sandwich_sampling_options {
  /** sizeof(sandwich_sampling_options) */
  size_t struct_size;
  /** 0 always takes the most probable token; otherwise divides the logits. */
  float temperature;
  /** Chooses among so many of the most probable tokens; 0: all. */
  uint32_t top_k;
  /**
   * Chooses among the most probable tokens that together reach this
   * probability; 0 and 1: all.
   */
  float top_p;
  /** The same seed makes the same choices. */
  uint64_t seed;
} sandwich_sampling_options;

SANDWICH_EXPORT sandwich_status
sandwich_sampler_create(const sandwich_sampling_options *options,
                        sandwich_sampler **out, char **error);

SANDWICH_EXPORT void sandwich_sampler_free(sandwich_sampler *sampler);

/** Chooses the token that follows what `sequence` was fed. */
SANDWICH_EXPORT sandwich_status sandwich_sampler_sample(
    sandwich_sampler *sampler, const sandwich_sequence *sequence, int32_t *out,
    char **error);

/* Generating */

typedef struct sandwich_generate_options {
  /** sizeof(sandwich_generate_options) */
  size_t struct_size;
  /** Tokens to generate at most; 0: 128. */
  uint64_t max_tokens;
  /** Not 0: goes on when the model ends its text. */
  int ignore_end_of_text;
  /** Its own struct_size may be 0 for the defaults. */
  sandwich_sampling_options sampling;
} sandwich_generate_options;

typedef enum sandwich_stop_reason {
  /** The model ended its text; the token that says so is not counted. */
  SANDWICH_STOP_END_OF_TEXT = 0,
  SANDWICH_STOP_MAX_TOKENS = 1,
  /** The sequence holds as many tokens as the model's context. */
  SANDWICH_STOP_CONTEXT_FULL = 2,
  /** The callback asked for it. */
  SANDWICH_STOP_CALLBACK = 3,
  /** The KV cache has no room for another token. */
  SANDWICH_STOP_CACHE_FULL = 4
} sandwich_stop_reason;

typedef struct sandwich_generate_statistics {
  /** sizeof(sandwich_generate_statistics); set it before the call. */
  size_t struct_size;
  uint64_t prompt_tokens;
  uint64_t generated_tokens;
  /** From the start of the prompt until the first token is chosen. */
  double time_to_first_token_ms;
  /** Mean over the tokens after the first. */
  double time_per_output_token_ms;
  sandwich_stop_reason stop_reason;
} sandwich_generate_statistics;

/**
 * Receives each generated token with the text it adds to that of all tokens
 * before it, `text_bytes` bytes of UTF-8 and a zero byte; the text is empty for
 * a model without a tokenizer.
 * After the last token, text that was held back comes with the token -1.
 * Returns not 0 to go on, 0 to stop.
 */
typedef int (*sandwich_token_callback)(void *user_data, int32_t token,
                                       const char *text, size_t text_bytes);

/**
 * Feeds the prompt, `count` (at least 1) tokens, and generates. The token that
 * is chosen last is not fed, so that a later call can begin its prompt with
 * it. `callback` and `statistics` may be NULL.
 */
SANDWICH_EXPORT sandwich_status sandwich_generate(
    sandwich_sequence *sequence, const int32_t *prompt, size_t count,
    const sandwich_generate_options *options, sandwich_token_callback callback,
    void *user_data, sandwich_generate_statistics *statistics, char **error);

#ifdef __cplusplus
}
#endif

#endif /* SANDWICH_RUNTIME_SANDWICH_H */
