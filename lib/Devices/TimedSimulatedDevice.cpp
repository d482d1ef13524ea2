//===- TimedSimulatedDevice.cpp - Numbers that take time ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/TimedSimulatedDevice.h"

#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sandwich;

Result<std::unique_ptr<TimedSimulatedDevice>>
TimedSimulatedDevice::create(SimulatedDeviceModel model, DeviceFacts facts,
                             uint64_t seed) {
  facts.name = model.name;
  facts.kind = model.kind;
  SANDWICH_RETURN_IF_ERROR(facts.validate());
  std::unique_ptr<TimedSimulatedDevice> made(
      new TimedSimulatedDevice(std::move(model), std::move(facts), seed));
  SANDWICH_ASSIGN_OR_RETURN(made->thread,
                            startThread("device '" + made->described.name + "'",
                                        [self = made.get()] { self->run(); }));
  return made;
}

TimedSimulatedDevice::~TimedSimulatedDevice() {
  if (!thread.joinable())
    return;
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  thread.join();
}

void TimedSimulatedDevice::inject(InjectedFault injected) {
  const std::lock_guard lock(mutex);
  fault = injected;
}

void TimedSimulatedDevice::callAt(Clock::time_point time,
                                  std::function<void()> work) {
  const auto place = events.emplace(time, std::move(work));
  if (place == events.begin())
    changed.notify_one();
}

void TimedSimulatedDevice::submit(DeviceBatch batch,
                                  BatchCompletion completion) {
  const std::lock_guard lock(mutex);
  const Clock::time_point now = Clock::now();
  SimulatedBatch simulated = device.run(static_cast<uint32_t>(batch.size()));
  if (fault == InjectedFault::Hanging || simulated.end == BatchEnd::Hung)
    return;
  if (fault == InjectedFault::Slow)
    simulated.seconds *= device.model().slowFactor;
  const bool killed = fault == InjectedFault::Killed;
  if (!killed)
    idleAt = std::max(idleAt, now) +
             std::chrono::duration_cast<Clock::duration>(
                 std::chrono::duration<double>(simulated.seconds));
  callAt(killed ? now : idleAt,
         [this, batch = std::move(batch), completion = std::move(completion),
          fails = simulated.end == BatchEnd::Failed,
          nonsense = fault == InjectedFault::Nonsense] {
           completion(answer(batch, fails, nonsense));
         });
}

void TimedSimulatedDevice::probe(ProbeCompletion completion) {
  const std::lock_guard lock(mutex);
  if (fault == InjectedFault::Hanging)
    return;
  std::optional<DeviceError> error;
  if (fault == InjectedFault::Killed)
    error = DeviceError{DeviceErrorKind::Unreachable, "the device was killed"};
  callAt(Clock::now(), [completion = std::move(completion),
                        error = std::move(error)] { completion(error); });
}

void TimedSimulatedDevice::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (events.empty()) {
      changed.wait(lock);
      continue;
    }
    const Clock::time_point next = events.begin()->first;
    if (Clock::now() < next) {
      changed.wait_until(lock, next);
      continue;
    }
    const std::function<void()> work = std::move(events.begin()->second);
    events.erase(events.begin());
    lock.unlock();
    work();
    lock.lock();
  }
}

BatchAnswer TimedSimulatedDevice::answer(const DeviceBatch &batch, bool fails,
                                         bool nonsense) {
  uint64_t way = 0;
  {
    const std::lock_guard lock(mutex);
    if (fault == InjectedFault::Killed)
      return {.error = DeviceError{DeviceErrorKind::Unreachable,
                                   "the device was killed"}};
    if (nonsense)
      way = wrongAnswers++;
  }
  if (fails)
    return {.error = DeviceError{DeviceErrorKind::Failed,
                                 "a batch failed, as it was simulated"}};
  BatchAnswer answer;
  answer.embeddings.reserve(batch.size());
  for (const DeviceQuery &query : batch)
    answer.embeddings.push_back(embed(*query.tokens, described.dimensions));
  if (nonsense && way % 3 == 0)
    answer.embeddings.pop_back();
  else if (nonsense && way % 3 == 1)
    answer.embeddings.back().pop_back();
  else if (nonsense)
    answer.embeddings.front().back() = std::numeric_limits<float>::quiet_NaN();
  return answer;
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
static uint64_t mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

Embedding TimedSimulatedDevice::embed(std::span<const int32_t> tokens,
                                      uint32_t dimensions) {
  uint64_t state = tokens.size();
  for (const int32_t token : tokens)
    state = mix(state + static_cast<uint32_t>(token) + 1);
  Embedding embedding(dimensions);
  double squares = 0;
  for (float &number : embedding) {
    state += 0x9E3779B97F4A7C15;
    number =
        static_cast<float>(static_cast<double>(mix(state) >> 11) * 0x1p-52 - 1);
    squares += static_cast<double>(number) * number;
  }
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float &number : embedding)
    number *= scale;
  return embedding;
}
