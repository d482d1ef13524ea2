//===- RankGroup.cpp - The processes of one model -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/RankGroup.h"

#include "LateRanks.h"
#include "RankMessages.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Topology/CpuBudget.h"

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
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

/// The program that runs ranks: this one, if it is sandwich-run; what
/// SANDWICH_RUN names; or the one installed with this library.
static Result<std::string> findProgram() {
  namespace fs = std::filesystem;
  constexpr const char *name = "sandwich-run";
  std::error_code code;
  const fs::path own = fs::read_symlink("/proc/self/exe", code);
  // A program that was replaced while it runs is "NAME (deleted)".
  if (own.filename() == name ||
      own.filename() == std::string(name) + " (deleted)")
    return std::string("/proc/self/exe");
  if (const char *named = std::getenv("SANDWICH_RUN"); named && *named) {
    if (::access(named, X_OK) != 0)
      return makeError("SANDWICH_RUN is ", named,
                       ", which cannot be run: ", std::strerror(errno));
    return std::string(named);
  }
  Dl_info library{};
  std::vector<fs::path> places = {own.parent_path()};
  if (::dladdr(reinterpret_cast<void *>(&findProgram), &library) != 0 &&
      library.dli_fname) {
    const fs::path folder = fs::absolute(library.dli_fname, code).parent_path();
    places.push_back(folder);
    places.push_back(folder.parent_path() / "bin");
  }
  for (const fs::path &place : places)
    if (::access((place / name).c_str(), X_OK) == 0)
      return (place / name).string();
  return makeError("cannot find sandwich-run, which runs the other ranks of "
                   "this artifact; name it in the environment variable "
                   "SANDWICH_RUN");
}

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
  if (end.si_status == otherBuildStatus)
    return "is of another build of Sandwich than this program; SANDWICH_RUN "
           "may name the sandwich-run that belongs to it";
  return "ended with exit status " + std::to_string(end.si_status);
}

//===----------------------------------------------------------------------===//
// Watching
//===----------------------------------------------------------------------===//

/// The thread that starts the ranks and looks after them. It is the parent that
/// their PR_SET_PDEATHSIG means: that is a thread, not a process.
class RankGroup::Watch {
public:
  Watch(std::shared_ptr<SharedMemorySegment> shared,
        std::shared_ptr<HostCommunicator> others, std::string program,
        std::string artifact, std::function<void(const Error &)> onOwnHang)
      : segment(std::move(shared)), hosts(std::move(others)),
        program(std::move(program)), artifact(std::move(artifact)),
        onOwnHang(std::move(onOwnHang)),
        lateRanks(*segment, std::chrono::milliseconds(lookMilliseconds)) {}
  ~Watch();

  Status start();
  const std::vector<int> &processes() const { return started; }
  /// The ranks were told to end, and get the time to do so.
  void expectEnd() { ending = true; }
  /// From now on ranks wait for each other in steps, which `teamThreads` of
  /// rank 0 run, and its thread `announcer`.
  void expectSteps(std::vector<pid_t> teamThreads) {
    std::lock_guard lock(mutex);
    ownThreads = std::move(teamThreads);
    runsSteps = true;
  }
  void setAnnouncer(pid_t thread) { announcer = thread; }
  /// Ends the ranks of this host, for a reason that its first rank tells.
  void abort(const char *reason) {
    endedHere = true;
    segment->abort(0, reason);
  }

private:
  struct Child {
    int32_t rank = 0;
    pid_t process = -1;
    int handle = -1;
    uint64_t lastBeat = 0;
    int missed = 0;
  };

  Status spawn();
  Status spawnRank(int32_t rank);
  void run(std::promise<Status> status);
  void look();
  void lookForHangs();
  void reap(Child &child);
  void endAll();

  const std::shared_ptr<SharedMemorySegment> segment;
  const std::shared_ptr<HostCommunicator> hosts;
  const std::string program, artifact;
  const std::function<void(const Error &)> onOwnHang;
  std::mutex mutex;
  std::vector<pid_t> ownThreads;
  bool runsSteps = false;
  std::atomic<pid_t> announcer = 0;
  /// From here on of the thread alone.
  LateRanks lateRanks;
  std::vector<Child> children;
  std::chrono::steady_clock::time_point looked;
  bool ownHang = false;
  /// Complete once `start` has returned.
  std::vector<int> started;
  std::atomic<bool> ending = false, endedHere = false;
  int stopEvent = -1;
  std::thread thread;
};

Status RankGroup::Watch::start() {
  stopEvent = ::eventfd(0, EFD_CLOEXEC);
  if (stopEvent < 0)
    return systemError("watch the ranks");
  std::promise<Status> promise;
  std::future<Status> status = promise.get_future();
  // A child that was started must not get lost.
  children.reserve(static_cast<size_t>(segment->ranks()));
  started.reserve(static_cast<size_t>(segment->ranks()));
  try {
    thread = std::thread(&Watch::run, this, std::move(promise));
  } catch (const std::exception &exception) {
    return makeError("cannot start the thread that watches the ranks: ",
                     exception.what());
  }
  return status.get();
}

RankGroup::Watch::~Watch() {
  if (thread.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stopEvent, &one, sizeof(one));
    thread.join();
  }
  if (stopEvent >= 0)
    ::close(stopEvent);
}

Status RankGroup::Watch::spawnRank(int32_t rank) {
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

Status RankGroup::Watch::spawn() {
  for (int32_t rank = 1; rank < segment->ranks(); ++rank)
    SANDWICH_RETURN_IF_ERROR(spawnRank(rank));
  return {};
}

void RankGroup::Watch::reap(Child &child) {
  siginfo_t end{};
  const int found = child.handle >= 0
                        ? ::waitid(P_PIDFD, static_cast<id_t>(child.handle),
                                   &end, WEXITED | WNOHANG)
                        : ::waitid(P_PID, static_cast<id_t>(child.process),
                                   &end, WEXITED | WNOHANG);
  // The program that uses the library may have reaped it.
  const bool lost = found != 0 && errno == ECHILD;
  if (!lost && (found != 0 || end.si_pid == 0))
    return;
  if (child.handle >= 0)
    ::close(child.handle);
  child.handle = -1;
  const pid_t process = std::exchange(child.process, -1);
  // A rank that was told to end does so with status 0.
  if (lost || end.si_code != CLD_EXITED || end.si_status != 0)
    segment->abort(child.rank, "(process " + std::to_string(process) + ") " +
                                   (lost ? "ended" : describeEnd(end)));
}

/// One look at every rank of this host. The other hosts watch theirs.
void RankGroup::Watch::look() {
  segment->beat(0);
  if (hosts)
    if (Status status = hosts->failure(); !status)
      segment->abort(SharedMemorySegment::elsewhere, status.error().message);
  const auto now = std::chrono::steady_clock::now();
  const bool counts =
      now - looked >= std::chrono::milliseconds(lookMilliseconds);
  if (counts)
    looked = now;
  for (Child &child : children) {
    if (child.process < 0)
      continue;
    reap(child);
    const uint64_t beat = segment->lastBeat(child.rank);
    if (beat != child.lastBeat) {
      child.lastBeat = beat;
      child.missed = 0;
    } else if (child.process >= 0 && counts &&
               ++child.missed >= (beat > 0 ? missedLooks : firstLooks)) {
      segment->abort(child.rank, "(process " + std::to_string(child.process) +
                                     ") does not answer any more");
    }
  }
  if (counts)
    lookForHangs();
}

void RankGroup::Watch::lookForHangs() {
  // The first rank may wait for another host, and is none to accuse for it.
  if (hosts)
    return;
  std::vector<LateRanks::Workers> workers(1);
  {
    std::lock_guard lock(mutex);
    if (!runsSteps)
      return;
    workers[0] = {::getpid(), ownThreads};
  }
  workers[0].threads.push_back(announcer);
  for (const Child &child : children)
    workers.push_back({child.process});
  if (std::optional<LateRanks::Verdict> verdict = lateRanks.look(workers)) {
    segment->abort(verdict->rank, verdict->reason);
    ownHang = verdict->rank == 0;
  }
}

void RankGroup::Watch::endAll() {
  // Those who were told to end get the time to do so.
  for (int i = 0; i < 100 && ending; ++i) {
    for (Child &child : children)
      if (child.process >= 0)
        reap(child);
    if (std::ranges::all_of(children,
                            [](const Child &c) { return c.process < 0; }))
      break;
    ::usleep(10000);
  }
  for (Child &child : children)
    if (child.process >= 0) {
      // A number may be another's by now, a handle is not.
      if (child.handle >= 0)
        (void)::syscall(SYS_pidfd_send_signal, child.handle, SIGKILL, nullptr,
                        0);
      else
        ::kill(child.process, SIGKILL);
      for (int i = 0; i < 100 && child.process >= 0; ++i) {
        reap(child);
        if (child.process >= 0)
          ::usleep(10000);
      }
    }
}

void RankGroup::Watch::run(std::promise<Status> status) {
  sigset_t all;
  ::sigfillset(&all);
  for (int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  Status spawned = spawn();
  const bool ok = static_cast<bool>(spawned);
  status.set_value(std::move(spawned));
  bool failed = false;
  while (ok && !failed) {
    std::vector<pollfd> events = {{stopEvent, POLLIN, 0}};
    for (const Child &child : children)
      if (child.handle >= 0)
        events.push_back({child.handle, POLLIN, 0});
    (void)::poll(events.data(), events.size(), lookMilliseconds);
    if (events.front().revents != 0)
      break;
    look();
    failed = segment->aborted() != 0;
  }
  if (failed && hosts && !endedHere)
    hosts->fail(segment->failure().error().message);
  endAll();
  // The call that hangs cannot tell.
  if (ownHang && onOwnHang)
    onOwnHang(segment->failure().error());
}

//===----------------------------------------------------------------------===//
// RankGroup
//===----------------------------------------------------------------------===//

namespace {
struct SegmentShape {
  int32_t ranks, lanes;
  SharedMemorySegmentOptions options;
};
} // namespace

static Result<SegmentShape> shapeFor(const Artifact &artifact, uint32_t ranks) {
  const uint32_t threads =
      std::max(artifact.prefill().threads(), artifact.decode().threads());
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  return SegmentShape{
      static_cast<int32_t>(ranks),
      static_cast<int32_t>(threads),
      {.oversubscribed = uint64_t{threads} * ranks > budget.threads()}};
}

Result<uint64_t> RankGroup::exchangeBytes(const Artifact &artifact,
                                          uint32_t ranks) {
  SANDWICH_ASSIGN_OR_RETURN(SegmentShape shape, shapeFor(artifact, ranks));
  return SharedMemorySegment::sizeFor(shape.ranks, shape.lanes, shape.options);
}

RankGroup::RankGroup() : process(::getpid()) {}

Result<std::unique_ptr<RankGroup>>
RankGroup::start(const Artifact &artifact, const RankSetup &setup,
                 const RankGroupOptions &options) {
  std::string program = options.program;
  if (program.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(program, findProgram());
  }
  const auto all = static_cast<int32_t>(artifact::ranks(artifact.manifest()));
  HostCommunicator *hosts = options.hosts.get();
  const int32_t count = hosts ? all / hosts->ranks() : all;
  SANDWICH_ASSIGN_OR_RETURN(SegmentShape shape,
                            shapeFor(artifact, static_cast<uint32_t>(count)));
  shape.options.firstRank = hosts ? hosts->rank() * count : 0;
  SANDWICH_ASSIGN_OR_RETURN(
      std::shared_ptr<SharedMemorySegment> segment,
      SharedMemorySegment::create(shape.ranks, shape.lanes, shape.options));
  std::unique_ptr<RankGroup> group(new RankGroup);
  group->hosts = options.hosts;
  SANDWICH_ASSIGN_OR_RETURN(
      group->local, SharedMemoryCommunicator::create(segment, /*rank=*/0));
  group->ranks = group->local.get();
  if (hosts) {
    group->global = std::make_unique<TwoLevelCommunicator>(
        *group->local, hosts, shape.options.firstRank, all);
    group->ranks = group->global.get();
  }
  group->watch =
      std::make_unique<Watch>(segment, options.hosts, std::move(program),
                              artifact.path(), options.onOwnHang);
  SANDWICH_RETURN_IF_ERROR(group->watch->start());
  giveSetup(*group->local, setup, checksumOf(artifact));
  SANDWICH_RETURN_IF_ERROR(group->failure());
  return group;
}

RankGroup::~RankGroup() {
  if (::getpid() != process) {
    // The ranks and the thread are those of the process that this is a fork of.
    (void)watch.release();
    (void)local.release();
    return;
  }
  if (!watch)
    return;
  if (!loaded) {
    // They may wait for anything.
    watch->abort("ended before all had loaded");
  } else if (ranks->failure()) {
    // Other hosts were told by rank 0.
    if (leads())
      giveEnd(*ranks);
    watch->expectEnd();
    if (hosts)
      hosts->finish();
  }
}

Status RankGroup::failure() const {
  if (::getpid() != process)
    return makeError("this process is a fork of the one that loaded the model, "
                     "and has none of its ranks; load the model after forking");
  return ranks->failure();
}

std::vector<int> RankGroup::processes() const { return watch->processes(); }

/// The threads that run steps, but for thread 0, which is whoever asks.
static std::vector<pid_t> findThreads(PhaseExecutor &executor) {
  std::vector<pid_t> threads;
  for (PhaseKind phase : {PhaseKind::Prefill, PhaseKind::Decode}) {
    PhaseTeam &team = executor.team(phase);
    std::vector<pid_t> members(team.size());
    team.run(
        team.size(),
        [](void *members, int32_t thread) {
          (*static_cast<std::vector<pid_t> *>(
              members))[static_cast<size_t>(thread)] = ::gettid();
        },
        &members);
    threads.insert(threads.end(), members.begin() + 1, members.end());
  }
  return threads;
}

Result<std::vector<RankPlacement>>
RankGroup::waitUntilLoaded(PhaseExecutor &own,
                           const std::vector<std::string> &ownWarnings,
                           const LogCallback &log) {
  std::vector<RankPlacement> placement = exchangePlacement(*ranks, own);
  const std::vector<std::vector<std::string>> warnings =
      exchangeWarnings(*ranks, ownWarnings);
  SANDWICH_RETURN_IF_ERROR(failure());
  // What all ranks warn of is told once.
  for (size_t rank = 1; rank < warnings.size(); ++rank)
    for (const std::string &warning : warnings[rank])
      if (std::ranges::find(ownWarnings, warning) == ownWarnings.end())
        report(log, LogLevel::Warning,
               "rank " + std::to_string(rank) + ": " + warning);
  loaded = true;
  watch->expectSteps(findThreads(own));
  return placement;
}

void RankGroup::announce(PhaseKind phase, const StepArguments &arguments) {
  watch->setAnnouncer(::gettid());
  giveStep(*ranks, phase, arguments);
}

std::optional<PhaseKind> RankGroup::receive(StepArguments &arguments) {
  return getStep(*ranks, arguments);
}

//===----------------------------------------------------------------------===//
// Hosts
//===----------------------------------------------------------------------===//

/// "1, 2 and 4": the numbers of hosts that share `ranks` evenly.
static std::string nameDivisors(uint32_t ranks) {
  std::string text;
  for (uint32_t hosts = 1; hosts <= ranks; ++hosts)
    if (ranks % hosts == 0)
      text += (hosts == 1       ? ""
               : hosts == ranks ? " and "
                                : ", ") +
              std::to_string(hosts);
  return text;
}

Result<uint32_t> sandwich::ranksOnHost(const Artifact &artifact,
                                       HostCommunicator *hosts) {
  const uint32_t ranks = artifact::ranks(artifact.manifest());
  if (!hosts)
    return ranks;
  struct Card {
    char build[64];
    uint64_t checksum;
  } own{}, first{};
  SharedMemorySegment::build().copy(own.build, sizeof(own.build) - 1);
  own.checksum = checksumOf(artifact);
  first = own;
  hosts->broadcast(&first, sizeof(first), /*root=*/0);
  SANDWICH_RETURN_IF_ERROR(hosts->failure());
  if (std::memcmp(own.build, first.build, sizeof(own.build)) != 0)
    return makeError("another build of Sandwich than that of host ",
                     hosts->nameOf(0), " runs here");
  if (own.checksum != first.checksum)
    return makeError(artifact.path(),
                     ": is another artifact than that of host ",
                     hosts->nameOf(0), "; copy that one here");
  const auto count = static_cast<uint32_t>(hosts->ranks());
  if (ranks % count != 0)
    return makeError(artifact.path(), ": was compiled for ", ranks,
                     ranks == 1 ? " rank" : " ranks", ", which ", count,
                     " hosts cannot share evenly; start it on ",
                     ranks == 1 ? "one host, or compile it with "
                                  "--tensor-parallel=" +
                                      std::to_string(count)
                                : nameDivisors(ranks) + " hosts");
  return ranks / count;
}

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

/// Loads and serves. Errors are not known to rank 0 yet, unless the group
/// failed.
static Status serve(SharedMemoryCommunicator &local, int32_t firstRank,
                    const Artifact &artifact) {
  SANDWICH_ASSIGN_OR_RETURN(RankSetup setup,
                            getSetup(local, checksumOf(artifact)));
  const auto all = static_cast<int32_t>(artifact::ranks(artifact.manifest()));
  TwoLevelCommunicator global(local, /*hosts=*/nullptr, firstRank, all);
  Communicator &ranks =
      local.ranks() == all ? static_cast<Communicator &>(local) : global;
  PhaseExecutorOptions options;
  options.kvBlocks = setup.kvBlocks;
  options.weightPlacement = setup.weightPlacement;
  options.plan = std::move(setup.plan);
  options.numaNode = setup.numaNode;
  options.communicator = &ranks;
  std::vector<std::string> warnings;
  options.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
  };
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseExecutor> executor,
                            PhaseExecutor::create(artifact, options));
  (void)exchangePlacement(ranks, *executor);
  (void)exchangeWarnings(ranks, warnings);
  StepArguments arguments;
  while (std::optional<PhaseKind> phase = getStep(ranks, arguments))
    executor->run(*phase, arguments);
  return ranks.failure();
}

Result<bool> sandwich::serveRank(int descriptor, int32_t rank,
                                 const std::string &path) {
  // It could not be told in memory that has another shape.
  if (SharedMemorySegment::isOfOtherBuild(descriptor))
    std::_Exit(otherBuildStatus);
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<SharedMemorySegment> segment,
                            SharedMemorySegment::attach(descriptor));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<SharedMemoryCommunicator> ranks,
                            SharedMemoryCommunicator::create(segment, rank));
  std::jthread heart([&](const std::stop_token &stop) {
    ::pthread_setname_np(::pthread_self(), heartbeatName);
    while (!stop.stop_requested()) {
      segment->beat(rank);
      std::this_thread::sleep_for(std::chrono::milliseconds(beatMilliseconds));
    }
  });
  // Rank 0 tells the user, if this is the first that goes wrong.
  try {
    Result<Artifact> artifact = Artifact::open(path);
    Status status = artifact ? serve(*ranks, segment->firstRank(), *artifact)
                             : artifact.error();
    if (!status)
      segment->abort(rank, "failed: " + status.error().message);
    return static_cast<bool>(status);
  } catch (const std::exception &exception) {
    segment->abort(rank, std::string("failed: ") + exception.what());
    return false;
  }
}
