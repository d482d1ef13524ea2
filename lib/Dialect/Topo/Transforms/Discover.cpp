//===- Discover.cpp - Write down a machine --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/Transforms/Passes.h"

#include "sandwich/Topology/Trees/SymmetricPart.h"

namespace sandwich::topo {
#define GEN_PASS_DEF_DISCOVER
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"
} // namespace sandwich::topo

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

namespace {
struct Discover : topo::impl::DiscoverBase<Discover> {
  using DiscoverBase::DiscoverBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (SymbolTable::lookupSymbolIn(module, name)) {
      module.emitError("there is a symbol '") << name.getValue() << "' already";
      return signalPassFailure();
    }
    if (Status status = discover(module); !status) {
      module.emitError(status.error().message);
      return signalPassFailure();
    }
  }

  Status discover(ModuleOp module) {
    std::optional<Leaves> kind = symbolizeLeaves(leaves);
    if (!kind)
      return makeError("leaves is '", leaves.getValue(),
                       "', neither cores nor cpus");
    SANDWICH_ASSIGN_OR_RETURN(Machine machine, readMachineTopology(topology));
    SANDWICH_ASSIGN_OR_RETURN(SymmetricPart part,
                              largestSymmetricPart(machine.root));
    for (const auto *sentences : {&machine.leftOut, &part.leftOut})
      for (const std::string &sentence : *sentences)
        module.emitRemark(sentence);
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    SANDWICH_ASSIGN_OR_RETURN(
        MachineOp op,
        buildMachine(builder, module.getLoc(), name, part.root, *kind));
    (void)op;
    return {};
  }
};
} // namespace
