//===- BytePairModel.cpp - Byte-pair encoding -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Merges neighbouring symbols, those of the best rank first and of equal ones
/// the leftmost, until none can be merged (Sennrich et al., 2016). A heap of
/// candidates makes this n log n in the length of the piece.
///
/// Two facts keep pieces short where the file has no pre-tokenizer. Two
/// characters end up in one token only if some merge has the first at the end
/// of its left side and the second at the beginning of its right side, so a
/// piece may be cut between any others without changing its ids. And words
/// repeat, so what short segments became is remembered.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "Unicode.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

using namespace sandwich;
using namespace sandwich::tokenizer;

namespace {

/// The pairs of characters that some merge joins.
class JoinablePairs {
public:
  void add(char32_t left, char32_t right) {
    if (left < tableSize && right < tableSize)
      table.set(left * tableSize + right);
    else
      others.insert(key(left, right));
  }
  bool contains(char32_t left, char32_t right) const {
    if (left < tableSize && right < tableSize)
      return table.test(left * tableSize + right);
    return others.contains(key(left, right));
  }

private:
  static uint64_t key(char32_t left, char32_t right) {
    return uint64_t(left) << 32 | right;
  }

  /// Covers Latin and the byte alphabet.
  static constexpr size_t tableSize = 512;
  std::bitset<tableSize * tableSize> table;
  std::unordered_set<uint64_t> others;
};

class BytePairModel final : public Model {
public:
  explicit BytePairModel(const Vocabulary &vocabulary)
      : vocabulary(vocabulary) {
    asciiIds.fill(-1);
    byteIds.fill(-1);
  }

  Status read(const JsonField &field);

  std::unique_ptr<Session>
  startSession(SpecialTokens specialTokens) const override;

private:
  class BytePairSession;

  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
  };

  /// A merge, kept with the others that have the same left side.
  struct Continuation {
    int32_t right;
    uint32_t rank;
  };

  Status readMerges(const JsonField &field);
  void indexCharacters();
  void indexMerges();

  /// The rank of the merge of `left` and `right`, if there is one.
  std::optional<uint32_t> rankOf(int32_t left, int32_t right) const {
    auto row = firstContinuation.begin() + left;
    auto end = continuations.begin() + row[1];
    auto position = std::lower_bound(
        continuations.begin() + row[0], end, right,
        [](const Continuation &a, int32_t b) { return a.right < b; });
    if (position == end || position->right != right)
      return std::nullopt;
    return position->rank;
  }

  /// The id of the token that is just `character`, or -1.
  int32_t idOfCharacter(char32_t character) const {
    if (character < asciiIds.size())
      return asciiIds[character];
    auto position = otherIds.find(character);
    return position == otherIds.end() ? -1 : position->second;
  }

  const Vocabulary &vocabulary;
  std::vector<Merge> merges; ///< by rank
  std::vector<Continuation> continuations;
  std::vector<uint32_t> firstContinuation; ///< by the id of the left side
  JoinablePairs joinable;
  std::array<int32_t, 128> asciiIds;
  std::unordered_map<char32_t, int32_t> otherIds;
  std::array<int32_t, 256> byteIds; ///< -1 where a byte has no token
  /// Unknown characters always become byte tokens, and these never merge.
  bool cutsAroundUnknown = false;
  int32_t unknownId = -1;
  bool fusesUnknown = false;
  bool ignoresMerges = false;
};

class BytePairModel::BytePairSession final : public Model::Session {
public:
  BytePairSession(const BytePairModel &model, SpecialTokens specialTokens)
      : model(model), specialTokens(specialTokens) {}

  void encode(std::string_view piece, std::vector<int32_t> &ids) override;

private:
  static constexpr size_t longestRemembered = 64;
  static constexpr size_t mostRemembered = size_t(1) << 17;
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  struct Symbol {
    int32_t id; ///< -1 once merged into its neighbour on the left
    uint32_t previous;
    uint32_t next;
  };

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  bool mayMake(int32_t id) const;
  int32_t idOfCharacter(char32_t character) const;
  bool mayCut(char32_t left, char32_t right) const;
  void encodeSegment(std::string_view segment, std::vector<int32_t> &ids);
  void encodeByMerging(std::string_view segment, std::vector<int32_t> &ids);
  void splitIntoSymbols(std::string_view segment);
  bool addBytes(std::string_view character);
  void addSymbol(int32_t id);
  void addCandidate(uint32_t left);
  void mergeCandidates();

  const BytePairModel &model;
  SpecialTokens specialTokens;
  std::vector<Symbol> symbols;
  /// A heap of ranks and positions of the left symbol, each pair in one number
  /// so that the least is the next to merge.
  std::vector<uint64_t> candidates;
  std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>>
      remembered;
};

} // namespace

std::unique_ptr<Model::Session>
BytePairModel::startSession(SpecialTokens specialTokens) const {
  return std::make_unique<BytePairSession>(*this, specialTokens);
}

/// Whether text may become the token `id`.
bool BytePairModel::BytePairSession::mayMake(int32_t id) const {
  return specialTokens == SpecialTokens::Found ||
         !model.vocabulary.isSpecial(id);
}

/// The id of the token that is just `character`, or -1 where there is none that
/// text may become.
int32_t
BytePairModel::BytePairSession::idOfCharacter(char32_t character) const {
  int32_t id = model.idOfCharacter(character);
  return mayMake(id) ? id : -1;
}

void BytePairModel::BytePairSession::encode(std::string_view piece,
                                            std::vector<int32_t> &ids) {
  if (model.ignoresMerges)
    if (int32_t id = model.vocabulary.idInModel(piece); id >= 0 && mayMake(id))
      return ids.push_back(id);
  if (piece.size() <= longestRemembered)
    return encodeSegment(piece, ids);
  size_t begin = 0;
  char32_t left = firstCharacter(piece);
  for (size_t i = characterLength(piece[0]); i < piece.size();
       i += characterLength(piece[i])) {
    char32_t right = firstCharacter(piece.substr(i));
    if (mayCut(left, right)) {
      encodeSegment(piece.substr(begin, i - begin), ids);
      begin = i;
    }
    left = right;
  }
  encodeSegment(piece.substr(begin), ids);
}

bool BytePairModel::BytePairSession::mayCut(char32_t left,
                                            char32_t right) const {
  if (model.joinable.contains(left, right))
    return false;
  // An unknown character may fuse with the next one, or vanish so that its
  // neighbours meet.
  return model.cutsAroundUnknown ||
         (idOfCharacter(left) >= 0 && idOfCharacter(right) >= 0);
}

void BytePairModel::BytePairSession::encodeSegment(std::string_view segment,
                                                   std::vector<int32_t> &ids) {
  if (segment.size() > longestRemembered)
    return encodeByMerging(segment, ids);
  auto position = remembered.find(segment);
  if (position == remembered.end()) {
    if (remembered.size() == mostRemembered)
      remembered.clear();
    std::vector<int32_t> segmentIds;
    encodeByMerging(segment, segmentIds);
    position =
        remembered.emplace(std::string(segment), std::move(segmentIds)).first;
  }
  ids.insert(ids.end(), position->second.begin(), position->second.end());
}

void BytePairModel::BytePairSession::encodeByMerging(
    std::string_view segment, std::vector<int32_t> &ids) {
  splitIntoSymbols(segment);
  mergeCandidates();
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

void BytePairModel::BytePairSession::addSymbol(int32_t id) {
  auto position = static_cast<uint32_t>(symbols.size());
  uint32_t previous = position == 0 ? none : position - 1;
  if (previous != none)
    symbols[previous].next = position;
  symbols.push_back({id, previous, none});
}

/// Adds the byte tokens of an unknown character, if each byte has one.
bool BytePairModel::BytePairSession::addBytes(std::string_view character) {
  auto idOf = [&](char byte) {
    return model.byteIds[static_cast<unsigned char>(byte)];
  };
  for (char byte : character)
    if (idOf(byte) < 0)
      return false;
  for (char byte : character)
    addSymbol(idOf(byte));
  return true;
}

void BytePairModel::BytePairSession::splitIntoSymbols(
    std::string_view segment) {
  symbols.clear();
  bool lastWasUnknown = false;
  for (size_t i = 0; i < segment.size();) {
    std::string_view character = segment.substr(i, characterLength(segment[i]));
    i += character.size();
    int32_t id = idOfCharacter(firstCharacter(character));
    bool unknown = id < 0 && !addBytes(character);
    if (id >= 0)
      addSymbol(id);
    else if (unknown && model.unknownId >= 0 &&
             !(lastWasUnknown && model.fusesUnknown))
      addSymbol(model.unknownId);
    lastWasUnknown = unknown;
  }
}

/// Makes the symbol at `left` and the one after it a candidate, if they merge.
void BytePairModel::BytePairSession::addCandidate(uint32_t left) {
  uint32_t right = symbols[left].next;
  if (right == none)
    return;
  auto rank = model.rankOf(symbols[left].id, symbols[right].id);
  if (rank && mayMake(model.merges[*rank].result))
    candidates.push_back(uint64_t(*rank) << 32 | left);
}

void BytePairModel::BytePairSession::mergeCandidates() {
  candidates.clear();
  for (uint32_t i = 0; i < symbols.size(); ++i)
    addCandidate(i);
  std::make_heap(candidates.begin(), candidates.end(), std::greater<>());
  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), std::greater<>());
    uint64_t candidate = candidates.back();
    candidates.pop_back();
    const Merge &merge = model.merges[candidate >> 32];
    auto position = static_cast<uint32_t>(candidate);
    Symbol &left = symbols[position];
    // Either side may have been merged with its other neighbour meanwhile.
    if (left.id != merge.left || left.next == none ||
        symbols[left.next].id != merge.right)
      continue;
    Symbol &right = symbols[left.next];
    left.id = merge.result;
    right.id = -1;
    left.next = right.next;
    if (left.next != none)
      symbols[left.next].previous = position;
    for (uint32_t changed : {left.previous, position}) {
      if (changed == none)
        continue;
      size_t count = candidates.size();
      addCandidate(changed);
      if (candidates.size() != count)
        std::push_heap(candidates.begin(), candidates.end(), std::greater<>());
    }
  }
}

void BytePairModel::indexCharacters() {
  for (int32_t id : vocabulary.modelTokenIds()) {
    std::string_view token = *vocabulary.tokenOf(id);
    if (token.empty() || characterLength(token[0]) != token.size())
      continue;
    char32_t character = firstCharacter(token);
    if (character < asciiIds.size())
      asciiIds[character] = id;
    else
      otherIds.emplace(character, id);
  }
}

/// The two sides of one entry of `merges`, written "a b" or ["a", "b"].
static std::optional<std::pair<std::string_view, std::string_view>>
mergeSides(const Json &entry) {
  if (entry.is_string()) {
    std::string_view text = entry.get_ref<const std::string &>();
    size_t space = text.find(' ');
    if (space == std::string_view::npos ||
        text.find(' ', space + 1) != std::string_view::npos)
      return std::nullopt;
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
      entry[1].is_string())
    return std::pair<std::string_view, std::string_view>(
        entry[0].get_ref<const std::string &>(),
        entry[1].get_ref<const std::string &>());
  return std::nullopt;
}

Status BytePairModel::readMerges(const JsonField &field) {
  const Json &list = field.json();
  if (!list.is_array())
    return field.error("must be a list");
  if (list.size() > std::numeric_limits<uint32_t>::max())
    return field.error("has more entries than fit");
  auto entryError = [&](size_t i, const auto &...parts) {
    return JsonField(list[i], field.path() + "[" + std::to_string(i) + "]")
        .error(parts...);
  };
  merges.reserve(list.size());
  std::string joined;
  for (size_t i = 0; i != list.size(); ++i) {
    auto sides = mergeSides(list[i]);
    if (!sides)
      return entryError(i, "must be two tokens, as \"a b\" or [\"a\", \"b\"]");
    auto [left, right] = *sides;
    joined.assign(left).append(right);
    Merge merge{vocabulary.idInModel(left), vocabulary.idInModel(right),
                vocabulary.idInModel(joined)};
    for (auto [id, token] :
         {std::pair(merge.left, left), std::pair(merge.right, right),
          std::pair(merge.result, std::string_view(joined))})
      if (id < 0)
        return entryError(i, "the token ", inQuotes(token),
                          " is not in the vocabulary");
    if (left.empty() || right.empty())
      return entryError(i, "has an empty side");
    joinable.add(lastCharacter(left), firstCharacter(right));
    merges.push_back(merge);
  }
  return {};
}

void BytePairModel::indexMerges() {
  firstContinuation.assign(vocabulary.size() + 1, 0);
  for (const Merge &merge : merges)
    ++firstContinuation[static_cast<size_t>(merge.left) + 1];
  for (size_t i = 1; i < firstContinuation.size(); ++i)
    firstContinuation[i] += firstContinuation[i - 1];
  continuations.resize(merges.size());
  std::vector<uint32_t> next(firstContinuation.begin(),
                             firstContinuation.end() - 1);
  // From the last rank down, so that of a pair that is written twice the last
  // comes first and is found, as in Hugging Face's library.
  for (size_t rank = merges.size(); rank-- > 0;)
    continuations[next[static_cast<size_t>(merges[rank].left)]++] = {
        merges[rank].right, static_cast<uint32_t>(rank)};
  for (size_t i = 0; i + 1 < firstContinuation.size(); ++i)
    std::sort(continuations.begin() + firstContinuation[i],
              continuations.begin() + firstContinuation[i + 1],
              [](const Continuation &a, const Continuation &b) {
                return a.right != b.right ? a.right < b.right : a.rank > b.rank;
              });
}

Status BytePairModel::read(const JsonField &field) {
  for (const char *affix :
       {"continuing_subword_prefix", "end_of_word_suffix"}) {
    SANDWICH_ASSIGN_OR_RETURN(std::string value, field.stringMember(affix, ""));
    if (!value.empty())
      return field.member(affix)->unsupported();
  }
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> dropout,
                            field.optionalMember("dropout"));
  if (dropout && dropout->json() != 0)
    return dropout->unsupported();
  SANDWICH_ASSIGN_OR_RETURN(fusesUnknown,
                            field.booleanMember("fuse_unk", false));
  SANDWICH_ASSIGN_OR_RETURN(ignoresMerges,
                            field.booleanMember("ignore_merges", false));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> unknown,
                            field.optionalMember("unk_token"));
  if (unknown) {
    SANDWICH_ASSIGN_OR_RETURN(std::string token, unknown->string());
    unknownId = vocabulary.idInModel(token);
    if (unknownId < 0)
      return unknown->error("the token ", inQuotes(token),
                            " is not in the vocabulary");
  }
  SANDWICH_ASSIGN_OR_RETURN(bool byteFallback,
                            field.booleanMember("byte_fallback", false));
  if (byteFallback)
    byteIds = vocabulary.byteTokenIds();
  SANDWICH_ASSIGN_OR_RETURN(JsonField mergesField, field.member("merges"));
  SANDWICH_RETURN_IF_ERROR(readMerges(mergesField));
  indexCharacters();
  indexMerges();
  std::unordered_set<int32_t> bytes(byteIds.begin(), byteIds.end());
  cutsAroundUnknown =
      !bytes.contains(-1) &&
      std::none_of(merges.begin(), merges.end(), [&](const Merge &merge) {
        return bytes.contains(merge.left) || bytes.contains(merge.right);
      });
  return {};
}

Result<std::unique_ptr<Model>>
tokenizer::readBytePairModel(const JsonField &field,
                             const Vocabulary &vocabulary) {
  auto model = std::make_unique<BytePairModel>(vocabulary);
  SANDWICH_RETURN_IF_ERROR(model->read(field));
  return std::unique_ptr<Model>(std::move(model));
}
