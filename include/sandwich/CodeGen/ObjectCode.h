//===- ObjectCode.h - From LLVM IR to a shared object -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CODEGEN_OBJECTCODE_H
#define SANDWICH_CODEGEN_OBJECTCODE_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <string>
#include <string_view>

namespace llvm {
class Module;
} // namespace llvm

namespace sandwich {

/// Optimizes `module` for `target`. Every function may then use the target's
/// features and calls no library; those whose names begin with `entryPrefix`
/// are seen from outside, by default the entry points of phases.
Status optimize(llvm::Module &module, const Target &target,
                std::string_view entryPrefix = SANDWICH_PHASE_SYMBOL_PREFIX);

enum class CodeKind { Assembly, Object };

/// The assembly or object code of an optimized `module`.
Result<std::string> emitCode(llvm::Module &module, const Target &target,
                             CodeKind kind);

/// Links `object` into a shared object and returns its bytes. Errors: a symbol
/// that is not defined in it, or a disk too full for temporary files.
Result<std::string> linkSharedObject(const std::string &object);

} // namespace sandwich

#endif // SANDWICH_CODEGEN_OBJECTCODE_H
