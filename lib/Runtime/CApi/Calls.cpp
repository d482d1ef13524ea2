//===- Calls.cpp - What every call from C does ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include <cstdlib>

using namespace sandwich;

sandwich_status capi::statusOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Unclassified:
    return SANDWICH_FAILED;
  case ErrorKind::InvalidArgument:
    return SANDWICH_INVALID_ARGUMENT;
  case ErrorKind::ContextExceeded:
    return SANDWICH_CONTEXT_EXCEEDED;
  case ErrorKind::CacheFull:
    return SANDWICH_CACHE_FULL;
  case ErrorKind::Cancelled:
    return SANDWICH_CANCELLED;
  case ErrorKind::DeadlineExceeded:
    return SANDWICH_DEADLINE_EXCEEDED;
  case ErrorKind::Overloaded:
    return SANDWICH_OVERLOADED;
  case ErrorKind::Unavailable:
    return SANDWICH_UNAVAILABLE;
  case ErrorKind::Internal:
    return SANDWICH_INTERNAL;
  }
  return SANDWICH_FAILED;
}

void capi::setError(char **error, const char *message) {
  if (error)
    *error = ::strdup(message);
}

Error capi::nullError(const char *name) {
  return makeError(ErrorKind::InvalidArgument, name, " is NULL");
}

uint32_t sandwich_api_version(void) { return SANDWICH_API_VERSION; }

void sandwich_free(void *memory) { std::free(memory); }
