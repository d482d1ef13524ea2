//===- RequestLog.cpp - A line for each request ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/RequestLog.h"

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace sandwich;

/// Lines that may wait to be written: a disk that hangs must not take memory.
static constexpr size_t mostLines = 65536;

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
    try {
      thread = std::thread([this] {
        (void)blockSignals();
        run();
      });
    } catch (const std::system_error &error) {
      return makeError("the system grants no thread for the log: ",
                       error.what());
    }
    return {};
  }

  void add(std::string line) {
    std::lock_guard lock(mutex);
    if (lines.size() >= mostLines) {
      ++lostLines;
      return;
    }
    lines.push_back(std::move(line));
    changed.notify_all();
  }

  uint64_t lost() {
    std::lock_guard lock(mutex);
    return lostLines;
  }

  void flush() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return lines.empty() && !writing; });
  }

  LogFormat lineFormat() const { return format; }

private:
  void run();
  /// Whether all of `text` was written.
  bool write(const std::string &text);

  const int file;
  const bool owned;
  const LogFormat format;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  bool writing = false;
  bool ending = false;
  uint64_t lostLines = 0;
  std::thread thread;
};

bool RequestLog::Writer::write(const std::string &text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

void RequestLog::Writer::run() {
  std::unique_lock lock(mutex);
  uint64_t told = 0;
  while (true) {
    changed.wait(lock, [&] { return ending || !lines.empty(); });
    if (lines.empty())
      return;
    std::deque<std::string> taken;
    taken.swap(lines);
    const uint64_t lostBefore = lostLines;
    writing = true;
    lock.unlock();
    uint64_t lostNow = 0;
    std::string text;
    for (std::string &line : taken) {
      // A line that was cut by a full disk ends before the next one begins.
      text = std::move(line) + '\n';
      if (!write(text))
        ++lostNow;
      else if (lostBefore + lostNow > told &&
               write("warning: " + std::to_string(lostBefore + lostNow - told) +
                     " lines before this one could not be written\n"))
        told = lostBefore + lostNow;
    }
    lock.lock();
    lostLines += lostNow;
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

static double unixNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void RequestLog::add(RequestRecord record) {
  writer->add(formatRecord(record, writer->lineFormat(), unixNow()));
}

void RequestLog::tell(std::string message) {
  writer->add(writer->lineFormat() == LogFormat::Json
                  ? Json({{"time", timeOf(unixNow())}, {"message", message}})
                        .dump(-1, ' ', false, Json::error_handler_t::replace)
                  : timeOf(unixNow()) + ' ' + message);
}

uint64_t RequestLog::lost() const { return writer->lost(); }

void RequestLog::flush() { writer->flush(); }
