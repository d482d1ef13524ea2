/*===- sandwich.h - Running compiled models from C -----------------*- C -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The interface of libsandwich.so. It loads an artifact, serves any number of
 * requests that continue prompts, and computes logits of texts.
 * docs/CAPI.md shows programs.
 *
 * Conventions
 *
 * - A function that can fail returns a sandwich_status. With anything but
 *   SANDWICH_OK it changes none of its outputs except `*error`, which becomes
 *   one sentence for people, to be freed with sandwich_free. `error` may be
 *   NULL. Functions that only tell something return 0 or NULL for a NULL
 *   handle.
 * - Structures that the caller fills begin with their own size and may be all
 *   zero after it, which means the defaults; a program that was compiled with
 *   an older header keeps working with a newer library. A NULL instead of one
 *   means the defaults, too. They are read during the call only. Structures
 *   that the library hands out grow at their end. So no structure that can
 *   grow lies within another or in an array.
 * - What a function hands over in `*out` belongs to the caller, who frees it
 *   with the function that its type names; freeing NULL does nothing. What is
 *   `const` behind the pointer stays the library's. Handles may be freed in any
 *   order.
 * - A sandwich_model and its description are for any number of threads at a
 *   time, except that freeing a handle is the last thing to be done with it.
 *   A sandwich_request and a sandwich_evaluator are for one thread at a time,
 *   but for sandwich_request_cancel, which any may call.
 * - A process that forks loads its models afterwards: in a child of the process
 *   that loaded them, calls that need their threads are
 *   SANDWICH_UNAVAILABLE, and handles may be freed.
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
#define SANDWICH_API_VERSION 3

/** The SANDWICH_API_VERSION of the library that is loaded. */
SANDWICH_EXPORT uint32_t sandwich_api_version(void);

/** What a program can do about an error. */
typedef enum sandwich_status {
  SANDWICH_OK = 0,
  /** Files, memory or the system are at fault; the message says which. */
  SANDWICH_FAILED = 1,
  /**
   * The call is wrong, whenever it is made: an option out of its range, a token
   * outside of the vocabulary, a NULL where something is needed, a size of no
   * structure.
   */
  SANDWICH_INVALID_ARGUMENT = 2,
  /** More tokens than the model's context. */
  SANDWICH_CONTEXT_EXCEEDED = 3,
  /** More tokens than the KV cache holds. */
  SANDWICH_CACHE_FULL = 4,
  /** Somebody took the request back, or freed the model. */
  SANDWICH_CANCELLED = 5,
  /** The request's deadline has passed, or cannot be met. */
  SANDWICH_DEADLINE_EXCEEDED = 6,
  /** Too many requests are waiting; later there may be fewer. */
  SANDWICH_OVERLOADED = 7,
  /**
   * The model computes nothing any more: one of its ranks has ended, it is
   * being freed, or this process is a fork of the one that loaded it.
   */
  SANDWICH_UNAVAILABLE = 8,
  /** The model computed what is no number, or a bug. */
  SANDWICH_INTERNAL = 9
} sandwich_status;

/** A model that serves requests; freed with sandwich_model_free. */
typedef struct sandwich_model sandwich_model;
/** A prompt that is being continued; freed with sandwich_request_free. */
typedef struct sandwich_request sandwich_request;
/** Computes logits of texts; freed with sandwich_evaluator_free. */
typedef struct sandwich_evaluator sandwich_evaluator;
/**
 * What an artifact tells about its model, and its tokenizer. It belongs to the
 * model or evaluator that it was asked of, and is valid as long as that.
 */
typedef struct sandwich_description sandwich_description;

/** Frees memory that is no handle: errors, token ids and texts. */
SANDWICH_EXPORT void sandwich_free(void *memory);

/* Loading */

typedef enum sandwich_weights {
  /** The library chooses. */
  SANDWICH_WEIGHTS_DEFAULT = 0,
  /** Pages shared with every process that runs the same artifact. */
  SANDWICH_WEIGHTS_MAPPED = 1,
  /** A private copy in huge pages. */
  SANDWICH_WEIGHTS_HUGE_PAGES = 2
} sandwich_weights;

/** How an artifact is loaded, whatever is done with it. */
typedef struct sandwich_load_options {
  /** sizeof(sandwich_load_options) */
  size_t struct_size;
  /** One of sandwich_weights. */
  int weights;
  /** Not 0: all weights are read and compared with their checksum first. */
  int verify_weights;
  /**
   * Bytes of the KV cache; 0: as many as the sequences that may be computed at
   * a time could need, or as are available, which is told as a warning. Memory
   * is taken only for tokens that are computed. More than is available is an
   * error.
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
  /** Receives what users may want to know; `warning` is 1 for warnings. */
  void (*log)(void *user_data, int warning, const char *message);
  /** Told how many bytes of weights are loaded. */
  void (*progress)(void *user_data, uint64_t done, uint64_t total);
  /** Passed to `log` and `progress`, which are called during the load only. */
  void *user_data;
} sandwich_load_options;

/** How a model serves requests. */
typedef struct sandwich_serving_options {
  /** sizeof(sandwich_serving_options) */
  size_t struct_size;
  /** Texts that are continued at a time; 0: as many as a step takes. */
  uint64_t max_sequences;
  /** Requests that may wait for their first step; 0: 256. */
  uint64_t max_waiting_requests;
  /**
   * Not 0: prompts that begin like earlier ones are computed again. Whoever
   * shares the cache can learn from times what others have asked;
   * `prefix_salt` of a request keeps tenants apart.
   */
  int no_prefix_cache;
  /**
   * Not 0: where a rank fails, all are started anew. Requests that had begun
   * end with SANDWICH_UNAVAILABLE, the others go on waiting.
   */
  int restart_ranks;
  /**
   * Seconds until the first token that a request should take at most; one that
   * is predicted to take longer is SANDWICH_OVERLOADED. 0: none.
   */
  double first_token_objective;
  /**
   * Seconds from one token of a text to the next that prompts of other requests
   * should not exceed; 0: 1.8 times as long as without them.
   */
  double token_objective;
} sandwich_serving_options;

/**
 * Loads the artifact in the folder `path` and starts the thread that serves
 * its requests.
 */
SANDWICH_EXPORT sandwich_status
sandwich_model_load(const char *path, const sandwich_load_options *load_options,
                    const sandwich_serving_options *serving_options,
                    sandwich_model **out, char **error);

/**
 * Ends all requests with SANDWICH_CANCELLED, after the step under way. Their
 * handles are still to be freed. Not to be called by a callback.
 */
SANDWICH_EXPORT void sandwich_model_free(sandwich_model *model);

SANDWICH_EXPORT const sandwich_description *
sandwich_model_describe(const sandwich_model *model);

typedef struct sandwich_statistics {
  /** sizeof(sandwich_statistics); set it before the call. */
  size_t struct_size;
  /** Requests taken, those refused as they came, and tokens of all texts. */
  uint64_t requests;
  uint64_t refused_requests;
  uint64_t generated_tokens;
  /** Now: requests that wait and that run, and the texts of the latter. */
  uint64_t waiting_requests;
  uint64_t running_requests;
  uint64_t running_texts;
  /** The blocks of the KV cache, and those that running requests have. */
  uint64_t blocks;
  uint64_t used_blocks;
  uint64_t steps;
  /** How often a request lost its blocks to another and was computed again. */
  uint64_t preemptions;
  /** Tokens of prompts, and those of them found in the prefix cache. */
  uint64_t prompt_tokens;
  uint64_t cached_prompt_tokens;
} sandwich_statistics;

/** Since the model was loaded. */
SANDWICH_EXPORT sandwich_status sandwich_model_statistics(
    const sandwich_model *model, sandwich_statistics *out, char **error);

/* What an artifact tells */

/** Number of logits of a token; token ids are smaller. */
SANDWICH_EXPORT uint64_t
sandwich_vocab_size(const sandwich_description *description);

/** Tokens that a prompt and its continuation may have together. */
SANDWICH_EXPORT uint64_t
sandwich_context_length(const sandwich_description *description);

/** The model's name; valid as long as the description. */
SANDWICH_EXPORT const char *
sandwich_name(const sandwich_description *description);

/** Whether the model can turn text into tokens and back. */
SANDWICH_EXPORT int
sandwich_has_tokenizer(const sandwich_description *description);

/** Whether the model ends its text with `token`. */
SANDWICH_EXPORT int
sandwich_is_end_token(const sandwich_description *description, int32_t token);

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
SANDWICH_EXPORT sandwich_status
sandwich_tokenize(const sandwich_description *description, const char *text,
                  size_t text_bytes, int flags, int32_t **out,
                  size_t *out_count, char **error);

/**
 * The text of `tokens`, UTF-8 with a zero byte after it that `*out_bytes` does
 * not count. `*out` is to be freed with sandwich_free; `out_bytes` may be NULL.
 */
SANDWICH_EXPORT sandwich_status sandwich_detokenize(
    const sandwich_description *description, const int32_t *tokens,
    size_t count, int skip_special_tokens, char **out, size_t *out_bytes,
    char **error);

/* Requests */

/** Added to the logit of a token; minus infinity bars it. */
typedef struct sandwich_logit_bias {
  int32_t token;
  float bias;
} sandwich_logit_bias;

/** How tokens are chosen. The operations follow each other in this order. */
typedef struct sandwich_sampling_options {
  /** sizeof(sandwich_sampling_options) */
  size_t struct_size;
  /** Tokens that end a text are barred until so many are generated. */
  uint64_t min_tokens;
  /** At most one for each token, from -100 to 100 or minus infinity. */
  const sandwich_logit_bias *logit_bias;
  size_t logit_bias_count;
  /**
   * Divides the logits above zero of tokens in the prompt or the text, and
   * multiplies the others; 0: 1, which changes nothing.
   */
  float repetition_penalty;
  /**
   * Subtracted from the logit of a token for each time it was generated, and
   * once for tokens that were; from -2 to 2.
   */
  float frequency_penalty;
  float presence_penalty;
  /** 0 always takes the most probable token; otherwise divides the logits. */
  float temperature;
  /** Leaves out tokens less than so many times as probable as the first. */
  float min_p;
  /** Chooses among so many of the most probable tokens; 0: all. */
  uint32_t top_k;
  /**
   * Chooses among the most probable tokens that together reach this
   * probability; 0 and 1: all.
   */
  float top_p;
  /** The same seed makes the same choices. */
  uint64_t seed;
  /**
   * Not 0: the logarithm of each chosen token's probability is told, as the
   * model computed it, and those of so many of the most probable tokens.
   */
  int log_probabilities;
  /** At most 20; without effect where `log_probabilities` is 0. */
  uint32_t top_log_probabilities;
} sandwich_sampling_options;

/** What ends a text, beside the number of its tokens. */
typedef struct sandwich_stop_options {
  /** sizeof(sandwich_stop_options) */
  size_t struct_size;
  /** Texts in UTF-8, each with a zero byte after it; at most 16. */
  const char *const *strings;
  size_t string_count;
  /** At most 256. */
  const int32_t *tokens;
  size_t token_count;
  /** Not 0: what ended the text is output, too. */
  int include_in_text;
  /** Not 0: goes on when the model ends its text. */
  int ignore_end_of_text;
} sandwich_stop_options;

/** Why a text ends. */
typedef enum sandwich_finish_reason {
  /** It goes on. */
  SANDWICH_FINISH_NONE = 0,
  /** The model ended it. */
  SANDWICH_FINISH_END_OF_TEXT = 1,
  /** A stop string or a stop token. */
  SANDWICH_FINISH_STOPPED = 2,
  /** It has `max_tokens` tokens. */
  SANDWICH_FINISH_MAX_TOKENS = 3,
  /** No token more fits into the model's context. */
  SANDWICH_FINISH_CONTEXT_FULL = 4
} sandwich_finish_reason;

/** A token, and the natural logarithm of its probability. */
typedef struct sandwich_log_probability {
  int32_t token;
  float value;
} sandwich_log_probability;

/** A token of one of a request's texts. */
typedef struct sandwich_token {
  /** From 0. */
  uint32_t text_index;
  int32_t token;
  /**
   * What it adds to the text: whole UTF-8 characters with a zero byte after
   * them, without what may become a stop string; with all that was held back
   * where the text ends. Empty for a model without a tokenizer.
   */
  const char *piece;
  size_t piece_bytes;
  /** The token that ends a text is told like others. */
  sandwich_finish_reason finish_reason;
  /** Both 0 and NULL unless they were asked for. */
  float log_probability;
  const sandwich_log_probability *top;
  size_t top_count;
} sandwich_token;

/** How a request was served. */
typedef struct sandwich_request_end {
  /** SANDWICH_OK: all its texts have ended. */
  sandwich_status status;
  /** One sentence, or NULL where the status is SANDWICH_OK. */
  const char *error;
  /**
   * Seconds from its coming to its first step, from there to the first token,
   * and from there to the end; 0 for what was not reached.
   */
  double queue_seconds;
  double prefill_seconds;
  double decode_seconds;
  uint64_t prompt_tokens;
  /** Of the prompt, found in the prefix cache. */
  uint64_t cached_tokens;
  /** Of all texts. */
  uint64_t generated_tokens;
  uint64_t preemptions;
} sandwich_request_end;

/** What happened to a request: one of the two is not NULL. */
typedef struct sandwich_event {
  const sandwich_token *token;
  /** Once, last. */
  const sandwich_request_end *end;
} sandwich_event;

typedef struct sandwich_generation_options {
  /** sizeof(sandwich_generation_options) */
  size_t struct_size;
  /** Of each text at most; 0: 128. */
  uint64_t max_tokens;
  /**
   * Texts that continue the prompt, each by itself, the first with the seed,
   * the next with that plus one, and so on; 0: 1.
   */
  uint32_t continuations;
  /** Higher comes earlier, from 0 to 7. */
  uint32_t priority;
  /** Seconds from now on after which it ends, ready or not; 0: never. */
  double timeout_seconds;
  /** Requests with other ones share no prefix in the cache. */
  uint64_t prefix_salt;
  const sandwich_sampling_options *sampling;
  const sandwich_stop_options *stop;
  /**
   * Where it is given, events go there instead of to sandwich_request_next. It
   * is called by the thread that serves all requests, so they wait for it;
   * possibly before sandwich_request_submit has returned, and never after
   * sandwich_request_free has. It may submit, cancel and free requests. The
   * event is valid during the call.
   */
  void (*on_event)(void *user_data, const sandwich_event *event);
  void *user_data;
} sandwich_generation_options;

/**
 * Asks for continuations of the prompt, `count` (at least 1) tokens, and
 * returns without waiting for any.
 */
SANDWICH_EXPORT sandwich_status sandwich_request_submit(
    sandwich_model *model, const int32_t *prompt, size_t count,
    const sandwich_generation_options *options, sandwich_request **out,
    char **error);

/**
 * Waits for the request's next event, at most `timeout_seconds`, or for ever
 * where that is negative. `*out` is NULL where none has come in time, and
 * otherwise valid until the next call for this request. After the end, it is
 * the end again. What ended the request with an error is an event, no error of
 * this call.
 */
SANDWICH_EXPORT sandwich_status
sandwich_request_next(sandwich_request *request, double timeout_seconds,
                      const sandwich_event **out, char **error);

/**
 * A file descriptor that poll(2) finds readable while sandwich_request_next has
 * an event without waiting, for programs with an event loop. It belongs to the
 * request and is not to be read.
 */
SANDWICH_EXPORT sandwich_status
sandwich_request_descriptor(sandwich_request *request, int *out, char **error);

/**
 * Ends the request with SANDWICH_CANCELLED, unless it has ended. It returns at
 * once; what it had is free after the step under way.
 */
SANDWICH_EXPORT void sandwich_request_cancel(sandwich_request *request);

/** Cancels the request first, if it has not ended. */
SANDWICH_EXPORT void sandwich_request_free(sandwich_request *request);

/* Logits */

/**
 * Loads the artifact in the folder `path` to compute logits of texts, which it
 * then does instead of serving requests.
 */
SANDWICH_EXPORT sandwich_status
sandwich_evaluator_load(const char *path, const sandwich_load_options *options,
                        sandwich_evaluator **out, char **error);

SANDWICH_EXPORT void sandwich_evaluator_free(sandwich_evaluator *evaluator);

SANDWICH_EXPORT const sandwich_description *
sandwich_evaluator_describe(const sandwich_evaluator *evaluator);

/**
 * Computes the logits after each of `count` (at least 1) tokens of a text into
 * `logits`, [count, vocab_size].
 */
SANDWICH_EXPORT sandwich_status
sandwich_evaluator_logits(sandwich_evaluator *evaluator, const int32_t *tokens,
                          size_t count, float *logits, char **error);

#ifdef __cplusplus
}
#endif

#endif /* SANDWICH_RUNTIME_SANDWICH_H */
