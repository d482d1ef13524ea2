//===- RequestLogTest.cpp - A line for each request -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/RequestLog.h"
#include "TemporaryFolder.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace sandwich;

namespace {

// 2023-11-14T22:13:20.5Z
constexpr double moment = 1700000000.5;

RequestRecord record() {
  return {.id = "cmpl-1",
          .path = "/v1/completions",
          .model = "llama",
          .finish = "stop",
          .promptTokens = 5,
          .cachedTokens = 2,
          .generatedTokens = 7,
          .queueSeconds = 0.001,
          .ttft = 0.25,
          .tpot = 0.0101234,
          .seconds = 1.5};
}

TEST(RequestLog, WritesText) {
  EXPECT_EQ(formatRecord(record(), LogFormat::Text, moment),
            "2023-11-14T22:13:20.500Z id=cmpl-1 path=/v1/completions "
            "model=llama status=200 prompt_tokens=5 cached_tokens=2 "
            "generated_tokens=7 queue_ms=1.0 ttft_ms=250.0 tpot_ms=10.123 "
            "total_ms=1500.0 finish_reason=stop");
}

TEST(RequestLog, WritesJson) {
  EXPECT_EQ(formatRecord(record(), LogFormat::Json, moment),
            R"({"time":"2023-11-14T22:13:20.500Z","id":"cmpl-1",)"
            R"("path":"/v1/completions","model":"llama","status":200,)"
            R"("prompt_tokens":5,"cached_tokens":2,"generated_tokens":7,)"
            R"("queue_ms":1.0,"ttft_ms":250.0,"tpot_ms":10.123,)"
            R"("total_ms":1500.0,"finish_reason":"stop"})");
}

TEST(RequestLog, LeavesOutWhatDidNotHappen) {
  const RequestRecord refused = {
      .id = "x", .path = "/v1/completions", .status = 400, .error = "n is 0"};
  const auto json = parseJson(formatRecord(refused, LogFormat::Json, moment));
  ASSERT_TRUE(json);
  for (const char *name : {"queue_ms", "ttft_ms", "tpot_ms", "finish_reason",
                           "prompt", "preemptions"})
    EXPECT_FALSE(json->contains(name)) << name;
  EXPECT_EQ((*json)["error"], "n is 0");
}

TEST(RequestLog, StaysOnALineWhateverAClientSends) {
  RequestRecord written = record();
  written.model = "a b\n2023 status=200\r\x1B[31m\"";
  written.prompt = "two\nlines \xFF\x80 and \xE2\x82\xAC";
  for (LogFormat format : {LogFormat::Text, LogFormat::Json}) {
    const std::string line = formatRecord(written, format, moment);
    EXPECT_TRUE(std::ranges::all_of(line, [](char c) {
      return static_cast<unsigned char>(c) >= ' ';
    })) << line;
    EXPECT_NE(line.find(R"(a b\n2023 status=200)"), std::string::npos);
    EXPECT_NE(line.find("\xEF\xBF\xBD"), std::string::npos);
  }
  // Quoted where it could be taken for another field.
  EXPECT_NE(formatRecord(written, LogFormat::Text, moment)
                .find(R"( model="a b\n2023 status=200\r\u001b[31m\"" )"),
            std::string::npos);
}

TEST(RequestLog, AppendsToAFile) {
  test::TemporaryFolder folder;
  const std::string path = folder.write("log", "before\n");
  {
    auto log = RequestLog::open(path, LogFormat::Text);
    ASSERT_TRUE(log) << log.error().message;
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i)
      writers.emplace_back([&] {
        for (int j = 0; j < 250; ++j)
          (*log)->add(record());
      });
    for (std::thread &writer : writers)
      writer.join();
    (*log)->flush();
    EXPECT_EQ((*log)->lost(), 0u);
    auto text = readTextFile(path, size_t{1} << 20);
    ASSERT_TRUE(text);
    EXPECT_EQ(std::ranges::count(*text, '\n'), 1001);
    EXPECT_TRUE(text->starts_with("before\n"));
  }
}

TEST(RequestLog, WritesWhatIsLeftAtItsEnd) {
  test::TemporaryFolder folder;
  {
    auto log = RequestLog::open(folder.file("log"), LogFormat::Json);
    ASSERT_TRUE(log);
    for (int i = 0; i < 1000; ++i)
      (*log)->add(record());
  }
  auto text = readTextFile(folder.file("log"), size_t{1} << 20);
  ASSERT_TRUE(text);
  EXPECT_EQ(std::ranges::count(*text, '\n'), 1000);
}

TEST(RequestLog, CountsWhatAFullDiskDoesNotTake) {
  auto log = RequestLog::open("/dev/full", LogFormat::Text);
  ASSERT_TRUE(log) << log.error().message;
  for (int i = 0; i < 10; ++i)
    (*log)->add(record());
  (*log)->flush();
  EXPECT_EQ((*log)->lost(), 10u);
}

TEST(RequestLog, SaysWhichFileCannotBeOpened) {
  auto log = RequestLog::open("/nonexistent/log", LogFormat::Text);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("/nonexistent/log"), std::string::npos);
}

} // namespace
