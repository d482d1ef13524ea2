//===- Description.cpp - What an artifact tells, for C --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Description.h"

#include "Calls.h"

#include "sandwich/Runtime/Text/ArtifactTokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace sandwich;
using namespace sandwich::capi;

Result<sandwich_description> capi::describe(const Artifact &artifact) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Tokenizer> tokenizer,
                            loadTokenizer(artifact));
  return sandwich_description{artifact.path(), artifact.manifest().model(),
                              std::move(tokenizer)};
}

uint64_t sandwich_vocab_size(const sandwich_description *description) {
  return description ? description->model.vocab_size() : 0;
}

uint64_t sandwich_context_length(const sandwich_description *description) {
  return description ? description->model.context_length() : 0;
}

const char *sandwich_name(const sandwich_description *description) {
  return description ? description->model.name().c_str() : nullptr;
}

int sandwich_has_tokenizer(const sandwich_description *description) {
  return description && description->tokenizer.has_value();
}

int sandwich_is_end_token(const sandwich_description *description,
                          int32_t token) {
  if (!description)
    return 0;
  const auto &ends = description->model.eos_token_ids();
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

static Result<const Tokenizer *>
tokenizerOf(const sandwich_description &description) {
  if (!description.tokenizer)
    return makeError(ErrorKind::InvalidArgument, description.artifactPath,
                     ": has no tokenizer.json, so it knows token ids only");
  return &*description.tokenizer;
}

/// A copy of `bytes` bytes, allocated as sandwich_free frees it: never null.
static void *copyBytes(const void *source, size_t bytes) {
  void *copy = std::malloc(std::max<size_t>(bytes, 1));
  if (!copy)
    throw std::bad_alloc();
  if (bytes > 0)
    std::memcpy(copy, source, bytes);
  return copy;
}

sandwich_status sandwich_tokenize(const sandwich_description *description,
                                  const char *text, size_t text_bytes,
                                  int flags, int32_t **out, size_t *out_count,
                                  char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(description, "description"));
    SANDWICH_RETURN_IF_ERROR(requireArray(text, text_bytes, "text"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_RETURN_IF_ERROR(require(out_count, "out_count"));
    if (flags &
        ~(SANDWICH_TOKENIZE_ADD_SPECIAL | SANDWICH_TOKENIZE_PARSE_SPECIAL))
      return makeError(ErrorKind::InvalidArgument, "flags is ", flags,
                       ", which has more than sandwich_tokenize_flags");
    SANDWICH_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                              tokenizerOf(*description));
    SANDWICH_ASSIGN_OR_RETURN(
        std::vector<int32_t> tokens,
        tokenizer->encode(
            std::string_view(text ? text : "", text_bytes),
            {.addSpecialTokens = (flags & SANDWICH_TOKENIZE_ADD_SPECIAL) != 0,
             .parseSpecialTokens =
                 (flags & SANDWICH_TOKENIZE_PARSE_SPECIAL) != 0}));
    *out = static_cast<int32_t *>(
        copyBytes(tokens.data(), tokens.size() * sizeof(int32_t)));
    *out_count = tokens.size();
    return {};
  });
}

sandwich_status sandwich_detokenize(const sandwich_description *description,
                                    const int32_t *tokens, size_t count,
                                    int skip_special_tokens, char **out,
                                    size_t *out_bytes, char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(description, "description"));
    SANDWICH_RETURN_IF_ERROR(requireArray(tokens, count, "tokens"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                              tokenizerOf(*description));
    const std::string text =
        tokenizer->decode({tokens, count}, skip_special_tokens != 0);
    *out = static_cast<char *>(copyBytes(text.c_str(), text.size() + 1));
    if (out_bytes)
      *out_bytes = text.size();
    return {};
  });
}
