//===- UnfinishedOutputs.cpp - What ends with the process -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/UnfinishedOutputs.h"

#include "sandwich/Support/Process.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <exception>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

namespace {

struct Slot {
  std::atomic<bool> taken = false;
  /// The process that listed `path`, which a child process is not; 0 while
  /// there is none.
  std::atomic<pid_t> owner = 0;
  char path[PATH_MAX];
};

} // namespace

static Slot slots[UnfinishedOutput::most];

UnfinishedOutput::UnfinishedOutput(const std::string &path) {
  if (path.size() >= sizeof(Slot::path))
    return;
  for (int i = 0; i < most; ++i)
    if (!slots[i].taken.exchange(true)) {
      std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
      slots[i].owner = ::getpid();
      slot = i;
      return;
    }
}

UnfinishedOutput
UnfinishedOutput::listWhenMade(const std::string &path,
                               const std::function<bool()> &make) {
  const sigset_t before = blockSignals();
  UnfinishedOutput output;
  const bool isMade = make();
  const int reason = errno;
  if (isMade)
    output = UnfinishedOutput(path);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return output;
}

UnfinishedOutput::UnfinishedOutput(UnfinishedOutput &&other) noexcept
    : slot(std::exchange(other.slot, -1)) {}

UnfinishedOutput &
UnfinishedOutput::operator=(UnfinishedOutput &&other) noexcept {
  std::swap(slot, other.slot);
  return *this;
}

UnfinishedOutput::~UnfinishedOutput() {
  if (slot < 0)
    return;
  slots[slot].owner = 0;
  slots[slot].taken = false;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

// All of this runs inside of signal handlers: no allocation, no locks, no
// standard streams.

/// Removes `name` in `folder`, with everything in it. Returns whether it did.
static bool removeTree(int folder, const char *name) {
  if (::unlinkat(folder, name, 0) == 0)
    return true;
  const int opened =
      ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0)
    return false;
  alignas(dirent64) char entries[2048];
  // Removing moves entries, so they are read anew until none is removed.
  for (bool removed = true; removed;) {
    removed = false;
    ::lseek(opened, 0, SEEK_SET);
    const long bytes =
        ::syscall(SYS_getdents64, opened, entries, sizeof(entries));
    for (long at = 0; at < bytes;) {
      const auto *entry = reinterpret_cast<const dirent64 *>(entries + at);
      const std::string_view child = entry->d_name;
      if (child != "." && child != "..")
        removed |= removeTree(opened, entry->d_name);
      at += entry->d_reclen;
    }
  }
  ::close(opened);
  return ::unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

static void print(std::string_view text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

/// Writes `text` to standard output. Returns 0, also where the reader went
/// away, or the number of the error.
static int writeOutput(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      return errno == EPIPE ? 0 : errno;
  }
  return 0;
}

void sandwich::exitWithError(std::initializer_list<std::string_view> message,
                             std::string_view output) {
  // A second thread, or a signal's handler, waits for the first to end all.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  static std::atomic_flag ending;
  while (ending.test_and_set())
    ::pause();
  const pid_t process = ::getpid();
  for (const Slot &slot : slots)
    if (slot.owner == process)
      removeTree(AT_FDCWD, slot.path);
  // Progress may stand on the terminal's last line.
  if (::isatty(STDERR_FILENO) == 1)
    print("\r\x1b[K");
  const int reason = writeOutput(output);
  print("error: ");
  if (reason != 0) {
    print("cannot write to standard output: ");
    print(::strerrordesc_np(reason));
  } else {
    for (std::string_view part : message)
      print(part);
  }
  print("\n");
  ::_exit(1);
}

void sandwich::exitOutOfMemory() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    exitWithError({"out of memory: this needs more addresses than the limit of "
                   "the process (ulimit -v) allows"});
  exitWithError({"out of memory"});
}

/// Whether so much memory as malloc asks for at a time cannot be had.
static bool memoryIsExhausted() {
  constexpr size_t bytes = size_t(1) << 20;
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return true;
  ::munmap(memory, bytes);
  return false;
}

/// A stack cannot grow where there is no memory, or it met its limit; and MLIR
/// does not look whether malloc returned a null pointer.
static void onBadAccess(int signal, siginfo_t *information, void *context) {
  // Raised by the processor, not sent by a program.
  const bool isAccess = information->si_code > 0;
  const auto address = reinterpret_cast<uintptr_t>(information->si_addr);
  constexpr uintptr_t largestObject = uintptr_t(1) << 20;
  if (isAccess && address < largestObject && memoryIsExhausted())
    exitOutOfMemory();
#if defined(__x86_64__) || defined(__aarch64__)
  const auto &registers = static_cast<const ucontext_t *>(context)->uc_mcontext;
#ifdef __x86_64__
  const auto stack = static_cast<uintptr_t>(registers.gregs[REG_RSP]);
#else
  const auto stack = static_cast<uintptr_t>(registers.sp);
#endif
  // A frame may be large, and its first access far from the pointer.
  constexpr uintptr_t largestFrame = uintptr_t(64) << 10;
  if (isAccess && address + largestFrame > stack &&
      address < stack + largestFrame)
    exitWithError({"out of memory for the stack: raise the limits of the "
                   "process (ulimit -s, ulimit -v)"});
#else
  (void)context;
#endif
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void sandwich::exitWhenOutOfMemory() {
  std::set_new_handler(exitOutOfMemory);
  std::set_terminate([] {
    try {
      if (std::exception_ptr exception = std::current_exception())
        std::rethrow_exception(exception);
    } catch (const std::bad_alloc &) {
      exitOutOfMemory();
    } catch (const std::exception &exception) {
      exitWithError({exception.what()});
      // NOLINTNEXTLINE(bugprone-empty-catch): what it is cannot be told.
    } catch (...) {
    }
    exitWithError({"an exception that is not handled"});
  });
  // The handler needs a stack that has not ended.
  static char handlerStack[size_t(64) << 10];
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof(handlerStack);
  ::sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = onBadAccess;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}
