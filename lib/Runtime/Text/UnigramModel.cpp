//===- UnigramModel.cpp - The likeliest pieces of a text ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Cuts a text into the tokens whose scores, logarithms of probabilities, add
/// up to the most (Kudo, 2018), by Viterbi's algorithm over the positions in
/// the text. A character that is no token is unknown at a score of its own, and
/// unknown characters that follow each other are one. Sums are made in the
/// order of Hugging Face's library and with its precision, so that of paths
/// that score alike the same one wins.
///
/// The work is linear in the text, as tokens are limited in length. So is the
/// memory, and as a rule it is little: where no token reaches across a
/// position, as between words, each path goes through it, and what lies before
/// it is settled.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "PieceTrie.h"
#include "Unicode.h"

#include <algorithm>
#include <array>
#include <limits>

using namespace sandwich;
using namespace sandwich::tokenizer;

/// How much worse an unknown character is than the worst token.
static constexpr double unknownPenalty = 10;

namespace {

class UnigramModel final : public Model {
public:
  UnigramModel(const Vocabulary &vocabulary, PieceTrie pieces)
      : vocabulary(vocabulary), pieces(std::move(pieces)) {}

  Status read(const JsonField &field, const JsonField &tokens);

  std::unique_ptr<Session>
  startSession(SpecialTokens specialTokens) const override;

private:
  class UnigramSession;

  const Vocabulary &vocabulary;
  PieceTrie pieces;
  std::vector<double> scores; ///< by id
  double unknownScore = 0;
  int32_t unknownId = -1;
  std::array<int32_t, 256> byteIds; ///< -1 where unknown bytes have no token
};

class UnigramModel::UnigramSession final : public Model::Session {
public:
  UnigramSession(const UnigramModel &model, SpecialTokens specialTokens)
      : model(model), specialTokens(specialTokens) {}

  void encode(std::string_view piece, std::vector<int32_t> &ids) override;

private:
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  /// The best path to a position.
  struct Path {
    double score = 0;
    uint32_t begin = none; ///< of its last token, from the settled position on
    int32_t id = -1;       ///< of that token
  };

  /// A token and the bytes of the text that it is.
  struct Step {
    size_t begin;
    size_t end;
    int32_t id;
  };

  /// Whether text may become the token `id`.
  bool mayMake(int32_t id) const {
    return specialTokens == SpecialTokens::Found ||
           !model.vocabulary.isSpecial(id);
  }
  void offer(size_t begin, size_t end, int32_t id, double score);
  void settle(std::string_view piece, size_t position,
              std::vector<int32_t> &ids);
  void endUnknown(std::string_view piece, std::vector<int32_t> &ids);

  const UnigramModel &model;
  SpecialTokens specialTokens;
  size_t settled = 0;      ///< the position up to which ids are known
  std::vector<Path> paths; ///< to the positions from there on
  std::vector<Step> steps; ///< of the part that is being settled
  /// The unknown bytes that were settled last and may go on.
  size_t unknownBegin = 0;
  size_t unknownEnd = 0;
};

} // namespace

std::unique_ptr<Model::Session>
UnigramModel::startSession(SpecialTokens specialTokens) const {
  return std::make_unique<UnigramSession>(*this, specialTokens);
}

/// Takes the token `id` at `[begin, end)` for the best path to `end`, which
/// then has `score`, if it is.
void UnigramModel::UnigramSession::offer(size_t begin, size_t end, int32_t id,
                                         double score) {
  if (paths.size() <= end - settled)
    paths.resize(end - settled + 1);
  Path &path = paths[end - settled];
  if (path.begin == none || score > path.score)
    path = {score, static_cast<uint32_t>(begin - settled), id};
}

void UnigramModel::UnigramSession::encode(std::string_view piece,
                                          std::vector<int32_t> &ids) {
  settled = unknownBegin = unknownEnd = 0;
  paths.assign(1, Path());
  for (size_t i = 0; i < piece.size();) {
    if (settled + paths.size() == i + 1)
      settle(piece, i, ids);
    const double score = paths[i - settled].score;
    const size_t next = i + characterLength(piece[i]);
    bool isKnown = false;
    model.pieces.forEachPrefix(
        piece.substr(i), PieceTrie::root, [&](size_t length, int32_t id) {
          if (!mayMake(id))
            return;
          offer(i, i + length, id,
                model.scores[static_cast<size_t>(id)] + score);
          isKnown |= i + length == next;
        });
    if (!isKnown)
      offer(i, next, model.unknownId, model.unknownScore + score);
    i = next;
  }
  settle(piece, piece.size(), ids);
  endUnknown(piece, ids);
}

/// Appends the ids of the best path to `position`, which is the only one, but
/// for unknown characters at its end.
void UnigramModel::UnigramSession::settle(std::string_view piece,
                                          size_t position,
                                          std::vector<int32_t> &ids) {
  steps.clear();
  for (size_t end = position; end != settled; end = steps.back().begin) {
    const Path &path = paths[end - settled];
    steps.push_back({settled + path.begin, end, path.id});
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->id == model.unknownId) {
      if (unknownBegin == unknownEnd)
        unknownBegin = step->begin;
      unknownEnd = step->end;
      continue;
    }
    endUnknown(piece, ids);
    ids.push_back(step->id);
  }
  const double score = paths[position - settled].score;
  settled = position;
  paths.assign(1, Path());
  paths[0].score = score;
}

/// Appends what the unknown bytes become that were settled last, if there are
/// any: the token that they are together, their bytes' tokens where each has
/// one, or the token for what is unknown.
void UnigramModel::UnigramSession::endUnknown(std::string_view piece,
                                              std::vector<int32_t> &ids) {
  const std::string_view unknown =
      piece.substr(unknownBegin, unknownEnd - unknownBegin);
  unknownBegin = unknownEnd = 0;
  if (unknown.empty())
    return;
  auto byteId = [&](char byte) {
    return model.byteIds[static_cast<unsigned char>(byte)];
  };
  if (int32_t id = model.vocabulary.idInModel(unknown); id >= 0 && mayMake(id))
    ids.push_back(id);
  else if (std::ranges::all_of(unknown,
                               [&](char byte) { return byteId(byte) >= 0; }))
    std::ranges::transform(unknown, std::back_inserter(ids), byteId);
  else
    ids.push_back(model.unknownId);
}

Status UnigramModel::read(const JsonField &field, const JsonField &tokens) {
  double least = std::numeric_limits<double>::infinity();
  for (const Json &token : tokens.json()) {
    scores.push_back(token[1].get<double>());
    least = std::min(least, scores.back());
  }
  unknownScore = least - unknownPenalty;
  SANDWICH_ASSIGN_OR_RETURN(JsonField unknown, field.member("unk_id"));
  SANDWICH_ASSIGN_OR_RETURN(unknownId, unknown.tokenId(scores.size()));
  SANDWICH_ASSIGN_OR_RETURN(bool byteFallback,
                            field.booleanMember("byte_fallback", false));
  byteIds.fill(-1);
  if (byteFallback)
    byteIds = vocabulary.byteTokenIds();
  return {};
}

Result<std::unique_ptr<Model>>
tokenizer::readUnigramModel(const JsonField &field,
                            const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField tokens, field.member("vocab"));
  SANDWICH_ASSIGN_OR_RETURN(PieceTrie pieces,
                            PieceTrie::read(tokens, vocabulary));
  auto model = std::make_unique<UnigramModel>(vocabulary, std::move(pieces));
  SANDWICH_RETURN_IF_ERROR(model->read(field, tokens));
  return std::unique_ptr<Model>(std::move(model));
}
