//===- File.h - Mapped reading and safe writing -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Files are mapped for reading, and written beside their destination, synced
/// and renamed, so that an interrupted program leaves the old file or none.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_FILE_H
#define SANDWICH_SUPPORT_FILE_H

#include "sandwich/Support/Result.h"
#include "sandwich/Support/UnfinishedOutputs.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

/// What a file or folder under construction is called beside its destination:
/// its name, this, and the number of the process that writes it; a file where
/// that is taken has "-1", "-2" and so on behind it.
inline constexpr char partialSuffix[] = ".partial-";

/// A whole regular file mapped read-only. Moves, never copies.
class MappedFile {
public:
  /// Maps `path`. Errors: absent, unreadable, a folder, or not a regular file.
  /// An empty file maps to an empty span.
  static Result<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return contents; }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(contents.data()), contents.size()};
  }
  const std::string &path() const { return name; }

  /// Takes what was read of the file out of the process's memory. The system
  /// may keep it, and what is read again comes back.
  void dropPages() const;

private:
  MappedFile() = default;
  std::string name;
  std::span<const std::byte> contents;
};

/// The whole of a small text file. Errors as `MappedFile::open`, and when the
/// file is larger than `maxBytes`.
Result<std::string> readTextFile(const std::string &path, size_t maxBytes);

/// A file under construction: bytes go to a new file `PATH.partial-PID`, and
/// `commit` syncs it and renames it to `PATH`, or to what `PATH` links to.
/// Destroyed without `commit`, it removes what it wrote. What is there and no
/// regular file, a device or a pipe, is written to directly and never replaced.
class PendingFile {
public:
  static Result<PendingFile> create(const std::string &path);

  PendingFile(PendingFile &&other) noexcept;
  PendingFile &operator=(PendingFile &&other) noexcept;
  ~PendingFile();

  /// Appends `bytes`; a full disk is an error that names the file.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) {
    return write(std::as_bytes(std::span(text.data(), text.size())));
  }
  Status commit();

private:
  PendingFile() = default;
  /// As the caller names it.
  std::string shownPath;
  std::string destination;
  /// Empty where the destination is written to directly.
  std::string temporary;
  UnfinishedOutput unfinished;
  int descriptor = -1;
};

/// A new folder for temporary files, which is removed with what is in it.
class ScratchFolder {
public:
  /// Makes a folder named `prefix` and something that no other has, in `parent`
  /// or, if that is empty, where the system has temporary files.
  static Result<ScratchFolder> create(const std::string &prefix,
                                      const std::string &parent = "");

  ScratchFolder() = default;
  ScratchFolder(ScratchFolder &&other) noexcept;
  ScratchFolder &operator=(ScratchFolder &&other) noexcept;
  ~ScratchFolder();

  const std::string &path() const { return name; }

private:
  /// Empty where there is none.
  std::string name;
  UnfinishedOutput unfinished;
};

/// Keeps other processes, and other threads, from what they lock by the same
/// file until it is destroyed. The file is made if absent, and stays: whoever
/// removed it could remove one that somebody waits for.
class FileLock {
public:
  /// Waits until nobody else holds the lock on `path`, for `seconds` at most.
  /// Errors: the file cannot be made or locked; somebody held it all the time.
  static Result<FileLock> acquire(const std::string &path, double seconds);

  FileLock(FileLock &&other) noexcept;
  FileLock &operator=(FileLock &&other) noexcept;
  ~FileLock();

private:
  FileLock() = default;
  int descriptor = -1;
};

} // namespace sandwich

#endif // SANDWICH_SUPPORT_FILE_H
