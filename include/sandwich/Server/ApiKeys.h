//===- ApiKeys.h - Who may use the server -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_APIKEYS_H
#define SANDWICH_SERVER_APIKEYS_H

#include "sandwich/Http/HttpServer.h"
#include "sandwich/Support/Result.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Keys that clients send as "Authorization: Bearer KEY", or as the password of
/// "Authorization: Basic", which is how a browser asks a person for it. Only
/// their hashes are kept.
class ApiKeys {
public:
  static constexpr size_t mostKeys = 4096;
  static constexpr size_t mostBytes = 4096;

  /// None: everybody may.
  ApiKeys() = default;

  /// A key on each line of the file; empty lines and those that begin with #
  /// are none. Errors: a file that cannot be read, or that has no key; a key
  /// that is too long or has characters other than those of printable ASCII.
  static Result<ApiKeys> read(const std::string &path);

  /// As `read` of a file with these contents.
  static Result<ApiKeys> parse(std::string_view text);

  bool empty() const { return hashes.empty(); }

  /// Whether `request` has one of the keys, or there are none. Takes the same
  /// time whatever keys are compared.
  bool allow(const HttpRequest &request) const;

private:
  using Hash = std::array<unsigned char, 32>;
  static Hash hash(std::string_view key);

  std::vector<Hash> hashes;
};

} // namespace sandwich

#endif // SANDWICH_SERVER_APIKEYS_H
