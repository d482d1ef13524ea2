// RUN: not sandwich-opt %s -topo-discover=topology=%t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not sandwich-opt %s -topo-discover="topology=synthetic:nothing:3" 2>&1 | FileCheck %s --check-prefix=SYNTHETIC
// RUN: not sandwich-opt %s -topo-discover=name=taken 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not sandwich-opt %s -topo-discover="name=other leaves=threads" 2>&1 | FileCheck %s --check-prefix=LEAVES
// RUN: not sandwich-opt %s -topo-enumerate=limit=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not sandwich-opt %s -topo-enumerate=limit=3 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not sandwich-opt %s -topo-select 2>&1 | FileCheck %s --check-prefix=WORKLOAD

// ABSENT: error: {{.*}}.absent: {{.*}}
// SYNTHETIC: error: {{.*}}nothing:3
// TAKEN: error: there is a symbol 'taken' already
// LEAVES: error: leaves is 'threads', neither cores nor cpus
// ZERO: error: limit must be positive
// LIMIT: error: 'topo.machine' op has more than 3 trees; take only groups of powers of two, or raise the limit
// WORKLOAD: error: the module has no topo.workload, so nothing can be predicted
topo.machine @taken levels [#topo.level<"machine" x 1>, #topo.level<"cpu" x 4>] cpus [0, 1, 2, 3] numa_nodes []
