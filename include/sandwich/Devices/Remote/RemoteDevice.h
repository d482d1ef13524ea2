//===- RemoteDevice.h - A server as a device --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_REMOTE_REMOTEDEVICE_H
#define SANDWICH_DEVICES_REMOTE_REMOTEDEVICE_H

#include "sandwich/Devices/CircuitBreaker.h"
#include "sandwich/Devices/Device.h"
#include "sandwich/Devices/Remote/EmbeddingProtocol.h"
#include "sandwich/Http/HttpClient.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sandwich {

/// The largest answer of a server: the facts of a device must not allow more.
inline constexpr size_t maxRemoteAnswerBytes = size_t{1} << 30;

struct RemoteDeviceOptions {
  DeviceFacts facts;
  HttpAddress server;
  EmbeddingApi api = EmbeddingApi::OpenAI;
  RemoteEncoding encoding = RemoteEncoding::Base64;
  /// As the server calls it.
  std::string model = {};
  /// Sent as a bearer token, unless it is empty. Never in a message.
  std::string apiKey = {};
  /// Until a connection is made, and from there until the whole answer.
  double connectSeconds = 2;
  double answerSeconds = 30;
  /// Requests under way at a time; connections are used again.
  size_t connections = 4;
  /// An unused connection is not used again after so long: less than servers
  /// wait before they end it, as a request that meets the end is lost.
  double idleSeconds = 4;
  /// So often a connection is tried, with these pauses: nothing was sent, so
  /// that nothing can happen twice. All other failures are the caller's to
  /// handle.
  uint32_t connectAttempts = 2;
  double retrySeconds = 0.05;
  /// GET of it tells whether the server is ready; it begins with a slash.
  std::string healthPath = "/health";
  /// When the server is left alone. Batches fail at once meanwhile; a probe is
  /// the trial.
  CircuitBreakerOptions breaker = {.failures = 3};
  /// Of the jitter.
  uint64_t seed = 1;

  /// Errors (InvalidArgument): as `DeviceFacts` and `CircuitBreakerOptions`;
  /// times out of their ranges; no connections or attempts; a health path that
  /// is none; answers that may be larger than `maxRemoteAnswerBytes`.
  Status validate() const;
};

/// A server of embeddings, as vLLM, Text Embeddings Inference or another
/// Sandwich, that is sent token ids. Has a thread of its own.
///
/// Errors by what happened: `Unreachable` (no connection, or the circuit is
/// open: nothing was sent), `TimedOut`, `Busy` (429, with Retry-After),
/// `Rejected` (400, 413 and 422), `WrongAnswer` (what `parseEmbeddings`
/// refuses, or too many bytes), `Failed` (any other status, or a connection
/// that broke).
class RemoteDevice final : public Device {
public:
  /// Errors: as `RemoteDeviceOptions::validate`; the system grants no thread.
  static Result<std::unique_ptr<RemoteDevice>>
  create(RemoteDeviceOptions options);

  ~RemoteDevice() override;

  const DeviceFacts &facts() const override;
  void submit(DeviceBatch batch, BatchCompletion completion) override;
  void probe(ProbeCompletion completion) override;

private:
  class Implementation;
  explicit RemoteDevice(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_REMOTE_REMOTEDEVICE_H
