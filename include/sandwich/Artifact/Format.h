//===- Format.h - The artifact's names, limits and manifest -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the writer and the reader of artifacts share: file names, limits, and
/// the way from the bytes of `manifest.pb` to a manifest that can be trusted.
/// proto/manifest.proto describes the fields.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_FORMAT_H
#define SANDWICH_ARTIFACT_FORMAT_H

#include "sandwich/Artifact/manifest.pb.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/CpuFeatures.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::artifact {

/// The version this code writes, and the only one it reads.
inline constexpr uint32_t formatVersion = 1;

inline constexpr char manifestFile[] = "manifest.pb";
inline constexpr char phasesFile[] = "phases.so";
inline constexpr char weightsFile[] = "weights.bin";
/// Only present where the checkpoint had them.
inline constexpr char tokenizerFile[] = "tokenizer.json";
inline constexpr char tokenizerConfigFile[] = "tokenizer_config.json";
inline constexpr char chatTemplateFile[] = "chat_template.jinja";
/// Every file an artifact may have.
inline constexpr std::string_view fileNames[] = {
    manifestFile,  phasesFile,          weightsFile,
    tokenizerFile, tokenizerConfigFile, chatTemplateFile};

inline constexpr char prefillPhase[] = "prefill";
inline constexpr char decodePhase[] = "decode";
inline constexpr char embedPhase[] = "embed";
inline constexpr char embedTokensPhase[] = "embed_tokens";
inline constexpr char classifyPhase[] = "classify";

/// Every tensor's offset in `weights.bin` is a multiple of this.
inline constexpr uint64_t tensorAlignment = 64;
/// Pages in which tensors that kernels stream start on their own.
inline constexpr uint64_t pageBytes = 4096;

/// Limits that a manifest must keep; far above what any model needs, and low
/// enough that sizes computed from them stay within 63 bits.
namespace limits {
inline constexpr uint64_t manifestBytes = uint64_t(4) << 20;
/// Of any file but the weights; such a file is held in memory.
inline constexpr uint64_t fileBytes = uint64_t(1) << 28;
inline constexpr uint64_t weightsBytes = uint64_t(1) << 44;
inline constexpr uint64_t workspaceBytes = uint64_t(1) << 36;
/// Of a full context's KV cache.
inline constexpr uint64_t kvCacheBytes = uint64_t(1) << 44;
/// Of `max_logit_rows` rows of float32 logits.
inline constexpr uint64_t logitsBytes = uint64_t(1) << 36;
inline constexpr uint32_t tensors = 1 << 18;
inline constexpr uint32_t tensorRank = 8;
inline constexpr uint32_t nameBytes = 1024;
inline constexpr uint32_t threads = SANDWICH_MAX_THREADS;
/// Of a CPU, as the operating system counts them.
inline constexpr uint32_t cpuIndex = 1 << 20;
inline constexpr uint32_t operations = 1 << 16;
/// Of a classifier.
inline constexpr uint32_t labels = 1 << 16;
inline constexpr uint32_t prompts = 1 << 10;
inline constexpr uint64_t promptBytes = uint64_t(1) << 20;
inline constexpr uint32_t tokensOfStep = SANDWICH_MAX_STEP_TOKENS;
/// Points of one phase's curve in `step_times`.
inline constexpr uint32_t stepTimePoints = 64;
/// Of one step, and of one position.
inline constexpr double stepSeconds = 1e6;
} // namespace limits

/// XXH3 with 64 bits of `bytes`.
uint64_t checksum(std::span<const std::byte> bytes);

/// Checks every field that the runtime will use, against the limits above and
/// against the other fields. The error names the field, its value and what is
/// accepted.
Status validateManifest(const proto::Manifest &manifest);

/// The same for the fields that are known early: the target, the model and the
/// cache before anything is lowered, the phases, once there are any, before
/// weights are packed.
Status validateConfiguration(const proto::Manifest &manifest);

/// The bytes of `manifest.pb` around `manifest`. Errors: `validateManifest`
/// rejects it, or it is larger than `limits::manifestBytes`.
Result<std::string> serializeManifest(const proto::Manifest &manifest);

/// The manifest in the bytes of `manifest.pb`, validated. Errors: not a
/// manifest, another format version, a wrong checksum, or whatever
/// `validateManifest` finds.
Result<proto::Manifest> parseManifest(std::string_view bytes);

/// Whether code for `target` runs where `available` is offered. The error
/// names the features that are missing and what to do.
Status checkCpuFeatures(const proto::Target &target,
                        const CpuFeatures &available);

/// The processes that run the artifact together, at least one.
uint32_t ranks(const proto::Manifest &manifest);

/// The phases of such a model, by name, in their order.
std::vector<std::string_view> phaseNames(const proto::Manifest &manifest);

/// Values in each row of what `phase` returns.
uint32_t columnsOf(const proto::Phase &phase, const proto::Manifest &manifest);

/// The phase called `name`, which a validated manifest has exactly once, or
/// null.
const proto::Phase *findPhase(const proto::Manifest &manifest,
                              std::string_view name);

/// The entry of the file called `name`, or null.
const proto::File *findFile(const proto::Manifest &manifest,
                            std::string_view name);

/// Bytes of a key, or a value, of a head of `headDim` channels in a KV cache of
/// `dtype` ("f32", "bf16", "f16", or "int8", with its scale), or 0 if there is
/// no such type.
uint64_t keyValueBytes(std::string_view dtype, uint64_t headDim);

} // namespace sandwich::artifact

#endif // SANDWICH_ARTIFACT_FORMAT_H
