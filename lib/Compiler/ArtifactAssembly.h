//===- ArtifactAssembly.h - Weights and code into an artifact ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_ARTIFACTASSEMBLY_H
#define SANDWICH_LIB_COMPILER_ARTIFACTASSEMBLY_H

#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Quantization/ChannelImportance.h"
#include "sandwich/Support/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace sandwich {

/// Packs the weights of `module`, whose offsets are placed, into the artifact
/// of `writer`: those that all ranks read, then each rank's shard; rounding
/// spares the channels that `importance` says. Adds the
/// code, the tokenizer of `checkpoint` and `manifest`, and commits it. Errors:
/// of the checkpoint and the writer; offsets that are not those of
/// lm-place-weights; the progress callback's.
Status assembleArtifact(ArtifactWriter writer, proto::Manifest manifest,
                        mlir::ModuleOp module, const Checkpoint &checkpoint,
                        const ChannelImportance &importance,
                        const std::string &sharedObject,
                        const CompileProgress &progress);

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_ARTIFACTASSEMBLY_H
