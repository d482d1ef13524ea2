//===- sandwich-compile-kernel.cpp - Kernels as functions to call ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compiles a kernel of the high level, and finds the best of its parameters.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Kernel/Compiler/Program.h"
#include "sandwich/Kernel/Compiler/Tuner.h"
#include "sandwich/Kernel/Text.h"
#include "sandwich/Support/File.h"
#include "sandwich/Target/CpuFeatures.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <unistd.h>

using namespace mlir;
using namespace sandwich;

namespace {
struct Arguments {
  std::string input, output, name, description;
  std::string target = "host", emit = "shared";
  std::vector<std::string> parameters, sizes, types;
  bool tune = false, checkBounds = false;
  double seconds = 30;
};
} // namespace

static void declare(CLI::App &app, Arguments &arguments) {
  app.add_option("FILE", arguments.input,
                 "Text of the high level (.kernel), or its IR (.mlir)")
      ->required();
  app.add_option("-o,--output", arguments.output,
                 "The file to write; - is standard output");
  app.add_option("--kernel", arguments.name,
                 "Which, where the file has several");
  app.add_option("--parameter", arguments.parameters,
                 "What a parameter, a constant or a size of an argument is: "
                 "NAME=NUMBER; may be repeated. Code is made for it")
      ->allow_extra_args(false);
  app.add_option("--type", arguments.types,
                 "What 'T: type(f32, bf16)' is: T=bf16. By default the first")
      ->allow_extra_args(false);
  app.add_option("--target", arguments.target,
                 "The CPU that code is made for, a name as of sandwich-compile")
      ->capture_default_str();
  app.add_option("--emit", arguments.emit,
                 "shared: a shared object; object; assembly; loops: IR of "
                 "loops over vectors")
      ->check(CLI::IsMember({"shared", "object", "assembly", "loops"}))
      ->capture_default_str();
  app.add_flag(
      "--check-bounds", arguments.checkBounds,
      "Makes code that reaches nothing beyond the sizes of memory: its "
      "result is 0, or the line of what would have. What is proven is "
      "not checked; how much that is, is told");
  app.add_option("--description", arguments.description,
                 "Writes the kernel's arguments and parameters to this file, "
                 "as JSON");
  auto *tuning = app.add_option_group(
      "Tuning", "Parameters that are not given, measured on one core");
  auto *tune = tuning->add_flag("--tune", arguments.tune,
                                "Measures choices, tells the best, and makes "
                                "code for it");
  tuning
      ->add_option("--size", arguments.sizes,
                   "How large an argument is that the kernel is measured "
                   "with, or what an integer is: NAME=NUMBER; may be "
                   "repeated. Code is made for any")
      ->needs(tune)
      ->allow_extra_args(false);
  tuning
      ->add_option("--seconds", arguments.seconds,
                   "After which no other choice is tried")
      ->needs(tune)
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
}

/// `NAME=NUMBER` of `texts`, which the option `option` has.
static Result<block::Bindings>
readBindings(const std::vector<std::string> &texts, const char *option) {
  block::Bindings bindings;
  for (const std::string &each : texts) {
    auto binding = block::readBinding(each);
    if (!binding)
      return makeError(option, " ", each,
                       " is not NAME=NUMBER, with a number between 0 and ",
                       block::largestSize);
    auto [name, number] = *binding;
    if (!bindings.try_emplace(name, number).second)
      return makeError(option, " ", name.str(), " is given twice");
  }
  return bindings;
}

static Result<OwningOpRef<ModuleOp>> read(const Arguments &arguments,
                                          MLIRContext &context) {
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (problem.empty() &&
        diagnostic.getSeverity() == DiagnosticSeverity::Error)
      problem = kernel::describe(diagnostic);
    return success();
  });
  OwningOpRef<ModuleOp> module;
  if (StringRef(arguments.input).ends_with(".mlir")) {
    module = parseSourceFile<ModuleOp>(arguments.input, &context);
  } else {
    kernel::TextOptions options;
    for (const std::string &each : arguments.types) {
      auto [name, type] = StringRef(each).split('=');
      if (name.empty() || type.empty())
        return makeError("--type ", each, " is not NAME=TYPE");
      options.types[name] = type.str();
    }
    constexpr size_t mostBytes = size_t(1) << 24;
    SANDWICH_ASSIGN_OR_RETURN(std::string text,
                              readTextFile(arguments.input, mostBytes));
    module = kernel::readText(text, arguments.input, options, context);
  }
  if (!module)
    return Error{problem.empty() ? arguments.input + " cannot be read"
                                 : problem};
  return module;
}

static Status write(const std::string &path, const std::string &text) {
  if (path == "-") {
    llvm::outs() << text;
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  SANDWICH_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

/// The best parameters, told on standard error.
static Result<block::Bindings> tune(func::FuncOp kernel,
                                    measuring::CompileSession &session,
                                    const Target &target,
                                    const block::Bindings &known,
                                    const Arguments &arguments) {
  kernel::KernelTuningOptions options;
  options.known = known;
  options.seconds = arguments.seconds;
  SANDWICH_ASSIGN_OR_RETURN(options.sizes,
                            readBindings(arguments.sizes, "--size"));
  for (const auto &each : options.sizes)
    if (!block::findDimension(kernel, each.first()) &&
        !kernel::findArgument(kernel, each.first()))
      return makeError("--size ", each.first().str(),
                       " is no size of an argument, and no argument");
  const bool isTerminal = isatty(STDERR_FILENO) != 0;
  options.progress = [&](size_t measured, size_t most) {
    if (isTerminal)
      llvm::errs() << "\rtuning " << kernel.getSymName() << ": " << measured
                   << " of " << most << " ";
    return true;
  };
  const auto begin = std::chrono::steady_clock::now();
  Result<kernel::TunedKernel> tuned =
      kernel::tuneKernel(kernel, session, target, options);
  if (isTerminal)
    llvm::errs() << "\r\033[K";
  if (!tuned)
    return tuned.error();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  llvm::errs() << kernel.getSymName() << ":";
  for (block::ParameterAttr each : block::parametersOf(kernel).getParameters())
    if (each.isTuned())
      llvm::errs() << " " << each.getName().getValue() << "="
                   << tuned->best.parameters.lookup(each.getName());
  llvm::errs() << llvm::format(
      ", %.4g us a call, untuned %.4g us (%zu measurements in %.1f s%s)\n",
      tuned->best.seconds * 1e6, tuned->untuned.seconds * 1e6,
      tuned->measurements, seconds,
      tuned->complete ? "" : ", not all that there are");
  for (const block::Bindings &wrong : tuned->wrong) {
    llvm::errs() << "warning: " << kernel.getSymName() << ":";
    for (block::ParameterAttr each :
         block::parametersOf(kernel).getParameters())
      if (each.isTuned())
        llvm::errs() << " " << each.getName().getValue() << "="
                     << wrong.lookup(each.getName());
    llvm::errs() << " computes something else, and is not taken\n";
  }
  return tuned->best.parameters;
}

static void tellBounds(func::FuncOp kernel, const block::BoundsChecks &checks) {
  llvm::errs() << kernel.getSymName() << ": " << checks.proven << " of "
               << checks.accesses
               << " reads and writes are proven to be within bounds";
  for (auto [number, line] : llvm::enumerate(checks.checkedLines))
    llvm::errs() << (number == 0 ? "; checked are those of lines " : ", ")
                 << line;
  llvm::errs() << "\n";
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(arguments.target));
  measuring::CompileSession session;
  SANDWICH_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module,
                            read(arguments, session.context));
  Result<func::FuncOp> kernel = kernel::findKernel(*module, arguments.name);
  if (!kernel)
    return kernel.error().inContext(arguments.input);
  SANDWICH_ASSIGN_OR_RETURN(block::Bindings bindings,
                            readBindings(arguments.parameters, "--parameter"));
  for (const auto &each : bindings)
    if (!block::parametersOf(*kernel).find(each.first()) &&
        !block::findDimension(*kernel, each.first()))
      return makeError("--parameter ", each.first().str(),
                       " is no parameter, and no size of an argument");
  if (!arguments.description.empty())
    SANDWICH_RETURN_IF_ERROR(
        write(arguments.description,
              kernel::describeKernel(*kernel).toJson() + "\n"));
  if (arguments.tune) {
    SANDWICH_ASSIGN_OR_RETURN(
        bindings, tune(*kernel, session, target, bindings, arguments));
  }
  if (arguments.output.empty())
    return {};
  const kernel::KernelOutput output =
      arguments.emit == "loops"      ? kernel::KernelOutput::Loops
      : arguments.emit == "assembly" ? kernel::KernelOutput::Assembly
                                     : kernel::KernelOutput::Object;
  block::BoundsChecks checks;
  SANDWICH_ASSIGN_OR_RETURN(
      std::string code,
      kernel::compileKernel(session, *kernel, bindings, target, output,
                            arguments.checkBounds ? &checks : nullptr));
  if (arguments.checkBounds)
    tellBounds(*kernel, checks);
  if (arguments.emit == "shared") {
    SANDWICH_ASSIGN_OR_RETURN(code, linkSharedObject(code));
  }
  return write(arguments.output, code);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Arguments arguments;
  CLI::App app(
      "Compiles a kernel of the high level to a function that anyone can "
      "call, sandwich_kernel_NAME(void *const *arguments), and finds the best "
      "of its parameters.\n\n"
      "  sandwich-compile-kernel rms_norm.kernel -o rms_norm.so\n"
      "  sandwich-compile-kernel rms_norm.kernel --tune --size rows=64 --size "
      "channels=4096 -o rms_norm.so\n"
      "  sandwich-compile-kernel contiguous_attention.kernel --parameter "
      "DIM=64 --parameter CAUSAL=1 --emit=assembly -o -\n",
      "sandwich-compile-kernel");
  declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  if (arguments.output.empty() && !arguments.tune &&
      arguments.description.empty()) {
    llvm::errs() << "error: there is nothing to do: --output, --description or "
                    "--tune is needed\n";
    return EXIT_FAILURE;
  }
  if (Status status = run(arguments); !status) {
    llvm::errs() << "error: " << status.error().message << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
