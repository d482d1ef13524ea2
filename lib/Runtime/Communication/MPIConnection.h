//===- MPIConnection.h - Hosts that watch each other ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_COMMUNICATION_MPICONNECTION_H
#define SANDWICH_LIB_RUNTIME_COMMUNICATION_MPICONNECTION_H

#include "sandwich/Runtime/Communication/HostCommunicator.h"
#include "sandwich/Support/Result.h"

// The C interface alone; the one for C++ left the standard with MPI 3.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sandwich {

/// MPI in this process, and a thread that tells the other hosts that this one
/// is alive and looks whether they are.
class MPIConnection {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

public:
  /// Starts MPI, which waits for the other hosts. Errors: MPI was started
  /// already; it cannot be started, or not for several threads.
  static Result<std::unique_ptr<MPIConnection>> open();
  /// Tells the others of a failure unless all have left.
  ~MPIConnection();
  /// Returns when the others leave as well, or the failure that was before.
  /// There are no messages and no failures any more after it.
  Status leave();

  int32_t host() const { return ownHost; }
  int32_t hosts() const { return static_cast<int32_t>(peers.size()); }
  const std::string &nameOf(int32_t host) const {
    return peers[static_cast<size_t>(host)].name;
  }
  /// For messages between two hosts, of all threads: tags tell them apart.
  MPI_Comm communicator() const { return messages; }

  /// As long as it exists, the thread that made it is in a collective.
  class Collective {
  public:
    explicit Collective(MPIConnection &connection, bool counts = true)
        : connection(connection) {
      ++connection.inside;
      ++connection.calls;
      if (counts)
        ++connection.begun;
    }
    ~Collective() { --connection.inside; }
    Collective(const Collective &) = delete;
    Collective &operator=(const Collective &) = delete;

  private:
    MPIConnection &connection;
  };
  /// As `HostCommunicator::progress`.
  HostProgress progress() const {
    HostProgress progress;
    progress.others = othersBegun;
    progress.othersStand = std::chrono::duration_cast<Milliseconds>(
        Clock::now() - othersMoved.load());
    progress.own = begun;
    progress.ownCalls = calls;
    progress.waits = inside > 0;
    return progress;
  }

  bool hasFailed() const { return failed.load(std::memory_order_relaxed); }
  Status failure() const;
  /// Failures of this host, which the others are told.
  void fail(std::string_view reason);
  /// Whether `code` is success; anything else is a failure.
  bool check(int code);
  bool lostContact() const { return hostIsSilent; }

  /// Returns true once all of `requests` are complete, or false after a
  /// failure; their memory is not used any more then. Spins for a while, and
  /// sleeps after that.
  bool wait(std::vector<MPI_Request> &requests);

private:
  enum class BeatKind : uint32_t { Alive, Failed, Leaving };
  struct Beat {
    BeatKind kind = BeatKind::Alive;
    /// Collectives that the sender has begun, the last one so long ago.
    uint64_t begun = 0;
    int64_t standsMilliseconds = 0;
    char reason[HostCommunicator::keptReasonBytes + 4] = {};
  };
  struct Peer {
    std::string name;
    int32_t process = 0;
    /// Of the watching thread alone.
    Beat sent, received;
    MPI_Request sending = MPI_REQUEST_NULL;
    MPI_Request receiving = MPI_REQUEST_NULL;
    int missed = 0;
    bool hasLeft = false;
    uint64_t begun = 0;
    Clock::time_point moved = Clock::now();
  };

  MPIConnection() = default;
  Status connect();
  void setFailure(std::string_view why, bool own);
  void watch();
  void beatUntilEnd();
  bool isOther(const Peer &peer) const {
    return &peer != &peers[static_cast<size_t>(ownHost)];
  }
  void receive(Peer &peer);
  void send(Peer &peer, BeatKind kind);
  bool complete(MPI_Request &request);
  /// Handles the beats that came, and counts those that did not if this look
  /// counts.
  void look(bool counts);
  /// Sends a last beat to all and gives it `patience` to leave.
  void sayLast(BeatKind kind, Milliseconds patience);

  int32_t ownHost = 0;
  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm beats = MPI_COMM_NULL;
  std::vector<Peer> peers;

  /// Collectives of this host, also those that do not count.
  std::atomic<uint64_t> calls{0};
  /// Those that count: of this host, and of the last of the others.
  std::atomic<uint64_t> begun{0}, othersBegun{0};
  /// When the last of the others began its last one.
  std::atomic<Clock::time_point> othersMoved{Clock::now()};
  /// What the watching thread has seen this host begin, and when.
  uint64_t begunSeen = 0;
  Clock::time_point moved = Clock::now();
  /// Threads that are in a collective.
  std::atomic<int32_t> inside{0};

  mutable std::mutex mutex;
  std::string reason;
  /// Whether the others were not told by the one that failed.
  bool failedHere = false;
  bool left = false;
  std::atomic<bool> failed{false};
  std::atomic<bool> hostIsSilent{false};
  std::atomic<bool> leaving{false};
  /// The watching thread has told the failure and uses MPI no more.
  std::atomic<bool> silent{false};
  std::thread watcher;
};

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_COMMUNICATION_MPICONNECTION_H
