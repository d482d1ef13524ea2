//===- LoadRun.cpp - A trace sent to a server -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/LoadRun.h"

#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

using namespace sandwich;

/// How long nobody looks whether to stop, at most.
static constexpr auto lookInterval = std::chrono::milliseconds(100);

/// That this process has computed.
static double processorSeconds() {
  timespec time = {};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

namespace {
using Clock = EventLoop::Clock;

/// What the loop's timers and the server's answers come to. It ends when nobody
/// holds it any more, so that what is still to come finds nothing.
class Sender : public std::enable_shared_from_this<Sender> {
public:
  Sender(TargetServer &server, const ServingTrace &trace,
         const TraceReplayOptions &options, size_t concurrency)
      : server(server), trace(trace), options(options),
        concurrency(concurrency), answers(trace.size()),
        states(trace.size(), State::Coming), calls(trace.size()) {}

  /// Runs the loop until all are done or no more are wanted.
  void run();
  std::vector<ServedRequest> takeAnswers();

private:
  enum class State { Coming, UnderWay, Done, Cancelled };

  bool isClosedLoop() const { return !trace.front().arrivalSeconds; }
  void sendDue();
  void sendNext();
  void finish(size_t index, ServedRequest answer);
  void observeDone();
  /// Asks whether to stop, again and again.
  void look();
  void stop();
  void at(Clock::time_point time, void (Sender::*work)());

  TargetServer &server;
  const ServingTrace &trace;
  const TraceReplayOptions &options;
  const size_t concurrency;
  Clock::time_point start;
  std::vector<ServedRequest> answers;
  std::vector<State> states;
  std::vector<HttpCallId> calls;
  /// Of the trace: the first that was not sent, and the first that the observer
  /// was not told of.
  size_t next = 0;
  size_t observed = 0;
  size_t underWay = 0;
  size_t done = 0;
  bool stopping = false;
};
} // namespace

void Sender::at(Clock::time_point time, void (Sender::*work)()) {
  server.loop().callAt(time, [weak = weak_from_this(), work] {
    if (const std::shared_ptr<Sender> self = weak.lock())
      ((*self).*work)();
  });
}

void Sender::sendNext() {
  const size_t index = next++;
  const ServingRequest &request = trace[index];
  states[index] = State::UnderWay;
  ++underWay;
  calls[index] = server.send(
      request, start, [weak = weak_from_this(), index](ServedRequest answer) {
        if (const std::shared_ptr<Sender> self = weak.lock())
          self->finish(index, std::move(answer));
      });
}

void Sender::sendDue() {
  if (isClosedLoop()) {
    while (!stopping && next < trace.size() && underWay < concurrency)
      sendNext();
    return;
  }
  const auto arrivalOf = [this](size_t index) {
    return start +
           std::chrono::duration_cast<Clock::duration>(
               std::chrono::duration<double>(*trace[index].arrivalSeconds));
  };
  while (!stopping && next < trace.size() && arrivalOf(next) <= Clock::now())
    sendNext();
  if (!stopping && next < trace.size())
    at(arrivalOf(next), &Sender::sendDue);
}

void Sender::finish(size_t index, ServedRequest answer) {
  --underWay;
  const bool cancelled =
      stopping && answer.failure && answer.failure->kind == cancelledKind;
  states[index] = cancelled ? State::Cancelled : State::Done;
  done += !cancelled;
  if (trace[index].arrivalSeconds)
    answer.arrival = *trace[index].arrivalSeconds;
  answers[index] = std::move(answer);
  observeDone();
  if (isClosedLoop())
    sendDue();
  if (underWay == 0 && (stopping || next == trace.size()))
    server.loop().stop();
}

void Sender::observeDone() {
  if (!options.observe)
    return;
  for (;
       !stopping && observed < trace.size() && states[observed] == State::Done;
       ++observed)
    if (!options.observe(answers[observed]))
      stop();
}

void Sender::stop() {
  if (std::exchange(stopping, true))
    return;
  for (size_t i = 0; i < next; ++i)
    if (states[i] == State::UnderWay)
      server.cancel(calls[i]);
  if (underWay == 0)
    server.loop().stop();
}

void Sender::look() {
  if (options.progress)
    options.progress(done);
  if (options.stop && options.stop())
    stop();
  at(Clock::now() + lookInterval, &Sender::look);
}

void Sender::run() {
  start = Clock::now();
  look();
  sendDue();
  // Others may have stopped the loop before.
  while (underWay > 0 || (!stopping && next < trace.size()))
    server.loop().run();
  if (options.progress)
    options.progress(done);
}

std::vector<ServedRequest> Sender::takeAnswers() {
  std::vector<ServedRequest> taken;
  for (size_t i = 0; i < answers.size(); ++i)
    if (states[i] == State::Done)
      taken.push_back(std::move(answers[i]));
  return taken;
}

/// False: somebody wants to stop.
static bool warmUp(TargetServer &server, const ServingTrace &trace,
                   const LoadRunOptions &options) {
  ServingRequest first = trace.front();
  first.arrivalSeconds.reset();
  const ServingTrace requests(options.warmUps, first);
  if (requests.empty())
    return true;
  TraceReplayOptions unwatched;
  unwatched.stop = options.replay.stop;
  const auto sender =
      std::make_shared<Sender>(server, requests, unwatched, /*concurrency=*/1);
  sender->run();
  return sender->takeAnswers().size() == requests.size();
}

LoadRun sandwich::runLoad(TargetServer &server, const ServingTrace &trace,
                          const LoadRunOptions &options) {
  LoadRun run;
  if (trace.empty() || !warmUp(server, trace, options))
    return run;
  const auto sender = std::make_shared<Sender>(server, trace, options.replay,
                                               options.concurrency);
  const double computed = processorSeconds();
  const Clock::time_point start = Clock::now();
  sender->run();
  run.clientLoad =
      (processorSeconds() - computed) / std::max(secondsSince(start), 1e-9);
  run.requests = sender->takeAnswers();
  return run;
}
