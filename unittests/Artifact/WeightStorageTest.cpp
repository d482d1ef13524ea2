//===- WeightStorageTest.cpp - The one resident copy of the weights -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/WeightStorage.h"
#include "Emulation.h"

#include "TestArtifact.h"

#include <algorithm>
#include <fcntl.h>

using namespace sandwich;

namespace {

class WeightStorageTest : public TemporaryFolderTest {
protected:
  /// Not a multiple of a page, and of more than two pieces.
  static constexpr size_t size = (size_t(70) << 20) + 123;

  void SetUp() override {
    TemporaryFolderTest::SetUp();
    expected = makeBytes(size, 9);
    std::ofstream(path("w"), std::ios::binary)
        .write(reinterpret_cast<const char *>(expected.data()), size);
    descriptor = ::open(path("w").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(descriptor, 0);
  }
  void TearDown() override {
    ::close(descriptor);
    TemporaryFolderTest::TearDown();
  }

  std::vector<std::byte> expected;
  int descriptor = -1;
};

TEST_F(WeightStorageTest, HoldsTheFile) {
  for (auto placement : {WeightPlacement::Mapped, WeightPlacement::HugePages})
    for (unsigned threads : {0u, 1u, 2u, 5u})
      for (bool populate : {false, true}) {
        auto storage = WeightStorage::load(
            descriptor, size,
            {.placement = placement, .threads = threads, .populate = populate});
        ASSERT_TRUE(storage) << storage.error().message;
        EXPECT_EQ(storage->placement(), placement);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->bytes().data()) % 4096,
                  0u);
        EXPECT_TRUE(std::ranges::equal(storage->bytes(), expected));
        EXPECT_LE(storage->hugePageBytes(), size);
      }
}

TEST_F(WeightStorageTest, StopsBetweenPieces) {
  for (auto placement : {WeightPlacement::Mapped, WeightPlacement::HugePages}) {
    uint64_t loaded = 0;
    auto storage = WeightStorage::load(
        descriptor, size,
        {.placement = placement,
         .progress = [&](uint64_t done, uint64_t) { loaded = done; },
         .isStopped = [&] { return loaded > 0; }});
    ASSERT_FALSE(storage);
    EXPECT_EQ(storage.error().message,
              "cannot read the weights: Operation canceled");
    EXPECT_LE(loaded, size / 4);
  }
}

TEST_F(WeightStorageTest, MovesItsMemory) {
  auto storage = WeightStorage::load(descriptor, size, {});
  ASSERT_TRUE(storage);
  const std::byte *data = storage->bytes().data();
  WeightStorage moved = std::move(*storage);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_TRUE(storage->bytes().empty());
  EXPECT_EQ(moved.bytes()[size - 1], expected[size - 1]);
}

TEST_F(WeightStorageTest, ReportsProgress) {
  for (auto placement : {WeightPlacement::Mapped, WeightPlacement::HugePages})
    for (unsigned threads : {1u, 3u}) {
      uint64_t last = 0;
      auto storage =
          WeightStorage::load(descriptor, size,
                              {.placement = placement,
                               .threads = threads,
                               .progress = [&](uint64_t done, uint64_t total) {
                                 EXPECT_GE(done, last);
                                 EXPECT_EQ(total, size);
                                 last = done;
                               }});
      ASSERT_TRUE(storage);
      EXPECT_EQ(last, size);
    }
}

TEST_F(WeightStorageTest, UsesHugePagesWhereTheKernelHasThem) {
  if (test::isEmulated())
    GTEST_SKIP() << "an emulator does not tell of huge pages";
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(setting, modes);
  if (modes.find("[always]") == std::string::npos &&
      modes.find("[madvise]") == std::string::npos)
    GTEST_SKIP() << "no transparent huge pages here";
  auto storage = WeightStorage::load(descriptor, size,
                                     {.placement = WeightPlacement::HugePages});
  ASSERT_TRUE(storage);
  // Memory may be fragmented, but not so that there is no huge page at all.
  EXPECT_GT(storage->hugePageBytes(), 0u);
}

TEST_F(WeightStorageTest, RefusesAShortFile) {
  for (auto placement : {WeightPlacement::Mapped, WeightPlacement::HugePages}) {
    auto storage =
        WeightStorage::load(descriptor, size + 1, {.placement = placement});
    ASSERT_FALSE(storage);
    EXPECT_EQ(storage.error().message,
              "is 73400443 bytes long, less than the 73400444 bytes of the "
              "weights");
  }
}

TEST_F(WeightStorageTest, NamesMemoryThatIsNotThere) {
  constexpr uint64_t absurd = uint64_t(1) << 43;
  std::error_code error;
  std::filesystem::resize_file(path("w"), absurd, error);
  if (error)
    GTEST_SKIP() << "no sparse files of 8 TiB here";
  auto storage = WeightStorage::load(descriptor, absurd,
                                     {.placement = WeightPlacement::HugePages});
  ASSERT_FALSE(storage);
  EXPECT_EQ(storage.error().message,
            "cannot allocate 8796093022208 bytes for the weights: Cannot "
            "allocate memory");
}

} // namespace
