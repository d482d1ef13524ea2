//===- MPIConnection.cpp - Hosts that watch each other --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MPIConnection.h"

#include "sandwich/Runtime/Communication/Heartbeats.h"
#include "sandwich/Support/Process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

using namespace sandwich;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How often the watching thread looks for what others tell.
static constexpr milliseconds glance(10);
/// What others are given to take the last words of a host that failed.
static constexpr milliseconds lastWords(200);

//===----------------------------------------------------------------------===//
// Start and end
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<MPIConnection>> MPIConnection::open() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized)
    return makeError("MPI is in use in this process already");
  int support = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &support) !=
      MPI_SUCCESS)
    return makeError("cannot start MPI");
  std::unique_ptr<MPIConnection> connection(new MPIConnection);
  if (support < MPI_THREAD_MULTIPLE)
    connection->fail("this MPI does not work with several threads");
  else if (Status status = connection->connect(); !status)
    connection->fail(status.error().message);
  SANDWICH_RETURN_IF_ERROR(connection->failure());
  return connection;
}

Status MPIConnection::connect() {
  for (MPI_Comm *communicator : {&messages, &beats})
    if (!check(MPI_Comm_dup(MPI_COMM_WORLD, communicator)) ||
        !check(MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN)))
      return failure();
  int size = 0;
  MPI_Comm_rank(messages, &ownHost);
  MPI_Comm_size(messages, &size);
  struct Card {
    char name[MPI_MAX_PROCESSOR_NAME];
    int32_t process;
  } card{};
  int length = 0;
  MPI_Get_processor_name(card.name, &length);
  card.process = ::getpid();
  std::vector<Card> cards(static_cast<size_t>(size));
  if (!check(MPI_Allgather(&card, sizeof(card), MPI_BYTE, cards.data(),
                           sizeof(card), MPI_BYTE, messages)))
    return failure();
  peers.resize(cards.size());
  for (size_t host = 0; host < cards.size(); ++host) {
    peers[host].name = cards[host].name;
    peers[host].process = cards[host].process;
  }
  try {
    watcher = std::thread(&MPIConnection::watch, this);
  } catch (const std::exception &exception) {
    return makeError("cannot start the thread that watches the other hosts: ",
                     exception.what());
  }
  return {};
}

Status MPIConnection::leave() {
  leaving = true;
  watcher.join();
  // To leave MPI all hosts are needed.
  SANDWICH_RETURN_IF_ERROR(failure());
  {
    std::lock_guard lock(mutex);
    left = true;
  }
  MPI_Comm_free(&messages);
  MPI_Comm_free(&beats);
  MPI_Finalize();
  return {};
}

MPIConnection::~MPIConnection() {
  fail("ended early");
  if (watcher.joinable())
    watcher.join();
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void MPIConnection::setFailure(std::string_view why, bool own) {
  std::lock_guard lock(mutex);
  if (left || failed)
    return;
  try {
    reason = why;
  } catch (const std::bad_alloc &) {
    // What there is memory for.
    reason = why.substr(0, reason.capacity());
  }
  failedHere = own;
  failed = true;
}

void MPIConnection::fail(std::string_view why) {
  setFailure(why, /*own=*/true);
}

bool MPIConnection::check(int code) {
  if (code == MPI_SUCCESS)
    return true;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("MPI failed: " + std::string(text, static_cast<size_t>(length)));
  return false;
}

Status MPIConnection::failure() const {
  if (!failed)
    return {};
  std::lock_guard lock(mutex);
  return makeError(reason);
}

bool MPIConnection::wait(std::vector<MPI_Request> &requests) {
  const Clock::time_point start = Clock::now();
  while (!failed) {
    int done = 0;
    if (!check(MPI_Testall(static_cast<int>(requests.size()), requests.data(),
                           &done, MPI_STATUSES_IGNORE)))
      break;
    if (done)
      return true;
    // MPI alone would spin until the next request comes.
    const auto waited = Clock::now() - start;
    if (waited > milliseconds(1))
      std::this_thread::sleep_for(microseconds(50));
    else if (waited > microseconds(50))
      std::this_thread::yield();
  }
  // What arrives as long as somebody uses MPI would go to memory that is
  // somebody else's by then.
  while (!silent)
    std::this_thread::sleep_for(milliseconds(1));
  return false;
}

//===----------------------------------------------------------------------===//
// Heartbeats
//===----------------------------------------------------------------------===//

// MPI_Test is what completes them.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)

bool MPIConnection::complete(MPI_Request &request) {
  int done = 0;
  return check(MPI_Test(&request, &done, MPI_STATUS_IGNORE)) && done;
}

void MPIConnection::receive(Peer &peer) {
  check(MPI_Irecv(&peer.received, sizeof(Beat), MPI_BYTE,
                  static_cast<int>(&peer - peers.data()), 0, beats,
                  &peer.receiving));
}

void MPIConnection::send(Peer &peer, BeatKind kind) {
  peer.sent.kind = kind;
  peer.sent.begun = begunSeen;
  peer.sent.standsMilliseconds =
      std::chrono::duration_cast<milliseconds>(Clock::now() - moved).count();
  check(MPI_Isend(&peer.sent, sizeof(Beat), MPI_BYTE,
                  static_cast<int>(&peer - peers.data()), 0, beats,
                  &peer.sending));
}

void MPIConnection::look(bool counts) {
  if (const uint64_t now = begun; now != begunSeen) {
    begunSeen = now;
    moved = Clock::now();
  }
  for (Peer &peer : peers) {
    if (!isOther(peer) || peer.hasLeft)
      continue;
    while (!failed && !peer.hasLeft && complete(peer.receiving)) {
      peer.missed = 0;
      peer.begun = peer.received.begun;
      peer.moved =
          Clock::now() - milliseconds(peer.received.standsMilliseconds);
      peer.hasLeft = peer.received.kind == BeatKind::Leaving;
      peer.received.reason[sizeof(peer.received.reason) - 1] = 0;
      if (peer.received.kind == BeatKind::Failed)
        setFailure("host " + peer.name + ": " + peer.received.reason,
                   /*own=*/false);
      else if (!peer.hasLeft)
        receive(peer);
    }
    if (!counts || peer.hasLeft || ++peer.missed < mostMissedLooks || failed)
      continue;
    hostIsSilent = true;
    fail("host " + peer.name + " (process " + std::to_string(peer.process) +
         ") does not answer any more");
  }
  uint64_t least = std::numeric_limits<uint64_t>::max();
  Clock::time_point last{};
  for (const Peer &peer : peers)
    if (isOther(peer)) {
      least = std::min(least, peer.begun);
      last = std::max(last, peer.moved);
    }
  othersBegun = least;
  othersMoved = last;
}

void MPIConnection::sayLast(BeatKind kind, milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  auto takes = [](Peer &peer) {
    int done = 0;
    MPI_Test(&peer.sending, &done, MPI_STATUS_IGNORE);
    return done != 0;
  };
  std::vector<bool> told(peers.size());
  for (bool all = false; !all && Clock::now() < end;) {
    all = true;
    for (size_t host = 0; host < peers.size(); ++host) {
      Peer &peer = peers[host];
      // Not to one that does not take what was sent before.
      if (!isOther(peer) || (takes(peer) && told[host]))
        continue;
      all = false;
      if (told[host] || peer.sending != MPI_REQUEST_NULL)
        continue;
      if (kind == BeatKind::Failed) {
        std::lock_guard lock(mutex);
        std::snprintf(
            peer.sent.reason, sizeof(peer.sent.reason), "%.*s%s",
            static_cast<int>(HostCommunicator::keptReasonBytes), reason.c_str(),
            reason.size() > HostCommunicator::keptReasonBytes ? "..." : "");
      }
      send(peer, kind);
      told[host] = true;
    }
    if (!all)
      std::this_thread::sleep_for(milliseconds(1));
  }
}

void MPIConnection::watch() {
  (void)blockSignals();
  const auto failing = [this](const char *reason) { fail(reason); };
  constexpr const char *purpose = "watch the other hosts";
  runCatching(purpose, [this] { beatUntilEnd(); }, failing);
  runCatching(
      purpose,
      [this] {
        // Whoever learned of it from another host need not tell.
        if (failed && failedHere)
          sayLast(BeatKind::Failed, lastWords);
      },
      failing);
  silent = true;
}

void MPIConnection::beatUntilEnd() {
  for (Peer &peer : peers)
    if (isOther(peer))
      receive(peer);
  Clock::time_point looked = Clock::now(), beaten{};
  bool saidGoodbye = false;
  auto othersLeft = [this] {
    return std::ranges::all_of(
        peers, [this](const Peer &p) { return !isOther(p) || p.hasLeft; });
  };
  while (!failed && !(saidGoodbye && othersLeft())) {
    const Clock::time_point now = Clock::now();
    const bool counts = now - looked >= milliseconds(lookMilliseconds);
    if (counts)
      looked = now;
    look(counts);
    if (leaving && !saidGoodbye && !failed) {
      sayLast(BeatKind::Leaving, std::chrono::seconds(2));
      saidGoodbye = true;
    }
    if (!saidGoodbye && now - beaten >= milliseconds(beatMilliseconds)) {
      beaten = now;
      for (Peer &peer : peers)
        if (isOther(peer) && complete(peer.sending))
          send(peer, BeatKind::Alive);
    }
    std::this_thread::sleep_for(glance);
  }
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
