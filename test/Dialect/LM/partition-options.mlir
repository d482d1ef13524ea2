// RUN: not sandwich-opt %s -lm-partition=ranks=0 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -lm-partition=ranks=-1 2>&1 | FileCheck %s
// RUN: not sandwich-opt %s -lm-partition=ranks=65 2>&1 | FileCheck %s

// There is a group, and it has an end.

// CHECK: error: ranks must be between 1 and 64
lm.weight @gate : tensor<65x64xf32> from ["gate"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x65xf32> attributes {lm.phase = #lm.phase<decode>} {
  %g = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x65xf32>
  return %g : tensor<?x65xf32>
}
