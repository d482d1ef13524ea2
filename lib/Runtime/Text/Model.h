//===- Model.h - What turns a piece of text into ids ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_MODEL_H
#define SANDWICH_LIB_RUNTIME_TEXT_MODEL_H

#include "JsonField.h"
#include "Vocabulary.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace sandwich::tokenizer {

/// A tokenizer's model: what turns pieces of text into ids.
class Model {
public:
  virtual ~Model() = default;

  /// The encoding of one text: its buffers and what it has seen so far.
  class Session {
  public:
    virtual ~Session() = default;

    /// Appends the ids of `piece`, nonempty valid UTF-8 of less than 4 GiB, to
    /// `ids`.
    virtual void encode(std::string_view piece, std::vector<int32_t> &ids) = 0;
  };

  /// Sessions of one model may run at the same time. The model must outlive
  /// them. Where special tokens are text, none comes from known characters; the
  /// one for what is unknown still does.
  virtual std::unique_ptr<Session>
  startSession(SpecialTokens specialTokens) const = 0;
};

/// The kinds of models.
enum class ModelType { BytePair, WordPiece, Unigram };

/// The kind of `model` of a tokenizer.json. Errors: it is another.
Result<ModelType> readModelType(const JsonField &field);

/// Reads `model` of a tokenizer.json, which is of `type`. Its tokens are in
/// `vocabulary`, which must outlive the model. Errors name the field.
Result<std::unique_ptr<Model>> readModel(const JsonField &field, ModelType type,
                                         const Vocabulary &vocabulary);

/// The same for each type.
Result<std::unique_ptr<Model>> readBytePairModel(const JsonField &field,
                                                 const Vocabulary &vocabulary);
Result<std::unique_ptr<Model>> readWordPieceModel(const JsonField &field,
                                                  const Vocabulary &vocabulary);
Result<std::unique_ptr<Model>> readUnigramModel(const JsonField &field,
                                                const Vocabulary &vocabulary);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_MODEL_H
