//===- RankEndsTest.cpp - How ranks end -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Ranks/RankGroup.h"

#include "Emulation.h"

#include "Inputs/hash_model.h"
#include "RankGroupFixture.h"

#include "sandwich/Support/ElapsedTime.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {
class RankEndsTest : public RankGroupTest {
protected:
  /// A program that runs the rank as its child and ends with status 0.
  std::string wrapper() {
    const std::string file = folder.file("process");
    return script(SANDWICH_TEST_RUN " \"$@\" &\necho $! >" + file +
                  ".part\nmv " + file + ".part " + file + "\nwait\nexit 0\n");
  }

  /// The process that `wrapper` has started last.
  pid_t wrappedProcess() {
    const std::string file = folder.file("process");
    const Clock::time_point start = Clock::now();
    while (!std::filesystem::exists(file) && secondsSince(start) < 30)
      std::this_thread::sleep_for(1ms);
    pid_t process = 0;
    std::ifstream(file) >> process;
    std::filesystem::remove(file);
    // What kill and waitpid take for all others.
    EXPECT_GT(process, 0);
    return process > 0 ? process : std::numeric_limits<pid_t>::max();
  }
};

/// The first of two hosts, the other one of which says nothing.
class FirstHost final : public HostCommunicator {
public:
  FirstHost() : HostCommunicator(/*rank=*/0, /*ranks=*/2) {}

  void allReduce(int32_t, int32_t, float *, int64_t) override {}
  void allGather(int32_t, int32_t, const float *, float *, int64_t,
                 int64_t) override {}
  void gatherPart(int32_t, const float *, float *, int64_t) override {}
  void broadcast(void *, size_t, int32_t) override {}
  void barrier() override {}
  Status failure() const override {
    std::lock_guard lock(mutex);
    if (reason.empty())
      return {};
    return makeError(reason);
  }
  uint64_t bytesFor(int32_t) const override { return 0; }
  Status prepare(int32_t) override { return {}; }
  HostProgress progress() const override {
    if (throws)
      throw std::runtime_error("no memory");
    return {};
  }
  std::string nameOf(int32_t) const override { return "a"; }
  void fail(std::string_view why) override {
    std::lock_guard lock(mutex);
    reason = why;
  }
  bool lostContact() const override { return false; }
  Status leave() override { return failure(); }

  std::atomic<bool> throws = false;

private:
  mutable std::mutex mutex;
  std::string reason;
};
} // namespace

TEST_F(RankEndsTest, AFailureEndsALongStepAtItsNextCollective) {
  for (unsigned threads : {1, 2, 3}) {
    std::unique_ptr<Engine> engine = load({.threads = threads});
    ASSERT_TRUE(engine);
    std::future<std::string> error = std::async(std::launch::async, [&] {
      // It would take half a minute.
      return feed(*engine, {HASH_MODEL_WORK, 10, 250, 1});
    });
    std::this_thread::sleep_for(300ms);
    const Clock::time_point start = Clock::now();
    ::kill(engine->rankProcesses()[0], SIGKILL);
    EXPECT_EQ(error.get(),
              nameOf(*engine, 1) + "was killed by signal 9 (SIGKILL)");
    EXPECT_LT(secondsSince(start), 4);
  }
}

TEST_F(RankEndsTest, AFailureStopsLoading) {
  // A shard of 48 MiB, which is some pieces.
  int calls = 0;
  EngineOptions options;
  options.ranks.program = script("sleep 1\nexit 1\n");
  options.progress = [&](uint64_t, uint64_t) {
    if (++calls == 1)
      std::this_thread::sleep_for(2s);
  };
  Result<std::unique_ptr<Engine>> engine =
      create({.threads = 1, .shardRegions = 24}, options);
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.ends_with(") ended with exit status 1"))
      << engine.error().message;
  EXPECT_EQ(calls, 1);
}

TEST_F(RankEndsTest, AnotherBuildIsOneClearError) {
  EngineOptions options;
  options.ranks.program = script("exit 125\n");
  Result<std::unique_ptr<Engine>> engine = create({}, options);
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.ends_with(
      ") is of another build of Sandwich than this program; the "
      "sandwich-run that belongs to it has to be named"))
      << engine.error().message;
  // That is what sandwich-run does if it finds one.
  auto segment = *SharedMemorySegment::create(2, 1);
  ASSERT_EQ(::pwrite(segment->descriptor(), "0.0.0", 5, /*after the magic*/ 8),
            5);
  EXPECT_EXIT((void)serveRank(segment->descriptor(), 1, "none"),
              testing::ExitedWithCode(otherBuildStatus), "");
}

TEST_F(RankEndsTest, AProgramThatIsNoRankIsFound) {
  EngineOptions options;
  options.ranks.program = "/bin/true";
  Result<std::unique_ptr<Engine>> engine = create({}, options);
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.ends_with(") ended before it was told to"))
      << engine.error().message;
}

TEST_F(RankEndsTest, WhoEndsUntoldIsFoundWhateverItsStatus) {
  EngineOptions options;
  options.ranks.program = wrapper();
  std::unique_ptr<Engine> engine = load({}, options);
  ASSERT_TRUE(engine);
  ASSERT_EQ(feed(*engine, {1, 2}), "");
  const Clock::time_point start = Clock::now();
  ::kill(wrappedProcess(), SIGKILL);
  EXPECT_EQ(feed(*engine, {1, 2}),
            nameOf(*engine, 1) + "ended before it was told to");
  EXPECT_LT(secondsSince(start), 4);
}

TEST_F(RankEndsTest, AWrappedRankEndsWithTheLauncher) {
  for (std::chrono::milliseconds moment : {0ms, 500ms}) {
    EngineOptions options;
    options.ranks.program = wrapper();
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      std::unique_ptr<Engine> engine = load({}, options);
      ::pause();
      ::_exit(1);
    }
    const pid_t rank = wrappedProcess();
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, rank, 0));
    std::this_thread::sleep_for(moment);
    ::kill(launcher, SIGKILL);
    ::waitpid(launcher, nullptr, 0);
    ASSERT_GE(handle, 0);
    pollfd event{handle, POLLIN, 0};
    EXPECT_EQ(::poll(&event, 1, /*milliseconds=*/2000), 1);
    ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
    ::close(handle);
  }
}

TEST_F(RankEndsTest, ARankOfALauncherThatIsGoneEnds) {
  auto segment = *SharedMemorySegment::create(2, 1);
  const pid_t launcher = ::fork();
  if (launcher == 0)
    ::_exit(segment->join(0) ? 0 : 1);
  int status = 0;
  ::waitpid(launcher, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EXIT(::_exit(*serveRank(segment->descriptor(), 1, "none") ? 0 : 3),
              testing::ExitedWithCode(3), "");
  EXPECT_EQ(segment->failure().error().message,
            "rank 1 failed: rank 0 (process " + std::to_string(launcher) +
                ") has ended");
}

TEST_F(RankEndsTest, ARankWithoutHeartbeatIsOneClearError) {
  // The stack of a thread has no room among the addresses of a process.
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_max != RLIM_INFINITY)
    GTEST_SKIP() << "the size of stacks is limited";
  const std::string log = folder.file("log");
  const std::string limit = "ulimit -s 137438953472\n";
  if (!canStart(script(limit + "exec " SANDWICH_TEST_RUN " --version")))
    GTEST_SKIP() << "what runs programs here has threads itself";
  EngineOptions options;
  options.ranks.program =
      script(limit + "exec " SANDWICH_TEST_RUN " \"$@\" 2>" + log + "\n");
  Result<std::unique_ptr<Engine>> engine = create({}, options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message,
            "rank 1 failed: cannot start its heartbeat: Resource temporarily "
            "unavailable");
  EXPECT_EQ(std::filesystem::file_size(log), 0u);
}

TEST_F(RankEndsTest, AnExceptionOfTheWatchFailsTheGroup) {
  EngineOptions options;
  auto host = std::make_shared<FirstHost>();
  options.ranks.hosts = host;
  std::unique_ptr<Engine> engine = load({.ranks = 4}, options);
  ASSERT_TRUE(engine);
  ASSERT_EQ(feed(*engine, {1, 2}), "");
  host->throws = true;
  const Clock::time_point start = Clock::now();
  std::string error;
  while (error.empty() && secondsSince(start) < 10)
    error = feed(*engine, {1, 2});
  EXPECT_EQ(error, "rank 0 cannot watch the others any more: no memory");
  // The other hosts are told what the user is told.
  engine.reset();
  ASSERT_FALSE(host->failure());
  EXPECT_EQ(host->failure().error().message, error);
}

TEST_F(RankEndsTest, AnExceptionOfTheUserEndsNothing) {
  EXPECT_EXIT(
      {
        std::promise<void> called;
        EngineOptions options;
        options.ranks.onOwnHang = [&](const Error &error) {
          called.set_value();
          throw std::runtime_error(error.message);
        };
        std::unique_ptr<Engine> engine = load({}, options);
        ::alarm(60);
        std::thread hanging([&] { (void)feed(*engine, {HASH_MODEL_LOOP, 0}); });
        called.get_future().wait();
        std::this_thread::sleep_for(200ms);
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
}
