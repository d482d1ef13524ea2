//===- write-hash-model.cpp - The tests' model for other programs ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `write-hash-model PATH [no-tokenizer] [plan] [threads=N] [ranks=N]
/// [shard=REGIONS] [context=N] [end=ID]` writes the artifact that the tests of
/// the tools, of the C interface and of the Python package run.
///
//===----------------------------------------------------------------------===//

#include "HashModel.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace sandwich;
using namespace sandwich::test;

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  HashModelOptions options;
  for (int i = 2; i < argc; ++i) {
    std::string_view argument = argv[i];
    const char *value = argv[i] + argument.find('=') + 1;
    if (argument == "no-tokenizer")
      options.withTokenizer = false;
    else if (argument == "never-spoils")
      options.spoils = false;
    else if (argument == "plan")
      options.plan = true;
    else if (argument.starts_with("threads="))
      options.threads = static_cast<unsigned>(std::atoi(value));
    else if (argument.starts_with("ranks="))
      options.ranks = static_cast<uint32_t>(std::atoi(value));
    else if (argument.starts_with("shard="))
      options.shardRegions = static_cast<uint32_t>(std::atoi(value));
    else if (argument.starts_with("context="))
      options.contextLength = static_cast<uint32_t>(std::atoi(value));
    else if (argument.starts_with("end="))
      options.endOfTextTokens.push_back(std::atoi(value));
    else
      return 2;
  }
  Status written = writeHashModel(argv[1], options);
  if (written)
    return 0;
  std::fprintf(stderr, "error: %s\n", written.error().message.c_str());
  return 1;
}
