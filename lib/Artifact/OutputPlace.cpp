//===- OutputPlace.cpp - Where tools may write ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/OutputPlace.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Support/File.h"

#include <filesystem>

using namespace sandwich;
namespace fs = std::filesystem;

std::string sandwich::findOutputNameProblem(const std::string &name) {
  if (name.empty())
    return "an empty name is no place for an output";
  if (name.starts_with('-'))
    return "'" + name + "' looks like an option; write './" + name +
           "' if an output is to be called so";
  return {};
}

bool sandwich::holdsManifest(const std::string &folder) {
  const std::string manifest = folder + "/" + artifact::manifestFile;
  std::error_code error;
  if (fs::symlink_status(manifest, error).type() != fs::file_type::regular)
    return false;
  auto bytes = readTextFile(manifest, artifact::limits::manifestBytes);
  proto::Envelope envelope;
  return bytes && envelope.ParseFromString(*bytes) &&
         envelope.format_version() != 0;
}

Status sandwich::checkOutputPlace(const std::string &path,
                                  const ToolInputs &inputs) {
  std::error_code error;
  // Paths that cannot be followed are refused where they are opened.
  const fs::path place = fs::weakly_canonical(path, error);
  if (error)
    return {};
  const auto isSame = [&](const fs::path &one, const fs::path &other) {
    return fs::equivalent(one, other, error);
  };
  for (fs::path folder = place.parent_path();; folder = folder.parent_path()) {
    if (!inputs.model.empty() && isSame(folder, inputs.model))
      return makeError(path, ": lies in the folder of the model, which is only "
                             "read; write to another place");
    if (holdsManifest(folder))
      return makeError(path, ": lies in the artifact ", folder.string(),
                       ", which would be spoilt; write to another place");
    if (folder == folder.parent_path())
      break;
  }
  // A device takes what is written and is none the worse for it.
  if (!fs::is_regular_file(place, error))
    return {};
  for (const std::string &file : inputs.files)
    if (isSame(place, file))
      return makeError(path, ": is read as well; write to another place");
  if (!inputs.model.empty())
    for (fs::directory_iterator entry(inputs.model, error), end;
         !error && entry != end; entry.increment(error))
      if (std::error_code ignored; fs::equivalent(place, *entry, ignored))
        return makeError(path, ": is the model's ",
                         entry->path().filename().string(),
                         ", which is only read; write to another place");
  return {};
}
