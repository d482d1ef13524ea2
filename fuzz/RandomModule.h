//===- RandomModule.h - Modules nobody would write --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FUZZ_RANDOMMODULE_H
#define SANDWICH_FUZZ_RANDOMMODULE_H

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

namespace sandwich {

/// Decisions that follow from a seed, the same on every machine.
class Decisions {
public:
  explicit Decisions(uint64_t seed) : engine(seed) {}

  /// Between 0 and `count` - 1.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(count));
  }
  /// Between `first` and `last`.
  int64_t between(int64_t first, int64_t last) {
    return first + below(last - first + 1);
  }
  /// True in so many of a thousand cases.
  bool perMille(int64_t count) { return below(1000) < count; }

  template <typename T> T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }
  template <typename Container> const auto &pick(const Container &choices) {
    return choices[static_cast<size_t>(
        below(static_cast<int64_t>(choices.size())))];
  }

private:
  std::mt19937_64 engine;
};

/// A module in MLIR's text: model IR, schedule IR, phase programs or anything
/// else; as the compiler would write it, or with faults in its structure
/// (foreign operations, loops in loops, chains of casts, symbols that meet,
/// wrong types), which `decisions` choose.
std::string makeRandomModule(Decisions &decisions);

} // namespace sandwich

#endif // SANDWICH_FUZZ_RANDOMMODULE_H
