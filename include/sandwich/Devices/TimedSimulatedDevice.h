//===- TimedSimulatedDevice.h - Numbers that take time ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_TIMEDSIMULATEDDEVICE_H
#define SANDWICH_DEVICES_TIMEDSIMULATEDDEVICE_H

#include "sandwich/Devices/Device.h"
#include "sandwich/Devices/SimulatedDevice.h"
#include "sandwich/Support/Result.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace sandwich {

/// What is done to a simulated device from outside.
enum class InjectedFault {
  None,
  /// Batches and probes fail at once, those under way when they would be done.
  Killed,
  /// Nothing that is submitted now ever ends.
  Hanging,
  /// Batches take `slowFactor` times as long.
  Slow,
  /// Answers have too few embeddings, too short ones, or numbers that are none.
  Nonsense,
};

/// A simulated device that really waits for its alpha * batch + beta seconds,
/// on a thread of its own, with the noise and the faults of its model. The
/// embeddings depend on the tokens only, so that it does not matter which
/// device answered.
class TimedSimulatedDevice final : public Device {
public:
  /// The name and the kind of `facts` are those of `model`. Errors: as
  /// `DeviceFacts::validate`; the system grants no thread.
  static Result<std::unique_ptr<TimedSimulatedDevice>>
  create(SimulatedDeviceModel model, DeviceFacts facts, uint64_t seed);

  ~TimedSimulatedDevice() override;

  const DeviceFacts &facts() const override { return described; }
  void submit(DeviceBatch batch, BatchCompletion completion) override;
  void probe(ProbeCompletion completion) override;

  /// From now on; of batches that are under way only `Killed` is seen.
  void inject(InjectedFault fault);

  /// The embedding of `tokens`, of length 1.
  static Embedding embed(std::span<const int32_t> tokens, uint32_t dimensions);

private:
  using Clock = std::chrono::steady_clock;

  TimedSimulatedDevice(SimulatedDeviceModel model, DeviceFacts facts,
                       uint64_t seed)
      : described(std::move(facts)), device(std::move(model), seed) {}

  void callAt(Clock::time_point time, std::function<void()> work);
  void run();
  BatchAnswer answer(const DeviceBatch &batch, bool fails, bool nonsense);

  const DeviceFacts described;
  std::mutex mutex;
  std::condition_variable changed;
  // Of the mutex.
  SimulatedDevice device;
  InjectedFault fault = InjectedFault::None;
  std::multimap<Clock::time_point, std::function<void()>> events;
  /// When the last batch is done.
  Clock::time_point idleAt = Clock::time_point::min();
  uint64_t wrongAnswers = 0;
  bool stopping = false;
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_TIMEDSIMULATEDDEVICE_H
