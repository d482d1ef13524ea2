//===- AllowedHosts.h - Names that a server answers to ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_ALLOWEDHOSTS_H
#define SANDWICH_SERVER_ALLOWEDHOSTS_H

#include "sandwich/Http/HttpMessage.h"

#include <set>
#include <string>
#include <string_view>

namespace sandwich {

/// The hosts that requests may be for, by their Host header. Whoever owns a
/// name can let it point to any machine, and a browser then takes the server
/// there to be that site's own (DNS rebinding); nobody owns `localhost`, or an
/// address.
class AllowedHosts {
public:
  /// `localhost`, names below it, and addresses.
  AllowedHosts() = default;

  /// These `names` too, in any case, whatever port they have; "*" stands for
  /// all.
  explicit AllowedHosts(const std::set<std::string> &names);

  /// Whether there are others than those that nobody owns.
  bool hasNames() const { return !names.empty(); }

  /// Whether `request` is for one of them, or says nothing of its host, which
  /// no browser does.
  bool allow(const HttpRequest &request) const;

private:
  std::set<std::string> names;
};

} // namespace sandwich

#endif // SANDWICH_SERVER_ALLOWEDHOSTS_H
