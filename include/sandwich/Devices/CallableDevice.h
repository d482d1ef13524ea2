//===- CallableDevice.h - A function as a device ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_CALLABLEDEVICE_H
#define SANDWICH_DEVICES_CALLABLEDEVICE_H

#include "sandwich/Devices/Device.h"
#include "sandwich/Support/Result.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace sandwich {

/// A device of this process: a thread that calls a function with one batch
/// after another.
class CallableDevice final : public Device {
public:
  /// An embedding of each query, in their order. An error is what becomes of
  /// the batch: `Rejected` for InvalidArgument and ContextExceeded, `Busy` for
  /// Overloaded and CacheFull, `Failed` for all other kinds and for exceptions.
  using Function = std::function<Result<std::vector<Embedding>>(
      std::span<const DeviceQuery> batch)>;

  /// Errors: as `DeviceFacts::validate`; the system grants no thread.
  static Result<std::unique_ptr<CallableDevice>> create(DeviceFacts facts,
                                                        Function function);

  /// Waits until the function returns, if it runs.
  ~CallableDevice() override;

  const DeviceFacts &facts() const override { return described; }
  void submit(DeviceBatch batch, BatchCompletion completion) override;
  /// Answers in its turn: not as long as the function runs.
  void probe(ProbeCompletion completion) override;

private:
  /// A batch, or a probe, whose batch is empty.
  struct Job {
    DeviceBatch batch = {};
    BatchCompletion completion = {};
    ProbeCompletion probed = {};
  };

  CallableDevice(DeviceFacts facts, Function function)
      : described(std::move(facts)), function(std::move(function)) {}

  void push(Job job);
  void run();
  BatchAnswer compute(std::span<const DeviceQuery> batch) const;

  const DeviceFacts described;
  const Function function;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  bool stopping = false;
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_CALLABLEDEVICE_H
