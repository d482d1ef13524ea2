//===- Hosts.cpp - Running on several hosts -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hosts.h"

#include "Terminal.h"

#ifdef SANDWICH_ENABLE_MPI
#include "sandwich/Runtime/Communication/MPICommunicator.h"
#endif

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace sandwich;

/// How long a host that failed waits for mpirun to end it. The end of a process
/// makes mpirun end the others at once, the first one maybe before it has told
/// what is wrong.
static constexpr std::chrono::milliseconds patience(5000);
/// The same on the first host, if another one is silent. If the network is cut,
/// mpirun finds out by the keepalive of its own connections, within two
/// seconds, but only as long as it has nothing to say over them.
static constexpr std::chrono::milliseconds patienceOfFirst(1200);

static Result<std::shared_ptr<HostCommunicator>> joinHosts() {
#ifdef SANDWICH_ENABLE_MPI
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<MPICommunicator> hosts,
                            MPICommunicator::create());
  return std::shared_ptr<HostCommunicator>(std::move(hosts));
#else
  return makeError("--mpi: this sandwich-run was built without MPI; install "
                   "libopenmpi-dev and openmpi-bin, configure with "
                   "-DSANDWICH_ENABLE_MPI=ON and build it again");
#endif
}

/// Returns after `patience`, or if there is nobody left to end this process.
static void waitForEnd(std::chrono::milliseconds patience) {
  std::signal(SIGTERM, SIG_DFL);
  const auto end = std::chrono::steady_clock::now() + patience;
  const pid_t parent = ::getppid();
  while (parent == ::getppid() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// Runs the ranks of a host that is not the first.
static Status serve(const tool::EngineArguments &arguments,
                    const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  EngineOptions options;
  SANDWICH_RETURN_IF_ERROR(arguments.apply(options));
  // The first host is told, and tells.
  options.ranks.onOwnHang = [](const Error &) {
    waitForEnd(patience);
    std::_Exit(1);
  };
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  return engine->serve();
}

/// What `work` throws is an error, of which the other hosts are told.
static Status runOrFail(const std::function<Status()> &work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return makeError("there is not enough memory");
  } catch (const std::exception &exception) {
    return makeError(exception.what());
  }
}

Status tool::runOnHosts(EngineArguments &arguments, const std::string &artifact,
                        const std::function<Status()> &run) {
  if (!arguments.mpi)
    return run();
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<HostCommunicator> hosts,
                            joinHosts());
  if (hosts->ranks() == 1) {
    SANDWICH_RETURN_IF_ERROR(hosts->leave());
    return run();
  }
  arguments.hosts = hosts;
  Status status;
  const bool first = hosts->rank() == 0;
  if (first) {
    std::string names;
    for (int32_t host = 0; host < hosts->ranks(); ++host)
      names += (host > 0 ? ", " : "") + hosts->nameOf(host);
    writeLog("info: " + std::to_string(hosts->ranks()) + " hosts: " + names);
    status = runOrFail(run);
  } else {
    // What is for the whole group is for the first host, which ends the others
    // when it is done.
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, SIG_IGN);
    status = runOrFail([&] { return serve(arguments, artifact); });
  }
  if (status)
    status = hosts->leave();
  else
    hosts->fail(status.error().message);
  const bool silence = !status && hosts->lostContact();
  // The others learn of it now.
  arguments.hosts.reset();
  hosts.reset();
  if (status || (first && !silence))
    return status;
  if (first)
    writeLog("error: " + status.error().message);
  waitForEnd(first ? patienceOfFirst : patience);
  throw CLI::RuntimeError(1);
}
