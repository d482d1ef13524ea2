//===- OutputPlace.h - Where tools may write --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_OUTPUTPLACE_H
#define SANDWICH_ARTIFACT_OUTPUTPLACE_H

#include "sandwich/Support/Result.h"

#include <span>
#include <string>

namespace sandwich {

/// Why `name` is not taken for a file or folder to write: it is empty or begins
/// with "-", as an option does that lost the value before it; "./-" is a way to
/// name such a file. Empty if nothing is wrong. "-", which stands for standard
/// output, is the caller's.
std::string findOutputNameProblem(const std::string &name);

/// Whether `folder` holds the manifest of an artifact, of any version.
bool holdsManifest(const std::string &folder);

/// What a tool reads, and so must not write to.
struct ToolInputs {
  /// The folder of a checkpoint; empty if there is none.
  std::string model;
  std::span<const std::string> files;
};

/// Errors: to write `path` would change the model's folder, one of its files
/// through a link, an input, or an artifact that `path` lies in.
Status checkOutputPlace(const std::string &path, const ToolInputs &inputs);

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_OUTPUTPLACE_H
