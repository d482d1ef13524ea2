// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1' name=box" | FileCheck %s --check-prefix=DISCOVER
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate | FileCheck %s --check-prefix=TREES
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate -topo-cross-section | FileCheck %s --check-prefix=CUT
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate -topo-cross-section -topo-select=top-k=2 | FileCheck %s --check-prefix=SELECT

// Two heads of keys and values: no more than two processes.
module attributes {topo.workload = #topo.workload<layers = 2, hidden_size = 64, intermediate_size = 96, query_heads = 2, key_value_heads = 2, head_dim = 32, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>} {
}

// DISCOVER: topo.machine @box levels [#topo.level<"machine" x 1>, #topo.level<"package" x 2>, #topo.level<"numa" x 1, bytes = {{[0-9]+}}>, #topo.level<"core" x 4>, #topo.level<"cpu" x 1>] cpus [0, 1, 2, 3, 4, 5, 6, 7] numa_nodes [0, 1]

// TREES: topo.derive @machine_1 from @machine {
// TREES-NEXT: }
// TREES-DAG: topo.group size 2 stride 1 depth 2
// TREES-DAG: topo.group size 2 stride 2 depth 2
// TREES-DAG: topo.remove count 3 depth 2

// CUT: topo.service_config @{{.*}} from @machine_1 at 0 processes 1
// CUT: topo.service_config @{{.*}} from @machine_1 at 1 processes 2
// CUT-NOT: processes 4
// CUT-NOT: processes 8

// SELECT-COUNT-2: topo.service_config {{.*}} predicted_ms
// SELECT-NOT: topo.service_config
