//===- RunningService.h - A service until its model is freed ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_CAPI_RUNNINGSERVICE_H
#define SANDWICH_LIB_RUNTIME_CAPI_RUNNINGSERVICE_H

#include "sandwich/Service/Service.h"

#include <memory>
#include <shared_mutex>
#include <unistd.h>

namespace sandwich::capi {

/// The service of a model, which requests know as well: they may be freed after
/// it. Unavailable where the model is freed or this process is a fork.
class RunningService {
public:
  explicit RunningService(std::unique_ptr<Service> service)
      : service(std::move(service)) {}

  Result<RequestId> submit(GenerationRequest request,
                           GenerationCallbacks callbacks);
  void cancel(RequestId id);
  Result<ServiceStatistics> statistics();

  /// Ends the service with all its requests.
  void end();

  /// Error, Unavailable: this process is a fork of the one that loaded the
  /// model, where other threads' locks are held for ever.
  Status checkProcess() const;

private:
  const pid_t process = ::getpid();
  /// Held alone only to take the service away, so that calls do not wait for
  /// each other.
  std::shared_mutex mutex;
  std::unique_ptr<Service> service;
};

} // namespace sandwich::capi

#endif // SANDWICH_LIB_RUNTIME_CAPI_RUNNINGSERVICE_H
