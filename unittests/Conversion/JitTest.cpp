//===- JitTest.cpp - Running phase programs in tests ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JitTest.h"
#include "JitCode.h"
#include "TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Target/CpuFeatures.h"

#include <barrier>
#include <thread>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::test;

namespace {

class JitProgram final : public CompiledProgram {
public:
  void run(SandwichStep step, int32_t thread) override {
    step.barrier = [](void *) {};
    function(&step, thread);
  }

  std::unique_ptr<JitCode> code;
  SandwichPhaseFunction function = nullptr;

protected:
  void call(const SandwichStep &step, int32_t thread) override {
    function(&step, thread);
  }
};

} // namespace

void CompiledProgram::runTeam(SandwichStep step, int32_t threads) {
  std::barrier meeting(threads);
  step.team = &meeting;
  step.barrier = [](void *team) {
    static_cast<std::barrier<> *>(team)->arrive_and_wait();
  };
  std::vector<std::thread> team;
  for (int32_t thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] { call(step, thread); });
  for (std::thread &thread : team)
    thread.join();
}

Result<std::unique_ptr<CompiledProgram>>
CompiledProgram::compile(const std::string &source,
                         const CompileOptions &options) {
  static const bool initialized = [] {
    registerSandwichPasses();
    registerTestPasses();
    return true;
  }();
  (void)initialized;
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.target));

  DialectRegistry registry;
  registerSandwichDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });

  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return makeError(diagnostics);
  PassManager manager(&context);
  if (failed(parsePassPipeline(options.passes, manager)))
    return makeError("'", options.passes, "' is no pass pipeline");
  LoopsToLLVMOptions lowering;
  lowering.expandBF16 = options.expandBF16;
  buildLoopsToLLVMPipeline(manager, lowering);
  if (failed(manager.run(*module)))
    return makeError(diagnostics);
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*module, *llvmContext);
  if (!llvmModule)
    return makeError(diagnostics);
  SANDWICH_RETURN_IF_ERROR(optimize(*llvmModule, target));

  auto result = std::make_unique<JitProgram>();
  SANDWICH_ASSIGN_OR_RETURN(
      result->code,
      JitCode::load(std::move(llvmModule), std::move(llvmContext)));
  SANDWICH_ASSIGN_OR_RETURN(
      result->function,
      result->code->lookup<SandwichPhaseFunction>("sandwich_program"));
  return std::unique_ptr<CompiledProgram>(std::move(result));
}

std::string sandwich::test::programArguments(const std::string &cache) {
  return "%token_ids: memref<?xi32>, %positions: memref<?xi32>, "
         "%slots: memref<?xi32>, %segments: memref<?x4xi32>, "
         "%block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: " +
         cache +
         ", %logits: memref<?x16xf32>, %weights: memref<?xi8>, "
         "%workspace: memref<?xi8>, %thread: index, %team: !phase.team";
}

std::string sandwich::test::programAttribute(int64_t threads,
                                             int64_t maxTokens) {
  return "phase.program = #phase.program<threads = " + std::to_string(threads) +
         ", max_tokens = " + std::to_string(maxTokens) +
         ", max_logit_rows = 1, workspace_bytes = 0>";
}

bool sandwich::test::emulates(MatrixISA isa) {
  return hasTiles(isa) && !hostRuns("x86-64-amx");
}

Target sandwich::test::targetOf(MatrixISA isa) {
  for (const std::string &name : targetNames())
    if (Target target = *getTarget(name);
        llvm::is_contained(target.matrixISAs, isa))
      return target;
  llvm_unreachable("an ISA that no target is for");
}

Target sandwich::test::targetToRun(MatrixISA isa) {
  return emulates(isa) ? *getTarget("x86-64-avx2") : targetOf(isa);
}

std::string sandwich::test::targetToRun(const std::string &name) {
  Result<Target> target = getTarget(name);
  if (name == "host" || !target || !emulates(target->matrixISAs.back()))
    return name;
  return targetToRun(target->matrixISAs.back()).name;
}

bool sandwich::test::hostRuns(const std::string &name) {
  Result<Target> target = getTarget(name);
  return target && CpuFeatures::host().hasAll(target->features);
}

bool sandwich::test::hasBF16(const std::string &name) {
  Result<Target> target = getTarget(name);
  return target && target->features.has(CpuFeature::AVX512BF16);
}
