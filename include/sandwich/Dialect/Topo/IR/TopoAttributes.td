//===- TopoAttributes.td - Attributes of topo --------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_IR_TOPOATTRIBUTES_TD
#define SANDWICH_DIALECT_TOPO_IR_TOPOATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "sandwich/Dialect/Topo/IR/TopoDialect.td"

def Topo_LevelAttr : AttrDef<Topo_Dialect, "Level"> {
  let mnemonic = "level";
  let summary = "The nodes of a machine at one depth";
  let description = [{
    `kind` is what hwloc calls them, in lower case, `count` how many each node
    of the level before has, `bytes` the capacity of a cache or of a NUMA node's
    memory, 0 if there is none.

    Constraints: (C1) `kind` is 1 to 64 bytes long, `count` between 1 and 32768,
    `bytes` not negative.
  }];
  let parameters = (ins StringRefParameter<>:$kind, "int64_t":$count,
                        DefaultValuedParameter<"int64_t", "0">:$bytes);
  let assemblyFormat = [{
    `<` $kind `x` $count (`,` `bytes` `=` $bytes^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Topo_Leaves : I32EnumAttr<"Leaves", "what the leaves of a tree are", [
    I32EnumAttrCase<"Cores", 0, "cores">,
    I32EnumAttrCase<"Cpus", 1, "cpus">]> {
  let cppNamespace = "::sandwich::topo";
}

def Topo_LevelArrayAttr : TypedArrayAttrBase<Topo_LevelAttr, "levels">;

def Topo_WorkloadAttr : AttrDef<Topo_Dialect, "Workload"> {
  let mnemonic = "workload";
  let summary = "What of a model decides how long its steps take";
  let description = [{
    Constraints: (C1) all sizes are positive and no larger than what models may
    have; (C2) bytes of an element are 1 to 8; (C3) it is `topo.workload` on a
    module.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$hiddenSize,
                        "int64_t":$intermediateSize, "int64_t":$queryHeads,
                        "int64_t":$keyValueHeads, "int64_t":$headDim,
                        "int64_t":$vocabulary, "int64_t":$bytesPerWeight,
                        "int64_t":$bytesPerKeyValue);
  let assemblyFormat = [{
    `<` `layers` `=` $layers `,` `hidden_size` `=` $hiddenSize `,`
        `intermediate_size` `=` $intermediateSize `,`
        `query_heads` `=` $queryHeads `,`
        `key_value_heads` `=` $keyValueHeads `,` `head_dim` `=` $headDim `,`
        `vocabulary` `=` $vocabulary `,`
        `bytes_per_weight` `=` $bytesPerWeight `,`
        `bytes_per_key_value` `=` $bytesPerKeyValue `>`
  }];
  let genVerifyDecl = 1;
}

#endif // SANDWICH_DIALECT_TOPO_IR_TOPOATTRIBUTES_TD
