//===- RankWatch.cpp - Starts ranks and looks after them ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankWatch.h"

#include "sandwich/Runtime/Ranks/RankGroup.h"
#include "sandwich/Support/Process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

Result<std::string> sandwich::findRankProgram() {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<fs::path> places;
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void *>(&findRankProgram), &library) != 0 &&
      library.dli_fname) {
    const fs::path folder = fs::absolute(library.dli_fname, code).parent_path();
    places.push_back(folder);
    places.push_back(folder.parent_path() / "bin");
    // Libraries may be in a folder for their architecture: lib/TRIPLET.
    if (folder.parent_path().filename() == "lib")
      places.push_back(folder.parent_path().parent_path() / "bin");
  }
  // Of a program that has the library in itself.
  places.push_back(fs::read_symlink("/proc/self/exe", code).parent_path());
  for (const fs::path &place : places)
    if (const fs::path program = place / "sandwich-run";
        ::access(program.c_str(), X_OK) == 0)
      return program.string();
  return makeError("cannot find sandwich-run, which runs the other ranks of "
                   "this artifact, beside this library; it has to be named "
                   "when the model is loaded");
}

/// What a child ends with that cannot close the files of its parent.
static constexpr int openFilesStatus = 126;

/// Turns the child of a fork into the program: only calls that are safe while
/// other threads of the parent held locks.
[[noreturn]] static void becomeRank(int descriptor, pid_t parent,
                                    const char *const *arguments) {
  // The end of rank 0, of whatever kind, is the end of the others.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(1);
  // What is for the whole terminal or group is for rank 0, which ends the
  // others when it is done. A fault that is blocked would end the process
  // whatever its handler is.
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ::signal(signal, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Not all that this program has open is closed on exec: a pipe, for one,
  // whose reader would wait for the end of the rank as well.
  if (!closeDescriptorsExcept(descriptor))
    ::_exit(openFilesStatus);
  ::fcntl(descriptor, F_SETFD, 0);
  ::execv(arguments[0], const_cast<char *const *>(arguments));
  ::_exit(127);
}

static std::string describeEnd(const siginfo_t &end) {
  if (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED) {
    const char *name = ::sigabbrev_np(end.si_status);
    return "was killed by signal " + std::to_string(end.si_status) +
           (name ? std::string(" (SIG") + name + ")" : std::string());
  }
  if (end.si_status == 127)
    return "could not be started";
  if (end.si_status == openFilesStatus)
    return "could not be started without this program's open files, as the "
           "system has neither close_range nor /proc";
  if (end.si_status == otherBuildStatus)
    return "is of another build of Sandwich than this program; the "
           "sandwich-run that belongs to it has to be named";
  return "ended with exit status " + std::to_string(end.si_status);
}

//===----------------------------------------------------------------------===//
// Watching
//===----------------------------------------------------------------------===//

/// Such a process has no threads that could beat, and has not ended yet.
static bool isDumpingCore(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line == "CoreDumping:\t1")
      return true;
  return false;
}

Status RankWatch::start() {
  stopEvent = ::eventfd(0, EFD_CLOEXEC);
  if (stopEvent < 0)
    return systemError("watch the ranks");
  // A child that was started must not get lost, nor a wait need memory.
  const auto count = static_cast<size_t>(segment->ranks());
  children.reserve(count);
  started.reserve(count);
  events.reserve(count);
  std::packaged_task<Status()> spawning([this] { return spawn(); });
  std::future<Status> spawned = spawning.get_future();
  try {
    thread = std::thread([this, spawning = std::move(spawning)]() mutable {
      (void)blockSignals();
      spawning();
      run();
    });
    return spawned.get();
  } catch (const std::exception &exception) {
    return makeError("cannot start the ranks: ", exception.what());
  }
}

RankWatch::~RankWatch() {
  if (thread.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stopEvent, &one, sizeof(one));
    thread.join();
  }
  if (stopEvent >= 0)
    ::close(stopEvent);
}

Status RankWatch::spawnRank(int32_t rank) {
  const std::string number = "--rank=" + std::to_string(rank);
  const std::string descriptor =
      "--descriptor=" + std::to_string(segment->descriptor());
  const std::array<const char *, 7> arguments = {
      program.c_str(),  "rank", number.c_str(), descriptor.c_str(), "--",
      artifact.c_str(), nullptr};
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0)
    return systemError("start rank " + std::to_string(rank));
  if (process == 0)
    becomeRank(segment->descriptor(), parent, arguments.data());
  Child child;
  child.rank = rank;
  child.process = process;
  child.handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  children.push_back(child);
  started.push_back(process);
  return {};
}

Status RankWatch::spawn() {
  for (int32_t rank = 1; rank < segment->ranks(); ++rank)
    SANDWICH_RETURN_IF_ERROR(spawnRank(rank));
  return {};
}

bool RankWatch::wait(int event, int milliseconds) {
  events.assign(1, {event, POLLIN, 0});
  for (const Child &child : children)
    if (!child.ended && child.handle >= 0)
      events.push_back({child.handle, POLLIN, 0});
  (void)::poll(events.data(), events.size(), milliseconds);
  return events.front().revents != 0;
}

std::optional<siginfo_t> RankWatch::reap(Child &child) {
  if (child.ended)
    return std::nullopt;
  siginfo_t end{};
  const int found = child.handle >= 0
                        ? ::waitid(P_PIDFD, static_cast<id_t>(child.handle),
                                   &end, WEXITED | WNOHANG)
                        : ::waitid(P_PID, static_cast<id_t>(child.process),
                                   &end, WEXITED | WNOHANG);
  if (found != 0) {
    if (errno != ECHILD)
      return std::nullopt;
    // The program that uses the library has reaped it, and knows how it ended.
    end = {};
    end.si_code = CLD_EXITED;
  } else if (end.si_pid == 0) {
    return std::nullopt;
  }
  if (child.handle >= 0)
    ::close(child.handle);
  child.handle = -1;
  child.ended = true;
  return end;
}

void RankWatch::abort(const Child &child, const std::string &reason) {
  segment->abort(child.rank,
                 "(process " + std::to_string(child.process) + ") " + reason);
}

void RankWatch::look(Child &child, bool counts) {
  if (const std::optional<siginfo_t> end = reap(child);
      end && (end->si_code != CLD_EXITED || end->si_status != 0))
    abort(child, describeEnd(*end));
  const uint64_t beat = segment->lastBeat(child.rank);
  if (beat != child.lastBeat) {
    child.lastBeat = beat;
    child.missed = 0;
  } else if (counts) {
    ++child.missed;
  }
  if (child.ended) {
    if (!segment->hasLeft(child.rank))
      abort(child, "ended before it was told to");
  } else if (child.missed >= (beat > 0 ? mostMissed : mostFirstLooks)) {
    abort(child, isDumpingCore(segment->processOf(child.rank))
                     ? "crashed, and takes long to write its core"
                     : "does not answer any more");
  }
}

/// One look at every rank of this host. The other hosts watch theirs.
void RankWatch::look() {
  segment->beat(0);
  if (hosts)
    if (Status status = hosts->failure(); !status)
      segment->abort(SharedMemorySegment::elsewhere, status.error().message);
  const auto now = std::chrono::steady_clock::now();
  const bool counts =
      now - looked >= std::chrono::milliseconds(lookMilliseconds);
  if (counts)
    looked = now;
  for (Child &child : children)
    look(child, counts);
  // What they tell is not asked for behind a failure.
  if (counts && segment->aborted() == 0)
    lookForHangs();
}

void RankWatch::lookForHangs() {
  std::vector<LateRanks::Workers> workers(1);
  {
    std::lock_guard lock(mutex);
    if (!runsSteps)
      return;
    workers[0] = {::getpid(), ownThreads};
  }
  if (const pid_t thread = announcer; thread > 0)
    workers[0].threads.push_back(thread);
  // Those of the rank itself, whose parent a wrapper may be.
  for (const Child &child : children)
    workers.push_back({segment->processOf(child.rank)});
  if (std::optional<LateRanks::Verdict> verdict =
          lateRanks.look(workers, hosts ? hosts->progress() : HostProgress())) {
    segment->abort(verdict->rank, verdict->reason);
    ownHang = verdict->rank == 0;
  }
}

/// Gives all ranks a second to end.
void RankWatch::waitForEnds() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (true) {
    for (Child &child : children)
      (void)reap(child);
    if (std::ranges::all_of(children, &Child::ended) ||
        std::chrono::steady_clock::now() >= end)
      return;
    (void)wait(/*event=*/-1, /*milliseconds=*/10);
  }
}

void RankWatch::endAll() {
  if (ending)
    waitForEnds();
  for (const Child &child : children) {
    if (child.ended)
      continue;
    // A number may be another's by now, a handle is not.
    if (child.handle >= 0)
      (void)::syscall(SYS_pidfd_send_signal, child.handle, SIGKILL, nullptr, 0);
    else
      ::kill(child.process, SIGKILL);
  }
  waitForEnds();
}

void RankWatch::watch() {
  do
    look();
  while (segment->aborted() == 0 && !wait(stopEvent, lookMilliseconds));
}

void RankWatch::run() {
  const auto failing = [this](const char *reason) {
    segment->abort(0, reason);
  };
  constexpr const char *purpose = "watch the others any more";
  runCatching(purpose, [this] { watch(); }, failing);
  runCatching(
      purpose,
      [this] {
        if (segment->aborted() != 0 && hosts && !endedHere)
          hosts->fail(segment->failure().error().message);
      },
      failing);
  endAll();
  runCatching(
      purpose,
      [this] {
        // The call that hangs cannot tell.
        if (ownHang && onOwnHang)
          onOwnHang(segment->failure().error());
      },
      failing);
}
