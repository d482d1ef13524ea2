//===- Enumerate.cpp - Write down every tree of groups and removes --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/Transforms/Passes.h"

#include "sandwich/Topology/Trees/GroupEnumeration.h"

#include <algorithm>
#include <map>

namespace sandwich::topo {
#define GEN_PASS_DEF_ENUMERATE
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"
} // namespace sandwich::topo

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

/// Visits `tree` with every number of nodes removed at `depth` and below; stops
/// when `visit` returns false, and returns what it did.
static bool forEachRemoval(const TopoTree &tree, unsigned depth,
                           llvm::function_ref<bool(const TopoTree &)> visit) {
  if (depth > tree.depth())
    return visit(tree);
  if (!forEachRemoval(tree, depth + 1, visit))
    return false;
  for (unsigned count = 1; count < tree.level(depth).arity; ++count)
    if (!forEachRemoval(*tree.remove(count, depth), depth + 1, visit))
      return false;
  return true;
}

namespace {
/// Trees by their hash.
using Known = std::multimap<TopoHash, TopoTree>;

struct Enumerate : topo::impl::EnumerateBase<Enumerate> {
  using EnumerateBase::EnumerateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (limit < 1) {
      module.emitError("limit must be positive");
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    // By machine; equal indexes of two machines are not the same CPUs.
    std::map<std::string, Known> known;
    for (auto derive : module.getOps<DeriveOp>())
      if (Result<TopoTree> tree = derive.getTree())
        known[derive.getMachine().str()].emplace(tree->hash(), *tree);
    for (MachineOp machine :
         llvm::make_early_inc_range(module.getOps<MachineOp>()))
      if (failed(
              enumerate(machine, known[machine.getSymName().str()], symbols)))
        return signalPassFailure();
  }

  /// Adds the trees of `machine` that are not among `known`.
  LogicalResult enumerate(MachineOp machine, const Known &known,
                          SymbolTable &symbols) {
    OpBuilder builder(machine.getContext());
    int64_t trees = 0;
    auto add = [&](const TopoTree &tree) {
      if (++trees > limit)
        return false;
      auto [begin, end] = known.equal_range(tree.hash());
      if (std::any_of(begin, end,
                      [&](const auto &each) { return each.second == tree; }))
        return true;
      DeriveOp derive = buildDerive(
          builder, machine.getLoc(),
          (machine.getSymName() + "_" + Twine(trees)).str(), machine, tree);
      symbols.insert(derive);
      return true;
    };
    auto fail = [&](const Error &error) {
      return machine.emitOpError(error.message);
    };
    Result<TopoTree> fundamental = machine.getTree();
    if (!fundamental)
      return fail(fundamental.error());
    Status status = forEachGroupedTree(
        *fundamental, powersOfTwo ? GroupSizes::PowersOfTwo : GroupSizes::Any,
        [&](const TopoTree &tree) { return forEachRemoval(tree, 1, add); });
    if (!status)
      return fail(status.error());
    if (trees > limit)
      return machine.emitOpError("has more than ")
             << limit.getValue()
             << " trees; take only groups of powers of two, or raise "
             << "the limit";
    return success();
  }
};
} // namespace
