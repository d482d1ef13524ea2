//===- TopoOps.td - Operations of topo ---------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_IR_TOPOOPS_TD
#define SANDWICH_DIALECT_TOPO_IR_TOPOOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "sandwich/Dialect/Topo/IR/TopoAttributes.td"

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Topo_Op<string mnemonic, list<Trait> traits = []>
    : Op<Topo_Dialect, mnemonic, traits>;

def Topo_MachineOp : Topo_Op<"machine", [Symbol]> {
  let summary = "A symmetric machine, or the symmetric part of one";
  let description = [{
    Every node of a level has the same children. `cpus` are the operating
    system's indexes of the last level's nodes, in the order of the tree, and
    `numa_nodes` those of the NUMA nodes. `leaves` says what trees of the machine
    end in: `cores`, of which the first CPU stands for each, as plans use them, or
    `cpus`, hardware threads included. Where a level "core" is absent each CPU is
    one.

    Constraints: (C1) the product of the levels' counts is the number of `cpus`,
    at most 32768, and there are at most 64 levels; (C2) indexes are not negative
    and differ; (C3) there is at most one level "numa", and `numa_nodes` has an
    index for each of its nodes; (C4) the last level is "cpu".
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Topo_LevelArrayAttr:$levels,
                       DenseI64ArrayAttr:$cpus, DenseI64ArrayAttr:$numa_nodes,
                       DefaultValuedAttr<
                           Topo_Leaves,
                           "::sandwich::topo::Leaves::Cores">:$leaves);
  let assemblyFormat = [{
    $sym_name `levels` $levels `cpus` $cpus `numa_nodes` $numa_nodes
    (`leaves` $leaves^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The fundamental TopoTree, whose leaves `leaves` tells.
    ::sandwich::Result<::sandwich::TopoTree> getTree();
    /// The machine, node for node.
    ::sandwich::MachineNode getNodes();
  }];
}

def Topo_DeriveOp : Topo_Op<"derive", [
    Symbol, NoTerminator, SingleBlock, NoRegionArguments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The tree that groups and removes make of a machine";
  let description = [{
    The body has `topo.group` and then `topo.remove` operations, applied in
    order; an empty body is the fundamental TopoTree.

    Constraints: (C1) `machine` names a `topo.machine`; (C2) the body has nothing
    but `topo.group` and `topo.remove`; (C3) each of them can be applied to what
    those before it made.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$machine);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `from` $machine $body attr-dict
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The tree, once the operation is verified.
    ::sandwich::Result<::sandwich::TopoTree> getTree();
  }];
}

def Topo_GroupOp : Topo_Op<"group", [HasParent<"DeriveOp">]> {
  let summary = "Puts new nodes over groups of nodes";
  let description = [{
    group(n, t, d) of the paper: below each node at `depth - 1`, children are
    taken in blocks of `size * stride`, and group j of a block gets its children
    j, j + stride, j + 2 * stride and so on. What was at `depth` is one deeper
    afterwards.

    Constraints: (C1) size, stride and depth are positive and below 32769.
  }];
  let arguments = (ins I64Attr:$size, I64Attr:$stride, I64Attr:$depth);
  let assemblyFormat = [{
    `size` $size `stride` $stride `depth` $depth attr-dict
  }];
  let hasVerifier = 1;
}

def Topo_RemoveOp : Topo_Op<"remove", [HasParent<"DeriveOp">]> {
  let summary = "Sends the right-most children of nodes to sleep in decode";
  let description = [{
    remove(n, d) of the paper: the `count` right-most awake children of each node
    at `depth - 1` fall asleep.

    Constraints: (C1) count and depth are positive and below 32769.
  }];
  let arguments = (ins I64Attr:$count, I64Attr:$depth);
  let assemblyFormat = "`count` $count `depth` $depth attr-dict";
  let hasVerifier = 1;
}

def Topo_ServiceConfigOp : Topo_Op<"service_config", [
    Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tree cut at a depth: processes and their cores";
  let description = [{
    Each node at `depth` is a process (a tensor-parallel rank). Its CPUs all work
    in prefill; those that no `topo.remove` sent to sleep work in decode.
    `predicted_ms` is the mean latency of a request that an evaluator gave.

    Constraints: (C1) `tree` names a `topo.derive`; (C2) the tree can be cut at
    `depth`, and makes as many processes as `processes` says; (C3)
    `predicted_ms` is positive and finite.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$tree,
                       I64Attr:$depth, I64Attr:$processes,
                       OptionalAttr<F64Attr>:$predicted_ms);
  let assemblyFormat = [{
    $sym_name `from` $tree `at` $depth `processes` $processes
    (`predicted_ms` $predicted_ms^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The configuration, once the operation is verified.
    ::sandwich::Result<::sandwich::ServiceConfiguration> getConfiguration();
  }];
}

#endif // SANDWICH_DIALECT_TOPO_IR_TOPOOPS_TD
