//===- ArtifactJson.h - An artifact's contents as JSON ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_ARTIFACTJSON_H
#define SANDWICH_ARTIFACT_ARTIFACTJSON_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Support/Json.h"

namespace sandwich {

/// A valid manifest as one object with the field names of
/// proto/manifest.proto. Checksums are strings of 16 hexadecimal digits.
Json toJson(const proto::Manifest &manifest);

/// The same with `path` and `format_version` in front.
Json toJson(const Artifact &artifact);

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_ARTIFACTJSON_H
