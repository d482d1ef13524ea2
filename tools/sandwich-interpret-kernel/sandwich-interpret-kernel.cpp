//===- sandwich-interpret-kernel.cpp - What a kernel computes -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a function of dialect kernel by the interpreter: for tests, and for
/// whoever wants to know what a kernel for another CPU computes.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Interpreter.h"
#include "sandwich/Kernel/Lanes.h"
#include "sandwich/Support/File.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace sandwich;

static llvm::cl::opt<std::string> kernelPath(llvm::cl::Positional,
                                             llvm::cl::Required,
                                             llvm::cl::desc("KERNEL.mlir"));
static llvm::cl::opt<std::string> functionName(llvm::cl::Positional,
                                               llvm::cl::Required,
                                               llvm::cl::desc("FUNCTION"));
static llvm::cl::list<std::string> argumentTexts(
    "a",
    llvm::cl::desc("An argument, in their order: a number, or file:PATH, "
                   "memory, read from a file and written back to it"),
    llvm::cl::value_desc("ARGUMENT"));

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return EXIT_FAILURE;
}

/// The lane of `type` that `text` says; nothing if it says none.
static std::optional<kernel::Lane> readNumber(StringRef text, Type type) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    double number = 0;
    if (text.getAsDouble(number))
      return std::nullopt;
    const kernel::LaneType lane = type.isF64()    ? kernel::LaneType::F64
                                  : type.isF32()  ? kernel::LaneType::F32
                                  : type.isBF16() ? kernel::LaneType::BF16
                                                  : kernel::LaneType::F16;
    return kernel::fromDouble(number, lane);
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  // Signed where the type is, and not beyond it.
  int64_t negative = 0;
  uint64_t positive = 0;
  const bool hasSign = integer.isSigned();
  if (hasSign ? text.getAsInteger(10, negative)
              : text.getAsInteger(10, positive))
    return std::nullopt;
  const bool fits = hasSign ? llvm::isIntN(integer.getWidth(), negative)
                            : llvm::isUIntN(integer.getWidth(), positive);
  if (!fits)
    return std::nullopt;
  const std::string name = integer.getWidth() == 1
                               ? std::string("bool")
                               : (integer.isUnsigned() ? "u" : "i") +
                                     std::to_string(integer.getWidth());
  return kernel::fromInteger(hasSign ? negative
                                     : static_cast<int64_t>(positive),
                             *kernel::laneTypeNamed(name));
}

static void print(const kernel::Lane &lane) {
  if (kernel::isFloat(lane.type))
    llvm::outs() << llvm::format("%a", kernel::toDouble(lane));
  else if (lane.type == kernel::LaneType::U64)
    llvm::outs() << lane.bits;
  else
    llvm::outs() << kernel::toInteger(lane);
}

/// A file that is an argument, and what became of its bytes.
struct Memory {
  std::string path;
  std::vector<std::byte> bytes;
};

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(
      argc, argv,
      "Runs a function of dialect kernel operation by operation\n\n"
      "  sandwich-interpret-kernel dot.mlir dot -a file:x.f32 -a file:y.f32 -a "
      "100\n\n"
      "The result is written to standard output, floats in base 16.\n");
  MLIRContext context;
  context.loadDialect<kernel::KernelDialect>();
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(kernelPath, sources, &context);
  if (!module)
    return EXIT_FAILURE;
  auto function = module->lookupSymbol<kernel::FuncOp>(functionName);
  if (!function)
    return fail(kernelPath + ": has no function '" + functionName + "'");
  const ArrayRef<Type> types = function.getArgumentTypes();
  if (types.size() != argumentTexts.size())
    return fail("'" + functionName + "' has " + llvm::Twine(types.size()) +
                " arguments, not " + llvm::Twine(argumentTexts.size()));
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<kernel::KernelArgument> arguments;
  for (auto [type, text] : llvm::zip_equal(types, argumentTexts)) {
    StringRef given(text);
    if (given.consume_front("file:")) {
      auto buffer = llvm::MemoryBuffer::getFile(given);
      if (!buffer)
        return fail(given + ": " + buffer.getError().message());
      const auto bytes = std::as_bytes(
          std::span((*buffer)->getBufferStart(), (*buffer)->getBufferSize()));
      memories.push_back(std::make_unique<Memory>(
          Memory{given.str(), {bytes.begin(), bytes.end()}}));
      arguments.emplace_back(std::span(memories.back()->bytes));
      continue;
    }
    const std::optional<kernel::Lane> lane = readNumber(given, type);
    if (!lane)
      return fail("'" + given + "' is no number that an argument can be");
    arguments.emplace_back(std::vector<kernel::Lane>{*lane});
  }
  FailureOr<std::vector<kernel::Lane>> result =
      kernel::interpret(function, arguments);
  if (failed(result))
    return EXIT_FAILURE;
  for (const std::unique_ptr<Memory> &each : memories) {
    sandwich::Result<PendingFile> file = PendingFile::create(each->path);
    if (!file)
      return fail(file.error().message);
    Status written = file->write(each->bytes);
    if (written)
      written = file->commit();
    if (!written)
      return fail(written.error().message);
  }
  for (auto [number, lane] : llvm::enumerate(*result)) {
    llvm::outs() << (number > 0 ? " " : "");
    print(lane);
  }
  llvm::outs() << "\n";
  return EXIT_SUCCESS;
}
