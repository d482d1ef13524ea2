// RUN: sandwich-opt %s -phase-insert-marks -split-input-file | FileCheck %s
// RUN: sandwich-opt %s -phase-insert-marks -phase-insert-marks -split-input-file | FileCheck %s

// Every operation that takes time is marked with its name, its weight and its
// costs, once, be it in a loop or not; and so is what threads wait at barriers,
// named after what others still do: at the begin of a loop, what is at its end.

lm.weight @e : tensor<320x32xf32> from ["e"]
lm.weight @n : tensor<32xf32> layers 2 from ["n{}"]
lm.weight @qkv : tensor<96x32xf32> layers 2 from ["q{}", "k{}", "v{}"]
lm.weight @o : tensor<32x32xf32> layers 2 from ["o{}"]
lm.weight @head : tensor<320x32xf32> from ["head"]
// CHECK-LABEL: func @layers
// CHECK-SAME: %[[TEAM:[a-z0-9]+]]: !phase.team)
func.func @layers(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x2x2x256xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c12288 = arith.constant 12288 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  // CHECK-NOT: phase.mark
  // CHECK: lm.rotary_table
  // CHECK-NEXT: phase.mark %[[TEAM]], "rotary_table"{{$}}
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: phase.mark %[[TEAM]], "embed e 320x32"{{$}}
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.mark %[[TEAM]], "barrier after matmul o"{{$}}
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: phase.mark %[[TEAM]], "rms_norm n 32"{{$}}
  // CHECK-NEXT: gemm.matmul {{.*}}<rotate_append_kv>
  // CHECK-NEXT: phase.mark %[[TEAM]], "matmul qkv 96x32" {bytes = 12288 : i64, flops_per_token = 6144 : i64}
  // A multiplication and an addition of 32 channels, for scores and for values;
  // keys and values of two heads of 16 channels.
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.mark %[[TEAM]], "barrier after matmul qkv"{{$}}
  // CHECK-NEXT: lm.attention
  // CHECK-NEXT: phase.mark %[[TEAM]], "attention" {bytes_per_position = 256 : i64, flops_per_attended = 128 : i64}
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.mark %[[TEAM]], "barrier after attention"{{$}}
  // CHECK-NEXT: gemm.matmul {{.*}}<add_residual>
  // CHECK-NEXT: phase.mark %[[TEAM]], "matmul o 32x32" {bytes = 4096 : i64, flops_per_token = 2048 : i64}
  // CHECK-NEXT: }
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.mark %[[TEAM]], "barrier after matmul o"{{$}}
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: gemm.matmul
  // CHECK-NEXT: phase.mark %[[TEAM]], "matmul head 320x32" {bytes = 40960 : i64, flops_per_logit_row = 20480 : i64}
  // CHECK-NEXT: return
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %norm = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x32xf32>
  %query = memref.view %workspace[%c8192][%tokens] : memref<?xi8> to memref<?x32xf32>
  %table = memref.view %workspace[%c12288][%tokens] : memref<?xi8> to memref<?x16xf32>
  lm.rotary_table %positions frequencies [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3] into %table : memref<?xi32> into memref<?x16xf32>
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x32xf32>
  scf.for %layer = %c0 to %c2 step %c1 {
    phase.barrier %team
    lm.rms_norm %x, @n[%layer] epsilon 1.0 into %norm : memref<?x32xf32> into memref<?x32xf32>
    gemm.matmul %norm, @qkv[%layer] epilogue(<rotate_append_kv>) rotary(%table : memref<?x16xf32>) cache(%cache : memref<?x2x2x2x256xf32>)
      slots(%slots : memref<?xi32>) into %query
      : memref<?x32xf32> into memref<?x32xf32>
    phase.barrier %team
    lm.attention %query, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %norm
      : memref<?x32xf32>, memref<?x2x2x2x256xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
    phase.barrier %team
    gemm.matmul %norm, @o[%layer] epilogue(<add_residual>) residual(%x : memref<?x32xf32>) into %x : memref<?x32xf32> into memref<?x32xf32>
  }
  phase.barrier %team
  %end = arith.constant 1 : index
  gemm.matmul %x, @head epilogue(<none>) into %logits : memref<?x32xf32> into memref<?x320xf32>
  return
}

// -----

// Elsewhere nobody profiles.

lm.weight @e : tensor<320x64xf32> from ["e"]
// CHECK-LABEL: func @no_program
// CHECK-NOT: phase.mark
func.func @no_program(%ids: memref<?xi32>, %x: memref<?x64xf32>) {
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  return
}

// -----

// A barrier that nothing comes before is just one.

// CHECK-LABEL: func @first
func.func @first(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x2x2x256xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  // CHECK: phase.barrier
  // CHECK-NEXT: phase.mark %{{.*}}, "barrier"{{$}}
  // CHECK-NEXT: return
  phase.barrier %team
  return
}

// -----

// What ranks do together is told by the weight that it was made with. Each of
// two ranks adds the other's sums to its own; a rank's part of the logits is
// made for rows of logits.

lm.weight @down : tensor<64x32xf32> from ["down"] shard <columns, ranks = 2>
lm.weight @head : tensor<160x64xf32> from ["head"] shard <rows, ranks = 2>
// CHECK-LABEL: func @ranks
func.func @ranks(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 32768>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c16384 = arith.constant 16384 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x64xf32>
  %logit_rows = memref.dim %rows, %c0 : memref<?xi32>
  %part = memref.view %workspace[%c8192][%logit_rows] : memref<?xi8> to memref<?x160xf32>
  %padded = memref.view %workspace[%c16384][%logit_rows] : memref<?xi8> to memref<?x80xf32>
  %row = memref.subview %padded[0, 0] [%logit_rows, 64] [1, 1] : memref<?x80xf32> to memref<?x64xf32, strided<[80, 1]>>
  // CHECK: phase.mark %{{.*}}, "matmul down 64x32" {bytes = 8192 : i64, flops_per_token = 4096 : i64}
  gemm.matmul %x, @down epilogue(<none>) into %y : memref<?x32xf32> into memref<?x64xf32>
  // CHECK: phase.mark %{{.*}}, "barrier after matmul down"
  phase.barrier %team
  // CHECK: phase.mark %{{.*}}, "all_reduce down 64 of 2 ranks" {flops_per_token = 64 : i64}
  lm.all_reduce %y into %y : memref<?x64xf32> into memref<?x64xf32>
  // CHECK: phase.mark %{{.*}}, "barrier after all_reduce down"
  phase.barrier %team
  // CHECK: phase.mark %{{.*}}, "matmul head 160x64" {bytes = 40960 : i64, flops_per_logit_row = 20480 : i64}
  gemm.matmul %y, @head epilogue(<none>) into %part : memref<?x64xf32> into memref<?x160xf32>
  // CHECK: phase.mark %{{.*}}, "all_gather head 160 of 2 ranks"{{$}}
  lm.all_gather %part into %logits : memref<?x160xf32> into memref<?x320xf32>
  // Rows of logits are known by the buffer that they are a part of.
  // CHECK: phase.mark %{{.*}}, "matmul down 64x32" {bytes = 8192 : i64, flops_per_logit_row = 4096 : i64}
  gemm.matmul %x, @down epilogue(<none>) into %row : memref<?x32xf32> into memref<?x64xf32, strided<[80, 1]>>
  return
}

// -----

// A weight is what the operation says it is, not any attribute of that name.

lm.weight @e : tensor<320x64xf32> from ["e"]
// CHECK-LABEL: func @other_attributes
func.func @other_attributes(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x2x2x256xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  // CHECK: phase.mark %{{.*}}, "gather_rows"{{$}}
  lm.gather_rows %logits, %rows into %logits {weight = @nothing} : memref<?x64xf32>, memref<?xi32> into memref<?x64xf32>
  // CHECK: phase.mark %{{.*}}, "barrier after gather_rows"{{$}}
  phase.barrier %team {weight = @e}
  return
}
