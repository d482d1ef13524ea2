//===- ApiKeysTest.cpp - Who may use the server ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/ApiKeys.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

bool allows(const ApiKeys &keys, const std::string &authorization) {
  return keys.allow({.headers = {{"authorization", authorization}}});
}

ApiKeys keysOf(std::string_view text) {
  auto keys = ApiKeys::parse(text);
  EXPECT_TRUE(keys) << keys.error().message;
  return keys ? *keys : ApiKeys();
}

std::string refusal(std::string_view text) {
  auto keys = ApiKeys::parse(text);
  EXPECT_FALSE(keys) << text;
  return keys ? "" : keys.error().message;
}

TEST(ApiKeys, AllowEverybodyWhereThereAreNone) {
  EXPECT_TRUE(ApiKeys().allow({}));
  EXPECT_TRUE(allows(ApiKeys(), "Bearer x"));
}

TEST(ApiKeys, AllowThoseWhoHaveOne) {
  const ApiKeys keys = keysOf("# some keys\nabc\r\n\nd#f");
  for (const char *value :
       {"Bearer abc", "bearer abc", "BEARER   abc", "Bearer d#f",
        // "user:abc", ":abc"
        "Basic dXNlcjphYmM=", "basic OmFiYw=="})
    EXPECT_TRUE(allows(keys, value)) << value;
  for (const char *value :
       {"", "abc", "Bearer", "Bearer ", "Bearer abcd", "Bearer ab",
        "Bearer ABC", "Bearer abc ", "Bearerabc", "Token abc", "Bearer # some",
        "Bearer # some keys", "Basic", "Basic ", "Basic abc", "Basic !!!!",
        // "abc", "abc:", "abc:user"
        "Basic YWJj", "Basic YWJjOg==", "Basic YWJjOnVzZXI=",
        // Not padded as it should be.
        "Basic OmFiYw"})
    EXPECT_FALSE(allows(keys, value)) << value;
  EXPECT_FALSE(keys.allow({}));
}

TEST(ApiKeys, WithColonsArePasswordsAsAWhole) {
  // "user:a:b"
  EXPECT_TRUE(allows(keysOf("a:b"), "Basic dXNlcjphOmI="));
}

TEST(ApiKeys, RefuseFilesThatSayNothing) {
  EXPECT_EQ(refusal(""), "there is no key; each line has one");
  EXPECT_EQ(refusal("\n\n# none\n"), "there is no key; each line has one");
}

TEST(ApiKeys, RefuseLinesThatAreNone) {
  for (const char *line :
       {"two words", " abc", "abc ", "a\tb", "sch\xC3\xB6n", "a\x7F", "a\x01"})
    EXPECT_TRUE(
        refusal(std::string("good\n") + line).starts_with("line 2 is no key"))
        << line;
  EXPECT_TRUE(refusal(std::string(ApiKeys::mostBytes + 1, 'x'))
                  .starts_with("line 1 is no key"));
  (void)keysOf(std::string(ApiKeys::mostBytes, 'x'));
}

TEST(ApiKeys, RefuseTooMany) {
  std::string text;
  for (size_t i = 0; i < ApiKeys::mostKeys; ++i)
    text += "key" + std::to_string(i) + "\n";
  EXPECT_TRUE(allows(keysOf(text), "Bearer key4095"));
  EXPECT_EQ(refusal(text + "more"), "there are more than 4096 keys");
}

TEST(ApiKeys, AreReadFromFiles) {
  test::TemporaryFolder folder;
  const std::string path = folder.write("keys", "abc\n");
  auto keys = ApiKeys::read(path);
  ASSERT_TRUE(keys);
  EXPECT_TRUE(allows(*keys, "Bearer abc"));
  folder.write("keys", "a b\n");
  keys = ApiKeys::read(path);
  ASSERT_FALSE(keys);
  EXPECT_TRUE(keys.error().message.starts_with(path + ": line 1"));
  EXPECT_FALSE(ApiKeys::read(folder.file("none")));
}

} // namespace
