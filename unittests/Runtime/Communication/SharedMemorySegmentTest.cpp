//===- SharedMemorySegmentTest.cpp - What ranks share ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/SharedMemorySegment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

using namespace sandwich;

using Segment = std::shared_ptr<SharedMemorySegment>;

static const std::string attaching =
    "the descriptor given for the memory that ranks share ";

static std::string errorOf(const Result<Segment> &segment) {
  return segment ? "no error" : segment.error().message;
}

/// A file in memory of `size` bytes that begins with `contents`; reserved and
/// sealed if asked for. Closed by the caller.
static int makeFile(const std::vector<char> &contents, off_t size,
                    bool reserved = true, bool sealed = true) {
  int file = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_GE(file, 0);
  EXPECT_EQ(::ftruncate(file, size), 0);
  if (reserved) {
    EXPECT_EQ(::fallocate(file, 0, 0, size), 0);
  }
  EXPECT_EQ(::pwrite(file, contents.data(), contents.size(), 0),
            static_cast<ssize_t>(contents.size()));
  if (sealed) {
    EXPECT_EQ(
        ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
        0);
  }
  return file;
}

static std::string attachError(int file) {
  std::string error = errorOf(SharedMemorySegment::attach(file));
  ::close(file);
  return error.starts_with(attaching) ? error.substr(attaching.size()) : error;
}

/// The first bytes of a segment: 8 of magic, 32 that name the build, ranks,
/// lanes, oversubscribed, collectives, slot bytes.
static std::vector<char> headerOf(const Segment &segment) {
  std::vector<char> header(64);
  EXPECT_EQ(::pread(segment->descriptor(), header.data(), header.size(), 0),
            static_cast<ssize_t>(header.size()));
  return header;
}

static std::vector<char> withWord(std::vector<char> header, size_t offset,
                                  uint32_t word) {
  std::memcpy(header.data() + offset, &word, sizeof(word));
  return header;
}

TEST(SharedMemorySegmentTest, AttachedIsTheSameMemory) {
  Segment segment = *SharedMemorySegment::create(3, 2);
  Result<Segment> attached = SharedMemorySegment::attach(segment->descriptor());
  ASSERT_TRUE(attached) << errorOf(attached);
  EXPECT_EQ((*attached)->ranks(), 3);
  EXPECT_EQ((*attached)->lanes(), 2);
  EXPECT_EQ((*attached)->size(), segment->size());
  EXPECT_EQ((*attached)->descriptor(), -1);
  for (int32_t rank = 0; rank < 3; ++rank)
    for (int32_t lane = 0; lane <= 2; ++lane)
      for (uint32_t step = 0; step < SharedMemorySegment::slotsPerLane; ++step)
        std::memset(segment->slot(rank, lane, step),
                    rank * 16 + lane * 4 + step, segment->slotBytes());
  for (int32_t rank = 0; rank < 3; ++rank)
    for (int32_t lane = 0; lane <= 2; ++lane)
      for (uint32_t step = 0; step < SharedMemorySegment::slotsPerLane;
           ++step) {
        const std::byte *slot = (*attached)->slot(rank, lane, step + 4);
        auto expected = std::byte(rank * 16 + lane * 4 + step);
        EXPECT_EQ(slot[0], expected);
        EXPECT_EQ(slot[segment->slotBytes() - 1], expected);
      }
  // Neither slots nor counters overlap.
  EXPECT_EQ(segment->progress(2, 2).written.value(), 0u);
  (*attached)->progress(1, 0).written.raiseTo(7);
  EXPECT_EQ(segment->progress(1, 0).written.value(), 7u);
  (*attached)->beat(1);
  (*attached)->beat(1);
  EXPECT_EQ(segment->lastBeat(1), 2u);
  EXPECT_EQ(segment->lastBeat(0), 0u);
  EXPECT_TRUE(segment->failure());
}

TEST(SharedMemorySegmentTest, TellsHowRanksSum) {
  for (Collectives collectives : allCollectives()) {
    Segment segment =
        *SharedMemorySegment::create(2, 1, {.collectives = collectives});
    EXPECT_EQ(segment->collectives(), collectives);
    Result<Segment> attached =
        SharedMemorySegment::attach(segment->descriptor());
    ASSERT_TRUE(attached) << errorOf(attached);
    EXPECT_EQ((*attached)->collectives(), collectives);
  }
}

TEST(SharedMemorySegmentTest, MemoryIsThereAndStays) {
  Segment segment = *SharedMemorySegment::create(2, 1);
  struct stat status;
  ASSERT_EQ(::fstat(segment->descriptor(), &status), 0);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), segment->size());
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, segment->size());
  EXPECT_NE(::ftruncate(segment->descriptor(), 4096), 0);
  EXPECT_NE(::ftruncate(segment->descriptor(), 1 << 30), 0);
  EXPECT_EQ(::fcntl(segment->descriptor(), F_GETFD), FD_CLOEXEC);
}

TEST(SharedMemorySegmentTest, NobodyCanRunIt) {
  // Linux may be told to refuse files in memory that could be made executable.
  constexpr unsigned noExecSeal = 8;
  const int probe = ::memfd_create("test", MFD_CLOEXEC | noExecSeal);
  if (probe < 0)
    GTEST_SKIP() << "this Linux is older than 6.3";
  ::close(probe);
  Segment segment = *SharedMemorySegment::create(2, 1);
  struct stat status;
  ASSERT_EQ(::fstat(segment->descriptor(), &status), 0);
  EXPECT_EQ(status.st_mode & 0111, 0u);
  EXPECT_NE(::fchmod(segment->descriptor(), 0700), 0);
}

TEST(SharedMemorySegmentTest, RefusesWhatIsNoSegment) {
  Segment segment = *SharedMemorySegment::create(2, 1);
  std::vector<char> header = headerOf(segment);
  auto size = static_cast<off_t>(segment->size());
  EXPECT_EQ(attachError(-1), "cannot be used: Bad file descriptor");
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  EXPECT_EQ(attachError(pipe[0]), "is of something else");
  ::close(pipe[1]);
  EXPECT_EQ(attachError(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
            "is of something else");
  EXPECT_EQ(attachError(makeFile(header, size, true, /*sealed=*/false)),
            "is of memory that could shrink");
  EXPECT_EQ(attachError(makeFile(header, size, /*reserved=*/false)),
            "is of memory that is not all there");
  EXPECT_EQ(attachError(makeFile({}, 0, false)),
            "is of memory that is not all there");
  EXPECT_EQ(attachError(makeFile({}, size)), "is of memory for something else");
  EXPECT_EQ(attachError(makeFile(withWord(header, 8, 9), size)),
            "is another build's");
  EXPECT_EQ(attachError(makeFile(withWord(header, 40, 65), size)),
            "has a damaged header: the number of ranks is 65, which is not "
            "between 1 and 64");
  EXPECT_EQ(attachError(makeFile(withWord(header, 44, 0xffffffff), size)),
            "has a damaged header: the number of threads is 4294967295, which "
            "is not between 1 and 1024");
  EXPECT_EQ(attachError(makeFile(withWord(header, 56, 8193), size)),
            "has a damaged header: a slot has 8193 bytes, which is no multiple "
            "of 4096 from 8192 to 16777216");
  EXPECT_EQ(attachError(makeFile(withWord(header, 52, 2), size)),
            "has a damaged header: collectives are number 2, which is not "
            "between 0 and 1");
  EXPECT_EQ(attachError(makeFile(header, size - 4096)),
            "is of " + std::to_string(size - 4096) +
                " bytes, but its header says " + std::to_string(size));
  EXPECT_EQ(attachError(makeFile(header, size)), "no error");
}

TEST(SharedMemorySegmentTest, RefusesNumbersOutOfRange) {
  EXPECT_EQ(errorOf(SharedMemorySegment::create(0, 1)),
            "the number of ranks is 0, which is not between 1 and 64");
  EXPECT_FALSE(SharedMemorySegment::create(-1, 1));
  EXPECT_FALSE(SharedMemorySegment::create(65, 1));
  EXPECT_FALSE(SharedMemorySegment::create(2, 0));
  EXPECT_FALSE(SharedMemorySegment::create(2, 1025));
  EXPECT_FALSE(SharedMemorySegment::create(2, -5));
  SharedMemorySegmentOptions options;
  options.slotBytes = 5000;
  EXPECT_FALSE(SharedMemorySegment::create(2, 1, options));
}

TEST(SharedMemorySegmentTest, SaysWhenThereIsNotEnoughMemory) {
  SharedMemorySegmentOptions options;
  options.slotBytes = 16 << 20;
  std::string error = errorOf(SharedMemorySegment::create(64, 1024, options));
  EXPECT_TRUE(error.starts_with("the memory that ranks share, 2.002 TiB: is "
                                "more than the "))
      << error;
  // A smaller limit of the process is met as one of the system would be, by an
  // error before anything is used.
  pid_t process = ::fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    // It would be met by a signal.
    ::signal(SIGXFSZ, SIG_DFL);
    rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    options.slotBytes = 1 << 20;
    error = errorOf(SharedMemorySegment::create(2, 1, options));
    ::_exit(error.starts_with("the memory that ranks share, ") &&
                    error.ends_with("is more than the 1 MiB that files may "
                                    "have (ulimit -f)")
                ? 0
                : 1);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemorySegmentTest, LongReasonsAreCut) {
  for (size_t size : {3000, 3001, 10000}) {
    Segment segment = *SharedMemorySegment::create(2, 1);
    segment->abort(1, std::string(size, 'x'));
    EXPECT_EQ(segment->failure().error().message,
              "rank 1 " + (size == 3000 ? std::string(3000, 'x')
                                        : std::string(2997, 'x') + "..."));
  }
}

TEST(SharedMemorySegmentTest, KnowsItsSizeAndItsBuild) {
  for (bool oversubscribed : {false, true}) {
    SharedMemorySegmentOptions options;
    options.oversubscribed = oversubscribed;
    Segment segment = *SharedMemorySegment::create(3, 5, options);
    EXPECT_EQ(*SharedMemorySegment::sizeFor(3, 5, options), segment->size());
    EXPECT_FALSE(SharedMemorySegment::isOfOtherBuild(segment->descriptor()));
    std::vector<char> header = headerOf(segment);
    for (auto [offset, isOther] :
         {std::pair{0, false}, {8, true}, {20, true}, {40, false}}) {
      int file = makeFile(withWord(header, offset, 9),
                          static_cast<off_t>(segment->size()));
      EXPECT_EQ(SharedMemorySegment::isOfOtherBuild(file), isOther) << offset;
      ::close(file);
    }
  }
  EXPECT_FALSE(SharedMemorySegment::sizeFor(65, 1));
  EXPECT_FALSE(SharedMemorySegment::isOfOtherBuild(-1));
}
