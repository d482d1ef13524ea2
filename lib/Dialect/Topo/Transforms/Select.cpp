//===- Select.cpp - Keep the best service configurations ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/Transforms/Passes.h"

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"
#include "sandwich/Support/ServingTrace.h"

#include <cmath>

namespace sandwich::topo {
#define GEN_PASS_DEF_SELECT
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"
} // namespace sandwich::topo

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

namespace {
struct Select : topo::impl::SelectBase<Select> {
  using SelectBase::SelectBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (Status status = select(module); !status) {
      module.emitError(status.error().message);
      signalPassFailure();
    }
  }

  Status select(ModuleOp module) {
    auto workload = module->getAttrOfType<WorkloadAttr>(workloadAttributeName);
    if (!workload)
      return makeError("the module has no ", workloadAttributeName.str(),
                       ", so nothing can be predicted");
    if (topK < 1)
      return makeError("top-k must be positive");
    SANDWICH_ASSIGN_OR_RETURN(Target of, getTarget(target));
    SANDWICH_ASSIGN_OR_RETURN(ServingTrace requests, findServingTrace(trace));
    SANDWICH_ASSIGN_OR_RETURN(TracePrediction prediction,
                              TracePrediction::create(std::move(requests)));
    SmallVector<ServiceConfigOp> configs(module.getOps<ServiceConfigOp>());
    llvm::DenseMap<Operation *, std::unique_ptr<ModelledEvaluator>> evaluators;
    for (ServiceConfigOp config : configs) {
      auto derive = SymbolTable::lookupNearestSymbolFrom<DeriveOp>(
          config, config.getTreeAttr());
      auto machine = SymbolTable::lookupNearestSymbolFrom<MachineOp>(
          derive, derive.getMachineAttr());
      std::unique_ptr<ModelledEvaluator> &evaluator = evaluators[machine];
      if (!evaluator) {
        Machine nodes;
        nodes.root = machine.getNodes();
        MachineDescription description = describeMachine(nodes, of);
        if (!parameters.empty()) {
          SANDWICH_ASSIGN_OR_RETURN(
              description, readMachineDescription(parameters, nodes, of));
        }
        SANDWICH_ASSIGN_OR_RETURN(
            LatencyModel model,
            LatencyModel::create(nodes.root, description,
                                 getWork(workload).matrixElement()));
        evaluator = std::make_unique<ModelledEvaluator>(
            std::move(model), getWork(workload), prediction);
      }
      SANDWICH_ASSIGN_OR_RETURN(ServiceConfiguration configuration,
                                config.getConfiguration());
      SANDWICH_ASSIGN_OR_RETURN(double milliseconds,
                                evaluator->predict(configuration));
      if (!(milliseconds > 0) || !std::isfinite(milliseconds))
        config.erase();
      else
        config.setPredictedMs(APFloat(milliseconds));
    }
    configs = SmallVector<ServiceConfigOp>(module.getOps<ServiceConfigOp>());
    if (configs.empty())
      return makeError("there is no configuration that can run");
    llvm::stable_sort(configs, [](ServiceConfigOp a, ServiceConfigOp b) {
      return *a.getPredictedMs() < *b.getPredictedMs();
    });
    for (auto [rank, config] : llvm::enumerate(configs)) {
      if (static_cast<int64_t>(rank) < topK)
        config->moveBefore(module.getBody(), module.getBody()->end());
      else
        config->erase();
    }
    for (DeriveOp derive :
         llvm::make_early_inc_range(module.getOps<DeriveOp>()))
      if (SymbolTable::symbolKnownUseEmpty(derive, module))
        derive->erase();
    return {};
  }
};
} // namespace
