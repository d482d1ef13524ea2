//===- Model.h - A model that serves, for C ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_MODEL_H
#define SANDWICH_LIB_RUNTIME_CAPI_MODEL_H

#include "Description.h"
#include "RunningService.h"

#include <memory>

struct sandwich_model {
  sandwich_description description;
  std::shared_ptr<sandwich::capi::RunningService> service;

  ~sandwich_model() { service->end(); }
};

#endif // SANDWICH_LIB_RUNTIME_CAPI_MODEL_H
