//===- CrossSection.cpp - Cut every tree at every depth -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/Transforms/Passes.h"

#include "sandwich/Serving/Prediction/ModelledEvaluator.h"

#include <map>

namespace sandwich::topo {
#define GEN_PASS_DEF_CROSSSECTION
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"
} // namespace sandwich::topo

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

namespace {
/// Configurations by their hash.
using Known = std::multimap<TopoHash, ServiceConfiguration>;

struct CrossSection : topo::impl::CrossSectionBase<CrossSection> {
  using CrossSectionBase::CrossSectionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<OperatorLimits> limits;
    if (auto workload =
            module->getAttrOfType<WorkloadAttr>(workloadAttributeName))
      limits = limitsOf(getWork(workload));
    SymbolTable symbols(module);
    // By machine; equal indexes of two machines are not the same CPUs.
    std::map<std::string, Known> known;
    for (auto config : module.getOps<ServiceConfigOp>()) {
      auto derive = symbols.lookup<DeriveOp>(config.getTree());
      if (Result<ServiceConfiguration> configuration =
              config.getConfiguration())
        isNew(*configuration, known[derive.getMachine().str()]);
    }
    for (DeriveOp derive :
         llvm::make_early_inc_range(module.getOps<DeriveOp>())) {
      Result<TopoTree> tree = derive.getTree();
      if (!tree) {
        derive.emitOpError(tree.error().message);
        return signalPassFailure();
      }
      for (unsigned depth = 0; depth <= tree->depth(); ++depth)
        cut(derive, *tree, depth, limits, symbols,
            known[derive.getMachine().str()]);
    }
  }

  /// Whether `configuration` is not among `known`, to which it is added.
  static bool isNew(const ServiceConfiguration &configuration, Known &known) {
    auto [begin, end] = known.equal_range(hash(configuration));
    for (auto each = begin; each != end; ++each)
      if (each->second == configuration)
        return false;
    known.emplace(hash(configuration), configuration);
    return true;
  }

  void cut(DeriveOp derive, const TopoTree &tree, unsigned depth,
           const std::optional<OperatorLimits> &limits, SymbolTable &symbols,
           Known &known) {
    // Not every depth makes processes that both phases share.
    Result<ServiceConfiguration> configuration = crossSection(tree, depth);
    if (!configuration)
      return;
    if (limits && limits->refuse(configuration->processes())) {
      ++numRefused;
      return;
    }
    if (!isNew(*configuration, known)) {
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
