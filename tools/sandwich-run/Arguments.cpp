//===- Arguments.cpp - Arguments that several commands take ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>

using namespace sandwich;

/// The integers in `text`, separated by commas, or nothing. Those beyond 64
/// bits become the largest, which is outside of every vocabulary.
static std::optional<std::vector<int64_t>> parseList(const std::string &text) {
  std::vector<int64_t> numbers;
  const char *position = text.data();
  const char *end = position + text.size();
  while (true) {
    int64_t number = 0;
    auto [after, error] = std::from_chars(position, end, number);
    if (error == std::errc::invalid_argument)
      return std::nullopt;
    if (error == std::errc::result_out_of_range)
      number = std::numeric_limits<int64_t>::max();
    numbers.push_back(number);
    if (after == end)
      return numbers;
    if (*after != ',')
      return std::nullopt;
    position = after + 1;
  }
}

void tool::addArtifactArgument(CLI::App &command, std::string &path) {
  command
      .add_option("ARTIFACT", path,
                  "The folder NAME.sandwich that sandwich-compile wrote")
      ->required();
}

CLI::Option *tool::addTokenIdsOption(CLI::App &command,
                                     std::vector<int64_t> &tokenIds) {
  return command
      .add_option_function<std::string>(
          "--token-ids",
          [&tokenIds](const std::string &text) {
            std::optional<std::vector<int64_t>> list = parseList(text);
            if (!list)
              throw CLI::ValidationError(
                  "--token-ids",
                  "'" + text + "' is not a list of integers such as 1,2,3");
            tokenIds = *list;
          },
          "The prompt as token ids")
      ->type_name("1,2,3");
}

Result<std::vector<int32_t>>
tool::checkTokenIds(const std::vector<int64_t> &ids, uint64_t vocabSize) {
  std::vector<int32_t> checked;
  checked.reserve(ids.size());
  for (int64_t id : ids) {
    if (id < 0 || static_cast<uint64_t>(id) >= vocabSize)
      return makeError("token id ", id, " (number ", checked.size(),
                       " of --token-ids) is outside the vocabulary of ",
                       vocabSize, " tokens");
    checked.push_back(static_cast<int32_t>(id));
  }
  return checked;
}

CLI::Option *tool::addListOption(CLI::App &command, const std::string &name,
                                 std::vector<uint64_t> &list, uint64_t smallest,
                                 const std::string &description) {
  return command
      .add_option_function<std::string>(
          name,
          [&list, name, smallest](const std::string &text) {
            std::optional<std::vector<int64_t>> numbers = parseList(text);
            if (!numbers ||
                *std::min_element(numbers->begin(), numbers->end()) <
                    static_cast<int64_t>(smallest))
              throw CLI::ValidationError(
                  name, "'" + text +
                            "' is not a list of integers of at least " +
                            std::to_string(smallest) + " such as 16,128");
            list.assign(numbers->begin(), numbers->end());
          },
          description)
      ->type_name("N,N");
}

void tool::addWeightsOption(CLI::App &command,
                            std::optional<WeightPlacement> &placement) {
  command
      .add_option_function<std::string>(
          "--weights",
          [&placement](const std::string &name) {
            placement = name == "mapped" ? WeightPlacement::Mapped
                                         : WeightPlacement::HugePages;
          },
          "Where the weights lie: 'mapped', the default, shares the page cache "
          "with "
          "processes, 'huge-pages' reads a copy that is faster to stream")
      ->check(CLI::IsMember({"mapped", "huge-pages"}))
      ->type_name("mapped|huge-pages");
}
