//===- LateRanks.cpp - Ranks that the others wait for ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LateRanks.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

using namespace sandwich;
using std::chrono::milliseconds;

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// What `/proc/PROCESS/task/THREAD/stat` tells; nothing of a heartbeat.
static std::optional<ThreadActivity> readThread(const std::string &folder,
                                                pid_t thread) {
  std::ifstream file(folder + "/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name, in parentheses, may hold anything.
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos ||
      text.substr(open + 1, close - open - 1) == heartbeatName)
    return std::nullopt;
  std::istringstream fields(text.substr(close + 1));
  std::string state, skipped;
  fields >> state;
  // From the parent's number on.
  for (int i = 0; i < 10; ++i)
    fields >> skipped;
  int64_t ticks = 0;
  if (!(fields >> ticks))
    return std::nullopt;
  return ThreadActivity{milliseconds(ticks * 1000 / ::sysconf(_SC_CLK_TCK)),
                        state == "S"};
}

std::map<pid_t, ThreadActivity>
sandwich::readThreads(pid_t process, std::span<const pid_t> threads) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  std::vector<pid_t> all(threads.begin(), threads.end());
  if (all.empty())
    if (DIR *entries = ::opendir(folder.c_str())) {
      while (const dirent *entry = ::readdir(entries)) {
        const std::string_view name = entry->d_name;
        pid_t thread = 0;
        // "." and ".." are none.
        if (std::from_chars(name.data(), name.data() + name.size(), thread)
                .ec == std::errc())
          all.push_back(thread);
      }
      ::closedir(entries);
    }
  std::map<pid_t, ThreadActivity> found;
  for (pid_t thread : all)
    if (std::optional<ThreadActivity> activity = readThread(folder, thread))
      found.emplace(thread, *activity);
  return found;
}

/// The most that any thread has computed between two times.
static milliseconds
computedBetween(const std::map<pid_t, ThreadActivity> &before,
                const std::map<pid_t, ThreadActivity> &after) {
  milliseconds most{0};
  for (const auto &[thread, activity] : after)
    if (auto earlier = before.find(thread); earlier != before.end())
      most = std::max(most, activity.computed - earlier->second.computed);
  return most;
}

//===----------------------------------------------------------------------===//
// LateRanks
//===----------------------------------------------------------------------===//

void LateRanks::readCounters() {
  for (int32_t rank = 0; rank < segment.ranks(); ++rank) {
    std::vector<uint32_t> counters;
    for (int32_t lane = 0; lane <= segment.lanes(); ++lane)
      counters.push_back(segment.progress(rank, lane).written.value());
    State &state = states[static_cast<size_t>(rank)];
    if (counters == state.counters)
      continue;
    state.counters = std::move(counters);
    state.moved = state.active = looks;
    state.asleep = 0;
    state.before.clear();
  }
}

void LateRanks::readHosts(const HostProgress &progress) {
  State &first = states.front();
  othersMoved = looks - progress.othersStand / interval;
  if (progress.waits || progress.ownCalls != hosts.ownCalls) {
    // The time in which it waits, for the next step too, is not its own. Beside
    // others it has not moved for them, who do not wait for hosts.
    first.asleep = 0;
    first.before.clear();
    if (states.size() == 1)
      first.moved = looks;
  }
  hosts = progress;
}

bool LateRanks::isAhead(const State &rank, const State &other) const {
  for (size_t lane = 0; lane < rank.counters.size(); ++lane)
    if (static_cast<int32_t>(rank.counters[lane] - other.counters[lane]) > 0)
      return true;
  return false;
}

void LateRanks::readActivity(std::span<const Workers> workers) {
  for (size_t rank = 0; rank < states.size(); ++rank) {
    State &state = states[rank];
    std::map<pid_t, ThreadActivity> now =
        readThreads(workers[rank].process, workers[rank].threads);
    const milliseconds computed = computedBetween(state.threads, now);
    // Who waits spins for a millisecond.
    if (computed >= interval / 2)
      state.active = looks;
    const bool asleep =
        computed.count() == 0 && !now.empty() &&
        std::ranges::all_of(now, [](const auto &t) { return t.second.asleep; });
    state.asleep = asleep ? state.asleep + 1 : 0;
    if (state.before.empty())
      state.before = now;
    state.threads = std::move(now);
  }
}

std::optional<std::string> LateRanks::judge(size_t rank,
                                            int64_t othersArrived) const {
  const State &state = states[rank];
  // One look more, as both may have happened since the look before.
  const milliseconds share =
      std::max<int64_t>(othersArrived - state.moved + 1, 1) * interval;
  const milliseconds computed = computedBetween(state.before, state.threads);
  if (computed > leastHang + hangFactor * share) {
    char text[120];
    std::snprintf(text, sizeof(text),
                  "hangs: it has computed for %.1f s at what took the other "
                  "ranks less than %.2f s",
                  static_cast<double>(computed.count()) / 1000,
                  static_cast<double>(share.count()) / 1000);
    return text;
  }
  // A rank that is ahead of another may wait for that one.
  const bool leads = std::ranges::any_of(
      states, [&](const State &other) { return isAhead(state, other); });
  if (!leads && state.asleep * interval >= asleepHang &&
      (looks - othersArrived) * interval >= asleepHang)
    return "hangs: all its threads sleep while the other ranks wait for it";
  return std::nullopt;
}

std::vector<size_t> LateRanks::findLate() const {
  std::vector<size_t> late;
  for (size_t rank = 0; rank < states.size(); ++rank) {
    // It waits for another host.
    if (rank == 0 && hosts.waits)
      continue;
    const bool alone = states.size() == 1 && hosts.others > hosts.own;
    if (alone || std::ranges::any_of(states, [&](const State &other) {
          return isAhead(other, states[rank]);
        }))
      late.push_back(rank);
  }
  return late;
}

int64_t LateRanks::arrivalAt(size_t rank, std::span<const size_t> late) const {
  if (states.size() == 1)
    return othersMoved;
  // The last of those who wait, or of all if each is late somewhere.
  int64_t arrived = 0;
  for (size_t other = 0; other < states.size(); ++other)
    if (other != rank && (late.size() == states.size() ||
                          std::ranges::find(late, other) == late.end()))
      arrived = std::max(arrived, states[other].active);
  return arrived;
}

std::optional<LateRanks::Verdict>
LateRanks::look(std::span<const Workers> workers,
                const HostProgress &progress) {
  ++looks;
  readCounters();
  readHosts(progress);
  const std::vector<size_t> late = findLate();
  if (late.empty()) {
    for (State &state : states) {
      state.threads.clear();
      state.before.clear();
      state.asleep = 0;
    }
    return std::nullopt;
  }
  // Somebody is late most of the time, but not for long.
  if (std::ranges::all_of(
          late, [&](size_t rank) { return states[rank].moved == looks; }))
    return std::nullopt;
  readActivity(workers);
  for (size_t rank : late) {
    if (std::optional<std::string> reason = judge(rank, arrivalAt(rank, late)))
      return Verdict{static_cast<int32_t>(rank),
                     "(process " + std::to_string(workers[rank].process) +
                         ") " + *reason};
  }
  return std::nullopt;
}
