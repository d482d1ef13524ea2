// RUN: sandwich-opt %s | sandwich-opt | FileCheck %s

// CHECK: topo.workload = #topo.workload<layers = 2, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>
module attributes {topo.workload = #topo.workload<layers = 2, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>} {
  // CHECK: topo.machine @small levels [#topo.level<"machine" x 1>, #topo.level<"numa" x 2, bytes = 1073741824>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3, 4, 5, 6, 7] numa_nodes [0, 1]
  topo.machine @small levels [#topo.level<"machine" x 1>, #topo.level<"numa" x 2, bytes = 1073741824>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3, 4, 5, 6, 7] numa_nodes [0, 1]
  // CHECK: topo.machine @threads levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>, #topo.level<"cpu" x 2>] cpus [0, 2, 1, 3] numa_nodes []{{$}}
  topo.machine @threads levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>, #topo.level<"cpu" x 2>] cpus [0, 2, 1, 3] numa_nodes [] leaves cores
  // CHECK: topo.derive @first_threads from @threads
  topo.derive @first_threads from @threads {
    topo.remove count 1 depth 1
  }
  // CHECK: topo.machine @all_threads {{.*}} numa_nodes [] leaves cpus
  topo.machine @all_threads levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>, #topo.level<"cpu" x 2>] cpus [0, 2, 1, 3] numa_nodes [] leaves cpus
  // CHECK: topo.derive @one_thread_each from @all_threads
  topo.derive @one_thread_each from @all_threads {
    topo.remove count 1 depth 2
  }
  // CHECK: topo.derive @all from @small {
  // CHECK-NEXT: }
  topo.derive @all from @small {
  }
  // CHECK: topo.derive @one_of_two from @small {
  // CHECK-NEXT: topo.group size 2 stride 1 depth 2
  // CHECK-NEXT: topo.remove count 1 depth 3
  topo.derive @one_of_two from @small {
    topo.group size 2 stride 1 depth 2
    topo.remove count 1 depth 3
  }
  // CHECK: topo.service_config @plan from @one_of_two at 1 processes 2
  topo.service_config @plan from @one_of_two at 1 processes 2
  // CHECK: topo.service_config @finer from @one_of_two at 2 processes 4 predicted_ms 1.250000e+01
  topo.service_config @finer from @one_of_two at 2 processes 4 predicted_ms 12.5
}
