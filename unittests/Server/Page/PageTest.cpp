//===- PageTest.cpp - The page to try a server ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/Page.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Utf8.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

TEST(Page, IsTheFile) {
  auto file = readTextFile(PAGE_FILE, size_t{1} << 20);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(chatPage(), *file);
}

TEST(Page, IsWhole) {
  EXPECT_EQ(findInvalidUtf8(chatPage()), std::nullopt);
  EXPECT_EQ(chatPage().find('\0'), std::string_view::npos);
  EXPECT_TRUE(chatPage().starts_with("<!doctype html>\n"));
  EXPECT_TRUE(chatPage().ends_with("</body>\n</html>\n"));
}

TEST(Page, HasOneScriptAndOneStyle) {
  // Others would not run under its policy.
  for (std::string_view tag : {"<script", "<style"})
    EXPECT_EQ(count(chatPage(), tag), 1) << tag;
  EXPECT_EQ(count(chatPage(), "<script>"), 1);
  EXPECT_EQ(count(chatPage(), "<style>"), 1);
  EXPECT_EQ(count(chatPage(), " style="), 0);
}

TEST(Page, PolicyNamesItsScriptAndItsStyle) {
  // The hashes are those of `openssl dgst -sha256 -binary | base64`.
  const std::string policy =
      contentSecurityPolicy("<style>p{}</style><p></p><script>f();</script>");
  EXPECT_NE(policy.find(
                "script-src 'sha256-9RATIFdqkCJTNwEc6+pNG0qjxmJA9pKWbaKmy3Jw3G0"
                "='; style-src "
                "'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; "),
            std::string::npos)
      << policy;
  EXPECT_EQ(policy.find('\0'), std::string::npos);
}

TEST(Page, PolicyOfAPageWithoutScriptsLetsNoneRun) {
  EXPECT_TRUE(contentSecurityPolicy("<p></p>").starts_with(
      "default-src 'none'; script-src 'none'; style-src 'none'; "));
  EXPECT_TRUE(contentSecurityPolicy("").starts_with(
      "default-src 'none'; script-src 'none'; style-src 'none'; "));
}

TEST(Page, PolicyAllowsNothingUnsafe) {
  const std::string policy = contentSecurityPolicy(chatPage());
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  EXPECT_EQ(count(policy, "'sha256-"), 2) << policy;
  EXPECT_NE(policy.find("connect-src 'self';"), std::string::npos) << policy;
}

} // namespace
