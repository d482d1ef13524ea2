// RUN: sandwich-opt %s -phase-to-llvm -canonicalize -split-input-file | FileCheck %s

// A program gets a SandwichPlan: version, threads, tokens, logit rows, workspace,
// bytes and element type (1: f32) of a KV block, vocabulary, end of weights,
// marked operations, ranks, columns, token types and positions.

// CHECK: llvm.mlir.global external constant @sandwich_decode_plan(dense<[7, 2, 16, 16, 8192, 8192, 1, 64, 24832, 0, 1, 64, 0, 0]> : tensor<14xi64>) {{.*}} : !llvm.array<14 x i64>

// It gets an entry point of the C type SandwichPhaseFunction, which reads
// the step's fields at the offsets of SandwichStep (PhaseABI.h): sizes at 48,
// 56, 64 and 72, then each buffer with its own.

// CHECK-LABEL: func @sandwich_decode(
// CHECK-SAME: %[[STEP:[a-z0-9]+]]: !llvm.ptr, %[[NUMBER:[a-z0-9]+]]: i32)
// CHECK-DAG: %[[THREAD:.*]] = arith.index_cast %[[NUMBER]] : i32 to index
// CHECK: %[[P:.*]] = llvm.getelementptr %[[STEP]][48]
// CHECK-NEXT: %[[NUM_TOKENS:.*]] = llvm.load %[[P]] : !llvm.ptr -> i64
// CHECK: %[[P:.*]] = llvm.getelementptr %[[STEP]][72]
// CHECK-NEXT: %[[NUM_ROWS:.*]] = llvm.load %[[P]]
// CHECK: %[[P:.*]] = llvm.getelementptr %[[STEP]][56]
// CHECK-NEXT: %[[NUM_SEGMENTS:.*]] = llvm.load %[[P]]
// CHECK: %[[P:.*]] = llvm.getelementptr %[[STEP]][64]
// CHECK-NEXT: %[[NUM_BLOCKS:.*]] = llvm.load %[[P]]

// Token ids are the first field.
// CHECK: %[[P:.*]] = llvm.load %[[STEP]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.insertvalue %[[P]]{{.*}}[0]
// CHECK: llvm.insertvalue %[[P]]{{.*}}[1]
// CHECK: llvm.insertvalue %[[NUM_TOKENS]]{{.*}}[3, 0]
// CHECK: %[[IDS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %[[STEP]][8]
// CHECK: llvm.insertvalue %[[NUM_TOKENS]]{{.*}}[3, 0]
// CHECK: %[[POSITIONS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %[[STEP]][16]
// CHECK: llvm.insertvalue %[[NUM_TOKENS]]{{.*}}[3, 0]
// CHECK: %[[SLOTS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %[[STEP]][24]
// CHECK: llvm.insertvalue %[[NUM_SEGMENTS]]{{.*}}[3, 0]
// CHECK: %[[SEGMENTS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x4xi32>
// CHECK: llvm.getelementptr %[[STEP]][32]
// CHECK: llvm.insertvalue %[[NUM_BLOCKS]]{{.*}}[3, 0]
// CHECK: %[[BLOCKS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %[[STEP]][40]
// CHECK: llvm.insertvalue %[[NUM_ROWS]]{{.*}}[3, 0]
// CHECK: %[[ROWS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %[[STEP]][88]
// CHECK: %[[CACHE:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x2x1x2x512xf32>
// CHECK: llvm.getelementptr %[[STEP]][104]
// CHECK: llvm.insertvalue %[[NUM_ROWS]]{{.*}}[3, 0]
// CHECK: %[[LOGITS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x64xf32>
// CHECK: llvm.getelementptr %[[STEP]][80]
// CHECK: %[[WEIGHTS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi8>
// CHECK: llvm.getelementptr %[[STEP]][96]
// CHECK: %[[WORKSPACE:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi8>
// CHECK: call @decode(%[[IDS]], %[[POSITIONS]], %[[SLOTS]], %[[SEGMENTS]], %[[BLOCKS]], %[[ROWS]], %[[CACHE]], %[[LOGITS]], %[[WEIGHTS]], %[[WORKSPACE]], %[[THREAD]], %[[STEP]])

// The program is private, its team the step, whose `barrier` at 112 is called
// with its `team` at 120; with a pointer it is no phase program any more.

// CHECK-LABEL: func private @decode(
// CHECK-SAME: %[[TEAM:[a-z0-9]+]]: !llvm.ptr)
// CHECK-NOT: phase.program
// CHECK: %[[P:.*]] = llvm.getelementptr %[[TEAM]][112]
// CHECK-NEXT: %[[BARRIER:.*]] = llvm.load %[[P]]
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[TEAM]][120]
// CHECK-NEXT: %[[ARGUMENT:.*]] = llvm.load %[[P]]
// CHECK-NEXT: llvm.call %[[BARRIER]](%[[ARGUMENT]]) : !llvm.ptr, (!llvm.ptr) -> ()
// CHECK-NEXT: return
lm.weight @norm : tensor<64xf32> from ["norm"] at 0
lm.weight @query : tensor<64x32xf32> layers 3 from ["query.{}"] at 256 stride 8192
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  phase.barrier %team
  return
}

// -----

// Other functions have no entry point.

// CHECK-NOT: sandwich_
// CHECK: func @helper()
func.func @helper() {
  return
}

// -----

// Marks are numbered in program order, where those of one name and one cost
// share a number. Each is a branch on the step's `mark` at 128, which is called
// with the step's `profile` at 136, the thread and the number.

// CHECK: @sandwich_decode_plan(dense<[7, 2, 16, 16, 8192, 8192, 1, 64, 0, 3, 1, 64, 0, 0]>
// CHECK-LABEL: func private @decode(
// CHECK-SAME: %[[THREAD:[a-z0-9]+]]: index, %[[TEAM:[a-z0-9]+]]: !llvm.ptr)
// CHECK-DAG: %[[NUMBER0:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[NUMBER1:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[NUMBER2:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[P:.*]] = llvm.getelementptr %[[TEAM]][128]
// CHECK-NEXT: %[[MARK:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[PROFILES:.*]] = llvm.icmp "ne" %[[MARK]], %[[NULL]]
// CHECK-NEXT: scf.if %[[PROFILES]] {
// CHECK-NEXT: %[[NUMBER:.*]] = arith.index_cast %[[THREAD]] : index to i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[TEAM]][136]
// CHECK-NEXT: %[[PROFILE:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: llvm.call %[[MARK]](%[[PROFILE]], %[[NUMBER]], %[[NUMBER0]]) : !llvm.ptr, (!llvm.ptr, i32, i32) -> ()
// CHECK: scf.for
// CHECK: llvm.call {{.*}}, %[[NUMBER1]])
// CHECK: llvm.call {{.*}}, %[[NUMBER2]])
// CHECK: llvm.call {{.*}}, %[[NUMBER0]])
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  phase.mark %team, "embed"
  scf.for %layer = %c0 to %c2 step %c1 {
    phase.mark %team, "matmul" {bytes = 1 : i64}
  }
  phase.mark %team, "matmul" {bytes = 2 : i64}
  phase.mark %team, "embed"
  return
}

// -----

// What ranks do together are calls through the step: the number of elements is
// that of the rows, which follow each other. The plan says how many ranks.

lm.weight @w : tensor<160x64xf32> from ["w"] shard <rows, ranks = 2> at 0
// CHECK: @sandwich_decode_plan(dense<[7, 2, 16, 16, 8192, 8192, 1, 320, 40960, 0, 2, 320, 0, 0]>
// CHECK-LABEL: func private @decode(
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x320xf32>, %{{[a-z0-9]+}}: memref<?xi8>, %[[WORKSPACE:[a-z0-9]+]]: memref<?xi8>, %[[THREAD:[a-z0-9]+]]: index, %[[TEAM:[a-z0-9]+]]: !llvm.ptr)
// CHECK: %[[CHANNELS:.*]] = llvm.mlir.constant(64 : i64) : i64
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[DATA:.*]] = memref.view {{.*}}[%[[ROWS]]]
// CHECK-DAG: %[[ROWS64:.*]] = arith.index_cast %[[ROWS]] : index to i64
// CHECK-DAG: %[[COUNT:.*]] = llvm.mul %[[ROWS64]], %[[CHANNELS]] : i64
// CHECK-DAG: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[DATA]]
// CHECK-DAG: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
// CHECK-DAG: %[[POINTER:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr
// CHECK-DAG: %[[T:.*]] = arith.index_cast %[[THREAD]] : index to i32
// CHECK-DAG: %[[P:.*]] = llvm.getelementptr %[[TEAM]][160]
// CHECK-DAG: %[[REDUCE:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK-DAG: %[[P:.*]] = llvm.getelementptr %[[TEAM]][152]
// CHECK-DAG: %[[RANKS:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[REDUCE]](%[[RANKS]], %[[T]], %[[POINTER]], %[[COUNT]]) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64) -> ()
// CHECK: %[[P:.*]] = llvm.getelementptr %[[TEAM]][144]
// CHECK: %[[NUMBER:.*]] = llvm.load %[[P]] : !llvm.ptr -> i64
// CHECK: %[[RANK:.*]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK: memref.prefetch %[[DATA]][%[[RANK]], %{{.*}}]
// CHECK: llvm.getelementptr %[[TEAM]][168]
// CHECK: llvm.call {{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %data = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  phase.all_reduce %team, %data : memref<?x64xf32>
  %rank = phase.rank %team
  memref.prefetch %data[%rank, %c0], read, locality<3>, data : memref<?x64xf32>
  %part = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x160xf32>
  phase.all_gather %team, %part into %logits : memref<?x160xf32> into memref<?x320xf32>
  return
}

// -----

// One that looks up more than token ids says how many rows there are, and takes
// the types of tokens, the step's last field, behind all else.

// CHECK: llvm.mlir.global external constant @sandwich_embed_plan(dense<[7, 1, 16, 4, 64, 8192, 1, 320, 0, 0, 1, 32, 2, 512]> : tensor<14xi64>)
// CHECK-LABEL: func @sandwich_embed(
// CHECK-SAME: %[[STEP:[a-z0-9]+]]: !llvm.ptr
// CHECK: %[[P:.*]] = llvm.getelementptr %[[STEP]][48]
// CHECK-NEXT: %[[NUM_TOKENS:.*]] = llvm.load %[[P]] : !llvm.ptr -> i64
// CHECK: llvm.getelementptr %[[STEP]][176]
// CHECK: llvm.insertvalue %[[NUM_TOKENS]]{{.*}}[3, 0]
// CHECK: %[[TYPES:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?xi32>
// CHECK: call @embed({{.*}}, %[[STEP]], %[[TYPES]])

func.func @embed(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x2x2x512xf32>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team, %token_types: memref<?xi32>)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 16, max_logit_rows = 4, workspace_bytes = 64, tables = [320, 2, 512]>} {
  return
}
