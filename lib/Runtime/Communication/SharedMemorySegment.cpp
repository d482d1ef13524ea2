//===- SharedMemorySegment.cpp - What ranks share -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/SharedMemorySegment.h"

#include "sandwich/Machine/Process/MemoryBudget.h"
#include "sandwich/Runtime/Communication/RanksBuild.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/MemoryFile.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>

using namespace sandwich;

namespace {
constexpr char magic[8] = {'s', 'a', 'n', 'd', 'r', 'a', 'n', 'k'};
/// Of the sources: what ranks tell each other is of one build.
constexpr char currentBuild[32] = SANDWICH_RANKS_BUILD;
constexpr uint64_t pageBytes = 4096;
/// Two cache lines for each rank's segment.
constexpr uint64_t minSlotBytes = uint64_t(128) * SharedMemorySegment::maxRanks;
constexpr uint64_t maxSlotBytes = uint64_t(16) << 20;
constexpr size_t maxReasonBytes = 3000;
/// Nobody may change the size of what others have mapped.
constexpr int neededSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// What `attach` checks before it uses anything.
struct Shape {
  char magic[8];
  char build[sizeof(currentBuild)];
  uint32_t ranks;
  uint32_t lanes;
  uint32_t oversubscribed;
  /// A value of `Collectives`, once checked.
  uint32_t collectives;
  uint64_t slotBytes;
  int64_t firstRank;
};
} // namespace

struct SharedMemorySegment::Header {
  Shape shape;
  /// 1 + the rank that failed, or 0.
  alignas(128) std::atomic<uint32_t> aborted;
  /// 1 once `reason` is complete.
  std::atomic<uint32_t> reasonWritten;
  uint32_t reasonBytes;
  char reason[maxReasonBytes];
};

struct alignas(128) SharedMemorySegment::RankState {
  std::atomic<uint64_t> beats;
  std::atomic<bool> left;
  std::atomic<int32_t> process;
};

static_assert(offsetof(Shape, build) == sizeof(magic),
              "what tells builds apart is where all of them have it");
static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "processes share no locks");

/// Where the parts of a segment lie.
struct SharedMemorySegment::Layout {
  int32_t ranks;
  int32_t lanes;
  uint64_t slotBytes;
  uint64_t progressOffset;
  uint64_t slotsOffset;
  uint64_t bytes;
};

Result<SharedMemorySegment::Layout>
SharedMemorySegment::layOut(uint64_t ranks, uint64_t lanes,
                            uint64_t slotBytes) {
  if (ranks < 1 || ranks > maxRanks)
    return makeError("the number of ranks is ", ranks,
                     ", which is not between 1 and ", maxRanks);
  if (lanes < 1 || lanes > SANDWICH_MAX_THREADS)
    return makeError("the number of threads is ", lanes,
                     ", which is not between 1 and ", SANDWICH_MAX_THREADS);
  if (slotBytes < minSlotBytes || slotBytes > maxSlotBytes ||
      slotBytes % pageBytes != 0)
    return makeError("a slot has ", slotBytes,
                     " bytes, which is no multiple of ", pageBytes, " from ",
                     minSlotBytes, " to ", maxSlotBytes);
  // The bounds above keep all of this far from an overflow.
  Layout layout{static_cast<int32_t>(ranks),
                static_cast<int32_t>(lanes),
                slotBytes,
                0,
                0,
                0};
  layout.progressOffset =
      roundUp<uint64_t>(sizeof(Header), pageBytes) +
      roundUp<uint64_t>(ranks * sizeof(RankState), pageBytes);
  uint64_t pairs = ranks * (lanes + 1);
  layout.slotsOffset = layout.progressOffset +
                       roundUp<uint64_t>(pairs * sizeof(Progress), pageBytes);
  layout.bytes = layout.slotsOffset + pairs * slotsPerLane * slotBytes;
  return layout;
}

/// A file in memory, or -1, that others can be given and no other program takes
/// for its standard input, output or error, though they may be closed in this
/// one.
static int createFile() {
  const int file = createMemoryFile("sandwich-ranks");
  if (file < 0 || file > STDERR_FILENO)
    return file;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(file);
  return moved;
}

/// Takes `bytes` of memory for the file from the system, and fixes its size.
static Status reserve(int descriptor, uint64_t bytes) {
  // Who takes more than that is not refused but ended by a signal.
  for (const MemoryLimit &limit : readMemoryLimits())
    if (bytes > limit.available)
      return makeError("is more than the ", formatBytes(limit.available),
                       " available ", limit.where);
  if (rlimit limit{}; ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                      limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
    return makeError("is more than the ", formatBytes(limit.rlim_cur),
                     " that files may have (ulimit -f)");
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    return systemError("set its size");
  int failure;
  do
    failure = ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) == 0
                  ? 0
                  : errno;
  while (failure == EINTR);
  if (failure != 0)
    return makeError("cannot reserve it: ", std::strerror(failure));
  if (::fcntl(descriptor, F_ADD_SEALS, neededSeals) != 0)
    return systemError("fix its size");
  return {};
}

Status SharedMemorySegment::map(int descriptor, const Layout &layout) {
  // Mapped pages are there at once instead of one fault each in the first step.
  void *memory = ::mmap(nullptr, layout.bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED)
    return systemError("map the memory that ranks share");
  start = static_cast<std::byte *>(memory);
  bytes = layout.bytes;
  bytesOfSlot = layout.slotBytes;
  rankCount = layout.ranks;
  laneCount = layout.lanes;
  progressOffset = layout.progressOffset;
  slotsOffset = layout.slotsOffset;
  return {};
}

uint64_t
SharedMemorySegment::slotBytesFor(int32_t lanes,
                                  const SharedMemorySegmentOptions &options) {
  if (options.slotBytes != 0)
    return options.slotBytes;
  // The slots in use stay in a core's L2 cache beside the message; where ranks
  // share cores, fewer changes of threads are worth more. More lanes have
  // smaller parts of a message.
  uint64_t most = uint64_t(options.oversubscribed ? 128 : 32) << 10;
  uint64_t share = lanes > 0 ? 4 * most / static_cast<uint64_t>(lanes) : most;
  return std::clamp(roundUp(share, pageBytes), minSlotBytes, most);
}

Result<uint64_t>
SharedMemorySegment::sizeFor(int32_t ranks, int32_t lanes,
                             const SharedMemorySegmentOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(Layout layout,
                            layOut(static_cast<uint64_t>(int64_t(ranks)),
                                   static_cast<uint64_t>(int64_t(lanes)),
                                   slotBytesFor(lanes, options)));
  return layout.bytes;
}

Result<std::shared_ptr<SharedMemorySegment>>
SharedMemorySegment::create(int32_t ranks, int32_t lanes,
                            const SharedMemorySegmentOptions &options) {
  const uint64_t slotBytes = slotBytesFor(lanes, options);
  SANDWICH_ASSIGN_OR_RETURN(
      Layout layout, layOut(static_cast<uint64_t>(int64_t(ranks)),
                            static_cast<uint64_t>(int64_t(lanes)), slotBytes));
  std::shared_ptr<SharedMemorySegment> segment(new SharedMemorySegment);
  segment->file = createFile();
  if (segment->file < 0)
    return systemError("create the memory that ranks share");
  if (Status status = reserve(segment->file, layout.bytes); !status)
    return status.error().inContext("the memory that ranks share, " +
                                    formatBytes(layout.bytes));
  SANDWICH_RETURN_IF_ERROR(segment->map(segment->file, layout));
  Shape &shape = (new (segment->start) Header{})->shape;
  std::memcpy(shape.build, currentBuild, sizeof(currentBuild));
  shape.ranks = static_cast<uint32_t>(ranks);
  shape.lanes = static_cast<uint32_t>(lanes);
  shape.slotBytes = slotBytes;
  shape.oversubscribed = options.oversubscribed;
  shape.firstRank = options.firstRank;
  shape.collectives = static_cast<uint32_t>(options.collectives);
  segment->sharesCores = options.oversubscribed;
  segment->nameOfFirst = options.firstRank;
  segment->howToSum = options.collectives;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    new (&segment->rankState(rank)) RankState{};
    for (int32_t lane = 0; lane <= lanes; ++lane)
      new (&segment->progress(rank, lane)) Progress;
  }
  // Last: without it the segment is none.
  std::memcpy(shape.magic, magic, sizeof(magic));
  return segment;
}

Result<std::shared_ptr<SharedMemorySegment>>
SharedMemorySegment::attach(int descriptor) {
  auto fail = [](const auto &...reason) {
    return makeError("the descriptor given for the memory that ranks share ",
                     reason...);
  };
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return fail("cannot be used: ", std::strerror(errno));
  int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (!S_ISREG(status.st_mode) || seals < 0)
    return fail("is of something else");
  if ((seals & neededSeals) != neededSeals)
    return fail("is of memory that could shrink");
  auto size = static_cast<uint64_t>(status.st_size);
  // st_blocks counts 512 bytes; a page that is not there yet may be refused
  // later, by a signal.
  if (size < sizeof(Header) ||
      static_cast<uint64_t>(status.st_blocks) < size / 512)
    return fail("is of memory that is not all there");
  Shape shape;
  if (::pread(descriptor, &shape, sizeof(shape), 0) !=
      static_cast<ssize_t>(sizeof(shape)))
    return fail("cannot be read");
  if (std::memcmp(shape.magic, magic, sizeof(magic)) != 0)
    return fail("is of memory for something else");
  if (std::memcmp(shape.build, currentBuild, sizeof(currentBuild)) != 0)
    return fail("is another build's");
  Result<Layout> layout = layOut(shape.ranks, shape.lanes, shape.slotBytes);
  if (!layout)
    return fail("has a damaged header: ", layout.error().message);
  if (layout->bytes != size)
    return fail("is of ", size, " bytes, but its header says ", layout->bytes);
  if (shape.collectives >= allCollectives().size())
    return fail("has a damaged header: collectives are number ",
                shape.collectives, ", which is not between 0 and ",
                allCollectives().size() - 1);
  std::shared_ptr<SharedMemorySegment> segment(new SharedMemorySegment);
  SANDWICH_RETURN_IF_ERROR(segment->map(descriptor, *layout));
  segment->sharesCores = shape.oversubscribed != 0;
  segment->nameOfFirst = static_cast<int32_t>(shape.firstRank);
  segment->howToSum = static_cast<Collectives>(shape.collectives);
  return segment;
}

bool SharedMemorySegment::isOfOtherBuild(int descriptor) {
  char start[sizeof(magic) + sizeof(currentBuild)] = {};
  const ssize_t count = ::pread(descriptor, start, sizeof(start), 0);
  return count >= static_cast<ssize_t>(sizeof(magic)) &&
         std::memcmp(start, magic, sizeof(magic)) == 0 &&
         std::memcmp(start + sizeof(magic), currentBuild,
                     sizeof(currentBuild)) != 0;
}

std::string_view SharedMemorySegment::build() { return currentBuild; }

SharedMemorySegment::~SharedMemorySegment() {
  if (start)
    ::munmap(start, bytes);
  if (file >= 0)
    ::close(file);
}

SharedMemorySegment::Header &SharedMemorySegment::header() const {
  return *reinterpret_cast<Header *>(start);
}

SharedMemorySegment::RankState &
SharedMemorySegment::rankState(int32_t rank) const {
  return reinterpret_cast<RankState *>(
      start + roundUp<uint64_t>(sizeof(Header), pageBytes))[rank];
}

SharedMemorySegment::Progress &
SharedMemorySegment::progress(int32_t rank, int32_t lane) const {
  return reinterpret_cast<Progress *>(
      start + progressOffset)[int64_t(rank) * (laneCount + 1) + lane];
}

std::byte *SharedMemorySegment::slot(int32_t rank, int32_t lane,
                                     uint32_t step) const {
  auto pair = static_cast<uint64_t>(int64_t(rank) * (laneCount + 1) + lane);
  return start + slotsOffset +
         (pair * slotsPerLane + step % slotsPerLane) * bytesOfSlot;
}

Status SharedMemorySegment::join(int32_t rank) {
  if (rank < 0 || rank >= rankCount)
    return makeError("rank ", rank, " is not among the ", rankCount, " ranks");
  int32_t process = 0;
  if (!rankState(rank).process.compare_exchange_strong(process, ::getpid()))
    return makeError("rank ", rank, " is process ", process, " already");
  return {};
}

pid_t SharedMemorySegment::processOf(int32_t rank) const {
  return rankState(rank).process.load();
}

void SharedMemorySegment::beat(int32_t rank) {
  rankState(rank).beats.fetch_add(1, std::memory_order_relaxed);
}

void SharedMemorySegment::leave(int32_t rank) {
  rankState(rank).left.store(true, std::memory_order_release);
}

bool SharedMemorySegment::hasLeft(int32_t rank) const {
  return rankState(rank).left.load(std::memory_order_acquire);
}

uint64_t SharedMemorySegment::lastBeat(int32_t rank) const {
  return rankState(rank).beats.load(std::memory_order_relaxed);
}

const std::atomic<uint32_t> &SharedMemorySegment::aborted() const {
  return header().aborted;
}

void SharedMemorySegment::abort(int32_t rank, std::string_view reason) {
  Header &shared = header();
  uint32_t nobody = 0;
  // The word comes before the text: a process that ends between the two must
  // not keep the others from learning of it.
  if (!shared.aborted.compare_exchange_strong(nobody,
                                              static_cast<uint32_t>(rank) + 1))
    return;
  shared.reasonBytes =
      static_cast<uint32_t>(std::min(reason.size(), maxReasonBytes));
  std::memcpy(shared.reason, reason.data(), shared.reasonBytes);
  if (constexpr std::string_view cut = "..."; reason.size() > maxReasonBytes)
    std::memcpy(shared.reason + maxReasonBytes - cut.size(), cut.data(),
                cut.size());
  shared.reasonWritten.store(1, std::memory_order_release);
  for (int32_t other = 0; other < rankCount; ++other)
    for (int32_t lane = 0; lane <= laneCount; ++lane)
      progress(other, lane).written.wake();
}

Status SharedMemorySegment::failure() const {
  const Header &shared = header();
  uint32_t aborted = shared.aborted.load(std::memory_order_acquire);
  if (aborted == 0)
    return {};
  // Who aborts says so first and writes the reason then.
  for (int i = 0; i < 20 && shared.reasonWritten.load() != 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::string reason = "failed";
  if (shared.reasonWritten.load(std::memory_order_acquire) == 1)
    reason.assign(shared.reason,
                  std::min<size_t>(shared.reasonBytes, maxReasonBytes));
  if (aborted - 1 == elsewhere)
    return makeError(reason);
  return makeError("rank ", int64_t(firstRank()) + aborted - 1, " ", reason);
}
