//===- EncodingService.h - Batches of texts ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The thread that owns an encoder engine. While a batch is computed, the next
/// one forms of all that comes, up to the engine's tokens: an idle engine
/// starts with the first text, a busy one has larger batches. Texts are taken
/// in the order in which they came, so that none waits for others of its
/// length: batches have no padding that such order would save.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ENCODING_ENCODINGSERVICE_H
#define SANDWICH_ENCODING_ENCODINGSERVICE_H

#include "sandwich/Runtime/Engine/EncoderEngine.h"
#include "sandwich/Support/Result.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace sandwich {

struct EncodingServiceOptions {
  /// Tokens of a batch, of more than one text; 0: as many as the engine takes.
  uint64_t batchTokens = 0;
  /// Tokens that may wait; beyond, texts are refused.
  uint64_t waitingTokens = uint64_t{1} << 20;
};

/// A text, as tokens, and who hears of it.
struct EncodingRequest {
  std::vector<int32_t> ids;
  /// As in `EncoderInput`.
  std::vector<int32_t> types = {};
  EncoderOutput output = EncoderOutput::Texts;
  /// Called once, on the service's thread, which waits for it: the text's row,
  /// or the rows of its tokens. Errors: Internal where the model computed no
  /// finite number, or there is no memory for the rows; DeadlineExceeded;
  /// Cancelled; Unavailable once the service has ended.
  std::function<void(Result<std::vector<float>>)> completion;
  /// After which the text is not begun any more.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// Becomes true where nobody wants the text any more; null: never.
  std::shared_ptr<const std::atomic<bool>> cancelled = {};
};

/// What has happened since the service began.
struct EncodingCounts {
  uint64_t batches = 0;
  uint64_t texts = 0;
  uint64_t tokens = 0;
  /// In the engine.
  double seconds = 0;
  uint64_t waitingTexts = 0;
  uint64_t waitingTokens = 0;
  /// Of the batch that is computed.
  uint64_t runningTexts = 0;
};

/// All members may be called from any thread.
class EncodingService {
public:
  /// Error: the system grants no thread.
  static Result<std::unique_ptr<EncodingService>>
  create(std::unique_ptr<EncoderEngine> engine,
         const EncodingServiceOptions &options = {});
  /// Waits for the batch that is computed; what waits gets Unavailable.
  ~EncodingService();
  EncodingService(const EncodingService &) = delete;
  EncodingService &operator=(const EncodingService &) = delete;

  const EncoderEngine &engine() const { return *encoder; }

  /// Takes all `requests` or none. Errors, after which nobody hears of them:
  /// those of `EncoderEngine::check`; InvalidArgument for rows of tokens where
  /// texts are classified, and for more tokens than may ever wait; Overloaded
  /// where more tokens wait than may.
  Status submit(std::vector<EncodingRequest> requests);

  EncodingCounts counts() const;
  const EncodingServiceOptions &limits() const { return options; }

  /// Takes no more texts, and waits at most `seconds` until those that are
  /// there are answered. Whether all were.
  bool drainWithin(double seconds);

private:
  /// A text, and when it came among all.
  struct Waiting {
    EncodingRequest request;
    uint64_t number = 0;
  };

  EncodingService(std::unique_ptr<EncoderEngine> engine,
                  const EncodingServiceOptions &options)
      : encoder(std::move(engine)), options(options) {}

  void run();
  std::vector<EncodingRequest> takeBatch();
  void compute(std::vector<EncodingRequest> batch);
  std::deque<Waiting> &queueOf(EncoderOutput output) {
    return output == EncoderOutput::Texts ? texts : tokens;
  }

  const std::unique_ptr<EncoderEngine> encoder;
  const EncodingServiceOptions options;

  mutable std::mutex mutex;
  std::condition_variable changed, idle;
  /// Those that want one row, and those that want a row for each token: no
  /// batch has both.
  std::deque<Waiting> texts, tokens;
  uint64_t nextNumber = 0;
  EncodingCounts total;
  bool ends = false, drains = false;
  /// Ends before all that it uses.
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_ENCODING_ENCODINGSERVICE_H
