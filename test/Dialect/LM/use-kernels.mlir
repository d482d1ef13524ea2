// RUN: split-file %s %t
// RUN: sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/silu.kernel,rms_norm=%t/norm.kernel | FileCheck %s
// RUN: sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/silu.kernel,rms_norm=%t/norm.kernel | sandwich-opt --lm-use-kernels=kernels=silu_mul=%t/silu.kernel | FileCheck %s
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=foo=%t/silu.kernel 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=attention=%t/silu.kernel 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=deal_rows=%t/silu.kernel 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/none.kernel 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/norm.kernel 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/flat.kernel 2>&1 | FileCheck %s --check-prefix=FLAT
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/type.kernel 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/size.kernel 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/constant.kernel 2>&1 | FileCheck %s --check-prefix=CONSTANT
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=silu_mul=%t/text.kernel 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: sandwich-opt %t/model.mlir --lm-use-kernels=kernels=sampling=%source/kernels/sampling.kernel | FileCheck %s --check-prefix=SAMPLING
// RUN: not sandwich-opt %t/model.mlir --lm-use-kernels=kernels=sampling=%t/silu.kernel 2>&1 | FileCheck %s --check-prefix=DRAWS

// One for each type that operations have; heads' norms are those of groups of
// channels.
// CHECK: module @kernels
// CHECK-DAG: func.func @rms_norm(%{{.*}}: memref<?x?xf32> {block.sizes = #block.sizes<rows, channels>}
// CHECK-DAG: func.func @silu_mul(%{{.*}}: memref<?x?xf32>
// CHECK-DAG: func.func @silu_mul_0(%{{.*}}: memref<?x?xbf16>
// CHECK: lm.silu_mul {{.*}} {lm.kernel = #lm.kernel<@kernels::@silu_mul>}
// CHECK: lm.silu_mul {{.*}} {lm.kernel = #lm.kernel<@kernels::@silu_mul_0>}
// CHECK: lm.rms_norm {{.*}} {lm.kernel = #lm.kernel<@kernels::@rms_norm>}
// CHECK: lm.rms_norm {{.*}} {lm.kernel = #lm.kernel<@kernels::@rms_norm>}

// OPTION: kernel 'silu_mul' is not OPERATION=FILE
// NONE: kernel 'foo={{.*}}': there is no operation lm.foo
// LEFT: no operation lm.attention is left that {{.*}}silu.kernel could compute
// PLACE: kernel 'deal_rows={{.*}}': lm.deal_rows is nothing that a kernel can take the place of
// FILE: none.kernel: {{.*}}No such file
// COUNT: 'lm.silu_mul' op cannot be computed by kernel rms_norm: it takes 4 arguments, and is given 3
// FLAT: 'lm.silu_mul' op cannot be computed by kernel f: its argument 1, the up, must be [rows, 64]{{$}}
// TYPE: 'lm.silu_mul' op cannot be computed by kernel f: its argument 2, the result, must be memory of f32
// SIZE: 'lm.silu_mul' op cannot be computed by kernel f: its argument 0, the gate, must be [rows, 64]
// CONSTANT: 'lm.silu_mul' op cannot be computed by kernel f: needs its constant 'DIM'
// TEXT: text.kernel:2:9: error: 'z' is not set before this

// SAMPLING: func.func @sampling(
// SAMPLING: lm.sampling 320 {lm.kernel = #lm.kernel<@kernels::@sampling>}
// DRAWS: 'lm.sampling' op cannot be computed by kernel silu_mul: it takes 3 arguments, and is given 8

//--- model.mlir
lm.sampling 320
lm.weight @norm : tensor<64xf32> from ["norm"]
lm.weight @head_norm : tensor<16xf32> from ["head_norm"]
func.func @f(%x: tensor<?x64xf32>, %y: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xbf16>) {
  %a = lm.silu_mul %x, %x : tensor<?x64xf32>
  %b = lm.silu_mul %y, %y : tensor<?x64xbf16>
  %c = lm.rms_norm %a, @norm epsilon 1.0e-5 : tensor<?x64xf32> -> tensor<?x64xf32>
  %d = lm.rms_norm %c, @head_norm epsilon 1.0e-5 : tensor<?x64xf32> -> tensor<?x64xf32>
  %e = lm.deal_rows %d among 2 : tensor<?x64xf32>
  return %e, %b : tensor<?x64xf32>, tensor<?x64xbf16>
}

//--- silu.kernel
def silu_mul(gate: X[rows, channels], up: X[rows, channels], y: X[rows, channels],
             X: type(f32, bf16), LANES: tune(8, 16)):
    for row in range(rows):
        for c in blocks(channels, LANES):
            g = f32(gate[row, c])
            y[row, c] = X(g / (1.0 + exp(-g)) * f32(up[row, c]))

//--- norm.kernel
def rms_norm(x: f32[rows, channels], weight: f32[channels], epsilon: f32, y: f32[rows, channels]):
    pass

//--- flat.kernel
def f(gate: f32[rows, channels], up: f32[channels], y: f32[rows, channels]):
    pass

//--- type.kernel
def f(gate: f32[rows, channels], up: f32[rows, channels], y: f64[rows, channels]):
    pass

//--- size.kernel
def f(gate: f32[rows, 32], up: f32[rows, 32], y: f32[rows, 32]):
    pass

//--- constant.kernel
def f(gate: f32[rows, channels], up: f32[rows, channels], y: f32[rows, channels], DIM: constant):
    pass

//--- text.kernel
def f(gate: f32[rows, channels], up: f32[rows, channels], y: f32[rows, channels]):
    x = z
