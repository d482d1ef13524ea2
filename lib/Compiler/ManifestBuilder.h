//===- ManifestBuilder.h - What an artifact says of itself ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_MANIFESTBUILDER_H
#define SANDWICH_LIB_COMPILER_MANIFESTBUILDER_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace sandwich {

/// Collects an artifact's manifest from the levels of the IR that know its
/// parts.
class ManifestBuilder {
public:
  /// The arguments live longer. `options` need not say before `build` what
  /// `kvDtype` is.
  ManifestBuilder(const CompileOptions &options, const ModelConfig &config,
                  const Target &target)
      : options(options), config(config), target(target) {}

  /// Of schedule IR: the schedules of each phase.
  void addSchedules(mlir::ModuleOp module);
  /// Of loop IR: threads, sizes and operations of each phase, and what draws
  /// tokens.
  void addPrograms(mlir::ModuleOp module);

  /// All but the tensors and files.
  proto::Manifest build() const;

private:
  proto::Phase &phaseNamed(llvm::StringRef name);
  void addEncoding(proto::Encoding &encoding) const;

  const CompileOptions &options;
  const ModelConfig &config;
  const Target &target;
  std::vector<proto::Phase> phases;
  /// Of what draws tokens, if a kernel does.
  std::string samplingSymbol;
  /// Whether a matmul rounds its input to integers.
  bool roundsInput = false;
};

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_MANIFESTBUILDER_H
