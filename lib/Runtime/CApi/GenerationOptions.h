//===- GenerationOptions.h - Requests as C asks for them --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_GENERATIONOPTIONS_H
#define SANDWICH_LIB_RUNTIME_CAPI_GENERATIONOPTIONS_H

#include "sandwich/Runtime/sandwich.h"
#include "sandwich/Service/Service.h"

namespace sandwich::capi {

/// A request without its prompt. Errors, InvalidArgument: structures of no
/// version, arrays that are null but have elements, a token with two biases.
/// What is out of its range, the service refuses.
Result<GenerationRequest>
makeRequest(const sandwich_generation_options &options);

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_GENERATIONOPTIONS_H
