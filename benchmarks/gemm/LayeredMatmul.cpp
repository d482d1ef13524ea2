//===- LayeredMatmul.cpp - One matmul, layer after layer ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayeredMatmul.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Runtime/Teams/TeamStep.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <numeric>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::benchmark;

Result<std::unique_ptr<LayeredMatmul>>
LayeredMatmul::create(const MatmulShape &shape, const ScheduleTable &table,
                      const Target &target, int64_t threads, int64_t maxRows,
                      int64_t layers) {
  std::unique_ptr<LayeredMatmul> matmul(new LayeredMatmul);
  // Integers round what tiles beside them read.
  MatrixISA isa = table.front().schedule.microKernel.isa;
  for (const ScheduleTableEntry &entry : table)
    if (!multipliesIntegers(entry.schedule.microKernel.isa))
      isa = entry.schedule.microKernel.isa;
  matmul->program = {.shape = shape,
                     .isa = isa,
                     .threads = threads,
                     .maxRows = maxRows,
                     .layers = layers};
  SANDWICH_ASSIGN_OR_RETURN(
      matmul->library,
      MatmulLibrary::create(target, static_cast<unsigned>(threads)));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<MatmulCode> codes,
                            matmul->library->prepareAsShipped(
                                matmul->program, {table}, {1, maxRows}));
  matmul->code = codes.front();
  SANDWICH_ASSIGN_OR_RETURN(
      matmul->workspace,
      AnonymousMemory::allocate(matmul->code.workspaceBytes, "the workspace"));
  return matmul;
}

void *LayeredMatmul::input(int64_t row) {
  return workspace.data() + row * program.inputStride() * (bf16Input() ? 2 : 4);
}

const float *LayeredMatmul::result(int64_t row) const {
  return reinterpret_cast<const float *>(workspace.data() +
                                         code.workspace.result) +
         row * program.resultStride();
}

void LayeredMatmul::run(PhaseTeam &team, const std::byte *weights, int64_t rows,
                        int64_t first, int64_t count) {
  std::vector<int32_t> layers(count);
  std::iota(layers.begin(), layers.end(), static_cast<int32_t>(first));
  SandwichStep step = {};
  step.num_tokens = rows;
  step.logit_rows = layers.data();
  step.num_logit_rows = count;
  step.weights = weights;
  step.workspace = workspace.data();
  setTeam(step, team);
  runOnTeam(team, static_cast<unsigned>(program.threads), code.function, step);
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
