//===- RunningService.cpp - A service until its model is freed ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunningService.h"

#include <mutex>

using namespace sandwich;
using namespace sandwich::capi;

static Error freedError() {
  return makeError(ErrorKind::Unavailable, "the model is freed");
}

Status RunningService::checkProcess() const {
  if (::getpid() == process)
    return {};
  return makeError(ErrorKind::Unavailable,
                   "this process is a fork of the one that loaded the model, "
                   "whose threads it does not have; load models after forking");
}

Result<RequestId> RunningService::submit(GenerationRequest request,
                                         GenerationCallbacks callbacks) {
  SANDWICH_RETURN_IF_ERROR(checkProcess());
  std::shared_lock lock(mutex);
  if (!service)
    return freedError();
  return service->submit(std::move(request), std::move(callbacks));
}

void RunningService::cancel(RequestId id) {
  if (!checkProcess())
    return;
  std::shared_lock lock(mutex);
  if (service)
    service->cancel(id);
}

Result<ServiceStatistics> RunningService::statistics() {
  SANDWICH_RETURN_IF_ERROR(checkProcess());
  std::shared_lock lock(mutex);
  if (!service)
    return freedError();
  return service->statistics();
}

void RunningService::end() {
  std::unique_ptr<Service> ending;
  if (!checkProcess()) {
    ending = std::move(service);
    return;
  }
  {
    std::unique_lock lock(mutex);
    ending = std::move(service);
  }
  // Without the lock: callbacks of its last requests may call.
  ending.reset();
}
