//===- MemoryLedger.h - Memory that several models share --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the models of one process have taken of its memory, or are going to.
/// `planMemory` goes by what the system calls available, and that is not what
/// is left for the next model: memory that a model maps and has not used yet,
/// as KV caches are for most of their life, and pages of files, as weights are,
/// count as available. The ledger takes them away, so that no two models plan
/// the same bytes, whether they are loaded one after another or at once.
/// docs/Memory.md tells the rule to users.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEMORY_MEMORYLEDGER_H
#define SANDWICH_RUNTIME_MEMORY_MEMORYLEDGER_H

#include "sandwich/Machine/Process/MemoryBudget.h"
#include "sandwich/Runtime/Memory/MemoryPlan.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace sandwich {

/// How much of what was reserved the system knows of already.
struct ReservationUse {
  /// Whether all of it is in the address space, and what ranks exchange data in
  /// was taken.
  bool mapped = false;
  /// Bytes of memory of its own, no file's, that a rank has in use now; nothing
  /// means none. Called by threads of others, which it must not wait for.
  std::function<uint64_t(uint64_t rank)> bytes = {};
};

/// Memory that belongs to a model as long as this lives. Moves, never copies;
/// an empty one has none.
class MemoryReservation {
public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation &&other) noexcept;
  MemoryReservation &operator=(MemoryReservation &&other) noexcept;
  ~MemoryReservation() { release(); }

  void release();
  explicit operator bool() const { return state != nullptr; }

  /// From now on `use` tells. Returns when no call of what told before is under
  /// way any more. Before the first call nothing is in use.
  void setUse(ReservationUse use);

private:
  friend class MemoryLedger;
  struct State;
  MemoryReservation(std::shared_ptr<State> state, uint64_t number);

  std::shared_ptr<State> state;
  uint64_t number = 0;
  pid_t process = 0;
};

/// All calls may come from any thread. In a fork of the process nothing but the
/// ends of objects is of use.
class MemoryLedger {
public:
  /// What `readMemoryLimits` returns for these NUMA nodes.
  using LimitReader = std::function<std::vector<MemoryLimit>(
      const std::vector<unsigned> &numaNodes)>;

  /// Of this process; `readLimits` is another one in tests only.
  explicit MemoryLedger(LimitReader readLimits = {});
  MemoryLedger(const MemoryLedger &) = delete;
  MemoryLedger &operator=(const MemoryLedger &) = delete;

  /// Tells of a model that is going to be loaded, so that those before it leave
  /// what it needs at least, and its share of the rest. Named as in `reserve`.
  void expect(const std::string &model, const MemoryNeeds &needs);
  /// It is not going to be loaded after all.
  void forget(const std::string &model);

  struct Reserved {
    MemoryPlan plan;
    MemoryReservation reservation;
  };
  /// Plans the memory of a model, expected or not, below what other models
  /// leave, and takes it. A model without `kvMemory` gets what it wants, but
  /// for its KV cache at most an equal share of what all models need at least
  /// leaves, among those that are still expected and have no `kvMemory` either.
  /// Errors as `planMemory`, and they name the models that hold memory; nothing
  /// is taken then.
  Result<Reserved> reserve(const std::string &model, const MemoryNeeds &needs);

  /// Plans again what `reservation` of this ledger has, for a model that is
  /// loaded anew: as if it held nothing. It goes on holding what it held.
  Result<MemoryPlan> planAgain(const MemoryReservation &reservation,
                               const MemoryNeeds &needs);

  /// A model that holds memory.
  struct Holding {
    std::string model;
    /// Of all ranks here: what was reserved, and how much of it is the KV
    /// cache and how much are pages of files.
    uint64_t bytes = 0;
    uint64_t kvCache = 0;
    uint64_t mapped = 0;
    /// How much of it, without pages of files, is in use now.
    uint64_t inUse = 0;
  };
  std::vector<Holding> holdings() const;

private:
  std::shared_ptr<MemoryReservation::State> state;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEMORY_MEMORYLEDGER_H
