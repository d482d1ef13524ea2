//===- Artifact.cpp - Reading a compiled model ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/Artifact.h"

#include "Checksum.h"
#include "sandwich/Artifact/SharedObject.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/MemoryFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

FileDescriptor::FileDescriptor(FileDescriptor &&other) noexcept
    : number(std::exchange(other.number, -1)) {}

FileDescriptor &FileDescriptor::operator=(FileDescriptor &&other) noexcept {
  std::swap(number, other.number);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (number >= 0)
    ::close(number);
}

namespace {

struct OpenFile {
  FileDescriptor descriptor;
  uint64_t bytes;
};

} // namespace

/// Error: somebody else than its owner may write to what `status` is of, or
/// its owner is neither the user nor root.
static Status checkOwner(const struct stat &status) {
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return makeError("others may write to it, and an artifact is a program; "
                     "'chmod -R go-w' on the artifact keeps them from it");
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return makeError("belongs to user ", status.st_uid,
                     ", and an artifact is a program; if you trust that user, "
                     "make a copy of your own with 'cp -r'");
  return {};
}

/// Opens the regular file `name` of `folder`, to run what it holds if `runs`.
/// Errors do not name the file.
static Result<OpenFile> openFile(const FileDescriptor &folder,
                                 const std::string &name, bool runs) {
  // Not blocking, as opening a pipe would wait for its writer.
  FileDescriptor descriptor(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0)
    return systemError("open");
  if (!S_ISREG(status.st_mode))
    return makeError("is not a regular file");
  if (runs)
    SANDWICH_RETURN_IF_ERROR(checkOwner(status));
  return OpenFile{std::move(descriptor), static_cast<uint64_t>(status.st_size)};
}

/// Reads the first `size` bytes of a file and gives them to `take` in pieces.
static Status
readPieces(const FileDescriptor &file, uint64_t size,
           const std::function<void(std::span<const std::byte>)> &take) {
  constexpr uint64_t pieceBytes = uint64_t(1) << 20;
  std::vector<std::byte> buffer(std::min(size, pieceBytes));
  for (uint64_t offset = 0; offset < size;) {
    ssize_t count = ::pread(file.get(), buffer.data(),
                            std::min<uint64_t>(buffer.size(), size - offset),
                            static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError("read");
    if (count == 0)
      return makeError("was cut while it was read");
    take(std::span(buffer).first(static_cast<size_t>(count)));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

static Result<std::string> readAll(const OpenFile &file) {
  std::string contents;
  contents.reserve(file.bytes);
  SANDWICH_RETURN_IF_ERROR(readPieces(
      file.descriptor, file.bytes, [&](std::span<const std::byte> piece) {
        contents.append(reinterpret_cast<const char *>(piece.data()),
                        piece.size());
      }));
  return contents;
}

static Status checkChecksum(uint64_t found, const proto::File &entry) {
  if (found != entry.checksum())
    return makeError("has a wrong checksum: the file was changed; compile the "
                     "model again");
  return {};
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

static Result<proto::Manifest> readManifest(const FileDescriptor &folder,
                                            bool runs) {
  if (::faccessat(folder.get(), artifact::manifestFile, F_OK, 0) != 0 &&
      errno == ENOENT)
    return makeError("is absent: the folder is no Sandwich artifact, or only "
                     "part of one");
  SANDWICH_ASSIGN_OR_RETURN(OpenFile file,
                            openFile(folder, artifact::manifestFile, runs));
  if (file.bytes > artifact::limits::manifestBytes)
    return makeError("is ", file.bytes, " bytes long; at most ",
                     artifact::limits::manifestBytes, " are accepted");
  SANDWICH_ASSIGN_OR_RETURN(std::string bytes, readAll(file));
  return artifact::parseManifest(bytes);
}

/// Opens the file that `entry` tells about and checks its size.
static Result<OpenFile> openEntry(const FileDescriptor &folder,
                                  const proto::File &entry, bool runs) {
  SANDWICH_ASSIGN_OR_RETURN(OpenFile file,
                            openFile(folder, entry.name(), runs));
  if (file.bytes != entry.bytes())
    return makeError("is ", file.bytes, " bytes long instead of ",
                     entry.bytes(), ": the file was ",
                     file.bytes < entry.bytes() ? "cut" : "extended",
                     "; compile the model again");
  return file;
}

/// Whether `path` names the folder of an `ArtifactWriter` that has not
/// finished.
static bool isPartial(std::string_view path) {
  path = path.substr(0, path.find_last_not_of('/') + 1);
  size_t suffix = path.rfind(partialSuffix);
  if (suffix == path.npos)
    return false;
  path.remove_prefix(suffix + std::strlen(partialSuffix));
  return !path.empty() && path.find_first_not_of("0123456789") == path.npos;
}

Result<Artifact> Artifact::open(const std::string &path,
                                const ArtifactOpenOptions &options) {
  if (isPartial(path))
    return makeError(path, ": is what an interrupted compilation left, or one "
                           "that is under way; compile the model again");
  FileDescriptor directory(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 && errno == ENOTDIR)
    return makeError(path, ": is not a folder; an artifact is one");
  if (directory.get() < 0)
    return systemError(path, "open");

  const bool runs = options.availableFeatures.has_value();
  struct stat status;
  if (::fstat(directory.get(), &status) != 0)
    return systemError(path, "open");
  if (runs)
    if (Status owned = checkOwner(status); !owned)
      return owned.error().inContext(path);

  auto manifest = readManifest(directory, runs);
  if (!manifest)
    return manifest.error().inContext(path + "/" + artifact::manifestFile);
  Artifact result;
  result.folder = path;
  result.contents = *std::move(manifest);
  if (runs)
    if (Status status = artifact::checkCpuFeatures(result.contents.target(),
                                                   *options.availableFeatures);
        !status)
      return status.error().inContext(path);

  const ModelUse use =
      result.contents.has_encoding() ? ModelUse::Encode : ModelUse::Generate;
  if (options.use && *options.use != use)
    return makeError(path,
                     use == ModelUse::Encode
                         ? ": is a model that embeds or classifies texts "
                           "and generates none; 'sandwich-run embed' runs "
                           "it"
                         : ": is a model that generates text, not one "
                           "that embeds or classifies it");
  for (const proto::File &entry : result.contents.files()) {
    auto take = [&]() -> Status {
      SANDWICH_ASSIGN_OR_RETURN(OpenFile file,
                                openEntry(directory, entry, runs));
      if (entry.name() == artifact::weightsFile) {
        result.weights = std::move(file.descriptor);
        return {};
      }
      SANDWICH_ASSIGN_OR_RETURN(std::string bytes, readAll(file));
      SANDWICH_RETURN_IF_ERROR(checkChecksum(
          artifact::checksum(std::as_bytes(std::span(bytes))), entry));
      result.smallFiles.emplace(entry.name(), std::move(bytes));
      return {};
    };
    if (Status status = take(); !status)
      return status.error().inContext(path + "/" + entry.name());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

const proto::Phase &Artifact::prefill() const {
  return *artifact::findPhase(contents, artifact::prefillPhase);
}

const proto::Phase &Artifact::decode() const {
  return *artifact::findPhase(contents, artifact::decodePhase);
}

uint64_t Artifact::maxDecodeSequences() const {
  return std::min(decode().max_tokens(), decode().max_logit_rows());
}

std::optional<std::string_view> Artifact::file(std::string_view name) const {
  auto found = smallFiles.find(name);
  if (found == smallFiles.end())
    return std::nullopt;
  return found->second;
}

uint64_t Artifact::weightsBytes() const {
  return artifact::findFile(contents, artifact::weightsFile)->bytes();
}

Status Artifact::verifyWeights(const ProgressCallback &progress) const {
  const proto::File &entry =
      *artifact::findFile(contents, artifact::weightsFile);
  artifact::Checksum checksum;
  uint64_t done = 0;
  Status status =
      readPieces(weights, entry.bytes(), [&](std::span<const std::byte> piece) {
        checksum.update(piece);
        done += piece.size();
        if (progress)
          progress(done, entry.bytes());
      });
  if (status)
    status = checkChecksum(checksum.digest(), entry);
  if (!status)
    return status.error().inContext(folder + "/" + entry.name());
  return {};
}

uint64_t Artifact::rankWeightsBytes() const {
  return artifact::ranks(contents) > 1
             ? contents.common_weight_bytes() + contents.shard_bytes()
             : weightsBytes();
}

Result<WeightStorage> Artifact::loadWeights(const WeightLoadOptions &options,
                                            uint32_t rank) const {
  const uint64_t common = contents.common_weight_bytes();
  const uint64_t shard = contents.shard_bytes();
  std::vector<WeightRegion> regions = {{0, weightsBytes()}};
  if (artifact::ranks(contents) > 1) {
    regions = {{common + rank * shard, shard}};
    if (common > 0)
      regions.insert(regions.begin(), {0, common, /*shared=*/true});
  }
  auto storage = WeightStorage::load(weights.get(), regions, options);
  if (!storage)
    return storage.error().inContext(folder + "/" + artifact::weightsFile);
  return storage;
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

PhaseLibrary::PhaseLibrary(PhaseLibrary &&other) noexcept
    : descriptor(std::move(other.descriptor)),
      handle(std::exchange(other.handle, nullptr)),
      functions(std::move(other.functions)),
      samplingFunction(std::exchange(other.samplingFunction, nullptr)) {}

PhaseLibrary &PhaseLibrary::operator=(PhaseLibrary &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(handle, other.handle);
  std::swap(functions, other.functions);
  std::swap(samplingFunction, other.samplingFunction);
  return *this;
}

PhaseLibrary::~PhaseLibrary() {
  if (handle)
    ::dlclose(handle);
}

SandwichPhaseFunction PhaseLibrary::find(std::string_view name) const {
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

static uint64_t elementType(std::string_view dtype) {
  return dtype == "f32"    ? SANDWICH_ELEMENT_F32
         : dtype == "bf16" ? SANDWICH_ELEMENT_BF16
         : dtype == "int8" ? SANDWICH_ELEMENT_INT8
                           : SANDWICH_ELEMENT_F16;
}

/// Compares what the code of `phase` was compiled for with what the manifest
/// will have it called with.
static Status checkPlan(const SandwichPlan &plan, const proto::Phase &phase,
                        const proto::Manifest &manifest) {
  uint64_t tensorsEnd = 0;
  for (const proto::Tensor &tensor : manifest.tensors())
    tensorsEnd = std::max(tensorsEnd, tensor.offset() + tensor.bytes());
  const proto::KVCache &cache = manifest.kv_cache();
  struct {
    const char *field;
    uint64_t told;
    int64_t compiled;
    /// Whether more than what was compiled is as good.
    bool atLeast;
  } const facts[] = {
      // The first, as it is the only one that every version has.
      {"target.phase_abi_version", manifest.target().phase_abi_version(),
       plan.abi_version, false},
      {"threads", phase.threads(), plan.threads, false},
      {"max_tokens", phase.max_tokens(), plan.max_tokens, false},
      {"max_logit_rows", phase.max_logit_rows(), plan.max_logit_rows, false},
      {"workspace_bytes", phase.workspace_bytes(), plan.workspace_bytes, true},
      {"kv_cache.block_bytes", cache.block_bytes(), plan.kv_block_bytes, false},
      {"kv_cache.dtype (as SandwichElementType)", elementType(cache.dtype()),
       plan.kv_element_type, false},
      {"model.vocab_size", manifest.model().vocab_size(), plan.vocab_size,
       false},
      {"the columns of what it returns", artifact::columnsOf(phase, manifest),
       plan.columns, false},
      {"the end of the last of tensors", tensorsEnd, plan.weights_bytes, true},
      {"the number of operations",
       static_cast<uint64_t>(phase.operations_size()), plan.operations, false},
      {"ranks", artifact::ranks(manifest), plan.ranks, false},
  };
  for (const auto &fact : facts) {
    auto compiled = static_cast<uint64_t>(fact.compiled);
    if (fact.told == compiled || (fact.atLeast && fact.told > compiled))
      continue;
    return makeError(fact.field, " is ", fact.told, " in ",
                     artifact::manifestFile, ", but the code of ", phase.name(),
                     " was compiled for ", fact.compiled,
                     "; compile the model again");
  }
  // Code that reads no types takes any.
  if (plan.token_types != 0 &&
      (!manifest.has_encoding() || manifest.encoding().token_types() >
                                       static_cast<uint64_t>(plan.token_types)))
    return makeError("encoding.token_types is ",
                     manifest.encoding().token_types(), " in ",
                     artifact::manifestFile, ", but the code of ", phase.name(),
                     " knows ", plan.token_types, "; compile the model again");
  // Where positions are learned.
  if (plan.positions != 0 &&
      manifest.model().context_length() > static_cast<uint64_t>(plan.positions))
    return makeError(
        "model.context_length is ", manifest.model().context_length(), " in ",
        artifact::manifestFile, ", but the code of ", phase.name(), " knows ",
        plan.positions, " positions; compile the model again");
  return {};
}

/// The plan of `symbol`, which the manifest names for `purpose`. Errors: the
/// function is absent, or so is its plan.
template <typename Plan>
static Result<Plan> findPlan(const SharedObject &object,
                             const std::string &symbol,
                             std::string_view purpose) {
  if (!object.hasFunction(symbol))
    return makeError("has no function \"", symbol,
                     "\", which the manifest names for ", purpose);
  auto bytes = object.findConstant(symbol + SANDWICH_PLAN_SYMBOL_SUFFIX);
  Plan plan;
  // Plans begin with their version, and others may be shorter.
  if (!bytes || bytes->size() < sizeof(plan.abi_version))
    return makeError("has no plan of \"", symbol,
                     "\"; compile the model again");
  plan = {};
  std::memcpy(&plan, bytes->data(), std::min(bytes->size(), sizeof(plan)));
  return plan;
}

/// Whether `object` has the function of `phase`, compiled for what `manifest`
/// tells.
static Status checkPhase(const SharedObject &object, const proto::Phase &phase,
                         const proto::Manifest &manifest) {
  SANDWICH_ASSIGN_OR_RETURN(
      const SandwichPlan plan,
      findPlan<SandwichPlan>(object, phase.symbol(), phase.name()));
  return checkPlan(plan, phase, manifest);
}

/// The same of the function that draws tokens.
static Status checkSampling(const SharedObject &object,
                            const proto::Manifest &manifest) {
  const std::string &symbol = manifest.sampling_symbol();
  SANDWICH_ASSIGN_OR_RETURN(
      const SandwichSamplingPlan plan,
      findPlan<SandwichSamplingPlan>(object, symbol, "sampling"));
  // One of a phase is another function's, and larger.
  if (object.findConstant(symbol + SANDWICH_PLAN_SYMBOL_SUFFIX)->size() !=
      sizeof(plan))
    return makeError(symbol, " does not draw tokens; compile the model again");
  if (plan.vocab_size != int64_t{manifest.model().vocab_size()})
    return makeError("model.vocab_size is ", manifest.model().vocab_size(),
                     " in ", artifact::manifestFile, ", but ", symbol,
                     " was compiled for ", plan.vocab_size,
                     "; compile the model again");
  return {};
}

/// A file in memory that holds `bytes` for good, whatever becomes of the one
/// that they are from.
static Result<FileDescriptor> makeSealedCopy(std::string_view bytes) {
  FileDescriptor copy(createMemoryFile(artifact::phasesFile));
  if (copy.get() < 0)
    return systemError("copy");
  SANDWICH_RETURN_IF_ERROR(fillAndSeal(copy.get(), bytes));
  return copy;
}

Result<PhaseLibrary> Artifact::loadPhases() const {
  const std::string name = folder + "/" + artifact::phasesFile;
  const std::string_view code = *file(artifact::phasesFile);
  auto load = [&]() -> Result<PhaseLibrary> {
    SANDWICH_ASSIGN_OR_RETURN(
        SharedObject object,
        SharedObject::read(std::as_bytes(std::span(code))));
    for (const proto::Phase &phase : contents.phases())
      SANDWICH_RETURN_IF_ERROR(checkPhase(object, phase, contents));
    const std::string &sampling = contents.sampling_symbol();
    if (!sampling.empty())
      SANDWICH_RETURN_IF_ERROR(checkSampling(object, contents));
    PhaseLibrary library;
    SANDWICH_ASSIGN_OR_RETURN(library.descriptor, makeSealedCopy(code));
    const std::string path =
        "/proc/self/fd/" + std::to_string(library.descriptor.get());
    library.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library.handle)
      return makeError("cannot load: ", ::dlerror());
    bool complete = true;
    const auto find = [&](const std::string &symbol) {
      void *function = ::dlsym(library.handle, symbol.c_str());
      complete &= function != nullptr;
      return function;
    };
    for (const proto::Phase &phase : contents.phases())
      library.functions.emplace(
          phase.name(),
          reinterpret_cast<SandwichPhaseFunction>(find(phase.symbol())));
    if (!sampling.empty())
      library.samplingFunction =
          reinterpret_cast<SandwichSamplingFunction>(find(sampling));
    if (!complete)
      return makeError("the loader does not find its functions; compile the "
                       "model again");
    return library;
  };
  Result<PhaseLibrary> library = load();
  if (!library)
    return library.error().inContext(name);
  return library;
}
