//===- RequestLog.cpp - A line for each request ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/RequestLog.h"

#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace sandwich;

/// Records that may wait to be written, and bytes of their texts: a disk that
/// hangs must not take memory.
static constexpr size_t mostRecords = 65536;
static constexpr size_t mostTextBytes = size_t{64} << 20;

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

static std::string timeOf(double unixSeconds) {
  const auto whole = static_cast<std::time_t>(std::floor(unixSeconds));
  std::tm parts = {};
  ::gmtime_r(&whole, &parts);
  char text[40];
  const size_t length =
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  const double rest = unixSeconds - static_cast<double>(whole);
  std::snprintf(text + length, sizeof(text) - length, ".%03dZ",
                static_cast<int>(rest * 1e3));
  return text;
}

static double roundedMilliseconds(double seconds) {
  return std::round(seconds * 1e6) / 1e3;
}

static Json toJson(const RequestRecord &record) {
  Json json = {{"id", record.id},
               {"path", record.path},
               {"model", record.model},
               {"status", record.status},
               {"prompt_tokens", record.promptTokens},
               {"cached_tokens", record.cachedTokens},
               {"generated_tokens", record.generatedTokens}};
  const auto addTime = [&](const char *name,
                           const std::optional<double> &time) {
    if (time)
      json[name] = roundedMilliseconds(*time);
  };
  addTime("queue_ms", record.queueSeconds);
  addTime("ttft_ms", record.ttft);
  addTime("tpot_ms", record.tpot);
  addTime("total_ms", record.seconds);
  if (record.preemptions > 0)
    json["preemptions"] = record.preemptions;
  if (!record.finish.empty())
    json["finish_reason"] = record.finish;
  if (!record.error.empty())
    json["error"] = record.error;
  if (record.prompt)
    json["prompt"] = *record.prompt;
  return json;
}

std::string sandwich::formatRecord(const RequestRecord &record,
                                   LogFormat format, double unixSeconds) {
  const Json json = toJson(record);
  const auto dump = [](const Json &value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string line = timeOf(unixSeconds);
  if (format == LogFormat::Json) {
    Json timed = {{"time", line}};
    timed.update(json);
    return dump(timed);
  }
  for (const auto &[name, value] : json.items()) {
    line += ' ' + name + '=';
    // Where a line is to be divided at spaces, a text must not have any.
    const bool isPlain =
        !value.is_string() ||
        value.get_ref<const std::string &>().find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
            "-_./:") == std::string::npos;
    line +=
        isPlain && value.is_string() ? value.get<std::string>() : dump(value);
  }
  return line;
}

static std::string formatLoss(uint64_t lines, LogFormat format) {
  const std::string text =
      std::to_string(lines) + " lines before this one could not be written";
  return format == LogFormat::Json ? Json({{"warning", text}}).dump()
                                   : "warning: " + text;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

class RequestLog::Writer {
public:
  Writer(int file, bool owned, LogFormat format)
      : file(file), owned(owned), format(format) {}
  ~Writer() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    if (thread.joinable())
      thread.join();
    if (owned)
      ::close(file);
  }

  Status start() {
    SANDWICH_ASSIGN_OR_RETURN(thread,
                              startThread("the log", [this] { run(); }));
    return {};
  }

  void add(RequestRecord record) {
    const double time = unixSeconds();
    const size_t bytes = textBytes(record);
    std::lock_guard lock(mutex);
    if (!waiting.empty() && (waiting.size() >= mostRecords ||
                             waitingBytes + bytes > mostTextBytes)) {
      ++lostRecords;
      return;
    }
    waiting.push_back({std::move(record), time});
    waitingBytes += bytes;
    changed.notify_all();
  }

  uint64_t lost() {
    std::lock_guard lock(mutex);
    return lostRecords;
  }

  void flush() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting.empty() && !writing; });
  }

private:
  struct Entry {
    RequestRecord record;
    /// When it came.
    double time;
  };

  static size_t textBytes(const RequestRecord &record) {
    return record.error.size() + (record.prompt ? record.prompt->size() : 0);
  }
  void run();
  /// Whether all of `text` was written.
  bool write(std::string text);
  bool write(const Entry &entry);

  const int file;
  const bool owned;
  const LogFormat format;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> waiting;
  /// See `textBytes`.
  size_t waitingBytes = 0;
  bool writing = false;
  /// The last line in the file lacks its end. Of the writer's thread.
  bool isCut = false;
  bool ending = false;
  uint64_t lostRecords = 0;
  std::thread thread;
};

bool RequestLog::Writer::write(std::string text) {
  // What a full disk has cut ends before the next line begins.
  if (isCut)
    text.insert(0, 1, '\n');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      isCut |= done > 0;
      return false;
    }
    done += static_cast<size_t>(count);
  }
  isCut = false;
  return true;
}

bool RequestLog::Writer::write(const Entry &entry) {
  try {
    return write(formatRecord(entry.record, format, entry.time) + '\n');
  } catch (const std::exception &) {
    // There is no memory for the line.
    return false;
  }
}

void RequestLog::Writer::run() {
  std::unique_lock lock(mutex);
  uint64_t told = 0;
  while (true) {
    changed.wait(lock, [&] { return ending || !waiting.empty(); });
    if (waiting.empty())
      return;
    std::deque<Entry> taken;
    taken.swap(waiting);
    waitingBytes = 0;
    const uint64_t lostBefore = lostRecords;
    writing = true;
    lock.unlock();
    uint64_t lostNow = 0;
    for (const Entry &entry : taken) {
      if (!write(entry))
        ++lostNow;
      else if (const uint64_t untold = lostBefore + lostNow - told;
               untold > 0 && write(formatLoss(untold, format) + '\n'))
        told += untold;
    }
    lock.lock();
    lostRecords += lostNow;
    writing = false;
    changed.notify_all();
  }
}

RequestLog::RequestLog(std::unique_ptr<Writer> writer)
    : writer(std::move(writer)) {}

RequestLog::~RequestLog() = default;

Result<std::unique_ptr<RequestLog>> RequestLog::open(const std::string &path,
                                                     LogFormat format) {
  int file = STDERR_FILENO;
  if (!path.empty()) {
    file =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
      return systemError(path, "open the log");
  }
  auto writer = std::make_unique<Writer>(file, !path.empty(), format);
  SANDWICH_RETURN_IF_ERROR(writer->start());
  return std::unique_ptr<RequestLog>(new RequestLog(std::move(writer)));
}

void RequestLog::add(RequestRecord record) { writer->add(std::move(record)); }

uint64_t RequestLog::lost() const { return writer->lost(); }

void RequestLog::flush() { writer->flush(); }
