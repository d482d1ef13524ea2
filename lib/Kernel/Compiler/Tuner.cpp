//===- Tuner.cpp - Parameters of kernels, measured ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Compiler/Tuner.h"

#include "sandwich/Conversion/BlockToVector.h"
#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/APFloat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using Clock = std::chrono::steady_clock;

/// All choices are tried, if there are no more than these.
static constexpr size_t mostExhaustive = 128;
/// A shorter measurement says more about the clock.
static constexpr double leastSeconds = 2e-3;
/// The shortest of so many is kept, as neighbors only ever add to it.
static constexpr int rounds = 5;
static constexpr uint64_t mostMemory = uint64_t(4) << 30;

namespace {

/// What a kernel is called with.
class Arguments {
public:
  /// Errors: a size that is not known, or memory that is too large.
  static Result<Arguments> create(func::FuncOp kernel,
                                  const block::Bindings &sizes,
                                  const KernelTuningOptions &options);
  void *const *pointers() const { return addresses.data(); }
  /// Makes all memory that is written to what it was at first.
  void reset();
  /// Keeps what memory holds now as what is right.
  void keepResults();
  /// Whether it holds what is right, but for what rounding does to sums.
  bool hasResults() const;

private:
  struct Written {
    size_t memory;
    Type element;
    std::vector<std::byte> initial, results;
  };
  std::vector<AnonymousMemory> memory;
  /// Numbers, and what describes memory, in words of 64 bits.
  std::vector<std::vector<int64_t>> words;
  std::vector<void *> addresses;
  std::vector<Written> written;
  /// Whether floats become integers, which may be rounded to either side.
  bool isRounded = false;
};

} // namespace

/// `value` in the bits of `type`, rounded.
static uint64_t bitsOf(double value, FloatType type) {
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &loses);
  return number.bitcastToAPInt().getZExtValue();
}

/// A number between -1 and 1 in the bits of `type`; of integers 0, which is an
/// index of whatever there is.
static uint64_t randomBits(Type type, std::minstd_rand &random) {
  auto floats = dyn_cast<FloatType>(type);
  if (!floats)
    return 0;
  std::uniform_real_distribution<double> distribution(-1, 1);
  return bitsOf(distribution(random), floats);
}

static StringRef nameOf(BlockArgument argument) {
  auto name = argument.getLoc()->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

std::optional<unsigned> kernel::findArgument(func::FuncOp kernel,
                                             StringRef name) {
  for (BlockArgument each : kernel.getArguments())
    if (nameOf(each) == name)
      return each.getArgNumber();
  return std::nullopt;
}

static bool isWritten(BlockArgument argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    return isa<block::StoreOp, memref::StoreOp>(use.getOwner()) &&
           use.getOperandNumber() == 1;
  });
}

/// The number that `bytes` have as `type`.
static double numberAt(const std::byte *bytes, Type type) {
  uint64_t bits = 0;
  const unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  std::memcpy(&bits, bytes, (width + 7) / 8);
  if (auto floats = dyn_cast<FloatType>(type)) {
    llvm::APFloat number(floats.getFloatSemantics(), llvm::APInt(width, bits));
    bool loses = false;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble();
  }
  return static_cast<double>(
      llvm::APInt(width, bits, false, /*implicitTrunc=*/true).getSExtValue());
}

void Arguments::reset() {
  for (const Written &each : written)
    std::ranges::copy(each.initial, memory[each.memory].data());
}

void Arguments::keepResults() {
  for (Written &each : written)
    each.results.assign(memory[each.memory].data(),
                        memory[each.memory].data() + each.initial.size());
}

bool Arguments::hasResults() const {
  for (const Written &each : written) {
    const std::byte *now = memory[each.memory].data();
    const size_t width =
        (each.element.isIndex() ? 64
                                : each.element.getIntOrFloatBitWidth() + 7) /
        8;
    // Floats of few digits may be rounded to either side.
    auto floats = dyn_cast<FloatType>(each.element);
    const double relative =
        !floats
            ? 0
            : std::max(1e-3, std::ldexp(4.0, -static_cast<int>(
                                                 floats.getFPMantissaWidth())));
    // A sum of many numbers may be small, and its error as large as theirs.
    double squares = 0, finite = 0;
    for (size_t i = 0; i + width <= each.results.size(); i += width)
      if (const double right = numberAt(each.results.data() + i, each.element);
          std::isfinite(right)) {
        squares += right * right;
        ++finite;
      }
    const double usual = std::sqrt(squares / std::max(finite, 1.0));
    for (size_t i = 0; i + width <= each.results.size(); i += width) {
      if (std::memcmp(now + i, each.results.data() + i, width) == 0)
        continue;
      const double right = numberAt(each.results.data() + i, each.element),
                   number = numberAt(now + i, each.element);
      const double most = floats      ? relative * (std::abs(right) + usual)
                          : isRounded ? 1
                                      : 0;
      const bool isSame = std::isnan(right) ? std::isnan(number)
                          : !std::isfinite(right)
                              ? number == right
                              : std::abs(number - right) <= most;
      if (!isSame)
        return false;
    }
  }
  return true;
}

/// What `argument`, a number, is. Errors: an integer that is not known.
static Result<int64_t> numberOf(BlockArgument argument,
                                const block::Bindings &sizes,
                                const KernelTuningOptions &options,
                                std::minstd_rand &random) {
  auto floats = dyn_cast<FloatType>(argument.getType());
  if (auto number = options.numbers.find(argument.getArgNumber());
      number != options.numbers.end())
    return floats ? static_cast<int64_t>(bitsOf(number->second, floats))
                  : static_cast<int64_t>(number->second);
  if (floats)
    return static_cast<int64_t>(randomBits(floats, random));
  // Integers say how far loops go.
  auto given = sizes.find(nameOf(argument));
  if (given == sizes.end())
    return makeError("the integer ", nameOf(argument).str(),
                     " must be known to measure the kernel");
  return given->second;
}

Result<Arguments> Arguments::create(func::FuncOp kernel,
                                    const block::Bindings &sizes,
                                    const KernelTuningOptions &options) {
  Arguments made;
  kernel.walk([&](Operation *op) {
    made.isRounded |= isa<arith::FPToSIOp, arith::FPToUIOp>(op);
  });
  std::minstd_rand random(1);
  uint64_t total = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    const Type element = getElementTypeOrSelf(argument);
    block::SizesAttr shape =
        block::sizesOfArgument(kernel, argument.getArgNumber());
    if (!shape) {
      SANDWICH_ASSIGN_OR_RETURN(const int64_t number,
                                numberOf(argument, sizes, options, random));
      made.words.push_back({number});
      continue;
    }
    const uint64_t width = (element.getIntOrFloatBitWidth() + 7) / 8;
    uint64_t bytes = width;
    std::vector<int64_t> extents;
    for (block::SizeAttr size : shape.getSizes()) {
      int64_t extent = size.getFactor();
      for (StringAttr name : size.getNames()) {
        // Each choice would need arguments of its own.
        if (block::ParameterAttr parameter =
                block::parametersOf(kernel).find(name);
            parameter && parameter.isTuned() && !options.known.contains(name))
          return makeError("the size ", name.str(),
                           " of an argument is a parameter: what has no known "
                           "size is not measured");
        auto found = sizes.find(name.getValue());
        if (found == sizes.end())
          return makeError("the size ", name.str(),
                           " must be known to measure the kernel");
        if (llvm::MulOverflow(extent, found->second, extent))
          return makeError("the size ", size.str(), " is too large");
      }
      extents.push_back(extent);
      std::optional<uint64_t> product =
          checkedMultiply<uint64_t>(bytes, static_cast<uint64_t>(extent));
      if (!product || *product > mostMemory)
        return makeError("memory of more than ", mostMemory,
                         " bytes is not measured");
      bytes = *product;
    }
    total += bytes;
    if (total > mostMemory)
      return makeError("memory of more than ", mostMemory,
                       " bytes is not measured");
    SANDWICH_ASSIGN_OR_RETURN(
        AnonymousMemory memory,
        AnonymousMemory::allocate(std::max<uint64_t>(bytes, 1),
                                  "an argument of the kernel",
                                  AnonymousMemory::Fill::Wholly));
    // A few thousand numbers, again and again.
    std::vector<uint64_t> numbers(4093);
    for (uint64_t &each : numbers)
      each = randomBits(element, random);
    for (uint64_t i = 0; i < bytes / width; ++i)
      std::memcpy(memory.data() + i * width, &numbers[i % numbers.size()],
                  width);
    const auto address = reinterpret_cast<int64_t>(memory.data());
    std::vector<int64_t> words = {address, address, 0};
    words.insert(words.end(), extents.begin(), extents.end());
    for (size_t i = 0; i < extents.size(); ++i) {
      int64_t stride = 1;
      for (size_t j = i + 1; j < extents.size(); ++j)
        stride *= extents[j];
      words.push_back(stride);
    }
    made.words.push_back(std::move(words));
    if (isWritten(argument)) {
      std::vector<std::byte> initial(memory.data(), memory.data() + bytes);
      made.written.push_back(
          {made.memory.size(), element, std::move(initial), {}});
    }
    made.memory.push_back(std::move(memory));
  }
  for (std::vector<int64_t> &each : made.words)
    made.addresses.push_back(each.data());
  return made;
}

/// How long one call takes: the mean of as many as last a while.
static double measureOnce(EntryPoint function, const Arguments &arguments,
                          size_t &calls) {
  for (;;) {
    const auto begin = Clock::now();
    for (size_t i = 0; i < calls; ++i)
      function(arguments.pointers());
    const double seconds = secondsSince(begin);
    if (seconds >= leastSeconds || calls >= size_t(1) << 24)
      return seconds / static_cast<double>(calls);
    calls *= 2;
  }
}

namespace {

class Tuning {
public:
  Tuning(func::FuncOp kernel, measuring::CompileSession &session,
         const Target &target, const KernelTuningOptions &options,
         Arguments arguments, measuring::CodeLoader &loader)
      : kernel(kernel), session(session), target(target), options(options),
        arguments(std::move(arguments)), loader(loader) {
    for (block::ParameterAttr each :
         block::parametersOf(kernel).getParameters())
      if (each.isTuned() && !options.known.contains(each.getName()))
        tuned.push_back(each);
  }

  Result<TunedKernel> run();

private:
  using Choice = std::vector<int64_t>;

  block::Bindings bindingsOf(const Choice &choice) const;
  /// Seconds; nothing where it computes something else.
  Result<std::optional<double>> measure(const Choice &choice);
  /// Tries `choice`, unless it is known or tuning has ended.
  Status attempt(const Choice &choice, size_t most);
  bool hasEnded() const {
    return stopped || secondsSince(begin) > options.seconds;
  }

  func::FuncOp kernel;
  measuring::CompileSession &session;
  const Target &target;
  const KernelTuningOptions &options;
  Arguments arguments;
  measuring::CodeLoader &loader;
  std::vector<block::ParameterAttr> tuned;
  const Clock::time_point begin = Clock::now();
  bool stopped = false, skipped = false;
  std::map<Choice, std::optional<double>> measured;
  Choice best;
};

} // namespace

block::Bindings Tuning::bindingsOf(const Choice &choice) const {
  block::Bindings bindings = options.known;
  for (auto [parameter, value] : llvm::zip_equal(tuned, choice))
    bindings[parameter.getName()] = value;
  return bindings;
}

Result<std::optional<double>> Tuning::measure(const Choice &choice) {
  SANDWICH_ASSIGN_OR_RETURN(
      std::string object,
      compileKernel(session, kernel, bindingsOf(choice), target));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<void *> functions,
                            loader.load(object, {std::string(entryPrefix) +
                                                 kernel.getSymName().str()}));
  auto function = reinterpret_cast<EntryPoint>(functions[0]);
  // The first call warms caches.
  arguments.reset();
  function(arguments.pointers());
  if (measured.empty())
    arguments.keepResults();
  else if (!arguments.hasResults())
    return std::optional<double>();
  size_t calls = 1;
  double shortest = measureOnce(function, arguments, calls);
  for (int round = 1; round < rounds; ++round)
    shortest = std::min(shortest, measureOnce(function, arguments, calls));
  return std::optional(shortest);
}

Status Tuning::attempt(const Choice &choice, size_t most) {
  if (measured.contains(choice))
    return {};
  // Of one that an assertion leaves out there is no code. The untuned one says
  // why.
  if (!measured.empty() && !block::holdAssertions(kernel, bindingsOf(choice)))
    return {};
  if (!measured.empty() && hasEnded()) {
    skipped = true;
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(std::optional<double> seconds, measure(choice));
  measured[choice] = seconds;
  if (seconds && *seconds < measured[best])
    best = choice;
  if (options.progress && !options.progress(measured.size(), most))
    stopped = true;
  return {};
}

Result<TunedKernel> Tuning::run() {
  Choice untuned;
  size_t product = 1, sum = 1;
  for (block::ParameterAttr each : tuned) {
    untuned.push_back(each.getUntuned());
    product = std::min(product * each.getChoices().size(), size_t(1) << 32);
    sum += each.getChoices().size() - 1;
  }
  const bool isExhaustive = product <= mostExhaustive;
  const size_t most = isExhaustive ? product : sum;
  best = untuned;
  SANDWICH_RETURN_IF_ERROR(attempt(untuned, most));
  if (isExhaustive) {
    for (size_t number = 0; number < product; ++number) {
      Choice choice;
      size_t rest = number;
      for (block::ParameterAttr each : tuned) {
        choice.push_back(each.getChoices()[rest % each.getChoices().size()]);
        rest /= each.getChoices().size();
      }
      SANDWICH_RETURN_IF_ERROR(attempt(choice, most));
    }
  } else {
    for (Choice before; before != best && !skipped;) {
      before = best;
      for (size_t i = 0; i < tuned.size(); ++i)
        for (int64_t value : tuned[i].getChoices()) {
          Choice choice = best;
          choice[i] = value;
          SANDWICH_RETURN_IF_ERROR(attempt(choice, most));
        }
    }
  }
  // What seems better is measured beside the other once more: one of them may
  // have had a noisy neighbor.
  TunedKernel result;
  result.untuned = {bindingsOf(untuned), *measured[untuned]};
  result.best = {bindingsOf(best), *measured[best]};
  for (const auto &[choice, seconds] : measured)
    if (!seconds)
      result.wrong.push_back(bindingsOf(choice));
  if (best != untuned) {
    for (KernelMeasurement *each : {&result.untuned, &result.best}) {
      SANDWICH_ASSIGN_OR_RETURN(std::optional<double> again,
                                measure(each == &result.best ? best : untuned));
      each->seconds = std::min(each->seconds, again.value_or(each->seconds));
    }
    if (result.untuned.seconds <= result.best.seconds)
      result.best = result.untuned;
  }
  result.measurements = measured.size();
  result.complete = !skipped && !stopped;
  return result;
}

Result<TunedKernel> kernel::tuneKernel(func::FuncOp kernel,
                                       measuring::CompileSession &session,
                                       const Target &target,
                                       const KernelTuningOptions &options) {
  block::Bindings sizes = options.sizes;
  for (const auto &each : options.known)
    sizes[each.first()] = each.second;
  for (block::ParameterAttr each : block::parametersOf(kernel).getParameters())
    if (each.isTuned() && !sizes.contains(each.getName()))
      sizes[each.getName()] = each.getUntuned();
  SANDWICH_ASSIGN_OR_RETURN(Arguments arguments,
                            Arguments::create(kernel, sizes, options));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<measuring::CodeLoader> loader,
                            measuring::CodeLoader::create(target));
  return Tuning(kernel, session, target, options, std::move(arguments), *loader)
      .run();
}
