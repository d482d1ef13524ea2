//===- ServerSentEventsTest.cpp - Reading event streams -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/ServerSentEvents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace sandwich;

using Events = std::vector<std::pair<std::string, std::string>>;

/// Types and data of the events of `text`, read in pieces of so many bytes.
static Events read(std::string_view text, size_t pieceBytes = 1 << 20) {
  ServerSentEvents events;
  Events found;
  while (!text.empty()) {
    const Status status = events.read(
        text.substr(0, pieceBytes), [&](const ServerSentEvent &event) {
          found.emplace_back(event.type, event.data);
        });
    EXPECT_TRUE(status) << status.error().message;
    text.remove_prefix(std::min(pieceBytes, text.size()));
  }
  return found;
}

TEST(ServerSentEventsTest, EventsEndWithAnEmptyLine) {
  EXPECT_EQ(read("data: one\n\ndata: two\n\n"),
            (Events{{"", "one"}, {"", "two"}}));
  EXPECT_EQ(read("data: never ended"), Events{});
  EXPECT_EQ(read("data: never ended\n"), Events{});
  EXPECT_EQ(read("\n\n\n"), Events{});
}

TEST(ServerSentEventsTest, OneSpaceAfterTheColonIsNoData) {
  EXPECT_EQ(read("data:a\n\ndata: a\n\ndata:  a\n\n"),
            (Events{{"", "a"}, {"", "a"}, {"", " a"}}));
}

TEST(ServerSentEventsTest, LinesOfDataAreJoined) {
  EXPECT_EQ(read("data: a\ndata\ndata:\ndata: b\n\n"),
            (Events{{"", "a\n\n\nb"}}));
  // An empty line of data is data.
  EXPECT_EQ(read("data:\n\n"), (Events{{"", ""}}));
}

TEST(ServerSentEventsTest, TypesAreOfTheirEventOnly) {
  EXPECT_EQ(read("event: error\ndata: x\n\ndata: y\n\nevent: lost\n\n"
                 "data: z\n\n"),
            (Events{{"error", "x"}, {"", "y"}, {"", "z"}}));
}

TEST(ServerSentEventsTest, CommentsAndOtherFieldsAreSkipped) {
  EXPECT_EQ(read(": wait\n\n:\nid: 7\nretry: 10\nDATA: no\n data: no\n"
                 "data: yes\n\n"),
            (Events{{"", "yes"}}));
}

TEST(ServerSentEventsTest, LinesEndInThreeWays) {
  EXPECT_EQ(read("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n"),
            (Events{{"", "a"}, {"", "b"}, {"", "c"}}));
}

TEST(ServerSentEventsTest, AByteOrderMarkIsSkippedOnce) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "data: a\n\n"),
            (Events{{"", "a"}}));
  EXPECT_EQ(read("\xEF\xBB\xBF\xEF\xBB\xBF"
                 "data: a\n\n"),
            Events{});
  EXPECT_EQ(read("\xEF\xBB"
                 "data: a\n\ndata: b\n\n"),
            (Events{{"", "b"}}));
}

TEST(ServerSentEventsTest, PiecesMayEndAnywhere) {
  const std::string text =
      "\xEF\xBB\xBF"
      ": comment\r\ndata: {\"a\":1}\r\n\r\nevent: e\rdata: "
      "b\rdata:c\r\rdata: [DONE]\n\n";
  const Events whole = read(text);
  ASSERT_EQ(whole, (Events{{"", "{\"a\":1}"}, {"e", "b\nc"}, {"", "[DONE]"}}));
  for (size_t bytes = 1; bytes < text.size(); ++bytes)
    EXPECT_EQ(read(text, bytes), whole) << bytes;
}

TEST(ServerSentEventsTest, RefusesWhatIsTooLarge) {
  const auto refuses = [](std::string_view text, size_t pieceBytes) {
    ServerSentEvents events(16);
    while (!text.empty()) {
      const Status status = events.read(text.substr(0, pieceBytes), {});
      if (!status)
        return status.error().message ==
               "an event of the stream has more than 16 bytes";
      text.remove_prefix(std::min(pieceBytes, text.size()));
    }
    return false;
  };
  for (size_t bytes : {1, 5, 100}) {
    EXPECT_TRUE(refuses("data: 345678901234567", bytes)) << bytes;
    EXPECT_TRUE(refuses("data: 34567890123456\n", bytes) ||
                refuses("data: 34567890123\ndata: 4567\n", bytes))
        << bytes;
    EXPECT_TRUE(refuses("data:12345678\ndata:12345678\n", bytes)) << bytes;
    EXPECT_TRUE(refuses(":" + std::string(16, 'x'), bytes)) << bytes;
    EXPECT_FALSE(refuses("data:1234567890\ndata:12345\n", bytes)) << bytes;
    // Empty lines of data count, too.
    EXPECT_TRUE(refuses("data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n"
                        "data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n"
                        "data\n",
                        bytes))
        << bytes;
  }
}
