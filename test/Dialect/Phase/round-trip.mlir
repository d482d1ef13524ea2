// RUN: sandwich-opt %s --verify-roundtrip | FileCheck %s

// A phase program says its team and its limits, and waits.

// CHECK-LABEL: func @decode(
// CHECK-SAME: %[[TEAM:[a-z0-9]+]]: !phase.team)
// CHECK-SAME: attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 4, workspace_bytes = 4096>}
func.func @decode(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf16>, %logits: memref<?x320xf32>,
    %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 4, workspace_bytes = 4096>} {
  // CHECK: phase.barrier %[[TEAM]]
  phase.barrier %team
  return
}

// A team is a value like any other.

// CHECK-LABEL: func @wait(%{{.*}}: !phase.team)
func.func @wait(%team: !phase.team) {
  // CHECK: phase.barrier
  phase.barrier %team
  return
}

// A mark names an operation, and what one call of it costs where that is known.

// CHECK-LABEL: func @profiled(
func.func @profiled(%team: !phase.team) {
  // CHECK: phase.mark %{{.*}}, "embed"{{$}}
  phase.mark %team, "embed"
  // CHECK: phase.mark %{{.*}}, "matmul head" {bytes = 12 : i64, flops_per_logit_row = 24 : i64}
  phase.mark %team, "matmul head" {bytes = 12 : i64, flops_per_token = 0 : i64, flops_per_logit_row = 24 : i64}
  // CHECK: phase.mark %{{.*}}, "attention" {bytes_per_position = 64 : i64, flops_per_attended = 128 : i64}
  phase.mark %team, "attention" {bytes_per_position = 64 : i64, flops_per_attended = 128 : i64}
  // CHECK: phase.mark %{{.*}}, "matmul" {flops_per_token = 3 : i64}
  phase.mark %team, "matmul" {flops_per_token = 3 : i64}
  return
}

// What ranks do together, on rows without gaps.

// CHECK-LABEL: func @ranks
func.func @ranks(%team: !phase.team, %part: memref<?x64xf32>, %whole: memref<?x128xf32>) -> index {
  // CHECK-NEXT: %[[RANK:.*]] = phase.rank %{{.*}}
  %rank = phase.rank %team
  // CHECK-NEXT: phase.all_reduce %{{.*}}, %{{.*}} : memref<?x64xf32>
  phase.all_reduce %team, %part : memref<?x64xf32>
  // CHECK-NEXT: phase.all_gather %{{.*}}, %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x128xf32>
  phase.all_gather %team, %part into %whole : memref<?x64xf32> into memref<?x128xf32>
  // CHECK-NEXT: return %[[RANK]] : index
  return %rank : index
}

// What draws tokens stands beside programs.

// CHECK-LABEL: func @sampling(
// CHECK-SAME: attributes {phase.sampling}
func.func @sampling(%logits: memref<320xf32>, %temperature: f32, %top_k: i32, %top_p: f32, %min_p: f32, %place: f64,
                    %weights: memref<320xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  return
}
