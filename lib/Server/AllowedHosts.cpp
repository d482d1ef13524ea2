//===- AllowedHosts.cpp - Names that a server answers to ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/AllowedHosts.h"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

#include <algorithm>

using namespace sandwich;

/// The host of "HOST", "HOST:PORT", "[ADDRESS]" or "[ADDRESS]:PORT". A name
/// that ends with a dot is the same without.
static std::string_view withoutPort(std::string_view host) {
  if (const size_t end = host.find(']'); host.starts_with('['))
    return end == std::string_view::npos ? "" : host.substr(1, end - 1);
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.'))
    host.remove_suffix(1);
  return host;
}

static bool isAddress(std::string_view host) {
  boost::system::error_code error;
  (void)boost::asio::ip::make_address(std::string(host), error);
  return !error;
}

AllowedHosts::AllowedHosts(const std::set<std::string> &names) {
  for (const std::string &name : names)
    this->names.emplace(withoutPort(name));
}

bool AllowedHosts::allow(const HttpRequest &request) const {
  const auto header = request.header("Host");
  if (!header || names.contains("*"))
    return true;
  const std::string_view host = withoutPort(*header);
  const std::string_view domain = host.substr(host.rfind('.') + 1);
  return boost::beast::iequals(domain, "localhost") || isAddress(host) ||
         std::ranges::any_of(names, [host](const std::string &name) {
           return boost::beast::iequals(name, host);
         });
}
