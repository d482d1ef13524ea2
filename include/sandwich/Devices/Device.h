//===- Device.h - What computes embeddings ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The interface between the dispatcher and whatever computes embeddings: the
/// CPU engine of this process, an accelerator's server over HTTP, or numbers.
/// Nobody waits in it: a batch goes in, and its answer comes back by a call.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICE_H
#define SANDWICH_DEVICES_DEVICE_H

#include "sandwich/Devices/DeviceConfiguration.h"
#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// The most numbers of one embedding.
inline constexpr uint32_t maxEmbeddingDimensions = 1 << 16;

/// One vector; moved from the device to whoever asked, never copied.
using Embedding = std::vector<float>;

/// One text to embed.
struct DeviceQuery {
  uint64_t id = 0;
  /// Shared, as a device that hangs may still read what another one computes
  /// by then. Not null.
  std::shared_ptr<const std::vector<int32_t>> tokens;
};

using DeviceBatch = std::vector<DeviceQuery>;

/// Why there is no answer, by what is to be done about it.
enum class DeviceErrorKind {
  /// It works, and takes no more at the moment.
  Busy,
  /// It works, and will never take this batch: one of its queries is wrong.
  Rejected,
  /// Nothing of the batch has begun, as nobody is there.
  Unreachable,
  TimedOut,
  /// An answer that is none: the count, a dimension or a number is wrong.
  WrongAnswer,
  /// All else.
  Failed,
};

/// "busy", "rejected" and so on.
std::string_view nameOf(DeviceErrorKind kind);

struct DeviceError {
  DeviceErrorKind kind = DeviceErrorKind::Failed;
  /// A sentence without its end.
  std::string message = {};
  /// Of `Busy`, where the device tells.
  std::optional<double> retryAfterSeconds = std::nullopt;
};

/// What became of a batch: an embedding of each query, in the batch's order, or
/// an error and none.
struct BatchAnswer {
  std::vector<Embedding> embeddings = {};
  std::optional<DeviceError> error = std::nullopt;
};

/// Called at most once, by a thread of the device.
using BatchCompletion = std::function<void(BatchAnswer answer)>;
/// Nothing: the device is alive.
using ProbeCompletion = std::function<void(std::optional<DeviceError> error)>;

/// What is known of a device and never changes.
struct DeviceFacts {
  std::string name = {};
  DeviceKind kind = DeviceKind::Cpu;
  /// Numbers of each embedding.
  uint32_t dimensions = 0;
  /// Of a batch, all queries together. A longer query is a batch of its own.
  uint64_t batchTokens = uint64_t{1} << 16;
  uint32_t batchQueries = 1024;
  /// Of one query; longer ones are not for this device.
  uint32_t queryTokens = 8192;

  /// Errors (InvalidArgument): no name; no dimensions or more than
  /// `maxEmbeddingDimensions`; batches of no tokens, no queries or more than
  /// `maxQueueDepth`; queries of no tokens.
  Status validate() const;
};

/// Computes embeddings. All calls may come from any thread and wait for
/// nothing.
class Device {
public:
  Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  /// No completion runs any more when it returns; those of batches under way
  /// may never be called. Not to be called by a completion.
  virtual ~Device() = default;

  virtual const DeviceFacts &facts() const = 0;

  /// Computes `batch`, of at least one query, after those that were submitted
  /// before. `completion` is not called by this call itself.
  virtual void submit(DeviceBatch batch, BatchCompletion completion) = 0;

  /// Asks whether the device could take a batch now. A device that hangs may
  /// never answer.
  virtual void probe(ProbeCompletion completion) = 0;
};

/// What is wrong with `embeddings` as the answer of `queries` queries: another
/// count, another dimension, or a number that is not finite.
std::optional<DeviceError>
checkEmbeddings(std::span<const Embedding> embeddings, size_t queries,
                uint32_t dimensions);

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICE_H
