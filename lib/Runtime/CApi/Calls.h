//===- Calls.h - What every call from C does --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_CALLS_H
#define SANDWICH_LIB_RUNTIME_CAPI_CALLS_H

#include "sandwich/Runtime/sandwich.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

namespace sandwich::capi {

sandwich_status statusOf(ErrorKind kind);

/// Where `error` is not null, it becomes a copy of `message`.
void setError(char **error, const char *message);

/// Runs `body`, which returns a Status or throws, and turns whatever happens
/// into a status code: no exception crosses the interface.
template <typename Body> sandwich_status guard(char **error, const Body &body) {
  try {
    Status status = body();
    if (status)
      return SANDWICH_OK;
    setError(error, status.error().message.c_str());
    return statusOf(status.error().kind);
  } catch (const std::bad_alloc &) {
    setError(error, "there is not enough memory");
    return SANDWICH_FAILED;
  } catch (const std::exception &exception) {
    setError(error, exception.what());
    return SANDWICH_FAILED;
  }
}

/// The error of an argument `name` that is null.
Error nullError(const char *name);

/// Error, InvalidArgument: the argument `name` is null.
template <typename Pointee>
Status require(const Pointee *pointer, const char *name) {
  if (!pointer)
    return nullError(name);
  return {};
}

/// The same of an array, which may be null where it has no elements.
template <typename Element>
Status requireArray(const Element *elements, size_t count, const char *name) {
  if (count > 0)
    return require(elements, name);
  return {};
}

/// The caller's structure `name`, which may be of an older and shorter version
/// or null, in one of this version. Error, InvalidArgument: its size is that of
/// none.
template <typename Structure>
Result<Structure> readStructure(const Structure *given, const char *name) {
  Structure complete = {};
  if (!given)
    return complete;
  if (given->struct_size < sizeof(size_t) ||
      given->struct_size > sizeof(Structure))
    return makeError(ErrorKind::InvalidArgument, "struct_size of ", name,
                     " is ", given->struct_size, ", not ", sizeof(Structure),
                     "; this library may be older than the program's header");
  std::memcpy(&complete, given, given->struct_size);
  return complete;
}

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_CALLS_H
