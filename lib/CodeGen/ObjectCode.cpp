//===- ObjectCode.cpp - From LLVM IR to a shared object -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Support/File.h"

#include "lld/Common/Driver.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <memory>
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace sandwich;

static Result<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Target &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
  llvm::Triple triple(llvm::StringRef(target.triple()));
  std::string problem;
  const llvm::Target *registered =
      llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!registered)
    return Error{problem};
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      triple, target.baselineCpu(), target.featureString(),
      llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return makeError("LLVM cannot compile for ", target.name);
  return machine;
}

Status sandwich::optimize(llvm::Module &module, const Target &target,
                          std::string_view entryPrefix) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine,
                            createTargetMachine(target));
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.baselineCpu());
    function.addFnAttr("target-features", target.featureString());
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (!function.getName().starts_with(entryPrefix))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Loops are vectorized and unrolled in the IR, where schedules say how: what
  // LLVM unrolls beyond that made code half as large again, and none of it
  // faster.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder passes(machine.get(), tuning);
  llvm::TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
  return {};
}

Result<std::string> sandwich::emitCode(llvm::Module &module,
                                       const Target &target, CodeKind kind) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine,
                            createTargetMachine(target));
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  auto fileType = kind == CodeKind::Assembly
                      ? llvm::CodeGenFileType::AssemblyFile
                      : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, fileType))
    return makeError("LLVM cannot emit code for ", target.name);
  passes.run(module);
  return std::string(buffer.str());
}

Result<std::string> sandwich::linkSharedObject(const std::string &object) {
  SANDWICH_ASSIGN_OR_RETURN(ScratchFolder folder,
                            ScratchFolder::create("sandwich-link"));
  const std::string input = folder.path() + "/phases.o";
  const std::string output = folder.path() + "/phases.so";
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(input));
  SANDWICH_RETURN_IF_ERROR(file.write(object));
  SANDWICH_RETURN_IF_ERROR(file.commit());

  const char *arguments[] = {"ld.lld",          "-shared", "--no-undefined",
                             "--build-id=none", "-z",      "now",
                             "--threads=1",     "-o",      output.c_str(),
                             input.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result linked =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (linked.retCode != 0)
    return makeError("linking failed: ", messages);
  return readTextFile(output, size_t(1) << 30);
}
