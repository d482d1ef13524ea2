//===- OutputConstraint.h - What a text must be like, as a constraint *- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_OUTPUTCONSTRAINT_H
#define SANDWICH_LIB_SERVER_OUTPUTCONSTRAINT_H

#include "LoadedModel.h"
#include "ToolCallParser.h"

#include "sandwich/Api/ChatRequest.h"
#include "sandwich/Sampling/TokenConstraint.h"

#include <memory>
#include <variant>

namespace sandwich {

using ConstraintOrError =
    std::variant<std::shared_ptr<const TokenConstraint>, ApiError>;

/// What keeps a text to the format that `parameters` ask for; null: any text
/// will do. Errors name the field: a schema or an expression that is not
/// supported, or asks for too much.
ConstraintOrError constrainFormat(const GenerationParameters &parameters,
                                  const LoadedModel &model);

/// What keeps a text to calls of the tools that the request demands; null: it
/// demands none.
ConstraintOrError constrainToolCalls(const ChatRequest &request,
                                     const ToolCallSyntax &syntax,
                                     const LoadedModel &model);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_OUTPUTCONSTRAINT_H
