// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{(C1) a level has a kind of 1 to 64 bytes, a count between 1 and 32768 and bytes that are not negative}}
topo.machine @m levels [#topo.level<"cpu" x 0>] cpus [] numa_nodes []

// -----

// expected-error@+1 {{(C1) the levels make 0 CPUs, cpus has 0}}
topo.machine @m levels [] cpus [] numa_nodes []

// -----

// expected-error@+1 {{(C1) the levels make 4 CPUs, cpus has 3}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2] numa_nodes []

// -----

// expected-error@+1 {{(C1) a machine has at most 32768 CPUs}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"package" x 32768>, #topo.level<"cpu" x 32768>] cpus [0] numa_nodes []

// -----

// expected-error@+1 {{(C2) index 1 is out of range or there twice}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 2>] cpus [1, 1] numa_nodes []

// -----

// expected-error@+1 {{(C2) index -1 is out of range or there twice}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 2>] cpus [0, -1] numa_nodes []

// -----

// expected-error@+1 {{(C3) the levels make 2 NUMA nodes, numa_nodes has 1}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"numa" x 2>, #topo.level<"cpu" x 1>] cpus [0, 1] numa_nodes [0]

// -----

// expected-error@+1 {{(C3) there is more than one level 'numa'}}
topo.machine @m levels [#topo.level<"numa" x 1>, #topo.level<"numa" x 1>, #topo.level<"cpu" x 2>] cpus [0, 1] numa_nodes [0, 1]

// -----

// expected-error@+1 {{(C4) the last level is "core", not "cpu"}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>] cpus [0, 1] numa_nodes []

// -----

// expected-error@+1 {{(C1) @m is no topo.machine}}
topo.derive @d from @m {
}

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C3) }}
  topo.group size 3 stride 1 depth 1
}

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C3) }}
  topo.remove count 4 depth 1
}

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C3) }}
  topo.remove count 1 depth 7
}

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C1) numbers must be between 1 and 32768}}
  topo.group size 4294967298 stride 1 depth 1
}

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C2) only topo.group and topo.remove make trees}}
  %c = arith.constant 1 : i32
}

// -----

// expected-error@+1 {{expects parent op 'topo.derive'}}
topo.remove count 1 depth 1

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
// expected-error@+1 {{(C1) @m is no topo.derive}}
topo.service_config @c from @m at 0 processes 1

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error@+1 {{(C2) the tree has 4 processes at depth 1}}
topo.service_config @c from @d at 1 processes 2

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error@+1 {{(C2) }}
topo.service_config @c from @d at 5 processes 2

// -----

topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error@+1 {{(C3) predicted_ms must be positive and finite}}
topo.service_config @c from @d at 0 processes 1 predicted_ms -1.0

// -----

// expected-error@+1 {{(C1) layers must be between 1 and 4096}}
module attributes {topo.workload = #topo.workload<layers = 0, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>} {}

// -----

// expected-error@+1 {{(C2) elements have 1 to 8 bytes}}
module attributes {topo.workload = #topo.workload<layers = 1, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 9, bytes_per_key_value = 2>} {}

// -----

// expected-error@+1 {{(C3) 'topo.workload' is a #topo.workload on a module}}
module attributes {topo.workload = 1 : i64} {}

// -----

// expected-error@+1 {{unknown attribute 'topo.plan'}}
module attributes {topo.plan} {}

// -----

// Trees end in cores, so there is no second thread to remove.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>, #topo.level<"cpu" x 2>] cpus [0, 2, 1, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error@+1 {{(C3) remove(1,2): there is no depth 2 to transform: depths are 1 to 1}}
  topo.remove count 1 depth 2
}
