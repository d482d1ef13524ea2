//===- Outcomes.h - What a dispatcher said of each query --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_DEVICES_OUTCOMES_H
#define SANDWICH_UNITTESTS_DEVICES_OUTCOMES_H

#include "sandwich/Devices/Dispatcher.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sandwich::test {

/// Waits until `condition` holds, for ten seconds at most; false: it does not.
template <typename Condition> bool becomes(Condition condition) {
  for (int i = 0; i < 10'000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

/// Collects outcomes, which may come on any thread.
class Outcomes {
public:
  QueryCallback callback() {
    return [this](QueryOutcome outcome) {
      const std::lock_guard lock(mutex);
      told.push_back(std::move(outcome));
      changed.notify_all();
    };
  }

  /// Waits for so many, of which there are no more then.
  bool come(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10), [&] {
      return told.size() >= count;
    }) && told.size() == count;
  }

  std::vector<QueryOutcome> all() {
    const std::lock_guard lock(mutex);
    return told;
  }

  size_t size() {
    const std::lock_guard lock(mutex);
    return told.size();
  }

  /// The only outcome of the query `id`; a kind of `Internal`: it has none, or
  /// several.
  QueryOutcome of(uint64_t id) {
    const std::lock_guard lock(mutex);
    QueryOutcome found;
    size_t count = 0;
    for (const QueryOutcome &outcome : told)
      if (outcome.id == id) {
        found = outcome;
        ++count;
      }
    if (count != 1)
      found.refusal = QueryRefusal{ErrorKind::Internal, "not one outcome"};
    return found;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<QueryOutcome> told;
};

/// A device that the test completes by hand.
class ManualDevice final : public Device {
public:
  /// What the test keeps in its hands; outlives the device.
  struct Hands {
    std::mutex mutex;
    std::vector<std::pair<DeviceBatch, BatchCompletion>> batches;
    std::vector<ProbeCompletion> probes;

    size_t count() {
      const std::lock_guard lock(mutex);
      return batches.size();
    }
    size_t probeCount() {
      const std::lock_guard lock(mutex);
      return probes.size();
    }
    std::vector<uint64_t> ids(size_t batch) {
      const std::lock_guard lock(mutex);
      std::vector<uint64_t> ids;
      for (const DeviceQuery &query : batches.at(batch).first)
        ids.push_back(query.id);
      return ids;
    }
    /// Ends a batch: its embeddings hold the first token of each query.
    void answer(size_t batch) {
      auto [queries, completion] = at(batch);
      BatchAnswer answer;
      for (const DeviceQuery &query : queries)
        answer.embeddings.push_back(
            {static_cast<float>(query.tokens->front()), 1});
      completion(std::move(answer));
    }
    void fail(size_t batch, DeviceErrorKind kind,
              std::optional<double> retryAfterSeconds = std::nullopt) {
      at(batch).second(
          {.error = DeviceError{kind, "as the test wants", retryAfterSeconds}});
    }
    void endProbe(size_t probe, bool alive) {
      ProbeCompletion completion;
      {
        const std::lock_guard lock(mutex);
        completion = probes.at(probe);
      }
      completion(alive ? std::nullopt
                       : std::optional(DeviceError{DeviceErrorKind::Unreachable,
                                                   "still dead"}));
    }

  private:
    std::pair<DeviceBatch, BatchCompletion> at(size_t batch) {
      const std::lock_guard lock(mutex);
      return batches.at(batch);
    }
  };

  ManualDevice(Hands &hands, DeviceFacts facts)
      : hands(hands), described(std::move(facts)) {}

  const DeviceFacts &facts() const override { return described; }
  void submit(DeviceBatch batch, BatchCompletion completion) override {
    const std::lock_guard lock(hands.mutex);
    hands.batches.emplace_back(std::move(batch), std::move(completion));
  }
  void probe(ProbeCompletion completion) override {
    const std::lock_guard lock(hands.mutex);
    hands.probes.push_back(std::move(completion));
  }

private:
  Hands &hands;
  const DeviceFacts described;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_DEVICES_OUTCOMES_H
