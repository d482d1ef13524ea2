//===- TopoOps.cpp - Operations of topo -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/IR/Topo.h"
#include "sandwich/Topology/Trees/TopoStep.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

#define GET_OP_CLASSES
#include "sandwich/Dialect/Topo/IR/TopoOps.cpp.inc"

//===----------------------------------------------------------------------===//
// machine
//===----------------------------------------------------------------------===//

static constexpr StringLiteral numaKind = "numa";
static constexpr StringLiteral cpuKind = "cpu";

LogicalResult MachineOp::verify() {
  // As many as a file may nest.
  constexpr size_t mostLevels = 64;
  if (getLevels().size() > mostLevels)
    return emitOpError("(C1) a machine has at most ")
           << mostLevels << " levels";
  int64_t leaves = 1;
  int64_t numaNodes = 0;
  for (LevelAttr level : getLevels().getAsRange<LevelAttr>()) {
    leaves *= level.getCount();
    if (leaves > TopoTree::maxLeaves)
      return emitOpError("(C1) a machine has at most ")
             << TopoTree::maxLeaves << " CPUs";
    if (level.getKind() != numaKind)
      continue;
    if (numaNodes > 0)
      return emitOpError("(C3) there is more than one level 'numa'");
    numaNodes = leaves;
  }
  if (getLevels().empty() || leaves != static_cast<int64_t>(getCpus().size()))
    return emitOpError("(C1) the levels make ")
           << (getLevels().empty() ? 0 : leaves) << " CPUs, cpus has "
           << getCpus().size();
  if (numaNodes != static_cast<int64_t>(getNumaNodes().size()))
    return emitOpError("(C3) the levels make ")
           << numaNodes << " NUMA nodes, numa_nodes has "
           << getNumaNodes().size();
  StringRef last = cast<LevelAttr>(getLevels().getValue().back()).getKind();
  if (last != cpuKind)
    return emitOpError("(C4) the last level is \"")
           << last << "\", not \"" << cpuKind << '"';
  for (ArrayRef<int64_t> indexes : {getCpus(), getNumaNodes()}) {
    llvm::SmallSet<int64_t, 16> known;
    for (int64_t index : indexes)
      if (index < 0 || index > INT32_MAX || !known.insert(index).second)
        return emitOpError("(C2) index ")
               << index << " is out of range or there twice";
  }
  return success();
}

/// The `number`-th node of the level `depth`, with all that is below it.
static MachineNode makeNode(MachineOp machine, unsigned depth, int64_t number) {
  auto level = cast<LevelAttr>(machine.getLevels()[depth]);
  MachineNode node;
  node.kind = level.getKind().str();
  node.bytes = static_cast<uint64_t>(level.getBytes());
  if (level.getKind() == numaKind)
    node.index = machine.getNumaNodes()[number];
  if (depth + 1 == machine.getLevels().size()) {
    node.index = machine.getCpus()[number];
    return node;
  }
  int64_t count = cast<LevelAttr>(machine.getLevels()[depth + 1]).getCount();
  for (int64_t child = 0; child < count; ++child)
    node.children.push_back(
        makeNode(machine, depth + 1, number * count + child));
  return node;
}

MachineNode MachineOp::getNodes() {
  // A level of several nodes at the top stands below a machine.
  if (cast<LevelAttr>(getLevels()[0]).getCount() == 1)
    return makeNode(*this, 0, 0);
  MachineNode machine;
  machine.kind = "machine";
  for (int64_t i = 0; i < cast<LevelAttr>(getLevels()[0]).getCount(); ++i)
    machine.children.push_back(makeNode(*this, 0, i));
  return machine;
}

Result<TopoTree> MachineOp::getTree() {
  return TopoTree::fromMachine(getNodes(), getLeaves() == Leaves::Cpus
                                               ? TopoLeaves::Cpus
                                               : TopoLeaves::Cores);
}

static void collect(const MachineNode &node, SmallVectorImpl<int64_t> &cpus,
                    SmallVectorImpl<int64_t> &numaNodes) {
  if (node.kind == numaKind)
    numaNodes.push_back(node.index);
  if (node.children.empty())
    cpus.push_back(node.index);
  for (const MachineNode &child : node.children)
    collect(child, cpus, numaNodes);
}

Result<MachineOp> topo::buildMachine(OpBuilder &builder, Location loc,
                                     StringRef name, const MachineNode &machine,
                                     Leaves leaves) {
  // Refuses what is not symmetric.
  SANDWICH_ASSIGN_OR_RETURN(TopoTree tree, TopoTree::fromMachine(machine));
  (void)tree;
  SmallVector<Attribute> levels;
  int64_t count = 1;
  for (const MachineNode *node = &machine;; node = &node->children.front()) {
    if (node->bytes > static_cast<uint64_t>(INT64_MAX))
      return makeError("a ", node->kind, " of ", node->bytes,
                       " bytes is too large");
    levels.push_back(LevelAttr::get(builder.getContext(), node->kind, count,
                                    static_cast<int64_t>(node->bytes)));
    if (node->children.empty())
      break;
    count = static_cast<int64_t>(node->children.size());
  }
  SmallVector<int64_t> cpus;
  SmallVector<int64_t> numaNodes;
  collect(machine, cpus, numaNodes);
  for (int64_t node : numaNodes)
    if (node < 0 || node > INT32_MAX)
      return makeError("a NUMA node's index is absent or out of range");
  return MachineOp::create(builder, loc, name, builder.getArrayAttr(levels),
                           cpus, numaNodes, leaves);
}

//===----------------------------------------------------------------------===//
// derive, group, remove
//===----------------------------------------------------------------------===//

static TopoStep stepOf(Operation &op) {
  return llvm::TypeSwitch<Operation &, TopoStep>(op)
      .Case([](GroupOp group) {
        return TopoStep{TopoStep::Kind::Group,
                        static_cast<unsigned>(group.getSize()),
                        static_cast<unsigned>(group.getStride()),
                        static_cast<unsigned>(group.getDepth())};
      })
      .Case([](RemoveOp remove) {
        return TopoStep{TopoStep::Kind::Remove,
                        static_cast<unsigned>(remove.getCount()), 1,
                        static_cast<unsigned>(remove.getDepth())};
      });
}

template <typename... Numbers>
static LogicalResult verifyNumbers(Operation *op, Numbers... numbers) {
  for (uint64_t number : {numbers...})
    if (number < 1 || number > static_cast<uint64_t>(TopoTree::maxLeaves))
      return op->emitOpError("(C1) numbers must be between 1 and ")
             << TopoTree::maxLeaves;
  return success();
}

LogicalResult GroupOp::verify() {
  return verifyNumbers(*this, getSize(), getStride(), getDepth());
}

LogicalResult RemoveOp::verify() {
  return verifyNumbers(*this, getCount(), getDepth());
}

LogicalResult DeriveOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isa<GroupOp, RemoveOp>(op))
      return op.emitOpError("(C2) only topo.group and topo.remove make trees");
  return success();
}

LogicalResult DeriveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto machine =
      symbols.lookupNearestSymbolFrom<MachineOp>(*this, getMachineAttr());
  if (!machine)
    return emitOpError("(C1) ") << getMachineAttr() << " is no topo.machine";
  Result<TopoTree> tree = machine.getTree();
  if (!tree)
    return emitOpError("(C1) ") << tree.error().message;
  for (Operation &op : getBody().front()) {
    tree = apply(stepOf(op), *tree);
    if (!tree)
      return op.emitOpError("(C3) ") << tree.error().message;
  }
  return success();
}

Result<TopoTree> DeriveOp::getTree() {
  auto machine =
      SymbolTable::lookupNearestSymbolFrom<MachineOp>(*this, getMachineAttr());
  SANDWICH_ASSIGN_OR_RETURN(TopoTree tree, machine.getTree());
  for (Operation &op : getBody().front()) {
    SANDWICH_ASSIGN_OR_RETURN(tree, apply(stepOf(op), tree));
  }
  return tree;
}

DeriveOp topo::buildDerive(OpBuilder &builder, Location loc, StringRef name,
                           MachineOp machine, const TopoTree &tree) {
  auto derive = DeriveOp::create(builder, loc, name, machine.getSymName());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&derive.getBody());
  for (const TopoStep &step : stepsOf(tree)) {
    if (step.kind == TopoStep::Kind::Group)
      GroupOp::create(builder, loc, step.count, step.stride, step.depth);
    else
      RemoveOp::create(builder, loc, step.count, step.depth);
  }
  return derive;
}

//===----------------------------------------------------------------------===//
// service_config
//===----------------------------------------------------------------------===//

LogicalResult ServiceConfigOp::verify() {
  if (std::optional<APFloat> predicted = getPredictedMs())
    if (double milliseconds = predicted->convertToDouble();
        !(milliseconds > 0) || !std::isfinite(milliseconds))
      return emitOpError("(C3) predicted_ms must be positive and finite");
  return success();
}

LogicalResult
ServiceConfigOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<DeriveOp>(*this, getTreeAttr()))
    return emitOpError("(C1) ") << getTreeAttr() << " is no topo.derive";
  if (getDepth() > static_cast<uint64_t>(TopoTree::maxLeaves))
    return emitOpError("(C2) there is no depth ") << getDepth();
  Result<ServiceConfiguration> configuration = getConfiguration();
  if (!configuration)
    return emitOpError("(C2) ") << configuration.error().message;
  if (configuration->processes() != getProcesses())
    return emitOpError("(C2) the tree has ")
           << configuration->processes() << " processes at depth "
           << getDepth();
  return success();
}

Result<ServiceConfiguration> ServiceConfigOp::getConfiguration() {
  auto derive =
      SymbolTable::lookupNearestSymbolFrom<DeriveOp>(*this, getTreeAttr());
  SANDWICH_ASSIGN_OR_RETURN(TopoTree tree, derive.getTree());
  return crossSection(tree, static_cast<unsigned>(getDepth()));
}
