//===- MatmulProgram.cpp - A compiled phase of one matmul -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulProgram.h"

#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Support/CheckedMath.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

constexpr uint64_t pageBytes = 4096;

/// Where everything lies in the workspace.
struct Layout {
  const char *inputType;
  int64_t inputStride, resultStride;
  uint64_t resultOffset, sumsOffset, sumsBytes, totalBytes;
};

uint64_t roundUp(uint64_t a, uint64_t b) { return divideUp(a, b) * b; }

int64_t mostPartsOfK(const ScheduleTable &table) {
  int64_t parts = 1;
  for (const ScheduleTableEntry &entry : table)
    parts = std::max(parts, entry.schedule.threads[2]);
  return parts;
}

Layout layOut(const MatmulShape &shape, const ScheduleTable &table,
              int64_t maxRows) {
  bool bf16 = multipliesBF16(table.front().schedule.microKernel.isa);
  Layout layout;
  layout.inputType = bf16 ? "bf16" : "f32";
  int64_t inputBytes = bf16 ? 2 : 4;
  layout.inputStride = rowStride(shape.k, inputBytes);
  layout.resultStride = rowStride(shape.n, 4);
  layout.resultOffset =
      roundUp(maxRows * layout.inputStride * inputBytes, pageBytes);
  layout.sumsOffset = layout.resultOffset +
                      roundUp(maxRows * layout.resultStride * 4, pageBytes);
  int64_t parts = mostPartsOfK(table);
  uint64_t columns = roundUp(shape.n, shape.packing->panel);
  layout.sumsBytes = parts > 1 ? parts * maxRows * columns * 4 + 64 : 0;
  layout.totalBytes = layout.sumsOffset + layout.sumsBytes;
  return layout;
}

template <typename Attribute> std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// The program as `phase-assign-buffers` would leave it, without schedules.
/// The logit rows say how many layers, the first token id the first of them.
std::string programText(const MatmulShape &shape, const Layout &layout,
                        const std::string &packing, int64_t threads,
                        int64_t maxRows, int64_t layers) {
  std::string sums, sumsOperand;
  if (layout.sumsBytes > 0) {
    sums = llvm::formatv(R"(
  %sums_offset = arith.constant {0} : index
  %sums = memref.view %workspace[%sums_offset][] : memref<?xi8> to memref<{1}xi8>)",
                         layout.sumsOffset, layout.sumsBytes);
    sumsOperand =
        llvm::formatv("partial_sums(%sums : memref<{0}xi8>)", layout.sumsBytes);
  }
  return llvm::formatv(
      R"(
lm.weight @weight : tensor<{0}x{1}x{2}> layers {3} from ["weight.{{}"] packing {4}
func.func @matmul(
    %token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>,
    %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>,
    %cache: memref<?x1x1x2x16x{5}>, %logits: memref<?x16xf32>, %weights: memref<?xi8>,
    %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {{phase.program = #phase.program<threads = {6}, max_tokens = {7},
      max_logit_rows = {3}, workspace_bytes = {8}>} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %token_ids, %c0 : memref<?xi32>
  %x_rows = memref.view %workspace[%c0][%rows] : memref<?xi8> to memref<?x{9}x{5}>
  %x = memref.subview %x_rows[0, 0] [%rows, {1}] [1, 1]
    : memref<?x{9}x{5}> to memref<?x{1}x{5}, strided<[{9}, 1]>>
  %y_offset = arith.constant {10} : index
  %y_rows = memref.view %workspace[%y_offset][%rows] : memref<?xi8> to memref<?x{11}xf32>
  %y = memref.subview %y_rows[0, 0] [%rows, {0}] [1, 1]
    : memref<?x{11}xf32> to memref<?x{0}xf32, strided<[{11}, 1]>>{12}
  %first_id = memref.load %token_ids[%c0] : memref<?xi32>
  %first = arith.index_cast %first_id : i32 to index
  %count = memref.dim %logit_rows, %c0 : memref<?xi32>
  %end = arith.addi %first, %count : index
  scf.for %layer = %first to %end step %c1 {{
    gemm.matmul %x, @weight[%layer] epilogue(<none>) {13} into %y
      : memref<?x{1}x{5}, strided<[{9}, 1]>> into memref<?x{0}xf32, strided<[{11}, 1]>>
    phase.barrier %team
  }
  return
}
)",
      shape.n, shape.k, shape.bf16Weights ? "bf16" : "f32", layers, packing,
      layout.inputType, threads, maxRows, layout.totalBytes, layout.inputStride,
      layout.resultOffset, layout.resultStride, sums, sumsOperand);
}

/// Loads a shared object. It has a name of its own as long as it is being
/// loaded: the loader takes equal names for equal objects.
Result<void *> loadSharedObject(const std::string &bytes) {
  std::string path = std::filesystem::temp_directory_path() / "gemm.so.XXXXXX";
  int file = ::mkstemp(path.data());
  if (file < 0)
    return makeError(path, ": cannot be created");
  bool written = ::write(file, bytes.data(), bytes.size()) ==
                 static_cast<ssize_t>(bytes.size());
  ::close(file);
  void *library =
      written ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::string problem = written ? "cannot be loaded" : "cannot be written";
  if (written && !library)
    problem = ::dlerror();
  ::unlink(path.c_str());
  if (!library)
    return makeError(path, ": ", problem);
  return library;
}

} // namespace

Result<std::unique_ptr<MatmulProgram>>
MatmulProgram::create(const MatmulShape &shape, const ScheduleTable &table,
                      const Target &target, int64_t threads, int64_t maxRows,
                      int64_t layers) {
  DialectRegistry registry;
  registerSandwichDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Layout layout = layOut(shape, table, maxRows);
  std::string packing = print(gemm::PackingAttr::get(&context, *shape.packing));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      programText(shape, layout, packing, threads, maxRows, layers), &context);
  if (!module)
    return makeError("the program of one matmul does not parse");

  module->walk([&](gemm::MatmulOp matmul) {
    matmul.setSchedulesAttr(gemm::getTableAttr(&context, table));
  });

  ScheduleToLoopsOptions lowering;
  lowering.target = target.name;
  lowering.threads = threads;
  lowering.maxTokens = maxRows;
  SANDWICH_RETURN_IF_ERROR(runPasses(*module, [&](OpPassManager &manager) {
    buildScheduleToLoopsPipeline(manager, lowering);
  }));
  llvm::LLVMContext llvmContext;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> code,
                            lowerToLLVM(*module, target, llvmContext));
  SANDWICH_RETURN_IF_ERROR(optimize(*code, target));
  SANDWICH_ASSIGN_OR_RETURN(std::string object,
                            emitCode(*code, target, CodeKind::Object));
  SANDWICH_ASSIGN_OR_RETURN(std::string sharedObject, linkSharedObject(object));

  std::unique_ptr<MatmulProgram> program(new MatmulProgram);
  SANDWICH_ASSIGN_OR_RETURN(program->library, loadSharedObject(sharedObject));
  program->function = reinterpret_cast<SandwichPhaseFunction>(
      ::dlsym(program->library, SANDWICH_PHASE_SYMBOL_PREFIX "matmul"));
  if (!program->function)
    return makeError("the compiled program has no entry point");
  const auto *plan = static_cast<const SandwichPlan *>(
      ::dlsym(program->library, SANDWICH_PHASE_SYMBOL_PREFIX
              "matmul" SANDWICH_PLAN_SYMBOL_SUFFIX));
  if (!plan)
    return makeError("the compiled program has no plan");
  // With what threads need behind the buffers.
  SANDWICH_ASSIGN_OR_RETURN(
      program->workspace,
      AnonymousMemory::allocate(plan->workspace_bytes, "the workspace"));
  program->threads = threads;
  program->inputIsBF16 = std::string_view(layout.inputType) == "bf16";
  program->inputStride = layout.inputStride;
  program->resultStride = layout.resultStride;
  program->resultOffset = layout.resultOffset;
  program->layerStride = roundUp(roundUp(shape.n, shape.packing->panel) *
                                     shape.k * (shape.bf16Weights ? 2 : 4),
                                 static_cast<int64_t>(pageBytes));
  return program;
}

MatmulProgram::~MatmulProgram() {
  if (library)
    ::dlclose(library);
}

void *MatmulProgram::input(int64_t row) {
  return workspace.data() + row * inputStride * (inputIsBF16 ? 2 : 4);
}

const float *MatmulProgram::result(int64_t row) const {
  return reinterpret_cast<const float *>(workspace.data() + resultOffset) +
         row * resultStride;
}

void MatmulProgram::run(PhaseTeam &team, const std::byte *weights, int64_t rows,
                        int64_t first, int64_t count) {
  int32_t firstLayer = static_cast<int32_t>(first);
  struct Call {
    SandwichPhaseFunction function;
    SandwichStep step;
  } call = {function, {}};
  call.step.token_ids = &firstLayer;
  call.step.num_tokens = rows;
  call.step.num_logit_rows = count;
  call.step.weights = weights;
  call.step.workspace = workspace.data();
  call.step.team = &team;
  call.step.barrier = [](void *team) {
    static_cast<PhaseTeam *>(team)->barrier();
  };
  team.run(
      static_cast<unsigned>(threads),
      [](void *context, int32_t thread) {
        auto *call = static_cast<Call *>(context);
        call->function(&call->step, thread);
      },
      &call);
}

Result<Schedule> benchmark::parseSchedule(const std::string &text) {
  DialectRegistry registry;
  registerSandwichDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem += problem.empty() ? diagnostic.str() : "";
    return success();
  });
  auto schedule = dyn_cast_or_null<gemm::ScheduleAttr>(
      parseAttribute("#gemm.schedule" + text, &context));
  if (!schedule)
    return makeError("'", text, "' is no schedule: ", problem);
  return schedule.getSchedule();
}
