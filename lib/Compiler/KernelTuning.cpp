//===- KernelTuning.cpp - Parameters of a model's kernels -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTuning.h"

#include "ModuleTuning.h"

#include "sandwich/Dialect/LM/Utils/KernelUse.h"
#include "sandwich/Kernel/Compiler/Tuner.h"
#include "sandwich/Scheduling/ScheduleDatabase.h"
#include "sandwich/Support/ElapsedTime.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// A kernel that is to be tuned for operations that have the same of it.
struct OpenKernel {
  KernelTuningKey key;
  std::string text;
  kernel::KernelTuningOptions options;
  SmallVector<Operation *> operations;
};

} // namespace

/// Which parameters of the kernel of `op` nobody has set.
static SmallVector<StringRef> openParameters(Operation *op,
                                             func::FuncOp kernel) {
  DictionaryAttr given =
      op->getAttrOfType<lm::KernelAttr>(lm::kernelAttributeName)
          .getParameters();
  SmallVector<StringRef> open;
  for (block::ParameterAttr each : block::parametersOf(kernel).getParameters())
    if (each.isTuned() && !(given && given.contains(each.getName())))
      open.push_back(each.getName());
  return open;
}

/// The rows of a step that a thread has in the phase of `op`; what is in none
/// has no rows.
static int64_t rowsOf(Operation *op, const CompileOptions &options) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function)
    return 1;
  auto phase = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
  if (phase && phase.getValue() == lm::Phase::Decode)
    return 1;
  return std::max<int64_t>(1, options.maxTokens /
                                  lm::getThreads(function, options.threads));
}

static std::string textOf(func::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel.print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

/// The kernels of `module` that leave something open, each with the rows of a
/// thread. Fails, with errors emitted, if one does not fit.
static FailureOr<std::vector<OpenKernel>>
findOpenKernels(ModuleOp module, const CompileOptions &options,
                const Target &target) {
  std::vector<OpenKernel> found;
  SymbolTableCollection symbols;
  WalkResult result = module.walk([&](lm::KernelOpInterface op) {
    // What its kernel leaves open is as its schedules say: they are tuned, and
    // blocks of its cache are no random numbers.
    if (isa<lm::AttentionOp>(op))
      return WalkResult::advance();
    FailureOr<std::optional<lm::KernelUse>> use =
        lm::findKernelUse(op, symbols);
    if (failed(use))
      return WalkResult::interrupt();
    if (!*use)
      return WalkResult::advance();
    const SmallVector<StringRef> open = openParameters(op, (*use)->kernel);
    if (open.empty())
      return WalkResult::advance();
    const int64_t rows = rowsOf(op, options);
    OpenKernel each;
    each.text = textOf((*use)->kernel);
    for (const auto &binding : (*use)->bindings)
      if (!llvm::is_contained(open, binding.first()))
        each.options.known[binding.first()] = binding.second;
    for (auto [number, argument] :
         llvm::enumerate(lm::kernelArguments(op, symbols)))
      if (argument.number)
        each.options.numbers[number] = argument.number.getValueAsDouble();
      else if (argument.usual)
        each.options.numbers[number] = *argument.usual;
    // What is no channels is rows.
    for (BlockArgument argument : (*use)->kernel.getArguments())
      if (block::SizesAttr sizes =
              block::sizesOfArgument((*use)->kernel, argument.getArgNumber()))
        for (block::SizeAttr size : sizes.getSizes())
          for (StringAttr name : size.getNames())
            if (!(*use)->bindings.contains(name.getValue()))
              each.options.sizes[name.getValue()] = rows;
    std::map<std::string, int64_t> all;
    for (const block::Bindings *bindings :
         {&each.options.known, &each.options.sizes})
      for (const auto &binding : *bindings)
        all[binding.first().str()] = binding.second;
    each.key = KernelTuningKey::of(each.text, std::move(all), target);
    auto same = llvm::find_if(
        found, [&](const OpenKernel &other) { return other.key == each.key; });
    if (same == found.end())
      same = found.insert(found.end(), std::move(each));
    same->operations.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return found;
}

/// Sets what nobody has set of the kernel of each of `operations`.
static void setParameters(ArrayRef<Operation *> operations,
                          const KernelParameters &parameters) {
  for (Operation *op : operations) {
    auto use = op->getAttrOfType<lm::KernelAttr>(lm::kernelAttributeName);
    NamedAttrList all(use.getParameters());
    Builder builder(op->getContext());
    for (const auto &[name, value] : parameters)
      all.set(name, builder.getI64IntegerAttr(value));
    op->setAttr(lm::kernelAttributeName,
                lm::KernelAttr::get(op->getContext(), use.getName(),
                                    all.getDictionary(op->getContext())));
  }
}

Result<TunedModelKernels> sandwich::tuneModelKernels(
    ModuleOp module, const CompileOptions &options, const Target &target,
    const ModelTuningOptions &tuning, const TuningProgress &progress) {
  TunedModelKernels result;
  std::string problem;
  FailureOr<std::vector<OpenKernel>> open;
  {
    ScopedDiagnosticHandler handler(module.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      problem = diagnostic.str();
                                      return success();
                                    });
    open = findOpenKernels(module, options, target);
  }
  if (failed(open))
    return Error{problem};
  if (open->empty())
    return result;
  const auto begin = std::chrono::steady_clock::now();
  ScheduleDatabase database;
  SANDWICH_RETURN_IF_ERROR(database.synchronize(tuning.database));
  measuring::CompileSession session;
  for (OpenKernel &each : *open) {
    ++result.kernels;
    if (const KernelParameters *known = database.find(each.key)) {
      ++result.known;
      setParameters(each.operations, *known);
      continue;
    }
    const double left = tuning.seconds - secondsSince(begin);
    if (left <= 0) {
      result.complete = false;
      continue;
    }
    // Measured in a context of its own, as others' code is.
    OwningOpRef<ModuleOp> own =
        parseSourceString<ModuleOp>(each.text, &session.context);
    if (!own)
      return makeError("a kernel of the model cannot be read again");
    auto kernel = *own->getOps<func::FuncOp>().begin();
    each.options.seconds = std::min(each.options.seconds, left);
    Status stopped;
    each.options.progress = [&](size_t measured, size_t most) {
      const double own = static_cast<double>(measured) /
                         static_cast<double>(std::max<size_t>(most, 1));
      stopped = progress((static_cast<double>(result.kernels - 1) + own) /
                         static_cast<double>(open->size()));
      return static_cast<bool>(stopped);
    };
    Result<kernel::TunedKernel> tuned =
        kernel::tuneKernel(kernel, session, target, each.options);
    SANDWICH_RETURN_IF_ERROR(stopped);
    if (!tuned)
      return tuned.error().inContext(kernel.getSymName().str());
    result.measurements += static_cast<int64_t>(tuned->measurements);
    result.complete &= tuned->complete;
    KernelParameters best;
    for (StringRef name : openParameters(each.operations.front(), kernel))
      best[name.str()] = tuned->best.parameters.lookup(name);
    setParameters(each.operations, best);
    if (tuned->complete) {
      database.insert(each.key, best);
      SANDWICH_RETURN_IF_ERROR(database.synchronize(tuning.database));
    }
  }
  result.seconds = secondsSince(begin);
  return result;
}
