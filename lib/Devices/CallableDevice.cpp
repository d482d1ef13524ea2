//===- CallableDevice.cpp - A function as a device ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/CallableDevice.h"

#include "sandwich/Support/Process.h"

#include <exception>

using namespace sandwich;

Result<std::unique_ptr<CallableDevice>>
CallableDevice::create(DeviceFacts facts, Function function) {
  SANDWICH_RETURN_IF_ERROR(facts.validate());
  std::unique_ptr<CallableDevice> device(
      new CallableDevice(std::move(facts), std::move(function)));
  SANDWICH_ASSIGN_OR_RETURN(
      device->thread, startThread("device '" + device->described.name + "'",
                                  [self = device.get()] { self->run(); }));
  return device;
}

CallableDevice::~CallableDevice() {
  if (!thread.joinable())
    return;
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  thread.join();
}

void CallableDevice::submit(DeviceBatch batch, BatchCompletion completion) {
  push({.batch = std::move(batch), .completion = std::move(completion)});
}

void CallableDevice::probe(ProbeCompletion completion) {
  push({.probed = std::move(completion)});
}

void CallableDevice::push(Job job) {
  {
    const std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
  }
  // After the lock, which the thread would otherwise wait for.
  changed.notify_one();
}

void CallableDevice::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (stopping)
      return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    if (job.probed)
      job.probed(std::nullopt);
    else
      job.completion(compute(job.batch));
    // What it holds is given back before the next one is waited for.
    job = {};
    lock.lock();
  }
}

static DeviceErrorKind kindOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::InvalidArgument:
  case ErrorKind::ContextExceeded:
    return DeviceErrorKind::Rejected;
  case ErrorKind::Overloaded:
  case ErrorKind::CacheFull:
    return DeviceErrorKind::Busy;
  default:
    return DeviceErrorKind::Failed;
  }
}

BatchAnswer CallableDevice::compute(std::span<const DeviceQuery> batch) const {
  try {
    Result<std::vector<Embedding>> embeddings = function(batch);
    if (embeddings)
      return {.embeddings = *std::move(embeddings)};
    const Error &error = embeddings.error();
    return {.error = DeviceError{kindOf(error.kind), error.message}};
  } catch (const std::exception &thrown) {
    return {.error = DeviceError{DeviceErrorKind::Failed, thrown.what()}};
  }
}
