//===- RankHeartbeat.cpp - A rank's life ends with rank 0's ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankHeartbeat.h"

#include "LateRanks.h"
#include "sandwich/Runtime/Communication/Heartbeats.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

using namespace sandwich;

Result<std::unique_ptr<RankHeartbeat>>
RankHeartbeat::start(SharedMemorySegment &segment, int32_t rank) {
  // What was set before the program was started is lost if it has capabilities
  // of its own; and if a wrapper has started it, the wrapper is the parent.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::unique_ptr<RankHeartbeat> heartbeat(new RankHeartbeat(segment, rank));
  const pid_t process = segment.processOf(0);
  heartbeat->firstProcess =
      static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (heartbeat->firstProcess < 0 && errno == ESRCH)
    return makeError("rank 0 (process ", process, ") has ended");
  heartbeat->stopEvent = ::eventfd(0, EFD_CLOEXEC);
  if (heartbeat->stopEvent < 0)
    return systemError("start its heartbeat");
  try {
    heartbeat->thread = std::thread(&RankHeartbeat::run, heartbeat.get());
  } catch (const std::exception &exception) {
    return makeError("cannot start its heartbeat: ", exception.what());
  }
  return heartbeat;
}

RankHeartbeat::~RankHeartbeat() {
  if (thread.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stopEvent, &one, sizeof(one));
    thread.join();
  }
  for (int handle : {stopEvent, firstProcess})
    if (handle >= 0)
      ::close(handle);
}

void RankHeartbeat::run() {
  ::pthread_setname_np(::pthread_self(), heartbeatName);
  pollfd events[] = {{stopEvent, POLLIN, 0}, {firstProcess, POLLIN, 0}};
  while (events[0].revents == 0) {
    segment.beat(rank);
    (void)::poll(events, std::size(events), beatMilliseconds);
    if (events[1].revents != 0)
      ::_exit(1);
  }
}
