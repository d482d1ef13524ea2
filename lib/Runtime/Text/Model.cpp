//===- Model.cpp - What turns a piece of text into ids --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

Result<ModelType> tokenizer::readModelType(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> type,
                            field.optionalMember("type"));
  if (!type) {
    // Files from before `type` was written are told apart by what they have.
    if (field.json().contains("max_input_chars_per_word"))
      return ModelType::WordPiece;
    if (field.json().contains("unk_id"))
      return ModelType::Unigram;
    return ModelType::BytePair;
  }
  SANDWICH_ASSIGN_OR_RETURN(std::string name, type->string());
  if (name == "BPE")
    return ModelType::BytePair;
  if (name == "WordPiece")
    return ModelType::WordPiece;
  if (name == "Unigram")
    return ModelType::Unigram;
  return type->unsupported();
}

Result<std::unique_ptr<Model>>
tokenizer::readModel(const JsonField &field, ModelType type,
                     const Vocabulary &vocabulary) {
  switch (type) {
  case ModelType::BytePair:
    break;
  case ModelType::WordPiece:
    return readWordPieceModel(field, vocabulary);
  case ModelType::Unigram:
    return readUnigramModel(field, vocabulary);
  }
  return readBytePairModel(field, vocabulary);
}
