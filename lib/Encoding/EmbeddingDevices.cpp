//===- EmbeddingDevices.cpp - All that embeds for a service ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/EmbeddingDevices.h"

#include "sandwich/Devices/DepthEstimator.h"
#include "sandwich/Devices/Remote/RemoteDevice.h"
#include "sandwich/Devices/TimedSimulatedDevice.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <latch>
#include <random>

using namespace sandwich;
using Clock = std::chrono::steady_clock;

//===----------------------------------------------------------------------===//
// The CPU
//===----------------------------------------------------------------------===//

namespace {

/// What is left of a batch in the service.
struct PendingBatch {
  std::mutex mutex;
  BatchAnswer answer;
  size_t missing = 0;
  BatchCompletion completion;
};

class EncodingDevice final : public Device {
public:
  EncodingDevice(std::string name, EncodingService &service)
      : service(service) {
    const EncoderEngine &engine = service.engine();
    described.name = std::move(name);
    described.kind = DeviceKind::Cpu;
    described.dimensions = static_cast<uint32_t>(engine.columns());
    described.batchTokens = engine.maxTokens();
    described.batchQueries = static_cast<uint32_t>(
        std::min<uint64_t>(engine.maxTexts(), maxQueueDepth));
    described.queryTokens = static_cast<uint32_t>(engine.contextLength());
  }
  /// Batches that are under way hold what they need; their completions are
  /// waited for.
  ~EncodingDevice() override {
    std::unique_lock lock(mutex);
    idle.wait(lock, [&] { return underWay == 0; });
  }

  const DeviceFacts &facts() const override { return described; }
  void submit(DeviceBatch batch, BatchCompletion completion) override;
  void probe(ProbeCompletion completion) override;

private:
  /// What is under way ends before the device does.
  void begin();
  void end();

  EncodingService &service;
  DeviceFacts described;
  std::mutex mutex;
  std::condition_variable idle;
  size_t underWay = 0;
};

} // namespace

static DeviceError toDeviceError(const Error &error) {
  DeviceError told{.message = error.message};
  if (error.kind == ErrorKind::Overloaded)
    told.kind = DeviceErrorKind::Busy;
  else if (error.kind == ErrorKind::InvalidArgument ||
           error.kind == ErrorKind::ContextExceeded)
    told.kind = DeviceErrorKind::Rejected;
  else if (error.kind == ErrorKind::Unavailable)
    told.kind = DeviceErrorKind::Unreachable;
  return told;
}

void EncodingDevice::begin() {
  std::lock_guard lock(mutex);
  ++underWay;
}

void EncodingDevice::end() {
  std::lock_guard lock(mutex);
  if (--underWay == 0)
    idle.notify_all();
}

void EncodingDevice::submit(DeviceBatch batch, BatchCompletion completion) {
  begin();
  auto pending = std::make_shared<PendingBatch>();
  pending->completion = std::move(completion);
  pending->missing = batch.size();
  pending->answer.embeddings.resize(batch.size());
  std::vector<EncodingRequest> texts(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    texts[i].ids = *batch[i].tokens;
    texts[i].completion = [this, pending, i](Result<std::vector<float>> row) {
      {
        std::lock_guard lock(pending->mutex);
        if (row)
          pending->answer.embeddings[i] = *std::move(row);
        else if (!pending->answer.error)
          pending->answer.error = toDeviceError(row.error());
        if (--pending->missing > 0)
          return;
      }
      pending->completion(std::move(pending->answer));
      end();
    };
  }
  Status taken = service.submit(std::move(texts));
  if (taken)
    return;
  // Not by this call itself.
  std::thread([this, pending, error = toDeviceError(taken.error())] {
    pending->completion({.error = error});
    end();
  }).detach();
}

void EncodingDevice::probe(ProbeCompletion completion) {
  begin();
  std::thread([this, completion = std::move(completion)] {
    completion(std::nullopt);
    end();
  }).detach();
}

std::unique_ptr<Device> sandwich::makeEncodingDevice(std::string name,
                                                     EncodingService &service) {
  return std::make_unique<EncodingDevice>(std::move(name), service);
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

static Result<std::unique_ptr<Device>>
makeRemote(const DeviceDescription &description, DeviceFacts facts) {
  RemoteDeviceOptions options;
  options.facts = std::move(facts);
  options.model = description.model;
  std::string base = description.url;
  for (EmbeddingApi api :
       {EmbeddingApi::OpenAI, EmbeddingApi::TextEmbeddingsInference})
    if (const std::string_view path = pathOf(api); base.ends_with(path)) {
      options.api = api;
      base.resize(base.size() - path.size());
      break;
    }
  if (base.size() == description.url.size())
    return makeError("url is ", description.url, "; it must end with ",
                     pathOf(EmbeddingApi::OpenAI), " or ",
                     pathOf(EmbeddingApi::TextEmbeddingsInference));
  SANDWICH_ASSIGN_OR_RETURN(options.server, HttpAddress::parse(base));
  if (!description.keyVariable.empty()) {
    const char *key = std::getenv(description.keyVariable.c_str());
    if (!key)
      return makeError("key_variable is ", description.keyVariable,
                       ", and there is no such environment variable");
    options.apiKey = key;
  }
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<RemoteDevice> device,
                            RemoteDevice::create(std::move(options)));
  return std::unique_ptr<Device>(std::move(device));
}

/// Without `service` a device that can be asked whether it is there, of the CPU
/// none.
static Result<std::unique_ptr<Device>>
makeDevice(const DeviceDescription &description, EncodingService *service) {
  if (description.type == DeviceType::Cpu)
    return service ? makeEncodingDevice(description.name, *service) : nullptr;
  DeviceFacts facts{.name = description.name, .kind = description.kind};
  facts.dimensions = 1;
  if (service) {
    const EncoderEngine &engine = service->engine();
    facts.dimensions = static_cast<uint32_t>(engine.columns());
    facts.queryTokens = static_cast<uint32_t>(engine.contextLength());
  }
  if (description.type == DeviceType::Remote)
    return makeRemote(description, std::move(facts));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<TimedSimulatedDevice> device,
                            TimedSimulatedDevice::create(description.simulated,
                                                         std::move(facts),
                                                         /*seed=*/1));
  return std::unique_ptr<Device>(std::move(device));
}

/// Why `device` is not there; nothing: it is.
static std::optional<std::string> findAbsence(Device &device) {
  constexpr std::chrono::seconds patience(5);
  auto promise = std::make_shared<std::promise<std::optional<DeviceError>>>();
  std::future<std::optional<DeviceError>> answer = promise->get_future();
  device.probe([promise](std::optional<DeviceError> error) {
    promise->set_value(std::move(error));
  });
  if (answer.wait_for(patience) != std::future_status::ready)
    return "does not answer";
  const std::optional<DeviceError> error = answer.get();
  return error ? std::optional(error->message) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Depths
//===----------------------------------------------------------------------===//

/// Sends each device so many queries at once, of random tokens, and takes the
/// time until each has answered all of its own.
static Result<std::vector<double>>
measure(std::span<const std::unique_ptr<Device>> devices,
        std::span<const uint32_t> counts, uint64_t tokens, uint64_t vocabulary,
        std::mt19937_64 &random) {
  std::vector<double> seconds(devices.size(), 0);
  std::vector<std::optional<DeviceError>> errors(devices.size());
  std::mutex mutex;
  std::vector<DeviceBatch> batches;
  // A device takes its queries in batches of as many as it can.
  std::vector<size_t> owner;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceFacts &facts = devices[i]->facts();
    const uint64_t most = std::max<uint64_t>(
        1, std::min<uint64_t>(facts.batchQueries, facts.batchTokens / tokens));
    for (uint32_t left = counts[i]; left > 0;) {
      DeviceBatch batch(std::min<uint64_t>(left, most));
      for (DeviceQuery &query : batch) {
        std::vector<int32_t> ids(tokens);
        for (int32_t &id : ids)
          id = static_cast<int32_t>(random() % vocabulary);
        query.tokens =
            std::make_shared<const std::vector<int32_t>>(std::move(ids));
      }
      left -= static_cast<uint32_t>(batch.size());
      batches.push_back(std::move(batch));
      owner.push_back(i);
    }
  }
  std::latch done(static_cast<std::ptrdiff_t>(batches.size()));
  const Clock::time_point start = Clock::now();
  for (size_t b = 0; b < batches.size(); ++b)
    devices[owner[b]]->submit(std::move(batches[b]),
                              [&, i = owner[b]](BatchAnswer answer) {
                                const double took = secondsSince(start);
                                {
                                  std::lock_guard lock(mutex);
                                  seconds[i] = std::max(seconds[i], took);
                                  if (answer.error)
                                    errors[i] = std::move(answer.error);
                                }
                                done.count_down();
                              });
  done.wait();
  for (size_t i = 0; i < devices.size(); ++i)
    if (errors[i])
      return makeError("'", devices[i]->facts().name,
                       "' failed while it was measured: ", errors[i]->message);
  return seconds;
}

/// Measures the depths of all devices (IV.B.2).
static Result<DepthEstimate>
estimateDepths(std::span<const std::unique_ptr<Device>> devices,
               const EncodingService &service, const DepthOptions &depths,
               const EmbeddingDevicesOptions &options) {
  std::vector<std::string> names;
  for (const std::unique_ptr<Device> &device : devices)
    names.push_back(device->facts().name);
  SANDWICH_ASSIGN_OR_RETURN(DepthEstimator estimator,
                            DepthEstimator::create(depths, std::move(names)));
  const uint64_t tokens = std::min(options.description.queryTokens,
                                   service.engine().contextLength());
  std::mt19937_64 random;
  while (const std::optional<std::vector<uint32_t>> counts = estimator.next()) {
    if (options.isStopped && options.isStopped())
      return makeError("interrupted while the devices were measured");
    SANDWICH_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                              measure(devices, *counts, tokens,
                                      service.engine().model().vocab_size(),
                                      random));
    SANDWICH_RETURN_IF_ERROR(estimator.record(seconds));
  }
  return estimator.estimate();
}

/// Depths are measured with queries that come at once. One that comes when a
/// batch has just begun waits for it, too: of a queue of C queries, one may
/// take alpha C + 2 beta.
static void leaveRoom(SavedDepth &depth, const DepthOptions &options) {
  if (depth.line && depth.depth > 1)
    depth.depth = std::min(
        depth.depth, std::max(1U, depth.line->depthFor(options.limitSeconds() -
                                                       depth.line->beta)));
}

/// The depths that are in the file, if they hold for these devices.
static Result<std::optional<SavedDepths>>
readDepths(const DepthsSubject &subject,
           const EmbeddingDevicesOptions &options) {
  std::error_code ignored;
  if (options.depthsFile.empty() ||
      !std::filesystem::exists(options.depthsFile, ignored))
    return std::optional<SavedDepths>();
  SANDWICH_ASSIGN_OR_RETURN(SavedDepths saved,
                            SavedDepths::read(options.depthsFile));
  if (auto reason = saved.reasonToIgnore(subject)) {
    report(options.log, LogLevel::Information,
           options.depthsFile + ": is not used: " + *reason);
    return std::optional<SavedDepths>();
  }
  return std::optional(std::move(saved));
}

/// The depth and the line of each device: told, known, or measured.
static Result<std::vector<SavedDepth>>
findDepths(std::span<const std::unique_ptr<Device>> devices,
           std::span<const DeviceDescription *const> descriptions,
           const EncodingService &service,
           const EmbeddingDevicesOptions &options) {
  std::vector<SavedDepth> found;
  for (const DeviceDescription *each : descriptions)
    if (each->depth)
      found.push_back({each->name, std::nullopt, *each->depth});
  if (found.size() == devices.size())
    return found;
  DepthsSubject subject{.modelChecksum = options.modelChecksum,
                        .sloSeconds = options.description.sloSeconds,
                        .devices = {}};
  for (const DeviceDescription *each : descriptions)
    subject.devices.push_back(each->name);
  SANDWICH_ASSIGN_OR_RETURN(std::optional<SavedDepths> saved,
                            readDepths(subject, options));
  if (!saved) {
    report(options.log, LogLevel::Information,
           "measuring how many queries each device takes within " +
               std::to_string(options.description.sloSeconds) + " s");
    DepthOptions depths;
    depths.sloSeconds = options.description.sloSeconds;
    // For HTTP, and for what else the machine does.
    depths.headroom = 0.1;
    SANDWICH_ASSIGN_OR_RETURN(
        const DepthEstimate estimate,
        estimateDepths(devices, service, depths, options));
    report(options.log, LogLevel::Information, estimate.describe());
    saved = SavedDepths::from(estimate, options.modelChecksum);
    for (SavedDepth &each : saved->devices)
      leaveRoom(each, depths);
    if (!options.depthsFile.empty())
      SANDWICH_RETURN_IF_ERROR(saved->write(options.depthsFile));
  }
  found = std::move(saved->devices);
  // What is told counts.
  for (size_t i = 0; i < descriptions.size(); ++i)
    if (descriptions[i]->depth)
      found[i].depth = *descriptions[i]->depth;
  return found;
}

//===----------------------------------------------------------------------===//
// EmbeddingDevices
//===----------------------------------------------------------------------===//

namespace {
/// The devices that are there, and who of them gets queries.
struct DetectedDevices {
  std::map<std::string,
           std::pair<std::unique_ptr<Device>, const DeviceDescription *>>
      devices;
  DeviceConfiguration configuration;
};
} // namespace

static Result<DetectedDevices> detect(const DevicesDescription &description,
                                      EncodingService *service,
                                      const LogCallback &log) {
  DetectedDevices detected;
  std::vector<DeviceCandidate> candidates;
  for (const DeviceDescription &each : description.devices) {
    Result<std::unique_ptr<Device>> device = makeDevice(each, service);
    if (!device)
      return device.error().inContext("device '" + each.name + "'");
    const std::optional<std::string> absence =
        *device ? findAbsence(**device) : std::nullopt;
    if (absence)
      report(log, LogLevel::Warning,
             "'" + each.name + "' is not there: " + *absence);
    candidates.push_back({.name = each.name,
                          .kind = each.kind,
                          .present = !absence,
                          .configured = true});
    detected.devices.emplace(each.name, std::pair(*std::move(device), &each));
  }
  SANDWICH_ASSIGN_OR_RETURN(
      detected.configuration,
      configureDevices(candidates,
                       {.heterogeneous = description.heterogeneous}));
  return detected;
}

Result<DeviceConfiguration>
sandwich::detectDevices(const DevicesDescription &description,
                        const LogCallback &log) {
  SANDWICH_ASSIGN_OR_RETURN(DetectedDevices detected,
                            detect(description, nullptr, log));
  return std::move(detected.configuration);
}

Result<std::unique_ptr<EmbeddingDevices>>
EmbeddingDevices::create(EncodingService &service,
                         const EmbeddingDevicesOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(DetectedDevices found,
                            detect(options.description, &service, options.log));
  DeviceConfiguration &detected = found.configuration;
  report(options.log, LogLevel::Information, detected.describe());

  std::vector<std::unique_ptr<Device>> devices;
  std::vector<const DeviceDescription *> descriptions;
  for (const DeviceQueue &queue : detected.queues)
    for (const std::string &name : queue.devices) {
      auto &[device, description] = found.devices.at(name);
      devices.push_back(std::move(device));
      descriptions.push_back(description);
    }
  SANDWICH_ASSIGN_OR_RETURN(
      const std::vector<SavedDepth> depths,
      findDepths(devices, descriptions, service, options));
  std::vector<DispatchedDevice> dispatched;
  for (size_t i = 0; i < devices.size(); ++i) {
    // A single query takes too long there (equation 11).
    if (depths[i].depth == 0) {
      report(options.log, LogLevel::Warning,
             "'" + depths[i].name +
                 "' gets no queries: none keeps the limit, or none beside "
                 "those of the others");
      continue;
    }
    dispatched.push_back(
        {std::move(devices[i]), depths[i].depth, depths[i].line});
  }
  if (dispatched.empty())
    return makeError("no device answers a query within ",
                     options.description.sloSeconds, " s");
  DispatcherOptions dispatching;
  dispatching.sloSeconds = options.description.sloSeconds;
  dispatching.log = options.log;
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Dispatcher> dispatcher,
      Dispatcher::create(std::move(dispatched), dispatching));
  return std::unique_ptr<EmbeddingDevices>(
      new EmbeddingDevices(std::move(detected), std::move(dispatcher)));
}
