//===- WordPieceModel.cpp - Words cut into known pieces -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes the longest token that a word begins with, then the longest that the
/// rest begins with, and so on (Wu et al., 2016). A word that does not come out
/// even is unknown as a whole.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "PieceTrie.h"
#include "Unicode.h"

#include <optional>

using namespace sandwich;
using namespace sandwich::tokenizer;

namespace {

class WordPieceModel final : public Model {
public:
  WordPieceModel(const Vocabulary &vocabulary, PieceTrie pieces)
      : vocabulary(vocabulary), pieces(std::move(pieces)) {}

  Status read(const JsonField &field);

  std::unique_ptr<Session>
  startSession(SpecialTokens specialTokens) const override;

private:
  class WordPieceSession;

  const Vocabulary &vocabulary;
  PieceTrie pieces;
  PieceTrie::Start continuing = PieceTrie::root; ///< behind the prefix
  int32_t unknownId = -1;
  uint64_t mostCharacters = 0; ///< of a word that is known
};

class WordPieceModel::WordPieceSession final : public Model::Session {
public:
  WordPieceSession(const WordPieceModel &model, SpecialTokens specialTokens)
      : model(model), specialTokens(specialTokens) {}

  void encode(std::string_view piece, std::vector<int32_t> &ids) override;

private:
  bool encodeKnown(std::string_view word, std::vector<int32_t> &ids) const;

  const WordPieceModel &model;
  SpecialTokens specialTokens;
};

} // namespace

std::unique_ptr<Model::Session>
WordPieceModel::startSession(SpecialTokens specialTokens) const {
  return std::make_unique<WordPieceSession>(*this, specialTokens);
}

void WordPieceModel::WordPieceSession::encode(std::string_view piece,
                                              std::vector<int32_t> &ids) {
  const size_t count = ids.size();
  if (encodeKnown(piece, ids))
    return;
  ids.resize(count);
  ids.push_back(model.unknownId);
}

/// Appends the pieces of `word`; false if it is unknown, with any of them.
bool WordPieceModel::WordPieceSession::encodeKnown(
    std::string_view word, std::vector<int32_t> &ids) const {
  uint64_t characters = 0;
  for (size_t i = 0; i < word.size(); i += characterLength(word[i]))
    if (++characters > model.mostCharacters)
      return false;
  PieceTrie::Start start = PieceTrie::root;
  while (!word.empty()) {
    size_t longest = 0;
    int32_t found = -1;
    if (start != PieceTrie::nowhere)
      model.pieces.forEachPrefix(word, start, [&](size_t length, int32_t id) {
        if (specialTokens == SpecialTokens::Text &&
            model.vocabulary.isSpecial(id))
          return;
        longest = length;
        found = id;
      });
    if (found < 0)
      return false;
    ids.push_back(found);
    word.remove_prefix(longest);
    start = model.continuing;
  }
  return true;
}

Status WordPieceModel::read(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField unknown, field.member("unk_token"));
  SANDWICH_ASSIGN_OR_RETURN(std::string token, unknown.string());
  unknownId = vocabulary.idInModel(token);
  if (unknownId < 0)
    return unknown.error("the token ", inQuotes(token),
                         " is not in the vocabulary");
  SANDWICH_ASSIGN_OR_RETURN(std::string prefix,
                            field.stringMember("continuing_subword_prefix"));
  continuing = pieces.after(prefix);
  SANDWICH_ASSIGN_OR_RETURN(JsonField most,
                            field.member("max_input_chars_per_word"));
  SANDWICH_ASSIGN_OR_RETURN(mostCharacters, most.unsignedInteger());
  return {};
}

Result<std::unique_ptr<Model>>
tokenizer::readWordPieceModel(const JsonField &field,
                              const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField tokens, field.member("vocab"));
  SANDWICH_ASSIGN_OR_RETURN(PieceTrie pieces,
                            PieceTrie::read(tokens, vocabulary));
  auto model = std::make_unique<WordPieceModel>(vocabulary, std::move(pieces));
  SANDWICH_RETURN_IF_ERROR(model->read(field));
  return std::unique_ptr<Model>(std::move(model));
}
