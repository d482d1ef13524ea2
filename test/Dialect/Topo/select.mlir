// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1' name=box" | FileCheck %s --check-prefix=DISCOVER
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate | FileCheck %s --check-prefix=TREES
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate -topo-cross-section | FileCheck %s --check-prefix=CUT
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate -topo-cross-section -topo-select=top-k=2 | FileCheck %s --check-prefix=SELECT

// Two heads of keys and values: no more than two processes.
module attributes {topo.workload = #topo.workload<layers = 2, hidden_size = 64, intermediate_size = 96, query_heads = 2, key_value_heads = 2, head_dim = 32, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>} {
}

// DISCOVER: topo.machine @box levels [#topo.level<"machine" x 1>, #topo.level<"package" x 2>, #topo.level<"numa" x 1, bytes = {{[0-9]+}}>, #topo.level<"core" x 4>, #topo.level<"cpu" x 1>] cpus [0, 1, 2, 3, 4, 5, 6, 7] numa_nodes [0, 1]

// Twice is as good as once.
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:pack:2 [numa(memory=1GB)] core:4 pu:1'" -topo-enumerate > %t.once
// RUN: sandwich-opt %t.once -topo-enumerate | diff %t.once -
// Trees end in cores, unless told otherwise.
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:core:2 pu:2'" -topo-enumerate | FileCheck %s --check-prefix=CORES
// RUN: sandwich-opt %s -topo-discover="topology='synthetic:core:2 pu:2' leaves=cpus" -topo-enumerate | FileCheck %s --check-prefix=CPUS

// CORES: topo.machine
// CORES-NOT: leaves
// CORES-NOT: depth 2
// CPUS: topo.machine {{.*}} leaves cpus
// CPUS: topo.remove count 1 depth 2

// TREES: topo.derive @machine_1 from @machine {
// TREES-NEXT: }
// TREES-DAG: topo.group size 2 stride 1 depth 2
// TREES-DAG: topo.group size 2 stride 2 depth 2
// TREES-DAG: topo.remove count 3 depth 2

// CUT: topo.service_config @{{.*}} from @machine_1 at 0 processes 1
// CUT: topo.service_config @{{.*}} from @machine_1 at 1 processes 2
// CUT-NOT: processes 4
// CUT-NOT: processes 8

// So small a model waits more at barriers than it reads: two cores of each
// package are as fast as four.
// SELECT: topo.derive @[[FIRST:.*]] from @machine {
// SELECT-NEXT: topo.remove count 2 depth 2
// SELECT-NEXT: }
// SELECT: topo.service_config @[[FIRST]]_at_1 from @[[FIRST]] at 1 processes 2 predicted_ms [[MS:2\.28[0-9]+]]
// SELECT-NEXT: topo.service_config @{{.*}}_at_1 from @{{.*}} at 1 processes 2 predicted_ms [[MS]]
// SELECT-NOT: topo.service_config
