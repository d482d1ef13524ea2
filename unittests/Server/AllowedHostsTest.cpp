//===- AllowedHostsTest.cpp - Names that a server answers to --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/AllowedHosts.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

bool allow(const char *host, const std::set<std::string> &names = {}) {
  return AllowedHosts(names).allow({.headers = {{"Host", host}}});
}

TEST(AllowedHosts, AreThoseThatNobodyOwns) {
  for (const char *host :
       {"localhost", "localhost:8080", "localhost.", "localhost.:8080",
        "LocalHost", "chat.localhost:80", "127.0.0.1", "127.0.0.1:8080",
        "192.168.1.7:1", "[::1]", "[::1]:8080"})
    EXPECT_TRUE(allow(host)) << host;
}

TEST(AllowedHosts, AreNoOthers) {
  for (const char *host :
       {"evil.example", "evil.example:8080", "localhost.evil.example",
        "127.0.0.1.evil.example", "notlocalhost", "evil.example:127.0.0.1", "",
        ":8080", "[", "[]", "[evil.example]", "[::1", "[::1.evil.example]:80"})
    EXPECT_FALSE(allow(host)) << host;
}

TEST(AllowedHosts, AreThoseThatAreNamed) {
  EXPECT_TRUE(allow("api.example:443", {"API.example"}));
  EXPECT_TRUE(allow("Api.Example", {"api.example"}));
  EXPECT_FALSE(allow("x.api.example", {"api.example"}));
  EXPECT_TRUE(allow("api.example", {"api.example:8443"}));
  EXPECT_TRUE(allow("anything", {"*"}));
}

TEST(AllowedHosts, AskForNoHeader) { EXPECT_TRUE(AllowedHosts().allow({})); }

} // namespace
