//===- mock-openai-server.cpp - Tokens without a model --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Serves while a command runs, with its address in the place of each argument
/// that is "URL":
///
///   mock-openai-server --token-ms=5 -- sandwich-run bench-serve URL --rate=10
///
//===----------------------------------------------------------------------===//

#include "MockServer.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstring>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace sandwich;
using test::MockOptions;
using test::MockServer;

/// The exit status of the command.
static int runCommand(std::vector<std::string> arguments,
                      const std::string &url) {
  std::vector<char *> pointers;
  for (std::string &argument : arguments) {
    for (size_t at = argument.find("URL"); at != std::string::npos;
         at = argument.find("URL", at + url.size()))
      argument.replace(at, 3, url);
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, pointers.front(), nullptr,
                                       nullptr, pointers.data(), environ)) {
    std::fprintf(stderr, "error: %s: %s\n", pointers.front(),
                 std::strerror(error));
    return 127;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  CLI::App app("Serves made-up tokens while a command runs.",
               "mock-openai-server");
  MockOptions options;
  std::string unixSocket;
  double firstTokenMilliseconds = 0, tokenMilliseconds = 0;
  std::vector<std::string> command;
  app.add_option("--unix", unixSocket, "A socket of the file system");
  app.add_option("--ttft-ms", firstTokenMilliseconds,
                 "Milliseconds before the first token");
  app.add_option("--token-ms", tokenMilliseconds,
                 "Milliseconds from each token to the next");
  app.add_option("--tokens-per-piece", options.tokensPerPiece)
      ->check(CLI::PositiveNumber);
  app.add_flag("!--no-usage", options.countsTokens);
  app.add_flag("!--no-done", options.endsWithDone);
  app.add_flag("!--no-text", options.hasText);
  app.add_flag("!--no-models", options.listsModels);
  app.add_flag("!--no-tokenize", options.hasTokenize);
  app.add_option("--context", options.contextTokens);
  app.add_option("--most-streams", options.mostStreams, "Beyond: 429");
  app.add_option("--refuse-member", options.unknownMembers,
                 "400 for requests that have it")
      ->allow_extra_args(false);
  app.add_flag("!--no-ids", options.takesIds, "400 for prompts of ids");
  app.add_option("--api-key", options.apiKey);
  app.add_option("--tokens-per-word", options.tokensPerWord);
  app.add_option("--more-tokens", options.moreTokens);
  app.add_option("--started-file", options.startedFile,
                 "Made when the fifth request comes");
  app.add_option("--good-requests", options.goodRequests,
                 "Before any that misbehave");
  app.add_option("--fail-every", options.failEvery);
  app.add_option("--fail-status", options.failStatus);
  app.add_option("--break-every", options.breakEvery);
  app.add_option("--hang-every", options.hangEvery);
  app.add_option("--garble-every", options.garbleEvery);
  app.add_option("--error-every", options.errorEvery);
  app.add_option("--plain-every", options.plainEvery);
  app.add_option("COMMAND", command)->required();
  app.positionals_at_end();
  CLI11_PARSE(app, argc, argv);
  if (!unixSocket.empty())
    options.unixSocket = unixSocket;
  options.firstTokenSeconds = firstTokenMilliseconds / 1e3;
  options.tokenSeconds = tokenMilliseconds / 1e3;
  Result<std::unique_ptr<MockServer>> server = MockServer::create(options);
  if (!server) {
    std::fprintf(stderr, "error: %s\n", server.error().message.c_str());
    return 127;
  }
  return runCommand(std::move(command), (*server)->address());
}
