// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// #topo.level (C1): there is something of each level.
// expected-error @below {{(C1) a level has a kind of 1 to 64 bytes, a count between 1 and 32768 and bytes that are not negative}}
topo.machine @m levels [#topo.level<"cpu" x 0>] cpus [] numa_nodes []

// -----

// topo.machine (C1): a machine has CPUs.
// expected-error @below {{'topo.machine' op (C1) the levels make 0 CPUs, cpus has 0}}
topo.machine @m levels [] cpus [] numa_nodes []

// -----

// topo.machine (C1): each has an index.
// expected-error @below {{'topo.machine' op (C1) the levels make 4 CPUs, cpus has 3}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2] numa_nodes []

// -----

// topo.machine (C1): they can be counted.
// expected-error @below {{'topo.machine' op (C1) a machine has at most 32768 CPUs}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"package" x 32768>, #topo.level<"cpu" x 32768>] cpus [0] numa_nodes []

// -----

// topo.machine (C2): an index is that of one CPU.
// expected-error @below {{'topo.machine' op (C2) index 1 is out of range or there twice}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 2>] cpus [1, 1] numa_nodes []

// -----

// topo.machine (C2): which some CPU has.
// expected-error @below {{'topo.machine' op (C2) index -1 is out of range or there twice}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 2>] cpus [0, -1] numa_nodes []

// -----

// topo.machine (C3): each NUMA node has an index.
// expected-error @below {{'topo.machine' op (C3) the levels make 2 NUMA nodes, numa_nodes has 1}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"numa" x 2>, #topo.level<"cpu" x 1>] cpus [0, 1] numa_nodes [0]

// -----

// topo.machine (C3): NUMA nodes are of one level.
// expected-error @below {{'topo.machine' op (C3) there is more than one level 'numa'}}
topo.machine @m levels [#topo.level<"numa" x 1>, #topo.level<"numa" x 1>, #topo.level<"cpu" x 2>] cpus [0, 1] numa_nodes [0, 1]

// -----

// topo.machine (C4): a machine ends in CPUs.
// expected-error @below {{'topo.machine' op (C4) the last level is "core", not "cpu"}}
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>] cpus [0, 1] numa_nodes []

// -----

// topo.derive (C1): trees are of a machine.
// expected-error @below {{'topo.derive' op (C1) @m is no topo.machine}}
topo.derive @d from @m {
}

// -----

// topo.derive (C3): groups have all children.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.group' op (C3) group(3,1,1): blocks of 3 nodes do not tile the 4 children of a node}}
  topo.group size 3 stride 1 depth 1
}

// -----

// topo.derive (C3): some core stays.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.remove' op (C3) remove(4,1): only 4 children of a node are awake, and one must stay so}}
  topo.remove count 4 depth 1
}

// -----

// topo.derive (C3): at a depth that there is.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.remove' op (C3) remove(1,7): there is no depth 7 to transform: depths are 1 to 1}}
  topo.remove count 1 depth 7
}

// -----

// topo.group (C1): numbers do not wrap around.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.group' op (C1) numbers must be between 1 and 32768}}
  topo.group size 4294967298 stride 1 depth 1
}

// -----

// topo.remove (C1): nor is there anything to do without them.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.remove' op (C1) numbers must be between 1 and 32768}}
  topo.remove count 0 depth 1
}

// -----

// topo.derive (C2): nothing else makes a tree.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'arith.constant' op (C2) only topo.group and topo.remove make trees}}
  %c = arith.constant 1 : i32
}

// -----

// topo.remove: it belongs to a tree.
// expected-error @below {{'topo.remove' op expects parent op 'topo.derive'}}
topo.remove count 1 depth 1

// -----

// topo.service_config (C1): a configuration is of a tree.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
// expected-error @below {{'topo.service_config' op (C1) @m is no topo.derive}}
topo.service_config @c from @m at 0 processes 1

// -----

// topo.service_config (C2): it has the processes the tree makes.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error @below {{'topo.service_config' op (C2) the tree has 4 processes at depth 1}}
topo.service_config @c from @d at 1 processes 2

// -----

// topo.service_config (C2): at a depth that there is.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error @below {{'topo.service_config' op (C2) there is no cross-section at depth 5: the leaves are at depth 1}}
topo.service_config @c from @d at 5 processes 2

// -----

// topo.service_config (C3): a time is positive.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
topo.derive @d from @m {
}
// expected-error @below {{'topo.service_config' op (C3) predicted_ms must be positive and finite}}
topo.service_config @c from @d at 0 processes 1 predicted_ms -1.0

// -----

// #topo.workload (C1): a model has layers.
// expected-error @below {{(C1) layers must be between 1 and 4096}}
module attributes {topo.workload = #topo.workload<layers = 0, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 2, bytes_per_key_value = 2>} {}

// -----

// #topo.workload (C2): and elements that CPUs read at once.
// expected-error @below {{(C2) elements have 1 to 8 bytes}}
module attributes {topo.workload = #topo.workload<layers = 1, hidden_size = 64, intermediate_size = 96, query_heads = 4, key_value_heads = 2, head_dim = 16, vocabulary = 128, bytes_per_weight = 9, bytes_per_key_value = 2>} {}

// -----

// #topo.workload (C3): its attribute is one.
// expected-error @below {{(C3) 'topo.workload' is a #topo.workload on a module}}
module attributes {topo.workload = 1 : i64} {}

// -----

// No other attribute is the dialect's.
// expected-error @below {{unknown attribute 'topo.plan'}}
module attributes {topo.plan} {}

// -----

// topo.derive (C3): trees end in cores, so there is no second thread to remove.
topo.machine @m levels [#topo.level<"machine" x 1>, #topo.level<"core" x 2>, #topo.level<"cpu" x 2>] cpus [0, 2, 1, 3] numa_nodes []
topo.derive @d from @m {
  // expected-error @below {{'topo.remove' op (C3) remove(1,2): there is no depth 2 to transform: depths are 1 to 1}}
  topo.remove count 1 depth 2
}
