//===- ArtifactWriter.cpp - Writing a compiled model ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/ArtifactWriter.h"

#include "Checksum.h"
#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sandwich;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Files under construction
//===----------------------------------------------------------------------===//

namespace {

/// A new file that counts and checksums what is appended to it.
class OutputFile {
public:
  /// Creates `name` in `folder`; errors speak of `shownPath`.
  static Result<OutputFile> create(int folder, const std::string &name,
                                   std::string shownPath) {
    OutputFile file;
    file.shownPath = std::move(shownPath);
    // Nobody runs an artifact that others may write to.
    file.descriptor = ::openat(folder, name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file.descriptor < 0)
      return systemError(file.shownPath, "create");
    return file;
  }

  OutputFile(OutputFile &&other) noexcept
      : shownPath(std::move(other.shownPath)),
        descriptor(std::exchange(other.descriptor, -1)), length(other.length),
        written(other.written), startedWriting(other.startedWriting),
        pending(std::move(other.pending)), sum(std::move(other.sum)) {}
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }

  Status reserve(uint64_t total) {
    if (::fallocate(descriptor, 0, 0, static_cast<off_t>(total)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
      return systemError(shownPath, "write");
    return {};
  }

  Status append(std::span<const std::byte> bytes) {
    sum.update(bytes);
    length += bytes.size();
    if (!pending.empty()) {
      size_t fitting = std::min(writeBytes - pending.size(), bytes.size());
      pending.insert(pending.end(), bytes.begin(), bytes.begin() + fitting);
      bytes = bytes.subspan(fitting);
      if (pending.size() < writeBytes)
        return {};
      SANDWICH_RETURN_IF_ERROR(write(pending));
      pending.clear();
    }
    size_t whole = bytes.size() / writeBytes * writeBytes;
    pending.assign(bytes.begin() + whole, bytes.end());
    return write(bytes.first(whole));
  }

  /// Puts everything on the disk and closes the file.
  Status finish() {
    SANDWICH_RETURN_IF_ERROR(write(pending));
    // `reserve` may have made it longer.
    if (::ftruncate(descriptor, static_cast<off_t>(length)) != 0 ||
        ::fsync(descriptor) != 0 || ::close(std::exchange(descriptor, -1)) != 0)
      return systemError(shownPath, "write");
    return {};
  }

  uint64_t bytes() const { return length; }
  uint64_t checksum() const { return sum.digest(); }

private:
  OutputFile() = default;

  /// Writes of whole huge pages at multiples of their size let the page cache
  /// hold the file in huge pages (Linux 6.16 on ext4 does). Mapping 2.7 GB then
  /// takes milliseconds instead of a third of a second, and reads miss the TLB
  /// less.
  static constexpr size_t writeBytes = size_t(2) << 20;

  Status write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        return systemError(shownPath, "write");
      bytes = bytes.subspan(static_cast<size_t>(count));
      written += static_cast<uint64_t>(count);
    }
    startWriteback();
    return {};
  }

  /// Sends what is complete to the disk while the next tensors are packed, so
  /// that the sync at the end does not wait for gigabytes.
  void startWriteback() {
    constexpr uint64_t enough = uint64_t(64) << 20;
    if (written - startedWriting < enough)
      return;
    (void)::sync_file_range(descriptor, static_cast<off_t>(startedWriting),
                            static_cast<off_t>(written - startedWriting),
                            SYNC_FILE_RANGE_WRITE);
    startedWriting = written;
  }

  std::string shownPath;
  int descriptor = -1;
  /// Bytes appended; the last of them, less than `writeBytes`, are pending.
  uint64_t length = 0;
  uint64_t written = 0;
  uint64_t startedWriting = 0;
  std::vector<std::byte> pending;
  artifact::Checksum sum;
};

} // namespace

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

/// Whether `path` is a folder that an `ArtifactWriter` may have made: an
/// artifact's files and no others, with a manifest of any version. Nothing else
/// is ever replaced.
static bool isArtifact(const std::string &path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::directory)
    return false;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (!std::ranges::count(artifact::fileNames,
                            entry->path().filename().string()))
      return false;
  if (error)
    return false;
  return holdsManifest(path);
}

static Status checkDestination(const std::string &path) {
  std::error_code error;
  fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found || isArtifact(path))
    return {};
  return makeError(path,
                   ": exists and is not a Sandwich artifact, or holds other "
                   "files as well; remove it or write to another place");
}

/// Removes the partial folder at `path`, made by process `maker`, if its writer
/// is no more. A living writer holds a lock on it. A young folder may not be
/// locked yet, so the process is asked; of an old one the number may be another
/// process's by now.
static void removeIfStale(const fs::path &path, pid_t maker) {
  constexpr time_t oldSeconds = 60;
  int descriptor =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    return;
  std::error_code ignored;
  struct stat status;
  bool young = ::fstat(descriptor, &status) != 0 ||
               ::time(nullptr) - status.st_ctime < oldSeconds;
  bool makerLives = ::kill(maker, 0) == 0 || errno != ESRCH;
  if (young && makerLives && maker != ::getpid()) {
    ::close(descriptor);
    return;
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    fs::remove_all(path, ignored);
  ::close(descriptor);
}

/// Removes what interrupted writers of the artifact `name` left in `parent`.
static void removeStalePartials(const fs::path &parent,
                                const std::string &name) {
  std::string prefix = name + partialSuffix;
  std::vector<std::pair<fs::path, pid_t>> found;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string candidate = entry->path().filename();
    if (!candidate.starts_with(prefix))
      continue;
    pid_t maker = 0;
    const char *last = candidate.data() + candidate.size();
    auto [rest, problem] =
        std::from_chars(candidate.data() + prefix.size(), last, maker);
    if (problem == std::errc() && rest == last && maker > 0)
      found.emplace_back(entry->path(), maker);
  }
  for (const auto &[path, maker] : found)
    removeIfStale(path, maker);
}

static Status syncFolder(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError(path, "open");
  int result = ::fsync(descriptor);
  int reason = errno;
  ::close(descriptor);
  // Some filesystems cannot sync folders, and then nothing is to be done.
  if (result != 0 && reason != EINVAL)
    return makeError(path, ": cannot write: ", std::strerror(reason));
  return {};
}

//===----------------------------------------------------------------------===//
// ArtifactWriter
//===----------------------------------------------------------------------===//

struct ArtifactWriter::State {
  ~State() { removePartial(); }

  void removePartial() {
    if (descriptor < 0)
      return;
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    ::close(std::exchange(descriptor, -1));
  }

  std::string shownPath(std::string_view name) const {
    return destination + "/" + std::string(name);
  }
  Result<OutputFile> createFile(std::string_view name) const {
    return OutputFile::create(descriptor, std::string(name), shownPath(name));
  }
  void addEntry(std::string_view name, const OutputFile &file) {
    proto::File entry;
    entry.set_name(std::string(name));
    entry.set_bytes(file.bytes());
    entry.set_checksum(file.checksum());
    files.push_back(std::move(entry));
  }
  Status addFile(std::string_view name, std::span<const std::byte> bytes);
  Status moveIntoPlace(const std::function<void()> &inPlace);

  std::string destination;
  std::string parent;
  std::string partial;
  UnfinishedOutput unfinished;
  /// The partial folder, locked; -1 before it is made and after it is moved.
  int descriptor = -1;
  std::optional<OutputFile> weights;
  std::vector<proto::Tensor> tensors;
  /// Whether what is appended belongs to the last of them.
  bool inTensor = false;
  std::vector<proto::File> files;
};

ArtifactWriter::ArtifactWriter(std::unique_ptr<State> state)
    : state(std::move(state)) {}
ArtifactWriter::ArtifactWriter(ArtifactWriter &&) noexcept = default;
ArtifactWriter &ArtifactWriter::operator=(ArtifactWriter &&) noexcept = default;
ArtifactWriter::~ArtifactWriter() = default;

Result<ArtifactWriter> ArtifactWriter::create(const std::string &path) {
  auto state = std::make_unique<State>();
  state->destination = path;
  while (state->destination.size() > 1 && state->destination.ends_with('/'))
    state->destination.pop_back();
  fs::path destination = state->destination;
  std::string name = destination.filename();
  if (name.empty() || name == "." || name == "..")
    return makeError("\"", path,
                     "\" is not a path an artifact can be written "
                     "to; give it a name");
  state->parent =
      destination.has_parent_path() ? destination.parent_path().string() : ".";
  state->partial =
      state->destination + partialSuffix + std::to_string(::getpid());
  SANDWICH_RETURN_IF_ERROR(checkDestination(state->destination));
  removeStalePartials(state->parent, name);
  bool isMade = false;
  state->unfinished = UnfinishedOutput::listWhenMade(state->partial, [&] {
    return isMade = ::mkdir(state->partial.c_str(), 0755) == 0;
  });
  if (!isMade) {
    if (errno == EEXIST)
      return makeError(state->destination,
                       ": is being written by this process already");
    return systemError(state->destination, "create");
  }
  state->descriptor =
      ::open(state->partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (state->descriptor < 0) {
    Error error = systemError(state->destination, "create");
    ::rmdir(state->partial.c_str());
    return error;
  }
  // Only tells other writers that this one lives; where locks do not work they
  // keep their hands off the folder anyway.
  (void)::flock(state->descriptor, LOCK_EX | LOCK_NB);
  SANDWICH_ASSIGN_OR_RETURN(OutputFile weights,
                            state->createFile(artifact::weightsFile));
  state->weights.emplace(std::move(weights));
  return ArtifactWriter(std::move(state));
}

Status ArtifactWriter::reserveWeights(uint64_t bytes) {
  if (bytes > artifact::limits::weightsBytes)
    return makeError(state->shownPath(artifact::weightsFile), ": would be ",
                     bytes, " bytes long; at most ",
                     artifact::limits::weightsBytes, " are accepted");
  return bytes ? state->weights->reserve(bytes) : Status();
}

Result<uint64_t> ArtifactWriter::beginTensor(proto::Tensor tensor,
                                             uint64_t alignment) {
  if (alignment == 0 || alignment % artifact::tensorAlignment != 0)
    return makeError("tensor \"", tensor.name(), "\" asks for an alignment of ",
                     alignment, ", which is not a multiple of ",
                     artifact::tensorAlignment);
  uint64_t padding = (alignment - weightsBytes() % alignment) % alignment;
  SANDWICH_RETURN_IF_ERROR(skipTo(weightsBytes() + padding));
  tensor.set_offset(weightsBytes());
  tensor.set_bytes(0);
  state->tensors.push_back(std::move(tensor));
  state->inTensor = true;
  return weightsBytes();
}

Status ArtifactWriter::appendWeights(std::span<const std::byte> bytes) {
  if (state->tensors.empty())
    return makeError(state->shownPath(artifact::weightsFile),
                     ": has bytes before the first tensor");
  SANDWICH_RETURN_IF_ERROR(state->weights->append(bytes));
  if (state->inTensor) {
    proto::Tensor &tensor = state->tensors.back();
    tensor.set_bytes(tensor.bytes() + bytes.size());
  }
  return {};
}

void ArtifactWriter::describeRounding(size_t index, proto::Rounding rounding) {
  assert(index < state->tensors.size());
  *state->tensors[index].mutable_rounding() = std::move(rounding);
}

Status ArtifactWriter::skipTo(uint64_t offset) {
  if (offset < weightsBytes())
    return makeError(state->shownPath(artifact::weightsFile), ": has ",
                     weightsBytes(), " bytes already, beyond ", offset);
  static const std::array<std::byte, artifact::pageBytes> zeros = {};
  while (weightsBytes() < offset)
    SANDWICH_RETURN_IF_ERROR(state->weights->append(std::span(zeros).first(
        std::min<uint64_t>(offset - weightsBytes(), zeros.size()))));
  state->inTensor = false;
  return {};
}

uint64_t ArtifactWriter::weightsBytes() const {
  return state->weights->bytes();
}

/// The writer's own files are not for `addFile`.
static Status checkAddedName(std::string_view name) {
  if (!std::ranges::count(artifact::fileNames, name) ||
      name == artifact::weightsFile || name == artifact::manifestFile)
    return makeError("\"", name, "\" is not a name for a file of an artifact");
  return {};
}

Status ArtifactWriter::State::addFile(std::string_view name,
                                      std::span<const std::byte> bytes) {
  SANDWICH_ASSIGN_OR_RETURN(OutputFile file, createFile(name));
  SANDWICH_RETURN_IF_ERROR(file.append(bytes));
  SANDWICH_RETURN_IF_ERROR(file.finish());
  if (name != artifact::manifestFile)
    addEntry(name, file);
  return {};
}

Status ArtifactWriter::addFile(std::string_view name,
                               std::span<const std::byte> bytes) {
  SANDWICH_RETURN_IF_ERROR(checkAddedName(name));
  return state->addFile(name, bytes);
}

Status ArtifactWriter::copyFile(std::string_view name,
                                const std::string &source) {
  SANDWICH_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(source));
  return addFile(name, file.bytes());
}

Status ArtifactWriter::commit(proto::Manifest manifest,
                              const std::function<void()> &inPlace) {
  SANDWICH_RETURN_IF_ERROR(state->weights->finish());
  state->addEntry(artifact::weightsFile, *state->weights);

  manifest.set_sandwich_version(SANDWICH_VERSION);
  manifest.mutable_tensors()->Assign(state->tensors.begin(),
                                     state->tensors.end());
  std::ranges::sort(state->files, {}, &proto::File::name);
  manifest.mutable_files()->Assign(state->files.begin(), state->files.end());
  auto bytes = artifact::serializeManifest(manifest);
  if (!bytes)
    return bytes.error().inContext(state->shownPath(artifact::manifestFile));

  // Everything else is on the disk before the manifest exists.
  SANDWICH_RETURN_IF_ERROR(syncFolder(state->partial));
  SANDWICH_RETURN_IF_ERROR(
      state->addFile(artifact::manifestFile,
                     std::as_bytes(std::span(bytes->data(), bytes->size()))));
  SANDWICH_RETURN_IF_ERROR(syncFolder(state->partial));
  return state->moveIntoPlace(inPlace);
}

Status ArtifactWriter::setStepTimes(const std::string &path,
                                    const proto::StepTimes &times) {
  // What runs it may be another CPU.
  ArtifactOpenOptions options;
  options.availableFeatures.reset();
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path, options));
  proto::Manifest manifest = artifact.manifest();
  *manifest.mutable_step_times() = times;
  SANDWICH_ASSIGN_OR_RETURN(ArtifactWriter writer, create(path));
  State &state = *writer.state;
  const std::string name = state.shownPath(artifact::manifestFile);
  auto bytes = artifact::serializeManifest(manifest);
  if (!bytes)
    return bytes.error().inContext(name);
  SANDWICH_RETURN_IF_ERROR(
      state.addFile(artifact::manifestFile,
                    std::as_bytes(std::span(bytes->data(), bytes->size()))));
  const std::string made =
      state.partial + "/" + std::string(artifact::manifestFile);
  if (::rename(made.c_str(), name.c_str()) != 0)
    return systemError(name, "replace");
  return syncFolder(state.destination);
}

Status
ArtifactWriter::State::moveIntoPlace(const std::function<void()> &inPlace) {
  SANDWICH_RETURN_IF_ERROR(checkDestination(destination));
  if (::rename(partial.c_str(), destination.c_str()) == 0) {
    // The name may be another process's from now on.
    unfinished = UnfinishedOutput();
    ::close(std::exchange(descriptor, -1));
    if (inPlace)
      inPlace();
    return syncFolder(parent);
  }
  if (errno != EEXIST && errno != ENOTEMPTY)
    return systemError(destination, "write");
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, destination.c_str(),
                  RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL)
      return makeError(destination, ": cannot be replaced on this filesystem; "
                                    "remove it first");
    return systemError(destination, "replace");
  }
  if (inPlace)
    inPlace();
  // What is called partial now is the old artifact.
  removePartial();
  return syncFolder(parent);
}
