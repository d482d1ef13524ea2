// RUN: sandwich-opt %s -phase-to-llvm -split-input-file -verify-diagnostics

// The entry point needs its name.
// expected-error @below {{'func.func' op has the name of the entry point of @decode}}
func.func private @sandwich_decode()
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  return
}

// -----

// A team is the step of its program: it cannot go elsewhere.
func.func private @helper(!phase.team)
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  // expected-error @below {{'func.call' op cannot use a team; only the operations of phase in its program can}}
  func.call @helper(%team) : (!phase.team) -> ()
  return
}

// -----

// Nor is there a step in other functions.
func.func @helper(%team: !phase.team) {
  // expected-error @below {{'phase.barrier' op cannot use a team; only the operations of phase in its program can}}
  phase.barrier %team
  return
}

// -----

// A mark belongs to its program.
func.func @helper(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op cannot use a team; only the operations of phase in its program can}}
  phase.mark %team, "embed"
  return
}

// -----

// Ranks that the weights are not divided among would read beyond their shards.
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  // expected-error @below {{'phase.all_reduce' op does not fit weights that are divided among 1 rank}}
  phase.all_reduce %team, %logits : memref<?x320xf32>
  return
}

// -----

lm.weight @w : tensor<160x64xf32> from ["w"] shard <rows, ranks = 2> at 0
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %part = memref.view %workspace[%c0][%c0] : memref<?xi8> to memref<?x80xf32>
  // expected-error @below {{'phase.all_gather' op does not fit weights that are divided among 2 ranks}}
  phase.all_gather %team, %part into %logits : memref<?x80xf32> into memref<?x320xf32>
  return
}

// -----

lm.weight @v : tensor<160x64xf32> from ["v"] shard <rows, ranks = 2> at 0
// expected-error @below {{'lm.weight' op is a shard of 4 ranks, others are of 2}}
lm.weight @w : tensor<160x64xf32> from ["w"] shard <rows, ranks = 4> at 0

// -----

// So does the plan.
// expected-error @below {{'memref.global' op has the name of the plan of @decode}}
memref.global @sandwich_decode_plan : memref<17xi64>
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  return
}

// -----

// Also where only what is added would meet.
// expected-error @below {{'func.func' op has the name of the entry point of @decode_plan}}
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  return
}
func.func @decode_plan(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  return
}

// -----

// So does that of what draws tokens, and its plan.
// expected-error @below {{'func.func' op has the name of the plan of @sampling}}
func.func private @sandwich_sampling_plan()
func.func @sampling(%logits: memref<320xf32>, %temperature: f32, %top_k: i32, %top_p: f32, %min_p: f32, %place: f64,
                    %weights: memref<320xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  return
}
