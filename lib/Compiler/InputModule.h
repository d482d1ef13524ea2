//===- InputModule.h - IR from outside --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_INPUTMODULE_H
#define SANDWICH_LIB_COMPILER_INPUTMODULE_H

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Support/Result.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace sandwich {

/// Model IR or schedule IR in the file `path`. Errors: it cannot be read, is
/// larger than 64 MiB, nests deeper than the parser should recurse, or is not
/// valid.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
readInputModule(const std::string &path, mlir::MLIRContext &context);

/// Among how many ranks the module's weights are divided. Error: not all among
/// as many.
Result<int64_t> findRanks(mlir::ModuleOp module);

/// IR from outside may be of another model, and nothing after it would notice:
/// the sizes in it decide what is read and written. Checks that `checkpoint`
/// has the weights of `module` exactly, that its phases are like those of
/// `own`, the compiler's model for the same checkpoint and number of ranks,
/// that its tables have a row for each token, type and position of contexts of
/// `contextLength` tokens, and what `lm-verify-phases` does. `elementTypes`,
/// those of `own`, are for the message.
Status checkInputModule(mlir::ModuleOp module, mlir::ModuleOp own,
                        const Checkpoint &checkpoint,
                        const std::string &elementTypes, int64_t contextLength);

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_INPUTMODULE_H
