//===- SafetensorsTest.cpp - Reading safetensors files --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Safetensors.h"

#include "TestFiles.h"

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// Error of a file with this header and `dataBytes` bytes of data.
std::string refusal(const std::string &header, size_t dataBytes) {
  return messageOf(readTable(safetensors(header, std::string(dataBytes, 'x'))));
}

/// Error of a file whose only tensor "a" has this information.
std::string tensorRefusal(const std::string &info, size_t dataBytes) {
  return refusal(R"({"a": )" + info + "}", dataBytes);
}

} // namespace

TEST(Safetensors, ReadsTensorsWhereverTheyStand) {
  std::string file = safetensors(
      R"({"__metadata__": {"format": "pt"},
          "late": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [4, 8]},
          "early": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
          "empty": {"dtype": "I64", "shape": [3, 0], "data_offsets": [4, 4]}}
      )",
      "abcdefgh");
  auto table = readTable(file);
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->size(), 3u);
  const TensorView &late = table->at("late");
  EXPECT_EQ(late.elementType, ElementType::BF16);
  EXPECT_EQ(late.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(late.bytes.data(), "efgh", 4), 0);
  EXPECT_EQ(late.bytes.size(), 4u);
  EXPECT_TRUE(table->at("early").shape.empty());
  EXPECT_EQ(table->at("early").bytes.size(), 4u);
  EXPECT_TRUE(table->at("empty").bytes.empty());
}

TEST(Safetensors, MapsAFileAndKeepsItsTensorsWhenMoved) {
  TemporaryFolder folder;
  SafetensorsBuilder builder;
  builder.add("a", "U8", {3}, "xyz");
  std::string path = folder.write("m.safetensors", builder.finish());
  auto opened = TensorFile::openSafetensors(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const TensorView *tensor = opened->find("a");
  ASSERT_NE(tensor, nullptr);
  std::vector<TensorFile> files;
  files.push_back(*std::move(opened));
  EXPECT_EQ(files[0].find("a"), tensor);
  EXPECT_EQ(std::memcmp(tensor->bytes.data(), "xyz", 3), 0);
  EXPECT_EQ(files[0].find("b"), nullptr);
  EXPECT_EQ(files[0].path(), path);
}

TEST(Safetensors, KnowsEveryElementType) {
  struct Case {
    const char *name;
    ElementType type;
    unsigned bits;
  };
  for (const Case &c :
       {Case{"BOOL", ElementType::Bool, 8},
        Case{"F8_E4M3", ElementType::F8_E4M3, 8},
        Case{"F16", ElementType::F16, 16}, Case{"BF16", ElementType::BF16, 16},
        Case{"F32", ElementType::F32, 32}, Case{"F64", ElementType::F64, 64},
        Case{"C64", ElementType::C64, 64}}) {
    SafetensorsBuilder builder;
    builder.add("a", c.name, {1}, std::string(c.bits / 8, 'x'));
    auto table = readTable(builder.finish());
    ASSERT_TRUE(table) << c.name << ": " << table.error().message;
    EXPECT_EQ(table->at("a").elementType, c.type);
    EXPECT_EQ(bitsPerElement(c.type), c.bits);
    EXPECT_EQ(elementTypeName(c.type), c.name);
  }
  EXPECT_TRUE(isUsableElementType(ElementType::F16));
  EXPECT_FALSE(isUsableElementType(ElementType::F64));
}

TEST(Safetensors, CountsElementsSmallerThanAByte) {
  EXPECT_TRUE(readTable(safetensors(
      R"({"a": {"dtype": "F4", "shape": [6], "data_offsets": [0, 3]}})",
      "abc")));
  EXPECT_EQ(tensorRefusal(
                R"({"dtype": "F4", "shape": [5], "data_offsets": [0, 3]})", 3),
            "tensor \"a\": shape [5] of F4 does not fill a whole number of "
            "bytes");
}

TEST(Safetensors, RefusesMissingEmptyAndTruncatedFiles) {
  TemporaryFolder folder;
  std::string path = folder.file("m.safetensors");
  EXPECT_EQ(messageOf(TensorFile::openSafetensors(path)),
            path + ": cannot open: No such file or directory");
  EXPECT_EQ(messageOf(TensorFile::openSafetensors(folder.path())),
            folder.path() + ": is not a regular file");
  folder.write("m.safetensors", "");
  EXPECT_EQ(messageOf(TensorFile::openSafetensors(path)),
            path + ": is 0 bytes long; a safetensors file begins with 8 bytes "
                   "of header length");
  SafetensorsBuilder builder;
  builder.add("a", "F32", {2}, "12345678");
  std::string whole = builder.finish();
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(readTable(whole.substr(0, length))) << length;
  EXPECT_EQ(messageOf(readTable(whole.substr(0, whole.size() - 1))),
            "tensor \"a\": data_offsets [0,8] reach beyond the file, which "
            "holds 7 bytes of data");
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  EXPECT_EQ(messageOf(readTable(std::string("\x03\0\0\0\0\0\0\0{}", 10))),
            "the header length is 3, but only 2 bytes follow it");
  EXPECT_EQ(messageOf(readTable(std::string(8, '\xff') + "{}")),
            "the header length is 18446744073709551615, but only 2 bytes "
            "follow it");
}

TEST(Safetensors, RefusesAHeaderBeyondTheFormatsLimit) {
  // Sparse, so that nothing of this size is written.
  TemporaryFolder folder;
  std::string path = folder.write(
      "m.safetensors",
      safetensors("", "").replace(0, 4, std::string("\x01\xe1\xf5\x05")));
  std::filesystem::resize_file(path, 200'000'000);
  EXPECT_EQ(messageOf(TensorFile::openSafetensors(path)),
            path + ": the header length is 100000001; at most 100000000 is "
                   "accepted");
}

TEST(Safetensors, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(refusal("", 0), "header: not valid JSON at byte 1");
  EXPECT_EQ(refusal("[]", 0),
            "header: is []; an object of tensors is expected");
  EXPECT_EQ(refusal(R"({"a": 1)", 0), "header: not valid JSON at byte 8");
  EXPECT_EQ(refusal(std::string(100'000'000, '['), 0),
            "header: JSON nested deeper than 64");
}

TEST(Safetensors, RefusesDuplicateKeys) {
  EXPECT_EQ(
      refusal(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                  "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
              2),
      "header: duplicate key \"a\"");
  EXPECT_EQ(tensorRefusal(R"({"dtype": "U8", "shape": [1], "shape": [1],
                              "data_offsets": [0, 1]})",
                          1),
            "header: duplicate key \"shape\"");
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_EQ(refusal(R"({"__metadata__": ["pt"]})", 0),
            "__metadata__ is [\"pt\"]; an object of strings is expected");
  EXPECT_EQ(refusal(R"({"__metadata__": {"format": 3}})", 0),
            "__metadata__: \"format\" is 3; a string is expected");
}

TEST(Safetensors, RefusesIncompleteTensors) {
  EXPECT_EQ(tensorRefusal("7", 0),
            "tensor \"a\": is 7; an object with dtype, shape and data_offsets "
            "is expected");
  EXPECT_EQ(tensorRefusal(R"({"shape": [1], "data_offsets": [0, 1]})", 1),
            "tensor \"a\": dtype is missing");
  EXPECT_EQ(tensorRefusal(R"({"dtype": "U8", "data_offsets": [0, 1]})", 1),
            "tensor \"a\": shape is missing");
  EXPECT_EQ(tensorRefusal(R"({"dtype": "U8", "shape": [1]})", 1),
            "tensor \"a\": data_offsets is missing");
}

TEST(Safetensors, RefusesUnknownElementTypes) {
  for (const char *type : {R"("F31")", "32", R"("f32")", "null"})
    EXPECT_EQ(tensorRefusal(std::string(R"({"dtype": )") + type +
                                R"(, "shape": [1], "data_offsets": [0, 4]})",
                            4),
              std::string("tensor \"a\": dtype is ") + type +
                  ", which is no element type of the format");
}

TEST(Safetensors, RefusesBadDimensions) {
  for (const char *dimension :
       {"-1", "1.5", "1.0", "\"1\"", "null", "9223372036854775808", "1e3"}) {
    std::string message =
        tensorRefusal(std::string(R"({"dtype": "U8", "shape": [1, )") +
                          dimension + R"(], "data_offsets": [0, 1]})",
                      1);
    EXPECT_NE(message.find("; whole numbers from 0 to 2^63 - 1 are expected"),
              std::string::npos)
        << dimension << ": " << message;
  }
  EXPECT_EQ(tensorRefusal(
                R"({"dtype": "U8", "shape": [-4], "data_offsets": [0, 1]})", 1),
            "tensor \"a\": shape [-4] has the dimension -4; whole numbers from "
            "0 to 2^63 - 1 are expected");
  EXPECT_EQ(tensorRefusal(
                R"({"dtype": "U8", "shape": 4, "data_offsets": [0, 1]})", 1),
            "tensor \"a\": shape is 4; a list of dimensions is expected");
}

TEST(Safetensors, RefusesOverflowingShapes) {
  // 2^32 * 2^32 elements wrap to none, 2^62 elements of 4 bytes as well.
  EXPECT_EQ(tensorRefusal(R"({"dtype": "F32", "shape": [4294967296, 4294967296],
                              "data_offsets": [0, 0]})",
                          0),
            "tensor \"a\": shape [4294967296,4294967296] is too large: its "
            "size overflows");
  EXPECT_EQ(tensorRefusal(R"({"dtype": "F32", "shape": [4611686018427387904],
                              "data_offsets": [0, 0]})",
                          0),
            "tensor \"a\": shape [4611686018427387904] is too large: its size "
            "overflows");
}

TEST(Safetensors, RefusesShapesThatDoNotFillTheirRange) {
  EXPECT_EQ(
      tensorRefusal(
          R"({"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 8]})", 8),
      "tensor \"a\": data_offsets [0,8] cover 8 bytes, but shape [2,2] "
      "of F32 takes 16");
}

TEST(Safetensors, RefusesBadOffsets) {
  auto refuseOffsets = [](const std::string &offsets) {
    return tensorRefusal(
        R"({"dtype": "U8", "shape": [4], "data_offsets": )" + offsets + "}", 4);
  };
  EXPECT_EQ(refuseOffsets("[4, 0]"),
            "tensor \"a\": data_offsets [4,0] end before they begin");
  EXPECT_EQ(refuseOffsets("[1, 5]"),
            "tensor \"a\": data_offsets [1,5] reach beyond the file, which "
            "holds 4 bytes of data");
  EXPECT_EQ(refuseOffsets("[18446744073709551612, 18446744073709551615]"),
            "tensor \"a\": data_offsets "
            "[18446744073709551612,18446744073709551615] reach beyond the "
            "file, which holds 4 bytes of data");
  for (const char *offsets : {"[-4, 0]", "[0]", "[0, 4, 4]", "[0, 4.0]", "4",
                              "[0, 18446744073709551616]"})
    EXPECT_NE(refuseOffsets(offsets).find(
                  "; two whole numbers that are not negative are "
                  "expected"),
              std::string::npos)
        << offsets;
}

TEST(Safetensors, RefusesOverlappingRanges) {
  EXPECT_EQ(
      refusal(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                  "b": {"dtype": "U8", "shape": [4], "data_offsets": [3, 7]}})",
              7),
      "tensor \"b\": data_offsets [3, 7] overlap those of \"a\", [0, 4]");
}

TEST(Safetensors, RefusesGappedRanges) {
  EXPECT_EQ(
      refusal(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                  "b": {"dtype": "U8", "shape": [4], "data_offsets": [5, 9]}})",
              9),
      "tensor \"b\": data_offsets [5, 9] leave a gap: bytes 4 to 5 belong to "
      "no tensor");
  EXPECT_EQ(tensorRefusal(
                R"({"dtype": "U8", "shape": [4], "data_offsets": [0, 4]})", 6),
            "the last 2 of the 6 bytes of data belong to no tensor");
}

TEST(Safetensors, QuotesWhatItPrints) {
  std::string message =
      refusal(R"({"a\nb\u0000": {"dtype": ")" + std::string(5000, 'x') +
                  R"(", "shape": [], "data_offsets": [0, 0]}})",
              0);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 400u);
  EXPECT_EQ(message.find(R"(tensor "a\nb\u0000": dtype is "xxx)"), 0u);
}
