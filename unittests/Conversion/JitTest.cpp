//===- JitTest.cpp - Running phase programs in tests ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JitTest.h"

#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::test;

namespace {

Error fromLLVM(llvm::Error error) {
  return makeError(llvm::toString(std::move(error)));
}

/// Optimizes `module` as `opt -O3` does.
void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

template <int Rank, typename T>
StridedMemRefType<T, Rank> describe(T *data,
                                    const std::vector<int64_t> &sizes) {
  StridedMemRefType<T, Rank> result{};
  result.basePtr = result.data = data;
  int64_t stride = 1;
  for (int i = Rank - 1; i >= 0; --i) {
    result.sizes[i] = sizes[i];
    result.strides[i] = stride;
    stride *= sizes[i];
  }
  return result;
}

template <typename T> StridedMemRefType<T, 1> describe(std::vector<T> &data) {
  return describe<1>(data.data(), {static_cast<int64_t>(data.size())});
}

class JitProgram final : public CompiledProgram {
public:
  void run(ProgramBuffers &buffers, int64_t thread) override {
    auto rows = [](size_t elements, int64_t columns) {
      return columns == 0 ? 0 : static_cast<int64_t>(elements) / columns;
    };
    auto tokenIds = describe(buffers.tokenIds);
    auto positions = describe(buffers.positions);
    auto sequences = describe(buffers.sequences);
    auto logitRows = describe(buffers.logitRows);
    auto blockTables = describe<2>(
        buffers.blockTables.data(),
        {rows(buffers.blockTables.size(), buffers.blocksPerSequence),
         buffers.blocksPerSequence});
    auto cache =
        describe<5>(static_cast<char *>(buffers.cache), buffers.cacheShape);
    auto logits = describe<2>(
        buffers.logits.data(),
        {rows(buffers.logits.size(), buffers.vocabulary), buffers.vocabulary});
    auto weights = describe<1>(static_cast<char *>(buffers.weights),
                               {buffers.weightBytes});
    auto workspace = describe<1>(static_cast<char *>(buffers.workspace),
                                 {buffers.workspaceBytes});
    function(&tokenIds, &positions, &sequences, &logitRows, &blockTables,
             &cache, &logits, &weights, &workspace, thread);
  }

  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*function)(void *, void *, void *, void *, void *, void *, void *,
                   void *, void *, int64_t) = nullptr;
};

} // namespace

Result<std::unique_ptr<CompiledProgram>>
CompiledProgram::compile(const std::string &source,
                         const CompileOptions &options) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    registerAllPasses();
    registerSandwichPasses();
    return true;
  }();
  (void)initialized;

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<lm::LMDialect, gemm::GemmDialect, phase::PhaseDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });

  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return makeError(diagnostics);
  PassManager toLoops(&context);
  if (failed(parsePassPipeline(options.passes, toLoops)) ||
      failed(toLoops.run(*module)))
    return makeError(diagnostics);

  auto program = module->lookupSymbol<func::FuncOp>("program");
  if (!program)
    return makeError("there is no function 'program'");
  program->setAttr("llvm.emit_c_interface", UnitAttr::get(&context));
  // Nothing here waits for a team.
  unsigned last = program.getNumArguments() - 1;
  if (isa<phase::TeamType>(program.getArgumentTypes()[last]) &&
      failed(program.eraseArgument(last)))
    return makeError("the team's argument is used");

  PassManager toLLVM(&context);
  LoopsToLLVMOptions lowering;
  lowering.emulateAMX = options.emulateAMX;
  lowering.expandBF16 = options.expandBF16;
  buildLoopsToLLVMPipeline(toLLVM, lowering);
  if (failed(toLLVM.run(*module)))
    return makeError(diagnostics);
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*module, *llvmContext);
  if (!llvmModule)
    return makeError(diagnostics);

  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return fromLLVM(builder.takeError());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return fromLLVM(machine.takeError());
  llvmModule->setDataLayout((*machine)->createDataLayout());
  llvmModule->setTargetTriple((*machine)->getTargetTriple());
  optimize(*llvmModule, **machine);

  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*builder))
                 .create();
  if (!jit)
    return fromLLVM(jit.takeError());
  if (llvm::Error error = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(
          std::move(llvmModule), std::move(llvmContext))))
    return fromLLVM(std::move(error));
  auto symbol = (*jit)->lookup("_mlir_ciface_program");
  if (!symbol)
    return fromLLVM(symbol.takeError());
  auto result = std::make_unique<JitProgram>();
  result->function = symbol->toPtr<decltype(result->function)>();
  result->jit = std::move(*jit);
  return std::unique_ptr<CompiledProgram>(std::move(result));
}

std::string sandwich::test::programArguments(const std::string &cache) {
  return "%token_ids: memref<?xi32>, %positions: memref<?xi32>, "
         "%sequences: memref<?xi32>, %logit_rows: memref<?xi32>, "
         "%block_tables: memref<?x?xi32>, %cache: " +
         cache +
         ", %logits: memref<?x?xf32>, %weights: memref<?xi8>, "
         "%workspace: memref<?xi8>, %thread: index, %team: !phase.team";
}

std::string sandwich::test::programAttribute(int64_t threads,
                                             int64_t maxTokens) {
  return "phase.program = #phase.program<threads = " + std::to_string(threads) +
         ", max_tokens = " + std::to_string(maxTokens) +
         ", max_logit_rows = 1, workspace_bytes = 0>";
}

bool sandwich::test::hostHas(const std::string &feature) {
  return llvm::sys::getHostCPUFeatures().lookup(feature);
}
