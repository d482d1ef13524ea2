// RUN: not sandwich-opt %s -phase-assign-buffers="threads=0" 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -phase-assign-buffers="threads=1025" 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -phase-assign-buffers="max-tokens=0" 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -phase-assign-buffers="max-tokens=4611686018427387904" 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -phase-assign-buffers="max-logit-rows=-1" 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -phase-assign-buffers="max-logit-rows=65537" 2>&1 | FileCheck %s

// Limits are those of a phase program, so that no size overflows.

// CHECK: error: threads must be between 1 and 1024, max-tokens and max-logit-rows between 1 and 65536
module {}
