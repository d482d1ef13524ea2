//===- FloatModel.cpp - A checkpoint run as it is -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Calibration/FloatModel.h"

#include "sandwich/Calibration/CheckpointWeights.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Interpreter/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace sandwich;

/// Elements of all layers of all weights of `module`.
static double countElements(ModuleOp module) {
  double elements = 0;
  for (auto weight : module.getOps<lm::WeightOp>())
    elements += static_cast<double>(weight.getTensorType().getNumElements()) *
                static_cast<double>(weight.getLayers().value_or(1));
  return elements;
}

Result<std::vector<double>>
sandwich::runInFloats(const Checkpoint &checkpoint,
                      std::span<const int32_t> tokens,
                      const FloatModelOptions &options) {
  if (checkpoint.config().encodes())
    return makeError("the model embeds or classifies texts, and has no logits");
  MLIRContext context;
  context.loadDialect<lm::LMDialect, func::FuncDialect, arith::ArithDialect,
                      scf::SCFDialect>();
  const Type element = Float32Type::get(&context);
  OwningOpRef<ModuleOp> module =
      buildModel(&context, checkpoint.config(), element, element);
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem = diagnostic.str();
    return success();
  });

  const double elements = countElements(*module);
  double readElements = 0;
  // What `progress` says is told as it is, and not as an error of the model.
  Status stopped;
  auto read = [&](lm::WeightOp weight,
                  int64_t layer) -> Result<std::vector<float>> {
    if (options.progress)
      stopped = options.progress(readElements / elements);
    SANDWICH_RETURN_IF_ERROR(stopped);
    readElements +=
        static_cast<double>(weight.getTensorType().getNumElements());
    return readWeight(checkpoint, weight, layer);
  };
  InterpreterOptions interpreting;
  interpreting.keepsWeights = false;
  if (options.observe)
    interpreting.observeMatmul = [&](lm::WeightOp weight, int64_t layer,
                                     const Matrix &input) {
      MatmulInput told;
      for (auto source : weight.getSources().getAsRange<StringAttr>())
        told.tensors.push_back(numberLayer(source.str(), layer));
      told.channels = input.channels;
      told.values = input.values;
      options.observe(told);
    };
  Interpreter interpreter(read, std::move(interpreting));
  auto phase = module->lookupSymbol<func::FuncOp>(
      lm::stringifyPhase(lm::Phase::Prefill));
  FailureOr<Matrix> logits = interpreter.run(
      phase, makeSequenceStep(ArrayRef(tokens.data(), tokens.size()), 0));
  SANDWICH_RETURN_IF_ERROR(stopped);
  if (failed(logits))
    return makeError(problem);
  return std::move(logits->values);
}
