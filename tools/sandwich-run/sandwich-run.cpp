//===- sandwich-run.cpp - Runs compiled models ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Terminal.h"
#include "sandwich/Support/CutFiles.h"
#include "sandwich/Support/Process.h"

#include <exception>
#include <new>
#include <sstream>

using namespace sandwich;

/// Exit status of a command line that makes no sense.
static constexpr int wrongUsage = 2;

int main(int argc, char **argv) try {
  prepareStandardStreams();
  exitOnCutFiles();

  CLI::App app("Runs models that sandwich-compile made.", "sandwich-run");
  app.footer(R"(Examples:
  sandwich-compile ./tiny-llama -o tiny.sandwich
  sandwich-run generate tiny.sandwich --prompt "Once upon a time"
  sandwich-run bench tiny.sandwich
  sandwich-run inspect tiny.sandwich

'sandwich-run COMMAND --help' tells about one command. Exit status: 0 done; 1
the input or the machine is at fault, and one line 'error: ...' says what to
change; 2 wrong usage.)");
  app.require_subcommand(1);
  app.set_version_flag("--version", SANDWICH_VERSION);
  tool::Action action;
  tool::addGenerateCommand(app, action);
  tool::addEmbedCommand(app, action);
  tool::addBenchEmbedCommand(app, action);
  tool::addLogitsCommand(app, action);
  tool::addPerplexityCommand(app, action);
  tool::addBenchCommand(app, action);
  tool::addReplayCommand(app, action);
  tool::addServeCommand(app, action);
  tool::addBenchServeCommand(app, action);
  tool::addCharacterizeCommand(app, action);
  tool::addCostCommand(app, action);
  tool::addDevicesCommand(app, action);
  tool::addInspectCommand(app, action);
  tool::addTopologyCommand(app, action);
  tool::addTokenizeCommand(app, action);
  tool::addRankCommand(app, action);

  try {
    app.parse(argc, argv);
    Status status = action();
    if (status)
      status = finishStandardOutput();
    if (!status) {
      tool::writeLog("error: " + status.error().message);
      return 1;
    }
    return 0;
  } catch (const CLI::Success &help) {
    std::ostringstream text;
    app.exit(help, text);
    Status status = writeStandardOutput(text.str());
    if (status)
      status = finishStandardOutput();
    if (!status)
      tool::writeLog("error: " + status.error().message);
    return status ? 0 : 1;
  } catch (const CLI::RuntimeError &ended) {
    // Whoever has to know was told.
    return ended.get_exit_code();
  } catch (const CLI::ParseError &wrong) {
    std::string problem = wrong.what();
    // Otherwise CLI11 only says that a command is missing.
    std::vector<std::string> unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty())
      problem = "'" + unknown.front() + "' is not a command of sandwich-run";
    tool::writeLog("error: " + problem +
                   "\nRun with --help for more information.");
    return wrongUsage;
  }
} catch (const std::bad_alloc &) {
  tool::writeLog("error: there is not enough memory");
  return 1;
} catch (const std::exception &exception) {
  tool::writeLog(std::string("error: ") + exception.what());
  return 1;
}
