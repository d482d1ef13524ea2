//===- File.cpp - Mapped reading and safe writing -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/File.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <optional>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace sandwich;

Result<MappedFile> MappedFile::open(const std::string &path) {
  // A FIFO would otherwise block until somebody writes to it.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return systemError(path, "open");
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return makeError(path, ": is not a regular file");
  }
  MappedFile file;
  file.name = path;
  if (status.st_size > 0) {
    auto size = static_cast<size_t>(status.st_size);
    void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      Error error = systemError(path, "map");
      ::close(descriptor);
      return error;
    }
    file.contents = {static_cast<const std::byte *>(data), size};
  }
  ::close(descriptor);
  return file;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), contents(std::exchange(other.contents, {})) {
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(contents, other.contents);
  return *this;
}

void MappedFile::dropPages() const {
  // Nobody writes to the mapping, so that there is nothing to lose.
  if (!contents.empty())
    (void)::madvise(const_cast<std::byte *>(contents.data()), contents.size(),
                    MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!contents.empty())
    ::munmap(const_cast<std::byte *>(contents.data()), contents.size());
}

Result<std::string> sandwich::readTextFile(const std::string &path,
                                           size_t maxBytes) {
  SANDWICH_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > maxBytes)
    return makeError(path, ": is ", file.bytes().size(),
                     " bytes long; at most ", maxBytes, " are accepted");
  return std::string(file.text());
}

namespace {

/// What has just been made, and is listed for removal.
struct NewOutput {
  std::string path;
  UnfinishedOutput listed;
};

} // namespace

/// Has `make` make a file or folder that is not there yet: `path`, or "PATH-1",
/// "PATH-2" and so on. Another process may have this one's number, in another
/// container, or have had it, and left what it wrote. Nothing if `make` fails;
/// errno tells why.
static std::optional<NewOutput>
makeNewOutput(const std::string &path,
              const std::function<bool(const char *path)> &make) {
  constexpr int attempts = 10000;
  for (int i = 0; i < attempts; ++i) {
    NewOutput output;
    output.path = i == 0 ? path : path + "-" + std::to_string(i);
    bool isMade = false;
    output.listed = UnfinishedOutput::listWhenMade(
        output.path, [&] { return isMade = make(output.path.c_str()); });
    if (isMade)
      return output;
    if (errno != EEXIST)
      break;
  }
  return std::nullopt;
}

Result<PendingFile> PendingFile::create(const std::string &path) {
  PendingFile file;
  file.shownPath = path;
  file.destination = path;
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    file.descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor < 0)
      return systemError(path, "open");
    return file;
  }
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {
    file.destination = std::filesystem::canonical(path, error);
    if (error)
      return makeError(path, ": cannot follow the link: ", error.message());
  }
  std::optional<NewOutput> output = makeNewOutput(
      file.destination + partialSuffix + std::to_string(::getpid()),
      [&](const char *name) {
        file.descriptor =
            ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return file.descriptor >= 0;
      });
  if (!output)
    return systemError(path, "create");
  file.temporary = std::move(output->path);
  file.unfinished = std::move(output->listed);
  return file;
}

PendingFile::PendingFile(PendingFile &&other) noexcept
    : shownPath(std::move(other.shownPath)),
      destination(std::move(other.destination)),
      temporary(std::move(other.temporary)),
      unfinished(std::move(other.unfinished)),
      descriptor(std::exchange(other.descriptor, -1)) {}

PendingFile &PendingFile::operator=(PendingFile &&other) noexcept {
  std::swap(shownPath, other.shownPath);
  std::swap(destination, other.destination);
  std::swap(temporary, other.temporary);
  std::swap(unfinished, other.unfinished);
  std::swap(descriptor, other.descriptor);
  return *this;
}

PendingFile::~PendingFile() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status PendingFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError(shownPath, "write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status PendingFile::commit() {
  if (temporary.empty()) {
    if (::close(std::exchange(descriptor, -1)) != 0)
      return systemError(shownPath, "write");
    return {};
  }
  if (::fsync(descriptor) != 0)
    return systemError(shownPath, "write");
  if (::close(std::exchange(descriptor, -1)) != 0 ||
      ::rename(temporary.c_str(), destination.c_str()) != 0) {
    Error error = systemError(shownPath, "write");
    ::unlink(temporary.c_str());
    return error;
  }
  // The name may be another process's from now on.
  unfinished = UnfinishedOutput();
  return {};
}

Result<ScratchFolder> ScratchFolder::create(const std::string &prefix,
                                            const std::string &parent) {
  std::error_code code;
  const std::filesystem::path place =
      parent.empty() ? std::filesystem::temp_directory_path(code)
                     : std::filesystem::path(parent);
  if (code)
    return makeError("there is no folder for temporary files: ", code.message(),
                     "; name one in TMPDIR");
  std::optional<NewOutput> output =
      makeNewOutput(place / (prefix + "-" + std::to_string(::getpid())),
                    [](const char *path) { return ::mkdir(path, 0700) == 0; });
  if (!output)
    return makeError(place.string(),
                     ": no folder can be made there: ", std::strerror(errno));
  ScratchFolder folder;
  folder.name = std::move(output->path);
  folder.unfinished = std::move(output->listed);
  return folder;
}

ScratchFolder::ScratchFolder(ScratchFolder &&other) noexcept
    : name(std::exchange(other.name, {})),
      unfinished(std::move(other.unfinished)) {}

ScratchFolder &ScratchFolder::operator=(ScratchFolder &&other) noexcept {
  std::swap(name, other.name);
  std::swap(unfinished, other.unfinished);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!name.empty())
    std::filesystem::remove_all(name, ignored);
}

Result<FileLock> FileLock::acquire(const std::string &path, double seconds) {
  using Clock = std::chrono::steady_clock;
  FileLock lock;
  lock.descriptor =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (lock.descriptor < 0)
    return systemError(path, "create");
  Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  while (::flock(lock.descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return systemError(path, "lock");
    if (Clock::now() >= end)
      return makeError(path, ": another process has held this lock for ",
                       seconds, " seconds");
    constexpr std::chrono::milliseconds pause{5};
    std::this_thread::sleep_for(pause);
  }
  return lock;
}

FileLock::FileLock(FileLock &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)) {}

FileLock &FileLock::operator=(FileLock &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor >= 0)
    ::close(descriptor);
}
