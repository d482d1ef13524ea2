//===- sandwich-import.cpp - Kernels that somebody wrote ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads hand-written kernels in C or C++, or in text of the high level, and
/// writes them as IR or back.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Dialect/Kernel/IR/Kernel.h"
#include "sandwich/Kernel/Export.h"
#include "sandwich/Kernel/Import.h"
#include "sandwich/Kernel/Raise.h"
#include "sandwich/Kernel/Text.h"
#include "sandwich/Support/File.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

using namespace mlir;
using namespace sandwich;

namespace {
struct Arguments {
  std::string input;
  std::string output = "-";
  std::string emit = "ir";
  kernel::ImportOptions import;
  std::vector<std::string> folders, macros, machine, types;
  std::string standard;
  bool withoutLocations = false;
};
} // namespace

static void declare(CLI::App &app, Arguments &arguments) {
  app.add_option("FILE", arguments.input,
                 "C (.c), C++ (any other name), text of the high level "
                 "(.kernel), or IR of either level (.mlir)")
      ->required();
  app.add_option("-o,--output", arguments.output,
                 "The file to write; - is standard output")
      ->capture_default_str();
  app.add_option("--function", arguments.import.functions,
                 "A function to import, with all that it calls: NAME, or "
                 "NAME<4, float> of a template, NAME(int, float) where there "
                 "are several; may be repeated. By default all functions of "
                 "the file")
      ->allow_extra_args(false);
  app.add_option("--emit", arguments.emit,
                 "ir: dialect kernel of C++, dialect block of text; cpp: C++ "
                 "of dialect kernel; text: text of dialect block, to which C++ "
                 "and dialect kernel are raised")
      ->check(CLI::IsMember({"ir", "cpp", "text"}))
      ->capture_default_str();
  app.add_option("--type", arguments.types,
                 "What 'T: type(f32, bf16)' of a text is: T=bf16. By default "
                 "the first")
      ->allow_extra_args(false);
  app.add_flag("--no-locations", arguments.withoutLocations,
               "IR without the names, places and comments of the source");
  auto *compiler =
      app.add_option_group("Compiler", "What the file would be compiled with");
  compiler->add_option("-I", arguments.folders, "A folder with headers")
      ->allow_extra_args(false);
  compiler->add_option("-D", arguments.macros, "A macro: NAME or NAME=TEXT")
      ->allow_extra_args(false);
  compiler
      ->add_option("-m", arguments.machine,
                   "What the CPU has that the kernel is for: avx2, fma, f16c, "
                   "avx512f, avx512bf16 and so on")
      ->allow_extra_args(false);
  compiler->add_option("--std", arguments.standard,
                       "The standard; gnu11 or gnu++17 by default");
}

/// Of text of the high level; null, with errors emitted.
static OwningOpRef<ModuleOp> readText(const Arguments &arguments,
                                      MLIRContext &context) {
  kernel::TextOptions options;
  const auto where = FileLineColLoc::get(&context, arguments.input, 0, 0);
  for (const std::string &each : arguments.types) {
    auto [name, type] = StringRef(each).split('=');
    if (name.empty() || type.empty()) {
      emitError(where) << "--type " << each << " is not NAME=TYPE";
      return nullptr;
    }
    options.types[name] = type.str();
  }
  constexpr size_t mostBytes = size_t(1) << 24;
  Result<std::string> text = readTextFile(arguments.input, mostBytes);
  if (!text) {
    llvm::errs() << "error: " << text.error().message << "\n";
    return nullptr;
  }
  return kernel::readText(*text, arguments.input, options, context);
}

/// The module of `arguments.input`; null, with errors emitted.
static OwningOpRef<ModuleOp> read(Arguments &arguments, MLIRContext &context) {
  const StringRef input = arguments.input;
  if (input.ends_with(".kernel"))
    return readText(arguments, context);
  if (input.ends_with(".mlir")) {
    context
        .loadDialect<kernel::KernelDialect, block::BlockDialect,
                     arith::ArithDialect, func::FuncDialect, math::MathDialect,
                     memref::MemRefDialect, scf::SCFDialect>();
    return parseSourceFile<ModuleOp>(arguments.input, &context);
  }
  std::vector<std::string> &options = arguments.import.compilerOptions;
  const auto add = [&](const char *prefix,
                       const std::vector<std::string> &texts) {
    for (const std::string &each : texts)
      options.push_back(prefix + each);
  };
  add("-I", arguments.folders);
  add("-D", arguments.macros);
  add("-m", arguments.machine);
  if (!arguments.standard.empty())
    options.push_back("-std=" + arguments.standard);
  return kernel::importKernels(arguments.input, arguments.import, context);
}

/// Whether there are functions of the lower level.
static bool hasFunctions(ModuleOp module) {
  return !module.getOps<kernel::FuncOp>().empty();
}

static Status write(const std::string &path, const std::string &text) {
  if (path == "-") {
    llvm::outs() << text;
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  SANDWICH_RETURN_IF_ERROR(
      file.write(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Arguments arguments;
  CLI::App app("Reads kernels that somebody wrote in C or C++ with intrinsics, "
               "or in the text of the high level, and writes them as IR that "
               "can be raised and tuned, or back.\n\n"
               "  sandwich-import softmax.cpp -m avx512f -o softmax.mlir\n"
               "  sandwich-import quants.c --function vec_dot_q8_0 -I include "
               "-m avx2 -m fma -m f16c\n"
               "  sandwich-import softmax.mlir --emit=cpp -o softmax.cpp\n"
               "  sandwich-import softmax.mlir --emit=text -o softmax.kernel\n"
               "  sandwich-import rms_norm.kernel -o rms_norm.mlir\n",
               "sandwich-import");
  declare(app, arguments);
  CLI11_PARSE(app, argc, argv);

  MLIRContext context;
  // As compilers tell of errors: file:line:column.
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    if (auto place =
            diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
      llvm::errs() << place.getFilename().getValue() << ":";
      if (place.getLine() > 0)
        llvm::errs() << place.getLine() << ":" << place.getColumn() << ":";
      llvm::errs() << " ";
    }
    llvm::errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error
                         ? "error: "
                     : diagnostic.getSeverity() == DiagnosticSeverity::Warning
                         ? "warning: "
                         : "note: ")
                 << diagnostic << "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = read(arguments, context);
  if (!module)
    return EXIT_FAILURE;
  if (arguments.emit == "text" && hasFunctions(*module) &&
      failed(kernel::raiseKernels(*module)))
    return EXIT_FAILURE;
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (arguments.emit != "ir") {
    if (failed(arguments.emit == "cpp" ? kernel::exportCpp(*module, stream)
                                       : kernel::writeText(*module, stream)))
      return EXIT_FAILURE;
  } else {
    OpPrintingFlags flags;
    if (!arguments.withoutLocations)
      flags.enableDebugInfo(true, /*prettyForm=*/false);
    module->print(stream, flags);
    stream << "\n";
  }
  if (Status written = write(arguments.output, text); !written) {
    llvm::errs() << "error: " << written.error().message << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
