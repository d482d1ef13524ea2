//===- Process.cpp - Streams, signals and threads -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Process.h"
#include "sandwich/Support/UnfinishedOutputs.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <compare>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <sys/time.h>
#include <system_error>
#include <unistd.h>

using namespace sandwich;

static bool readerGone = false;

/// Signals are handled on any thread.
static std::atomic<bool> wasInterrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler writes it");

void sandwich::prepareStandardStreams() {
  // What nobody can read from, or write to, fails as a closed one does.
  constexpr std::array<int, 3> uselessModes = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      // The lowest free number is this one.
      (void)::open("/dev/null", uselessModes[static_cast<size_t>(stream)]);
  // hwloc speaks of machines it cannot read on standard error, in lines of its
  // own; what matters is in our log. Who debugs hwloc sets it.
  (void)::setenv("HWLOC_HIDE_ERRORS", "2", /*overwrite=*/0);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Status sandwich::writeStandardOutput(std::string_view text) {
  while (!text.empty() && !readerGone) {
    ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (errno == EPIPE)
      readerGone = true;
    else if (errno != EINTR)
      return systemError("write to standard output");
  }
  return {};
}

Status sandwich::finishStandardOutput() {
  // Every one that is closed tells, not only the last.
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR)
    return systemError("write to standard output");
  return {};
}

bool sandwich::outputClosed() { return readerGone; }

/// Lets `action` handle the signals that ask a process to stop.
static void handleInterrupts(struct sigaction &action) {
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // A terminal that closes; not where nohup lets it be ignored.
  struct sigaction hangUp = {};
  if (::sigaction(SIGHUP, nullptr, &hangUp) == 0 &&
      hangUp.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
}

/// Ends the process as the signal does that nobody handles. May be called in a
/// signal handler.
[[noreturn]] static void endBy(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  (void)::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  (void)::raise(signal);
  // The first process of a container outlives what nobody handles.
  ::_exit(128 + signal);
}

void sandwich::catchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    if (wasInterrupted.exchange(true))
      endBy(signal);
  };
  handleInterrupts(action);
}

namespace {

/// What an interrupted process says at its end.
struct LastWords {
  std::string message;
  std::string output;
  auto operator<=>(const LastWords &) const = default;
};

} // namespace

/// Null until there are some.
static std::atomic<const LastWords *> lastWords = nullptr;
static_assert(std::atomic<const LastWords *>::is_always_lock_free,
              "a signal handler reads it");

void sandwich::sayWhenInterrupted(const std::string &message,
                                  const std::string &output) {
  // A handler may be reading what was to be said before, also while the process
  // exits, so that none of it is ever destroyed.
  static auto &all = *new std::set<LastWords>;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  lastWords = &*all.insert({message, output}).first;
}

const char *sandwich::interruptedMessage() {
  const LastWords *words = lastWords;
  return words ? words->message.c_str() : "interrupted";
}

void sandwich::exitInterrupted() {
  const LastWords *words = lastWords;
  if (!words)
    exitWithError({"interrupted"});
  exitWithError({words->message}, words->output);
}

void sandwich::exitSoonWhenInterrupted() {
  struct sigaction late = {};
  late.sa_handler = [](int) { exitInterrupted(); };
  ::sigemptyset(&late.sa_mask);
  ::sigaction(SIGALRM, &late, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (wasInterrupted.exchange(true))
      exitInterrupted();
    constexpr suseconds_t graceMicroseconds = 500'000;
    struct itimerval timer = {};
    timer.it_value.tv_usec = graceMicroseconds;
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
  };
  handleInterrupts(action);
}

bool sandwich::interrupted() { return wasInterrupted; }

sigset_t sandwich::blockSignals() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  for (int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

Result<std::thread> sandwich::startThread(std::string_view purpose,
                                          std::function<void()> run) {
  try {
    return std::thread([run = std::move(run)] {
      (void)blockSignals();
      run();
    });
  } catch (const std::system_error &error) {
    return makeError("the system grants no thread for ", purpose, ": ",
                     error.what());
  }
}

/// The number that `name` is; -1 if it is none.
static int parseDescriptor(const char *name) {
  int number = -1;
  std::from_chars(name, name + std::strlen(name), number);
  return number;
}

/// Closes what /proc lists. Its `opendir` would take memory, and with it a lock
/// that a thread of the parent may have held.
static bool closeListedDescriptors(int kept) {
  const int folder =
      ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return false;
  alignas(dirent64) std::array<char, 4096> entries;
  ssize_t bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, folder, entries.data(),
                            entries.size())) > 0)
    for (ssize_t at = 0; at < bytes;) {
      const auto *entry =
          reinterpret_cast<const dirent64 *>(entries.data() + at);
      at += entry->d_reclen;
      if (const int number = parseDescriptor(entry->d_name);
          number > STDERR_FILENO && number != kept && number != folder)
        ::close(number);
    }
  ::close(folder);
  return bytes == 0;
}

bool sandwich::closeDescriptorsExcept(int kept) {
  const auto middle = static_cast<unsigned>(kept);
  constexpr unsigned first = STDERR_FILENO + 1;
  // Linux has it from 5.9 on; some containers do not let programs use it.
  if ((middle == first || ::close_range(first, middle - 1, 0) == 0) &&
      ::close_range(middle + 1, ~0U, 0) == 0)
    return true;
  return closeListedDescriptors(kept);
}

void sandwich::runCatching(const char *purpose,
                           const std::function<void()> &work,
                           const std::function<void(const char *)> &fail) {
  std::array<char, 200> reason;
  const auto tell = [&](const char *what) {
    std::snprintf(reason.data(), reason.size(), "cannot %s: %s", purpose, what);
    fail(reason.data());
  };
  try {
    work();
  } catch (const std::exception &exception) {
    tell(exception.what());
  } catch (...) {
    tell("an exception of another kind");
  }
}
