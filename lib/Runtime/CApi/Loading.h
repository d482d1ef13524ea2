//===- Loading.h - Engines as C asks for them -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_LOADING_H
#define SANDWICH_LIB_RUNTIME_CAPI_LOADING_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/sandwich.h"

namespace sandwich::capi {

/// `options` as an engine takes them. Errors, InvalidArgument: a structure of
/// no version, or weights that are not one of `sandwich_weights`.
Result<EngineOptions> readLoadOptions(const sandwich_load_options *options);

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_LOADING_H
