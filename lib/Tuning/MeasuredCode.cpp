//===- MeasuredCode.cpp - Machine code in this process --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MeasuredCode.h"

#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Target/CpuFeatures.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::measuring;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerSandwichDialects(registry);
  return registry;
}

CompileSession::CompileSession()
    : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
}

ParallelCompiler::ParallelCompiler(unsigned threads)
    : sessions(std::max(threads, 1u)) {}

bool ParallelCompiler::run(
    size_t count, const std::function<bool()> &stop,
    const std::function<void(size_t, CompileSession &)> &compile) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  auto work = [&](size_t worker) {
    std::unique_ptr<CompileSession> &session = sessions[worker];
    for (size_t i = next++; i < count && !stopped; i = next++) {
      if (!session)
        session = std::make_unique<CompileSession>();
      compile(i, *session);
      if (worker == 0 && stop && stop())
        stopped = true;
    }
  };
  std::vector<std::thread> workers;
  for (size_t worker = 1; worker < std::min(sessions.size(), count); ++worker)
    workers.emplace_back(work, worker);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
  return stopped;
}

Result<std::string> measuring::compileCode(
    CompileSession &session, ModuleOp module, const Target &target,
    std::string_view prefix, StringRef kind,
    llvm::function_ref<void(OpPassManager &)> addPasses, CodeKind output) {
  std::unique_ptr<PassManager> &manager = session.pipelines[kind];
  if (!manager) {
    manager = std::make_unique<PassManager>(&session.context);
    addPasses(*manager);
    LoopsToLLVMOptions toLLVM;
    toLLVM.expandBF16 = !target.features.has(CpuFeature::AVX512BF16);
    buildLoopsToLLVMPipeline(*manager, toLLVM);
  }
  std::string problem;
  ScopedDiagnosticHandler handler(&session.context,
                                  [&](Diagnostic &diagnostic) {
                                    if (problem.empty())
                                      problem = diagnostic.str();
                                    return success();
                                  });
  if (failed(manager->run(module)))
    return makeError(prefix, " does not compile: ", problem);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, llvmContext, "measured");
  if (!code)
    return makeError(prefix, " has no LLVM IR: ", problem);
  SANDWICH_RETURN_IF_ERROR(optimize(*code, target, std::string(prefix)));
  return emitCode(*code, target, output);
}

static Error fromLLVM(llvm::Error error) {
  return makeError("cannot load code: ", llvm::toString(std::move(error)));
}

CodeLoader::CodeLoader(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}
CodeLoader::~CodeLoader() = default;

Result<std::unique_ptr<CodeLoader>> CodeLoader::create(const Target &target) {
  if (!CpuFeatures::host().hasAll(target.features))
    return makeError("this CPU cannot run code for ", target.name,
                     ", so that schedules for it cannot be measured here");
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return fromLLVM(jit.takeError());
  return std::unique_ptr<CodeLoader>(new CodeLoader(std::move(*jit)));
}

Result<std::vector<void *>>
CodeLoader::load(const std::string &object,
                 const std::vector<std::string> &names) {
  // Each in a library of its own, as functions may have equal names.
  auto library = jit->createJITDylib("object" + std::to_string(objects++));
  if (!library)
    return fromLLVM(library.takeError());
  if (llvm::Error error = jit->addObjectFile(
          *library, llvm::MemoryBuffer::getMemBufferCopy(object)))
    return fromLLVM(std::move(error));
  std::vector<void *> functions;
  for (const std::string &name : names) {
    auto symbol = jit->lookup(*library, name);
    if (!symbol)
      return fromLLVM(symbol.takeError());
    functions.push_back(symbol->toPtr<void *>());
  }
  return functions;
}
