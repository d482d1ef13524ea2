//===- Page.cpp - The page to try a server --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/Page.h"

#include <array>
#include <sodium.h>

using namespace sandwich;

/// What is between the first `open` and the next `close`.
static std::string_view between(std::string_view text, std::string_view open,
                                std::string_view close) {
  const size_t begin = text.find(open);
  if (begin == std::string_view::npos)
    return {};
  text.remove_prefix(begin + open.size());
  return text.substr(0, text.find(close));
}

/// What a policy allows to run: this text alone, or nothing where it is empty.
/// The form is that of "Content Security Policy Level 3", 2.3.1.
static std::string sourceOf(std::string_view text) {
  if (text.empty())
    return "'none'";
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(),
                     reinterpret_cast<const unsigned char *>(text.data()),
                     text.size());
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL;
  std::string encoded(sodium_base64_ENCODED_LEN(hash.size(), variant), '\0');
  sodium_bin2base64(encoded.data(), encoded.size(), hash.data(), hash.size(),
                    variant);
  encoded.pop_back(); // The zero that ends it.
  return "'sha256-" + encoded + "'";
}

std::string sandwich::contentSecurityPolicy(std::string_view page) {
  return "default-src 'none'; script-src " +
         sourceOf(between(page, "<script>", "</script>")) + "; style-src " +
         sourceOf(between(page, "<style>", "</style>")) +
         "; img-src data:; connect-src 'self'; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'; "
         "require-trusted-types-for 'script'; trusted-types 'none'";
}
