//===- Passes.td - Passes of topo --------------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_TD
#define SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Discover : Pass<"topo-discover", "::mlir::ModuleOp"> {
  let summary = "Write down a machine";
  let description = [{
    Adds a `topo.machine`: the largest symmetric part of this machine, as far as
    this process may use it, or of another one.
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"host\"",
           "host, an hwloc XML file, or synthetic: and a description">,
    Option<"name", "name", "std::string", "\"machine\"",
           "Symbol of the machine">,
    Option<"leaves", "leaves", "std::string", "\"cores\"",
           "What its trees end in: cores, as plans have it, or cpus">
  ];
  let dependentDialects = ["::sandwich::topo::TopoDialect"];
}

def Enumerate : Pass<"topo-enumerate", "::mlir::ModuleOp"> {
  let summary = "Write down every tree that groups and removes make";
  let description = [{
    Adds a `topo.derive` for each different tree of each machine, its fundamental
    tree among them. Equal trees are there once, those included that the module
    has already, so that running it twice adds nothing.
  }];
  let options = [
    Option<"powersOfTwo", "powers-of-two", "bool", "false",
           "Only groups of a power of two of nodes (assumption A.3)">,
    Option<"limit", "limit", "int64_t", "10000",
           "The most trees of a machine; more are an error">
  ];
  let dependentDialects = ["::sandwich::topo::TopoDialect"];
}

def CrossSection : Pass<"topo-cross-section", "::mlir::ModuleOp"> {
  let summary = "Cut every tree at every depth";
  let description = [{
    Adds a `topo.service_config` for each tree and depth. Configurations that
    are equal to one that is there are left out, and where the module has a
    workload, those whose processes its operators cannot be divided among.
  }];
  let statistics = [
    Statistic<"numEqual", "num-equal", "Configurations equal to another one">,
    Statistic<"numRefused", "num-refused",
              "Configurations that operators refuse">
  ];
  let dependentDialects = ["::sandwich::topo::TopoDialect"];
}

def Select : Pass<"topo-select", "::mlir::ModuleOp"> {
  let summary = "Keep the best service configurations";
  let description = [{
    Predicts the mean latency of a trace's requests for every configuration with
    the latency model, writes it down and keeps the best, best first. Trees that
    none of them needs are dropped. The module says the workload.
  }];
  let options = [
    Option<"topK", "top-k", "int64_t", "10", "How many are kept">,
    Option<"trace", "trace", "std::string", "\"sharegpt\"",
           "A built-in trace or a file">,
    Option<"parameters", "parameters", "std::string", "\"\"",
           "File with what the machine's parts can do, and the name of its "
           "processors; derived if absent">,
    Option<"target", "target", "std::string", "\"x86-64-avx512\"",
           "Whose instructions the machine has">
  ];
}

#endif // SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_TD
