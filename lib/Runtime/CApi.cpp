//===- CApi.cpp - Running compiled models from C --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/sandwich.h"

#include "sandwich/Runtime/Generation/Generation.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <unistd.h>

using namespace sandwich;

namespace {
/// What all handles of one model share, so that they may be freed in any
/// order.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::optional<Tokenizer> tokenizer;
  /// Of the engine and its sequences.
  std::mutex mutex;
  const pid_t process = ::getpid();

  /// In a fork the mutex may be held for ever, and there is but one thread.
  std::unique_lock<std::mutex> lock() {
    if (::getpid() != process)
      return {};
    return std::unique_lock(mutex);
  }
};

/// An error of the call itself.
struct WrongUsage {
  const char *message;
};
} // namespace

struct sandwich_model {
  std::shared_ptr<LoadedModel> loaded;
};

struct sandwich_sequence {
  ~sandwich_sequence() {
    const auto lock = loaded->lock();
    tokens.clear();
  }

  // Before `tokens`, whose blocks belong to the engine.
  std::shared_ptr<LoadedModel> loaded;
  Sequence tokens;
  /// After the token fed last, [vocab_size]; empty if none was fed.
  std::vector<float> logits;
  /// Has skipped the tokens fed; none without a tokenizer.
  std::optional<StreamingDecoder> decoder;
};

struct sandwich_sampler {
  Sampler sampler;
};

struct sandwich_decoder {
  std::shared_ptr<LoadedModel> loaded;
  StreamingDecoder decoder;
  std::string text;
};

static void setError(char **error, const char *message) {
  if (error)
    *error = ::strdup(message);
}

/// Runs `body`, which returns a Status or throws, and turns whatever happens
/// into a status code: no exception crosses the interface.
template <typename Body>
static sandwich_status guard(char **error, const Body &body) {
  try {
    Status status = body();
    if (status)
      return SANDWICH_OK;
    setError(error, status.error().message.c_str());
    return SANDWICH_FAILED;
  } catch (const WrongUsage &wrong) {
    setError(error, wrong.message);
    return SANDWICH_WRONG_USAGE;
  } catch (const std::bad_alloc &) {
    setError(error, "there is not enough memory");
    return SANDWICH_FAILED;
  } catch (const std::exception &exception) {
    setError(error, exception.what());
    return SANDWICH_FAILED;
  }
}

template <typename Pointer>
static void require(Pointer *pointer, const char *message) {
  if (!pointer)
    throw WrongUsage{message};
}

/// The caller's options, which may be of an older and shorter version, in a
/// structure of this version.
template <typename Options> static Options readOptions(const Options *options) {
  Options complete = {};
  if (!options)
    return complete;
  if (options->struct_size < sizeof(size_t) ||
      options->struct_size > sizeof(Options))
    throw WrongUsage{"struct_size is not the size of the options; this library "
                     "may be older than the program's header"};
  std::memcpy(&complete, options, options->struct_size);
  return complete;
}

static SamplingOptions readSampling(const sandwich_sampling_options &options) {
  SamplingOptions sampling;
  sampling.temperature = options.temperature;
  sampling.topK = options.top_k;
  sampling.topP = options.top_p == 0 ? 1 : options.top_p;
  sampling.seed = options.seed;
  return sampling;
}

/// `bytes` and a zero after them, allocated as sandwich_free frees it.
static char *copyText(const std::string &text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

static Result<const Tokenizer *> tokenizerOf(const LoadedModel &loaded) {
  if (!loaded.tokenizer)
    return makeError(loaded.engine->artifact().path(),
                     ": has no tokenizer.json, so it knows token ids only");
  return &*loaded.tokenizer;
}

uint32_t sandwich_api_version(void) { return SANDWICH_API_VERSION; }

void sandwich_free(void *memory) { std::free(memory); }

sandwich_status sandwich_model_load(const char *path,
                                    const sandwich_load_options *options,
                                    sandwich_model **out, char **error) {
  return guard(error, [&]() -> Status {
    require(path, "path is NULL");
    require(out, "out is NULL");
    sandwich_load_options given = readOptions(options);
    SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    auto loaded = std::make_shared<LoadedModel>();
    SANDWICH_ASSIGN_OR_RETURN(loaded->tokenizer, loadTokenizer(artifact));
    EngineOptions engineOptions;
    engineOptions.maxSequences = std::max<uint64_t>(given.max_sequences, 1);
    engineOptions.kvCacheTokens = given.kv_cache_tokens;
    if (given.kv_memory)
      engineOptions.kvMemory = given.kv_memory;
    if (given.rank_program)
      engineOptions.ranks.program = given.rank_program;
    engineOptions.verifyWeights = given.verify_weights != 0;
    if (engineOptions.kvCacheTokens == 0)
      engineOptions.kvCacheTokens =
          checkedMultiply<uint64_t>(
              engineOptions.maxSequences,
              artifact.manifest().model().context_length())
              .value_or(UINT64_MAX);
    switch (given.weights) {
    case SANDWICH_WEIGHTS_DEFAULT:
      break;
    case SANDWICH_WEIGHTS_MAPPED:
      engineOptions.weightPlacement = WeightPlacement::Mapped;
      break;
    case SANDWICH_WEIGHTS_HUGE_PAGES:
      engineOptions.weightPlacement = WeightPlacement::HugePages;
      break;
    default:
      throw WrongUsage{"weights is not one of sandwich_weights"};
    }
    if (given.log)
      engineOptions.log = [&given](LogLevel level, const std::string &message) {
        given.log(given.user_data, level == LogLevel::Warning, message.c_str());
      };
    if (given.progress)
      engineOptions.progress = [&given](uint64_t done, uint64_t total) {
        given.progress(given.user_data, done, total);
      };
    SANDWICH_ASSIGN_OR_RETURN(
        loaded->engine, Engine::create(std::move(artifact), engineOptions));
    *out = new sandwich_model{std::move(loaded)};
    return {};
  });
}

void sandwich_model_free(sandwich_model *model) { delete model; }

uint64_t sandwich_model_vocab_size(const sandwich_model *model) {
  return model ? model->loaded->engine->vocabSize() : 0;
}

uint64_t sandwich_model_context_length(const sandwich_model *model) {
  return model ? model->loaded->engine->contextLength() : 0;
}

const char *sandwich_model_name(const sandwich_model *model) {
  return model ? model->loaded->engine->model().name().c_str() : nullptr;
}

int sandwich_model_has_tokenizer(const sandwich_model *model) {
  return model && model->loaded->tokenizer.has_value();
}

int sandwich_model_is_end_token(const sandwich_model *model, int32_t token) {
  if (!model)
    return 0;
  const auto &ends = model->loaded->engine->model().eos_token_ids();
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

sandwich_status sandwich_tokenize(const sandwich_model *model, const char *text,
                                  size_t text_bytes, int flags, int32_t **out,
                                  size_t *out_count, char **error) {
  return guard(error, [&]() -> Status {
    require(model, "model is NULL");
    if (text_bytes > 0)
      require(text, "text is NULL");
    require(out, "out is NULL");
    require(out_count, "out_count is NULL");
    if (flags &
        ~(SANDWICH_TOKENIZE_ADD_SPECIAL | SANDWICH_TOKENIZE_PARSE_SPECIAL))
      throw WrongUsage{"flags has more than sandwich_tokenize_flags"};
    SANDWICH_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                              tokenizerOf(*model->loaded));
    SANDWICH_ASSIGN_OR_RETURN(
        std::vector<int32_t> tokens,
        tokenizer->encode(
            std::string_view(text ? text : "", text_bytes),
            {.addSpecialTokens = (flags & SANDWICH_TOKENIZE_ADD_SPECIAL) != 0,
             .parseSpecialTokens =
                 (flags & SANDWICH_TOKENIZE_PARSE_SPECIAL) != 0}));
    size_t bytes = tokens.size() * sizeof(int32_t);
    // Never nothing, so that NULL always means a failed allocation.
    auto *copy =
        static_cast<int32_t *>(std::malloc(std::max<size_t>(bytes, 1)));
    if (!copy)
      throw std::bad_alloc();
    std::copy(tokens.begin(), tokens.end(), copy);
    *out = copy;
    *out_count = tokens.size();
    return {};
  });
}

sandwich_status sandwich_detokenize(const sandwich_model *model,
                                    const int32_t *tokens, size_t count,
                                    int skip_special_tokens, char **out,
                                    size_t *out_bytes, char **error) {
  return guard(error, [&]() -> Status {
    require(model, "model is NULL");
    if (count > 0)
      require(tokens, "tokens is NULL");
    require(out, "out is NULL");
    SANDWICH_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                              tokenizerOf(*model->loaded));
    std::string text =
        tokenizer->decode({tokens, count}, skip_special_tokens != 0);
    *out = copyText(text);
    if (out_bytes)
      *out_bytes = text.size();
    return {};
  });
}

sandwich_status sandwich_decoder_create(const sandwich_model *model,
                                        int skip_special_tokens,
                                        sandwich_decoder **out, char **error) {
  return guard(error, [&]() -> Status {
    require(model, "model is NULL");
    require(out, "out is NULL");
    SANDWICH_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                              tokenizerOf(*model->loaded));
    *out = new sandwich_decoder{
        model->loaded,
        StreamingDecoder(*tokenizer, skip_special_tokens != 0),
        {}};
    return {};
  });
}

void sandwich_decoder_free(sandwich_decoder *decoder) { delete decoder; }

sandwich_status sandwich_decoder_skip(sandwich_decoder *decoder,
                                      const int32_t *tokens, size_t count,
                                      char **error) {
  return guard(error, [&]() -> Status {
    require(decoder, "decoder is NULL");
    if (count > 0)
      require(tokens, "tokens is NULL");
    decoder->decoder.skip({tokens, count});
    return {};
  });
}

static void handOver(const sandwich_decoder &decoder, const char **out,
                     size_t *out_bytes) {
  *out = decoder.text.c_str();
  if (out_bytes)
    *out_bytes = decoder.text.size();
}

sandwich_status sandwich_decoder_add(sandwich_decoder *decoder, int32_t token,
                                     const char **out, size_t *out_bytes,
                                     char **error) {
  return guard(error, [&]() -> Status {
    require(decoder, "decoder is NULL");
    require(out, "out is NULL");
    decoder->text = decoder->decoder.decode(token);
    handOver(*decoder, out, out_bytes);
    return {};
  });
}

sandwich_status sandwich_decoder_finish(sandwich_decoder *decoder,
                                        const char **out, size_t *out_bytes,
                                        char **error) {
  return guard(error, [&]() -> Status {
    require(decoder, "decoder is NULL");
    require(out, "out is NULL");
    decoder->text = decoder->decoder.flush();
    handOver(*decoder, out, out_bytes);
    return {};
  });
}

sandwich_status sandwich_sequence_create(sandwich_model *model,
                                         sandwich_sequence **out,
                                         char **error) {
  return guard(error, [&]() -> Status {
    require(model, "model is NULL");
    require(out, "out is NULL");
    std::optional<StreamingDecoder> decoder;
    if (model->loaded->tokenizer)
      decoder.emplace(*model->loaded->tokenizer, /*skipSpecialTokens=*/true);
    *out = new sandwich_sequence{model->loaded,
                                 model->loaded->engine->newSequence(),
                                 {},
                                 std::move(decoder)};
    return {};
  });
}

void sandwich_sequence_free(sandwich_sequence *sequence) { delete sequence; }

sandwich_status sandwich_sequence_fork(const sandwich_sequence *sequence,
                                       sandwich_sequence **out, char **error) {
  return guard(error, [&]() -> Status {
    require(sequence, "sequence is NULL");
    require(out, "out is NULL");
    SANDWICH_RETURN_IF_ERROR(sequence->loaded->engine->checkRunning());
    const auto lock = sequence->loaded->lock();
    *out = new sandwich_sequence{sequence->loaded, sequence->tokens.fork(),
                                 sequence->logits, sequence->decoder};
    return {};
  });
}

uint64_t sandwich_sequence_length(const sandwich_sequence *sequence) {
  return sequence ? sequence->tokens.length() : 0;
}

void sandwich_sequence_clear(sandwich_sequence *sequence) {
  if (!sequence)
    return;
  const auto lock = sequence->loaded->lock();
  sequence->tokens.clear();
  sequence->logits.clear();
  if (sequence->decoder)
    sequence->decoder->flush();
}

sandwich_status sandwich_sequence_feed(sandwich_sequence *sequence,
                                       const int32_t *tokens, size_t count,
                                       float *all_logits, char **error) {
  return guard(error, [&]() -> Status {
    require(sequence, "sequence is NULL");
    require(tokens, "tokens is NULL");
    Engine &engine = *sequence->loaded->engine;
    uint64_t vocabulary = engine.vocabSize();
    const auto lock = sequence->loaded->lock();
    // Before the step, so that running out of memory leaves the sequence as
    // it was.
    sequence->logits.reserve(vocabulary);
    SANDWICH_RETURN_IF_ERROR(engine.feed(
        sequence->tokens, {tokens, count},
        all_logits ? LogitRows::All : LogitRows::Last,
        [&](std::span<const float> logits, uint64_t firstToken,
            uint64_t rows) -> Status {
          if (all_logits)
            std::copy(logits.begin(), logits.end(),
                      all_logits + firstToken * vocabulary);
          if (firstToken + rows == count)
            sequence->logits.assign(logits.end() -
                                        static_cast<std::ptrdiff_t>(vocabulary),
                                    logits.end());
          return {};
        }));
    if (sequence->decoder)
      sequence->decoder->skip({tokens, count});
    return {};
  });
}

const float *sandwich_sequence_logits(const sandwich_sequence *sequence) {
  return sequence && !sequence->logits.empty() ? sequence->logits.data()
                                               : nullptr;
}

sandwich_status
sandwich_sampler_create(const sandwich_sampling_options *options,
                        sandwich_sampler **out, char **error) {
  return guard(error, [&]() -> Status {
    require(out, "out is NULL");
    SamplingOptions sampling = readSampling(readOptions(options));
    SANDWICH_RETURN_IF_ERROR(sampling.validate());
    *out = new sandwich_sampler{Sampler(sampling)};
    return {};
  });
}

void sandwich_sampler_free(sandwich_sampler *sampler) { delete sampler; }

sandwich_status sandwich_sampler_sample(sandwich_sampler *sampler,
                                        const sandwich_sequence *sequence,
                                        int32_t *out, char **error) {
  return guard(error, [&]() -> Status {
    require(sampler, "sampler is NULL");
    require(sequence, "sequence is NULL");
    require(out, "out is NULL");
    if (sequence->logits.empty())
      throw WrongUsage{"the sequence was fed no token, so it has no logits"};
    SANDWICH_ASSIGN_OR_RETURN(SampledToken sampled,
                              sampler->sampler.sample(sequence->logits));
    *out = sampled.token;
    return {};
  });
}

static sandwich_stop_reason convert(StopReason reason) {
  switch (reason) {
  case StopReason::EndOfText:
    return SANDWICH_STOP_END_OF_TEXT;
  case StopReason::MaxTokens:
    return SANDWICH_STOP_MAX_TOKENS;
  case StopReason::ContextFull:
    return SANDWICH_STOP_CONTEXT_FULL;
  case StopReason::CacheFull:
    return SANDWICH_STOP_CACHE_FULL;
  case StopReason::Stopped:
    return SANDWICH_STOP_CALLBACK;
  }
  return SANDWICH_STOP_CALLBACK;
}

sandwich_status
sandwich_generate(sandwich_sequence *sequence, const int32_t *prompt,
                  size_t count, const sandwich_generate_options *options,
                  sandwich_token_callback callback, void *user_data,
                  sandwich_generate_statistics *statistics, char **error) {
  return guard(error, [&]() -> Status {
    require(sequence, "sequence is NULL");
    require(prompt, "prompt is NULL");
    sandwich_generate_options given = readOptions(options);
    sandwich_generate_statistics told = readOptions(statistics);
    GenerationOptions generation;
    if (given.max_tokens)
      generation.maxTokens = given.max_tokens;
    if (given.sampling.struct_size)
      generation.sampling = readSampling(readOptions(&given.sampling));
    generation.sampling.ignoreEndOfText = given.ignore_end_of_text != 0;
    LoadedModel &loaded = *sequence->loaded;
    std::optional<StreamingDecoder> decoder = sequence->decoder;
    if (decoder)
      decoder->skip({prompt, count});
    std::vector<int32_t> tokens(prompt, prompt + count);
    auto lock = loaded.lock();
    const uint64_t lengthBefore = sequence->tokens.length();
    Result<GenerationStatistics> generated = generate(
        *loaded.engine, sequence->tokens, {prompt, count}, generation,
        [&](int32_t token) {
          tokens.push_back(token);
          std::string text = decoder ? decoder->decode(token) : "";
          if (!callback)
            return true;
          // Others go on meanwhile, and the callback may call any function.
          const bool locked = lock.owns_lock();
          if (locked)
            lock.unlock();
          const int goesOn =
              callback(user_data, token, text.c_str(), text.size());
          if (locked)
            lock.lock();
          return goesOn != 0;
        },
        /*stopRequested=*/{}, &sequence->logits);
    // What was fed before an error stays, and the token chosen last is not fed.
    if (sequence->decoder)
      sequence->decoder->skip(
          std::span(tokens).first(sequence->tokens.length() - lengthBefore));
    SANDWICH_ASSIGN_OR_RETURN(GenerationStatistics result,
                              std::move(generated));
    if (decoder && callback)
      if (std::string text = decoder->flush(); !text.empty())
        callback(user_data, -1, text.c_str(), text.size());
    if (statistics) {
      told.prompt_tokens = result.promptTokens;
      told.generated_tokens = result.tokens.size();
      told.time_to_first_token_ms = result.timeToFirstTokenMs;
      told.time_per_output_token_ms = result.timePerOutputTokenMs;
      told.stop_reason = convert(result.stopReason);
      std::memcpy(statistics, &told, told.struct_size);
    }
    return {};
  });
}
