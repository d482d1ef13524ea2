//===- ManifestFuzzer.cpp - Manifests nobody wrote ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes the input as the bytes of `manifest.pb`, and as a manifest inside an
/// envelope whose version and checksum are right, so that the checks of the
/// fields are reached.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/ArtifactJson.h"
#include "sandwich/Artifact/Format.h"

#include <cstdlib>
#include <string>
#include <string_view>

using namespace sandwich;

static void tryManifest(std::string_view bytes) {
  auto manifest = artifact::parseManifest(bytes);
  if (!manifest)
    return;
  // What was accepted can be written, read and printed.
  auto written = artifact::serializeManifest(*manifest);
  if (!written || !artifact::parseManifest(*written))
    std::abort();
  (void)artifact::checkCpuFeatures(manifest->target(), {});
  (void)toJson(*manifest).dump();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  tryManifest(bytes);

  proto::Envelope envelope;
  envelope.set_format_version(artifact::formatVersion);
  envelope.set_manifest(bytes.data(), bytes.size());
  envelope.set_checksum(artifact::checksum(std::as_bytes(std::span(bytes))));
  tryManifest(envelope.SerializeAsString());
  return 0;
}
