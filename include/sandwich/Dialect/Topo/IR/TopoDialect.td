//===- TopoDialect.td - Machines and how they are used -----*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_IR_TOPODIALECT_TD
#define SANDWICH_DIALECT_TOPO_IR_TOPODIALECT_TD

include "mlir/IR/OpBase.td"

def Topo_Dialect : Dialect {
  let name = "topo";
  let cppNamespace = "::sandwich::topo";
  let summary = "Machines as trees, and how they are used";
  let description = [{
    The written form of TopoTrees (the Sandwich paper, section 4): a machine, the
    trees that `group` and `remove` make of it, and the service configurations
    that cutting such a tree at a depth gives.

    ```mlir
    module attributes {topo.workload = #topo.workload<layers = 24, ...>} {
      topo.machine @kunpeng920
        levels [#topo.level<"machine" x 1>, #topo.level<"package" x 4>,
                #topo.level<"numa" x 2>, #topo.level<"cpu" x 24>]
        cpus [0, 1, ...] numa_nodes [0, 1, 2, 3, 4, 5, 6, 7]
      topo.derive @three_of_four from @kunpeng920 {
        topo.group size 4 stride 1 depth 3
        topo.remove count 1 depth 4
      }
      topo.service_config @plan from @three_of_four at 2 processes 8
    }
    ```

    `topo.workload` on a module says what model is served.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

#endif // SANDWICH_DIALECT_TOPO_IR_TOPODIALECT_TD
