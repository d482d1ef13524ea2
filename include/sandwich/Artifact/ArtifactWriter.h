//===- ArtifactWriter.h - Writing a compiled model --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The compiler's way to write `NAME.sandwich/`: beside its place, and renamed
/// when it is complete.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_ARTIFACTWRITER_H
#define SANDWICH_ARTIFACT_ARTIFACTWRITER_H

#include "sandwich/Artifact/Format.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

/// An artifact under construction in the folder `PATH.partial-PID`, which has
/// no manifest until everything else is on the disk. Destroyed without
/// `commit`, it removes that folder. After an error only destruction is of use.
/// For one thread; moves, never copies.
///
/// \code
///   SANDWICH_ASSIGN_OR_RETURN(ArtifactWriter writer,
///                             ArtifactWriter::create("x.sandwich"));
///   SANDWICH_ASSIGN_OR_RETURN(uint64_t offset, writer.beginTensor(tensor));
///   SANDWICH_RETURN_IF_ERROR(writer.appendWeights(packed));
///   SANDWICH_RETURN_IF_ERROR(writer.addFile("phases.so", object));
///   SANDWICH_RETURN_IF_ERROR(writer.commit(std::move(manifest)));
/// \endcode
class ArtifactWriter {
public:
  /// Starts the artifact `path`. Removes what interrupted writers of the same
  /// artifact left. Errors: `path` exists and is no artifact, or the folder
  /// cannot be made.
  static Result<ArtifactWriter> create(const std::string &path);

  ArtifactWriter(ArtifactWriter &&other) noexcept;
  ArtifactWriter &operator=(ArtifactWriter &&other) noexcept;
  ~ArtifactWriter();

  /// Claims disk space for `bytes` of weights in all, so that a disk too small
  /// is found before the weights are packed. Does nothing on filesystems that
  /// cannot.
  Status reserveWeights(uint64_t bytes);

  /// Starts the next tensor at the next multiple of `alignment` (a multiple of
  /// `artifact::tensorAlignment`) and returns that offset. `offset` and `bytes`
  /// of `tensor` are filled in by the writer.
  Result<uint64_t> beginTensor(proto::Tensor tensor,
                               uint64_t alignment = artifact::pageBytes);

  /// Appends to the tensor begun last. What is beyond two megabytes of `bytes`
  /// is not copied.
  Status appendWeights(std::span<const std::byte> bytes);

  /// Says of tensor number `index`, as they were begun, what storing it as
  /// integers has done to it.
  void describeRounding(size_t index, proto::Rounding rounding);

  /// Fills `weights.bin` with zeros up to byte `offset`, behind which there is
  /// none yet. What is appended then belongs to no tensor until the next one
  /// begins: it is another rank's shard of those there are.
  Status skipTo(uint64_t offset);

  /// Length of `weights.bin` so far.
  uint64_t weightsBytes() const;

  /// Adds a whole file. `name` is plain and not that of the weights or the
  /// manifest.
  Status addFile(std::string_view name, std::span<const std::byte> bytes);
  Status addFile(std::string_view name, std::string_view text) {
    return addFile(name, std::as_bytes(std::span(text.data(), text.size())));
  }

  /// Copies the file `source` into the artifact as `name`.
  Status copyFile(std::string_view name, const std::string &source);

  /// Fills in `sandwich_version`, `tensors` and `files` of `manifest`, writes
  /// it, syncs everything and moves the artifact to its place; an artifact
  /// that was there is replaced in one step and removed, which takes a while.
  /// `inPlace` is called between. Errors: the manifest is not one that would
  /// load, the disk is full, or the place was taken by something else
  /// meanwhile.
  Status commit(proto::Manifest manifest,
                const std::function<void()> &inPlace = {});

  /// Lets the manifest of the artifact `path` say how long steps take. The new
  /// manifest is written beside the artifact and then moved into it, so that
  /// the artifact is whole at any time. Errors: there is no artifact, or its
  /// files are not what the manifest says; times that would not load; the disk
  /// is full.
  static Status setStepTimes(const std::string &path,
                             const proto::StepTimes &times);

private:
  struct State;
  explicit ArtifactWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_ARTIFACTWRITER_H
