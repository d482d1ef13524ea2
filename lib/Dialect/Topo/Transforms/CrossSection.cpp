//===- CrossSection.cpp - Cut every tree at every depth -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/Transforms/Passes.h"

#include "sandwich/Topology/ModelledEvaluator.h"

#include <set>

namespace sandwich::topo {
#define GEN_PASS_DEF_CROSSSECTION
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"
} // namespace sandwich::topo

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

namespace {
struct CrossSection : topo::impl::CrossSectionBase<CrossSection> {
  using CrossSectionBase::CrossSectionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<OperatorLimits> limits;
    if (auto workload =
            module->getAttrOfType<WorkloadAttr>(workloadAttributeName))
      limits = limitsOf(getWork(workload));
    SymbolTable symbols(module);
    std::set<TopoHash> known;
    for (auto config : module.getOps<ServiceConfigOp>())
      if (Result<ServiceConfiguration> configuration =
              config.getConfiguration())
        known.insert(hash(*configuration));
    for (DeriveOp derive :
         llvm::make_early_inc_range(module.getOps<DeriveOp>())) {
      Result<TopoTree> tree = derive.getTree();
      if (!tree) {
        derive.emitOpError(tree.error().message);
        return signalPassFailure();
      }
      for (unsigned depth = 0; depth <= tree->depth(); ++depth)
        cut(derive, *tree, depth, limits, symbols, known);
    }
  }

  void cut(DeriveOp derive, const TopoTree &tree, unsigned depth,
           const std::optional<OperatorLimits> &limits, SymbolTable &symbols,
           std::set<TopoHash> &known) {
    // Not every depth makes processes that both phases share.
    Result<ServiceConfiguration> configuration = crossSection(tree, depth);
    if (!configuration)
      return;
    if (limits && limits->refuse(configuration->processes())) {
      ++numRefused;
      return;
    }
    if (!known.insert(hash(*configuration)).second) {
      ++numEqual;
      return;
    }
    OpBuilder builder(derive.getContext());
    symbols.insert(ServiceConfigOp::create(
        builder, derive.getLoc(),
        (derive.getSymName() + "_at_" + Twine(depth)).str(),
        derive.getSymName(), depth, configuration->processes(),
        /*predicted_ms=*/FloatAttr()));
  }
};
} // namespace
