//===- Main.cpp - All-reduce over shared memory against OpenMPI -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CommandLine.h"
#include "Measurement.h"
#include "Peer.h"

#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>

using namespace sandwich;
using namespace sandwich::benchmark;
using Json = nlohmann::ordered_json;

namespace {

struct Options : MeasurementOptions {
  std::vector<int32_t> ranks = {2, 4};
  bool alone = false;
  std::string json;
};

/// Starts a process that runs `work`, ends with its result and does not outlive
/// this one. Its standard output becomes `output` unless that is -1.
pid_t startProcess(const std::function<int()> &work, int output = -1) {
  std::fflush(nullptr);
  pid_t process = ::fork();
  if (process != 0)
    return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (output >= 0)
    ::dup2(output, STDOUT_FILENO);
  int status = work();
  std::fflush(nullptr);
  ::_exit(status);
}

int reportError(const Error &error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

/// Rank 0 prints its measurements, one JSON object a line.
int runRank(const Segments &segments, int32_t rank, Peer *peer,
            const MeasurementOptions &options) {
  Result<std::vector<Measurement>> measurements =
      measure(segments, rank, peer, options);
  if (!measurements)
    return reportError(measurements.error());
  if (rank == 0)
    for (const Measurement &measurement : *measurements)
      std::printf("%s\n", Json{{"ranks", segments.shifted->ranks()},
                               {"bytes", measurement.bytes},
                               {"scheme", measurement.scheme},
                               {"seconds", measurement.seconds}}
                              .dump()
                              .c_str());
  return 0;
}

/// What the processes that the peer starts do.
int runPeerRank(const MeasurementOptions &options) {
  std::unique_ptr<Peer> peer = joinPeer();
  if (!peer)
    return reportError({"this benchmark was built without MPI"});
  Result<Segments> segments = Segments::share(*peer, options);
  if (!segments)
    return reportError(segments.error());
  return runRank(*segments, peer->rank(), peer.get(), options);
}

/// Runs all ranks as forks of this process.
int runForks(int32_t ranks, const MeasurementOptions &options) {
  Result<Segments> segments = Segments::create(ranks, options);
  if (!segments)
    return reportError(segments.error());
  std::vector<pid_t> processes;
  for (int32_t rank = 0; rank < ranks; ++rank)
    processes.push_back(startProcess(
        [&] { return runRank(*segments, rank, nullptr, options); }));
  int result = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    // Whoever fails, the others must not wait for it.
    int status = 0;
    pid_t ended = ::wait(&status);
    if (ended < 0 || status == 0)
      continue;
    result = 1;
    auto which = std::ranges::find(processes, ended) - processes.begin();
    segments->shifted->abort(static_cast<int32_t>(which), "ended early");
    segments->masterCopies->abort(static_cast<int32_t>(which), "ended early");
  }
  return result;
}

/// Replaces this process by the peer's launcher of this program's ranks.
int runLauncher(const std::vector<std::string> &command,
                const MeasurementOptions &options) {
  std::vector<std::string> words = command;
  std::string sizes;
  for (int64_t bytes : options.bytes)
    sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
  words.insert(words.end(), {"--peer-rank", "--bytes", sizes, "--rounds",
                             std::to_string(options.rounds), "--iterations",
                             std::to_string(options.iterations), "--slot-bytes",
                             std::to_string(options.slotBytes)});
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return reportError(systemError(words[0], "run it"));
}

Result<Json> measureRanks(int32_t ranks, const Options &options,
                          const std::string &program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return systemError("make a pipe");
  std::vector<std::string> command = peerCommand(ranks, program);
  pid_t process = startProcess(
      [&] {
        return command.empty() || options.alone ? runForks(ranks, options)
                                                : runLauncher(command, options);
      },
      ends[1]);
  ::close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t size; (size = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    output.append(buffer, static_cast<size_t>(size));
  ::close(ends[0]);
  int status = 0;
  if (process < 0 || ::waitpid(process, &status, 0) < 0 || status != 0)
    return makeError("the measurement of ", ranks, " ranks failed");
  Json measurements = Json::array();
  for (size_t begin = 0, end;
       (end = output.find('\n', begin)) != std::string::npos; begin = end + 1)
    measurements.push_back(Json::parse(output.substr(begin, end - begin)));
  return measurements;
}

void printTable(const Json &measurements) {
  double own = 0;
  for (const Json &row : measurements) {
    double seconds = row["seconds"];
    std::string scheme = row["scheme"];
    if (scheme == "rank-shifted")
      own = seconds;
    std::printf("%5d %8ld  %-28s %9.2f %7.2f\n", row["ranks"].get<int>(),
                row["bytes"].get<long>(), scheme.c_str(), seconds * 1e6,
                seconds / own);
  }
  std::fflush(stdout);
}

Status run(const Options &options, const std::string &program) {
  Json all = Json::array();
  std::printf("%5s %8s  %-28s %9s %7s\n", "ranks", "bytes", "scheme", "us",
              "ratio");
  for (int32_t ranks : options.ranks) {
    SANDWICH_ASSIGN_OR_RETURN(Json measurements,
                              measureRanks(ranks, options, program));
    printTable(measurements);
    all.insert(all.end(), measurements.begin(), measurements.end());
  }
  if (options.json.empty())
    return {};
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(options.json));
  SANDWICH_RETURN_IF_ERROR(file.write(all.dump(2) + "\n"));
  return file.commit();
}

} // namespace

int main(int argc, char **argv) try {
  prepareStandardStreams();
  Options options;
  CLI::App app{
      "Measures the all-reduce of ranks over shared memory, one process each, "
      "in turn with\nthe scheme in which a master copies and, where this "
      "program was built with it, with\nOpenMPI's shared-memory transport. "
      "Sums are checked first. Times are medians; ratios\nare to the "
      "rank-shifted scheme. Run it on an idle machine.\n",
      "sandwich-benchmark-collectives"};
  app.add_option("--ranks", options.ranks, "Numbers of ranks")
      ->delimiter(',')
      ->check(CLI::Range(1, SharedMemorySegment::maxRanks))
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "Sizes of messages, multiples of 4")
      ->delimiter(',')
      ->check(CLI::Range(4, 1 << 30))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Measurements of each, in turn")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--iterations", options.iterations,
                 "All-reduces of one measurement")
      ->check(CLI::Range(1, 60))
      ->capture_default_str();
  app.add_option("--slot-bytes", options.slotBytes,
                 "Size of a slot of the shared memory (0: the default)");
  app.add_flag("--alone", options.alone, "Do not run OpenMPI");
  app.add_option("--json", options.json, "File for the figures");
  bool peerRank = false;
  app.add_flag("--peer-rank", peerRank)->group("");
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;
  for (int64_t &bytes : options.bytes)
    bytes = bytes / 4 * 4;
  if (peerRank)
    return runPeerRank(options);
  char program[4096];
  ssize_t length = ::readlink("/proc/self/exe", program, sizeof(program));
  if (length < 0)
    return reportError(systemError("find this program"));
  Status status =
      run(options, std::string(program, static_cast<size_t>(length)));
  return status ? 0 : reportError(status.error());
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
