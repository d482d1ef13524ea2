//===- ApiKeys.cpp - Who may use the server -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/ApiKeys.h"

#include "sandwich/Support/File.h"

#include <algorithm>
#include <optional>
#include <sodium.h>

using namespace sandwich;

ApiKeys::Hash ApiKeys::hash(std::string_view key) {
  Hash hash;
  static_assert(hash.size() == crypto_generichash_BYTES);
  (void)crypto_generichash(hash.data(), hash.size(),
                           reinterpret_cast<const unsigned char *>(key.data()),
                           key.size(), nullptr, 0);
  return hash;
}

Result<ApiKeys> ApiKeys::parse(std::string_view text) {
  ApiKeys keys;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view key = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (key.ends_with('\r'))
      key.remove_suffix(1);
    if (key.empty() || key.starts_with('#'))
      continue;
    if (key.size() > mostBytes ||
        !std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; }))
      return makeError("line ", line, " is no key: one has 1 to ", mostBytes,
                       " printable characters of ASCII without spaces");
    if (keys.hashes.size() == mostKeys)
      return makeError("there are more than ", mostKeys, " keys");
    keys.hashes.push_back(hash(key));
  }
  if (keys.hashes.empty())
    return makeError("there is no key; each line has one");
  return keys;
}

Result<ApiKeys> ApiKeys::read(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(const std::string text,
                            readTextFile(path, mostKeys * (mostBytes + 2)));
  Result<ApiKeys> keys = parse(text);
  if (!keys)
    return keys.error().inContext(path);
  return keys;
}

/// What follows `scheme` and spaces, if `value` begins with it.
static std::optional<std::string_view> afterScheme(std::string_view value,
                                                   std::string_view scheme) {
  if (value.size() <= scheme.size() || value[scheme.size()] != ' ' ||
      !std::equal(scheme.begin(), scheme.end(), value.begin(),
                  [](char a, char b) { return a == (b | 0x20); }))
    return std::nullopt;
  value.remove_prefix(scheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

/// The password of "USER:PASSWORD" in base64.
static std::optional<std::string> passwordOf(std::string_view encoded) {
  std::string decoded(encoded.size(), '\0');
  size_t length = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char *>(decoded.data()),
                        decoded.size(), encoded.data(), encoded.size(), nullptr,
                        &length, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    return std::nullopt;
  decoded.resize(length);
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos)
    return std::nullopt;
  return decoded.substr(colon + 1);
}

bool ApiKeys::allow(const HttpRequest &request) const {
  if (hashes.empty())
    return true;
  const std::string_view value = request.header("Authorization").value_or("");
  std::string key;
  if (auto bearer = afterScheme(value, "bearer"))
    key = *bearer;
  else if (auto basic = afterScheme(value, "basic"))
    key = passwordOf(*basic).value_or("");
  const Hash sent = hash(key);
  bool known = false;
  for (const Hash &each : hashes)
    known |= sodium_memcmp(each.data(), sent.data(), sent.size()) == 0;
  return known;
}
