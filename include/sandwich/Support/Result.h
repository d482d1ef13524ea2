//===- Result.h - Values or one clear error ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `Result<T>` carries either a value or an `Error`. Rooms that must not link
/// LLVM (the artifact reader, the runtime, the checkpoint reader) report every
/// failure through it; an error is one sentence that names the file, the field
/// and the reason, ready to be printed after `error: `.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_RESULT_H
#define SANDWICH_SUPPORT_RESULT_H

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

namespace sandwich {

/// What a program can do about an error of serving; where nothing depends on
/// it, errors are `Unclassified`.
enum class ErrorKind {
  Unclassified,
  /// The request is wrong, whenever it is made.
  InvalidArgument,
  /// More tokens than the model's context.
  ContextExceeded,
  /// More tokens than the KV cache holds, or has left.
  CacheFull,
  /// The caller took the request back.
  Cancelled,
  /// The request's deadline has passed, or cannot be met.
  DeadlineExceeded,
  /// Too many requests are waiting; later there may be fewer.
  Overloaded,
  /// The engine runs no steps any more.
  Unavailable,
  /// The model computed what it must not, or a bug.
  Internal,
};

/// One sentence for the user: which file, which field, what is wrong.
struct Error {
  std::string message;
  ErrorKind kind = ErrorKind::Unclassified;

  /// The same error with `context` (usually a file name) put in front.
  Error inContext(const std::string &context) const {
    return {context + ": " + message, kind};
  }
};

/// Builds an `Error` from streamable parts: `makeError("head_dim is ", n)`.
template <typename... Parts> Error makeError(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return {stream.str()};
}

/// The same, of a kind.
template <typename... Parts>
Error makeError(ErrorKind kind, const Parts &...parts) {
  Error error = makeError(parts...);
  error.kind = kind;
  return error;
}

/// Why the system call just made failed, as `errno` has it: "cannot ACTION:
/// REASON".
inline Error systemError(const std::string &action) {
  return makeError("cannot ", action, ": ", std::strerror(errno));
}

/// "PATH: cannot ACTION: REASON".
inline Error systemError(const std::string &path, const std::string &action) {
  return systemError(action).inContext(path);
}

/// A value of type `T`, or the `Error` that kept it from being made.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() & { return std::get<0>(storage); }
  const T &operator*() const & { return std::get<0>(storage); }
  T &&operator*() && { return std::get<0>(std::move(storage)); }
  T *operator->() { return &std::get<0>(storage); }
  const T *operator->() const { return &std::get<0>(storage); }

  /// Only valid when the result holds no value.
  const Error &error() const { return std::get<1>(storage); }

private:
  std::variant<T, Error> storage;
};

/// Success, or an `Error`.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : failure(std::move(error)), failed(true) {}

  explicit operator bool() const { return !failed; }
  const Error &error() const { return failure; }

private:
  Error failure;
  bool failed = false;
};

using Status = Result<void>;

} // namespace sandwich

/// Returns the error of the status expression `expr` from the enclosing
/// function, if it failed.
#define SANDWICH_RETURN_IF_ERROR(expr)                                         \
  do {                                                                         \
    if (const auto &status_ = (expr); !status_)                                \
      return status_.error();                                                  \
  } while (false)

#define SANDWICH_CONCAT_IMPL(a, b) a##b
#define SANDWICH_CONCAT(a, b) SANDWICH_CONCAT_IMPL(a, b)

/// Declares `declaration` from the value of the `Result` expression `expr`, or
/// returns its error: `SANDWICH_ASSIGN_OR_RETURN(auto file, openFile(path));`
#define SANDWICH_ASSIGN_OR_RETURN(declaration, expr)                           \
  auto SANDWICH_CONCAT(result_, __LINE__) = (expr);                            \
  if (!SANDWICH_CONCAT(result_, __LINE__))                                     \
    return SANDWICH_CONCAT(result_, __LINE__).error();                         \
  /* NOLINTNEXTLINE(bugprone-macro-parentheses): it declares a variable. */    \
  declaration = *std::move(SANDWICH_CONCAT(result_, __LINE__))

#endif // SANDWICH_SUPPORT_RESULT_H
