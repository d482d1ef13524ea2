//===- Artifact.h - Reading a compiled model --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The runtime's view of `NAME.sandwich/`.
///
/// An artifact is a program: running it runs its machine code with all that the
/// process may do, and no check of that code could tell what it does. So an
/// artifact is to be run only if whoever made it is trusted. The reader sees to
/// it that it is theirs and whole: nobody but its owner, who is the user or
/// root, can write to it; `Artifact::loadPhases` loads nothing that runs
/// before it is called or that brings in other code (`SharedObject`), and
/// loads the very bytes that it checked.
///
/// Of everything else nothing is trusted: what `Artifact::open` returns has
/// been checked against itself, against the files and against this CPU, and no
/// manifest, tokenizer or weights make the runtime read or write where it must
/// not.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_ARTIFACT_H
#define SANDWICH_ARTIFACT_ARTIFACT_H

#include "sandwich/Artifact/Format.h"
#include "sandwich/Artifact/WeightStorage.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// An open file, closed with its owner.
class FileDescriptor {
public:
  explicit FileDescriptor(int number = -1) : number(number) {}
  FileDescriptor(FileDescriptor &&other) noexcept;
  FileDescriptor &operator=(FileDescriptor &&other) noexcept;
  ~FileDescriptor();

  int get() const { return number; }

private:
  int number;
};

/// The artifact's machine code, loaded. The functions are valid as long as
/// this lives. Moves, never copies.
class PhaseLibrary {
public:
  PhaseLibrary(PhaseLibrary &&other) noexcept;
  PhaseLibrary &operator=(PhaseLibrary &&other) noexcept;
  ~PhaseLibrary();

  /// The phase called `name`, or null.
  SandwichPhaseFunction find(std::string_view name) const;

  /// What draws tokens in the place of the runtime, or null.
  SandwichSamplingFunction sampling() const { return samplingFunction; }

private:
  friend class Artifact;
  PhaseLibrary() = default;

  /// A copy of the file, in memory. Kept open because the loader knows the
  /// library by `/proc/self/fd/N`: were the number given to another artifact's,
  /// loading that one would return this library.
  FileDescriptor descriptor;
  void *handle = nullptr;
  std::map<std::string, SandwichPhaseFunction, std::less<>> functions;
  SandwichSamplingFunction samplingFunction = nullptr;
};

/// What a model is for.
enum class ModelUse { Generate, Encode };

struct ArtifactOpenOptions {
  /// The features its code may use; nothing to open it without running it, as
  /// `inspect` does, which needs no trust in who can write to it either.
  std::optional<CpuFeatures> availableFeatures = CpuFeatures::host();
  /// What the model must be for; nothing: either.
  std::optional<ModelUse> use = ModelUse::Generate;
};

/// An artifact whose manifest is valid, whose files all have the sizes and,
/// but for the weights, the checksums it tells. Files are opened once, so an
/// artifact that is compiled again meanwhile does not get mixed into this one.
class Artifact {
public:
  /// Opens the folder `path`. Errors name the file and the field; or the file
  /// that is to be run but that others may write to; or what the model is for,
  /// if that is not what is asked for. What an interrupted
  /// `ArtifactWriter` left is refused by its name, as it may look complete.
  static Result<Artifact> open(const std::string &path,
                               const ArtifactOpenOptions &options = {});

  const std::string &path() const { return folder; }
  const proto::Manifest &manifest() const { return contents; }
  /// Of a model that generates.
  const proto::Phase &prefill() const;
  const proto::Phase &decode() const;
  /// Sequences that one decode step takes.
  uint64_t maxDecodeSequences() const;

  /// Contents of a file other than the weights, such as
  /// `artifact::tokenizerFile`; nothing if the artifact has no such file.
  std::optional<std::string_view> file(std::string_view name) const;

  uint64_t weightsBytes() const;

  /// Compares the checksum of the weights, reading all of them.
  Status verifyWeights(const ProgressCallback &progress = {}) const;

  /// What rank `rank` reads: the weights that all ranks share, and its shard
  /// right behind them. The former are pages that ranks share, wherever the
  /// latter go.
  Result<WeightStorage> loadWeights(const WeightLoadOptions &options,
                                    uint32_t rank = 0) const;
  /// The bytes of that.
  uint64_t rankWeightsBytes() const;

  /// Loads the machine code. Errors: `SharedObject` or the loader refuses it, a
  /// symbol that the manifest names is absent, or its code was compiled for
  /// another plan than the manifest's.
  Result<PhaseLibrary> loadPhases() const;

private:
  Artifact() = default;

  std::string folder;
  proto::Manifest contents;
  FileDescriptor weights;
  std::map<std::string, std::string, std::less<>> smallFiles;
};

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_ARTIFACT_H
