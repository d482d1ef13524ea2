//===- sandwich-interpret.cpp - The logits that model IR means ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes what `sandwich-run logits` writes, from model IR and a checkpoint,
/// with neither passes nor compiled code: for tests, and for whoever adds an
/// operation.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Calibration/Calibration.h"
#include "sandwich/Calibration/CheckpointWeights.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Interpreter/Interpreter.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace sandwich;

static llvm::cl::opt<std::string> modelPath(llvm::cl::Positional,
                                            llvm::cl::Required,
                                            llvm::cl::desc("MODEL.mlir"));
static llvm::cl::opt<std::string> checkpointPath(
    "checkpoint", llvm::cl::Required,
    llvm::cl::desc("The folder or GGUF file with the model's weights"));
static llvm::cl::list<int32_t>
    tokenIds("token-ids", llvm::cl::CommaSeparated, llvm::cl::OneOrMore,
             llvm::cl::desc("The prompt as token ids, such as 1,2,3"));
static llvm::cl::opt<uint64_t>
    chunk("chunk", llvm::cl::init(0),
          llvm::cl::desc("Feeds the prompt in pieces of N tokens; a piece of "
                         "one token runs the decode phase. By default all at "
                         "once"));
static llvm::cl::opt<std::string>
    outputPath("out", llvm::cl::Required,
               llvm::cl::desc("The file to write: little-endian float32 "
                              "numbers, [tokens, vocabulary]"));

static llvm::cl::opt<std::string> meanSquaresPath(
    "mean-squares",
    llvm::cl::desc("A file of JSON to write as well: by which mean squares of "
                   "its channels --calibration-text of sandwich-compile would "
                   "weigh errors in each tensor"));

/// Writes what calibrating `checkpoint` by the tokens finds.
static Status writeMeanSquares(const Checkpoint &checkpoint) {
  SANDWICH_ASSIGN_OR_RETURN(
      const ChannelImportance importance,
      calibrate(checkpoint, std::span<const int32_t>(tokenIds), {}));
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(meanSquaresPath));
  SANDWICH_RETURN_IF_ERROR(file.write(Json(importance).dump()));
  return file.commit();
}

/// Writes the logits of `module`, which is verified. Errors of the module were
/// emitted, and are empty here.
static Status writeLogits(ModuleOp module, const Checkpoint &checkpoint) {
  Interpreter interpreter([&](lm::WeightOp weight, int64_t layer) {
    return readWeight(checkpoint, weight, layer);
  });
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(outputPath));
  ArrayRef<int32_t> rest(tokenIds);
  for (int32_t first = 0; !rest.empty();) {
    const size_t count =
        chunk == 0 ? rest.size() : std::min<size_t>(rest.size(), chunk);
    StringRef name =
        lm::stringifyPhase(count == 1 ? lm::Phase::Decode : lm::Phase::Prefill);
    auto phase = module.lookupSymbol<func::FuncOp>(name);
    if (!phase)
      return makeError(modelPath.getValue(), ": has no phase ", name.str());
    FailureOr<Matrix> logits =
        interpreter.run(phase, makeSequenceStep(rest.take_front(count), first));
    if (failed(logits))
      return makeError("");
    const std::vector<float> narrow(logits->values.begin(),
                                    logits->values.end());
    SANDWICH_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(narrow))));
    rest = rest.drop_front(count);
    first += static_cast<int32_t>(count);
  }
  return file.commit();
}

static int fail(const std::string &message) {
  if (!message.empty())
    llvm::errs() << "error: " << message << "\n";
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "Computes model IR operation by operation, in f64\n");
  constexpr size_t mostTokens = SANDWICH_MAX_STEP_TOKENS;
  if (tokenIds.size() > mostTokens)
    return fail("there are more than " + std::to_string(mostTokens) +
                " tokens");
  DialectRegistry registry;
  registerSandwichDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(modelPath, sources, &context);
  if (!module)
    return fail("");
  // Then operands are what the interpreter takes them for.
  PassManager manager(&context);
  manager.addPass(createVerifyPhases());
  if (failed(manager.run(*module)))
    return fail("");
  Result<Checkpoint> checkpoint = Checkpoint::open(checkpointPath);
  if (!checkpoint)
    return fail(checkpoint.error().message);
  Status status = writeLogits(*module, *checkpoint);
  if (status && !meanSquaresPath.empty())
    status = writeMeanSquares(*checkpoint);
  return status ? EXIT_SUCCESS : fail(status.error().message);
}
