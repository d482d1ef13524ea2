// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// #phase.program (C1): a program is run by somebody.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 0, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): a team is limited.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 1025, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): a step has tokens.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = -1, max_logit_rows = 16, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): the bytes of a step's activations can be counted.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 4611686018427387904, max_logit_rows = 16, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): a step has logits.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 0, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): the bytes of its logits can be counted.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 65537, workspace_bytes = 0>} {}

// -----

// #phase.program (C1): no workspace is smaller than none.
// expected-error @below {{(C1) threads must be between 1 and 1024, max_tokens and max_logit_rows between 1 and 65536, workspace_bytes not negative}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = -1>} {}

// -----

// `phase.program` is the only attribute of the dialect.
// expected-error @below {{unknown attribute 'phase.step'}}
func.func private @f() attributes {phase.step = 1 : i64}

// -----

// #phase.program (C2): other attributes do not say what a program needs.
// expected-error @below {{(C2) 'phase.program' is a #phase.program on a function}}
func.func private @f() attributes {phase.program = 2 : i64}

// -----

// #phase.program (C2): only functions are programs.
// expected-error @below {{(C2) 'phase.program' is a #phase.program on a function}}
module attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {}

// -----

// #phase.program (C2): a program has a body.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func private @f(memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x4xi32>, memref<?xi32>, memref<?xi32>, memref<?x2x1x2x512xf32>, memref<?x64xf32>, memref<?xi8>, memref<?xi8>, index, !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>}

// -----

// #phase.program (C2): a program is straight.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  cf.br ^next
^next:
  return
}

// -----

// #phase.program (C2): it has all arguments.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): it returns nothing.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team) -> index
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return %thread : index
}

// -----

// #phase.program (C2): token ids are 32-bit integers.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi64>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): positions are one for each token.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<4xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): cache slots are contiguous.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32, strided<[2]>>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): segments have four fields.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x3xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a step has as many segments as it is given.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<2x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): segments are rows of fields.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): their fields are 32-bit integers.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi64>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): block tables follow each other, without rows.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?x?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a cache has a static layout inside of a block.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x?xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): the vocabulary is static.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x?xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): logits are f32.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xbf16>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a cache has five dimensions.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a cache holds numbers.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xi16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): logits have rows.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): weights are bytes.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xf32>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): the workspace is bytes.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<1024xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a thread is an index.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: i32, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// #phase.program (C2): a team is a team.
// expected-error @below {{(C2) a phase program is one block that takes token ids, positions, cache slots, segments, block tables, logit rows, cache, logits, weights, workspace, thread and team}}
func.func @f(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: index)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0>} {
  return
}

// -----

// phase.mark (C1): what is timed has a name.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C1) the name must be 1 to 1024 bytes long}}
  phase.mark %team, ""
  return
}

// -----

// phase.mark (C1): a name fits into a manifest.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C1) the name must be 1 to 1024 bytes long}}
  phase.mark %team, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
  return
}

// -----

// phase.mark (C2): bytes is an amount.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C2) costs must not be negative}}
  phase.mark %team, "matmul" {bytes = -1 : i64}
  return
}

// -----

// phase.mark (C2): bytes_per_position is an amount.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C2) costs must not be negative}}
  phase.mark %team, "matmul" {bytes_per_position = -1 : i64}
  return
}

// -----

// phase.mark (C2): flops_per_token is an amount.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C2) costs must not be negative}}
  phase.mark %team, "matmul" {flops_per_token = -1 : i64}
  return
}

// -----

// phase.mark (C2): flops_per_logit_row is an amount.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C2) costs must not be negative}}
  phase.mark %team, "matmul" {flops_per_logit_row = -1 : i64}
  return
}

// -----

// phase.mark (C2): flops_per_attended is an amount.
func.func @f(%team: !phase.team) {
  // expected-error @below {{'phase.mark' op (C2) costs must not be negative}}
  phase.mark %team, "matmul" {flops_per_attended = -1 : i64}
  return
}

// -----

// phase.all_reduce: gaps between rows would be summed too.
func.func @f(%team: !phase.team, %x: memref<?x64xf32, strided<[96, 1]>>) {
  // expected-error @below {{'phase.all_reduce' op operand #1 must be memref of f32 rows of a static number of channels without gaps}}
  phase.all_reduce %team, %x : memref<?x64xf32, strided<[96, 1]>>
  return
}

// -----

// phase.all_reduce: how many elements there are is known but for the rows.
func.func @f(%team: !phase.team, %x: memref<?x?xf32>) {
  // expected-error @below {{'phase.all_reduce' op operand #1 must be memref of f32 rows of a static number of channels without gaps}}
  phase.all_reduce %team, %x : memref<?x?xf32>
  return
}

// -----

// phase.all_gather (C1): every rank has as many channels.
func.func @f(%team: !phase.team, %part: memref<?x64xf32>, %whole: memref<?x100xf32>) {
  // expected-error @below {{'phase.all_gather' op (C1) the whole must have a multiple of the part's 64 channels}}
  phase.all_gather %team, %part into %whole : memref<?x64xf32> into memref<?x100xf32>
  return
}

// -----

// #phase.program (C3): there are three tables.
// expected-error @below {{(C3) tables must be three numbers between 0 and 2147483647}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0, tables = [1, 2]>} {}

// -----

// #phase.program (C3): no table has fewer rows than none.
// expected-error @below {{(C3) tables must be three numbers between 0 and 2147483647}}
module attributes {test.a = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 0, tables = [1, 2, -1]>} {}

// -----

// phase.sampling says all there is to say.
// expected-error @below {{'phase.sampling' has no value and is on a function}}
func.func private @f() attributes {phase.sampling = 2 : i64}

// -----

// Only functions draw tokens.
// expected-error @below {{'phase.sampling' has no value and is on a function}}
module attributes {phase.sampling} {}

// -----

// What draws tokens gets all that a request says.
// expected-error @below {{a function that draws tokens is one block that takes logits, temperature, top-k, top-p, min-p, place, weights and token}}
func.func @f(%logits: memref<320xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  return
}

// -----

// There are as many weights as logits.
// expected-error @below {{a function that draws tokens is one block that takes logits, temperature, top-k, top-p, min-p, place, weights and token}}
func.func @f(%logits: memref<320xf32>, %temperature: f32, %top_k: i32, %top_p: f32, %min_p: f32, %place: f64,
             %weights: memref<319xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  return
}

// -----

// How many there are is known.
// expected-error @below {{a function that draws tokens is one block that takes logits, temperature, top-k, top-p, min-p, place, weights and token}}
func.func @f(%logits: memref<?xf32>, %temperature: f32, %top_k: i32, %top_p: f32, %min_p: f32, %place: f64,
             %weights: memref<?xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  return
}

// -----

// It has a body.
// expected-error @below {{a function that draws tokens is one block that takes logits, temperature, top-k, top-p, min-p, place, weights and token}}
func.func private @f(memref<320xf32>, f32, i32, f32, f32, f64, memref<320xf32>, memref<1xi32>) attributes {phase.sampling}
