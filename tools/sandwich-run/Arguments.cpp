//===- Arguments.cpp - Arguments that several commands take ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/File.h"
#include "sandwich/Topology/Search/PlanFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <unistd.h>

using namespace sandwich;

/// The integers in `text`, separated by commas, as they are written, or
/// nothing.
static std::optional<std::vector<std::string>>
splitList(const std::string &text) {
  std::vector<std::string> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string number = text.substr(begin, end - begin);
    size_t digits = number.starts_with('-') ? 1 : 0;
    if (digits == number.size() ||
        number.find_first_not_of("0123456789", digits) != number.npos)
      return std::nullopt;
    numbers.push_back(std::move(number));
    begin = end + 1;
  }
  return numbers;
}

/// The integer `text`, or nothing if `T` does not hold it.
template <typename T> static std::optional<T> parse(const std::string &text) {
  T number = 0;
  const char *end = text.data() + text.size();
  auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || after != end)
    return std::nullopt;
  return number;
}

void tool::addArtifactArgument(CLI::App &command, std::string &path) {
  command
      .add_option("ARTIFACT", path,
                  "The folder NAME.sandwich that sandwich-compile wrote")
      ->required();
}

CLI::Option *tool::addTokenIdsOption(CLI::App &command,
                                     std::vector<std::string> &tokenIds) {
  return command
      .add_option_function<std::string>(
          "--token-ids",
          [&tokenIds](const std::string &text) {
            std::optional<std::vector<std::string>> list = splitList(text);
            if (!list)
              throw CLI::ValidationError(
                  "--token-ids",
                  "'" + text + "' is not a list of integers such as 1,2,3");
            tokenIds = *std::move(list);
          },
          "The prompt as token ids")
      ->type_name("1,2,3");
}

Result<std::vector<int32_t>>
tool::checkTokenIds(const std::vector<std::string> &ids, uint64_t vocabSize) {
  std::vector<int32_t> checked;
  checked.reserve(ids.size());
  for (const std::string &text : ids) {
    std::optional<int32_t> id = parse<int32_t>(text);
    if (!id || *id < 0 || static_cast<uint64_t>(*id) >= vocabSize)
      return makeError("token id ", text, " (number ", checked.size(),
                       " of --token-ids) is outside the vocabulary of ",
                       vocabSize, " tokens");
    checked.push_back(*id);
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
            CLI::ValidationError wrong(
                name, "'" + text + "' is not a list of integers of at least " +
                          std::to_string(smallest) + " such as 16,128");
            std::optional<std::vector<std::string>> numbers = splitList(text);
            if (!numbers)
              throw wrong;
            list.clear();
            for (const std::string &written : *numbers) {
              std::optional<uint64_t> number = parse<uint64_t>(written);
              if (!number || *number < smallest)
                throw wrong;
              list.push_back(*number);
            }
          },
          description)
      ->type_name("N,N");
}

CLI::Option *tool::addNumberListOption(CLI::App &command,
                                       const std::string &name,
                                       std::vector<double> &list,
                                       double smallest, double largest,
                                       const std::string &description) {
  return command.add_option(name, list, description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(numberRange(smallest, largest))
      ->type_name("X,X");
}

CLI::Option *tool::addSeedOption(CLI::App &command, uint64_t &seed) {
  return command
      .add_option_function<std::string>(
          "--seed",
          [&seed](const std::string &text) {
            // CLI11 would wrap numbers that do not fit.
            std::optional<uint64_t> number = parse<uint64_t>(text);
            if (!number)
              throw CLI::ValidationError(
                  "--seed",
                  "'" + text + "' is not an integer from 0 to " +
                      std::to_string(std::numeric_limits<uint64_t>::max()));
            seed = *number;
          },
          "The same seed gives the same text; by default 0")
      ->type_name("S");
}

Result<std::string> tool::readInput(const std::string &path, size_t maxBytes) {
  if (path != "-")
    return readTextFile(path, maxBytes);
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError("read standard input");
    if (count == 0)
      return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > maxBytes)
      return makeError("standard input is longer than ", maxBytes, " bytes");
  }
}

Status tool::EngineArguments::apply(EngineOptions &options) const {
  options.weightPlacement = weights;
  options.kvMemory = kvMemory;
  options.verifyWeights = verify;
  // This very program, also if it was replaced meanwhile.
  options.ranks.program = "/proc/self/exe";
  // Under an emulator that is none that Linux could start.
  if (const char *program = std::getenv("SANDWICH_RANK_PROGRAM");
      program && *program) {
    if (::access(program, X_OK) != 0)
      return systemError("run SANDWICH_RANK_PROGRAM, " + std::string(program));
    options.ranks.program = program;
  }
  options.ranks.hosts = hosts;
  options.ranks.collectives = collectives;
  if (!plan)
    return {};
  SANDWICH_ASSIGN_OR_RETURN(Machine machine, readMachineTopology());
  SANDWICH_ASSIGN_OR_RETURN(options.plan,
                            readPlanCores(*plan, machine, planInstance));
  return {};
}

void tool::addWeightOptions(CLI::App &command,
                            std::optional<WeightPlacement> &weights,
                            bool &verify) {
  command
      .add_option_function<std::string>(
          "--weights",
          [&weights](const std::string &name) {
            weights = name == "mapped" ? WeightPlacement::Mapped
                                       : WeightPlacement::HugePages;
          },
          "Where the weights lie: 'mapped', the default, shares the page cache "
          "with other processes, 'huge-pages' reads a copy that is faster to "
          "stream")
      ->check(CLI::IsMember({"mapped", "huge-pages"}))
      ->type_name("mapped|huge-pages");
  command.add_flag("--verify", verify,
                   "First reads all weights and compares them with their "
                   "checksum; otherwise only their size is checked");
}

void tool::addEngineOptions(CLI::App &command, EngineArguments &arguments) {
  addWeightOptions(command, arguments.weights, arguments.verify);
  command
      .add_option_function<std::string>(
          "--kv-memory",
          [&arguments](const std::string &text) {
            arguments.kvMemory = parseBytes(text);
            if (!arguments.kvMemory || *arguments.kvMemory == 0)
              throw CLI::ValidationError(
                  "--kv-memory", "'" + text +
                                     "' is not a size above 0 such as 512MiB, "
                                     "1.5GiB or a number of bytes");
          },
          "Size of the KV cache. By default it has room for all tokens of this "
          "run, as far as memory is available")
      ->type_name("SIZE");
  command
      .add_option("--plan", arguments.plan,
                  "Cores to run on, from 'sandwich-compile --plan-only "
                  "--json'; the artifact must be compiled for as many "
                  "(default: those it was compiled for)")
      ->type_name("FILE.json");
  command
      .add_option("--plan-instance", arguments.planInstance,
                  "Which instance this is, from 0, where the plan is to run "
                  "several, each on cores of its own")
      ->needs("--plan")
      ->check(CLI::Range(0U, 1U << 15))
      ->type_name("N");
  command.add_flag("--mpi", arguments.mpi,
                   "Shares the ranks of ARTIFACT with other hosts: 'mpirun "
                   "-np 2 --host a,b --bind-to none' before this command "
                   "starts it on both, where ARTIFACT has to be at the same "
                   "path. Only the first prints");
}
