//===- Passes.td - Lowerings between dialects --------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_PASSES_TD
#define SANDWICH_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApproximateMath : Pass<"approximate-math"> {
  let summary = "Replace transcendental functions by polynomials";
  let description = [{
    Applies upstream's polynomial approximations, and one of its own for the
    error function, so that no vector function is left to a mathematics library:
    the compiled object must need no symbol from anywhere else.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def MoveBF16 : Pass<"move-bf16"> {
  let summary = "Move bf16 as integers";
  let description = [{
    LLVM takes vectors of bf16 apart where the CPU has no instructions for them,
    and calls a library that rounds each number to what it was, be it only loaded
    with a mask, or chosen. Operations of the `llvm` dialect that move numbers
    and do not compute with them move integers of as many bits.

    ```mlir
    // llvm.intr.masked.store %v, %p, %mask : vector<8xbf16>, ... becomes
    %bits = llvm.bitcast %v : vector<8xbf16> to vector<8xi16>
    llvm.intr.masked.store %bits, %p, %mask : vector<8xi16>, vector<8xi1> into !llvm.ptr
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def GemmToLoops : Pass<"gemm-to-loops", "::mlir::ModuleOp"> {
  let summary = "Lower nests and epilogues to loops around micro-kernels";
  let description = [{
    Replaces every `gemm.nest` by loops over blocks of rows and columns, slices
    of K, panels and strips around calls of micro-kernels, which are functions
    that all nests with the same specialization share, and every
    `gemm.epilogue` by loops over vectors. Sums, and input that is packed, are on
    a thread's stack, or behind the workspace of its program, which grows, if they
    are large.

    ```mlir
    gemm.nest %x, %w rows(%c0 to %tokens) columns(%begin to %end) k(%c0 to %c2048)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [512, 32, 512], threads = [1, 2, 1], prefetch = [1, 0]>) ...
    // becomes
    scf.for %row_block = ... {
      scf.for %column = ... {
        scf.for %k = ... {
          scf.for %panel = ... {
            scf.for %strip = ... {
              scf.index_switch %rows
              case 11 { func.call @X86_AVX512_BF16_11x32_ld2080_prefetch1(...) }
              ...
            }
          }
        }
        // the body, with the epilogue
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect",
    "::mlir::arm_neon::ArmNeonDialect",
    "::sandwich::tile::TileDialect"
  ];
}

def LMToGemm : Pass<"lm-to-gemm", "::mlir::ModuleOp"> {
  let summary = "Turn dense layers into matmuls with fused epilogues";
  let description = [{
    Every `lm.linear` becomes a `gemm.matmul`. Linear layers of the same input
    that feed one operation become one matmul over a fused weight: query, key
    and value projections with what is done to their results
    (`rotate_append_kv`), gate and up projections (`silu_mul`). A residual
    connection joins the matmul it adds (`add_residual`), also where each rank
    adds its own rows (`lm.deal_rows`). Only operations of one block are fused.
    What fits no epilogue stays an operation of its own, as does everything
    without `fuse`.

    ```mlir
    %gate = lm.linear %x, @gate_proj[%layer] : ...
    %up = lm.linear %x, @up_proj[%layer] : ...
    %hidden = lm.silu_mul %gate, %up : ...
    // becomes
    %hidden = gemm.matmul %x, @gate_up_proj[%layer] epilogue(<silu_mul>) : ...
    ```
  }];
  let dependentDialects = ["::sandwich::gemm::GemmDialect"];
  let options = [
    Option<"fuse", "fuse", "bool", /*default=*/"true",
           "let matmuls take on what is done to their results">
  ];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Number of matmuls created">
  ];
}

def LMToLoops : Pass<"lm-to-loops", "::mlir::ModuleOp"> {
  let summary = "Lower lm operations of a phase program to vector loops";
  let description = [{
    Replaces the buffer form of operations of `lm` by loops in which every
    thread of the team does its own share, as their models of
    `LoopLoweringOpInterface` say. Rows are split evenly over threads; attention
    splits each segment, one of a single token by the cache's heads, another
    also by tiles of queries. No barriers are added: what an operation reads
    must be complete before any thread reaches it. `lm.all_reduce` and
    `lm.all_gather` become the operations of `phase` of that name.

    ```mlir
    lm.gather_rows %x, %rows into %y
      : memref<?x32xf32>, memref<?xi32> into memref<?x32xf32>
    ```

    becomes, with %begin and %end from the thread's number,

    ```mlir
    scf.for %i = %begin to %end step %c1 {
      %row = memref.load %rows[%i] : memref<?xi32>
      %from = arith.index_cast %row : i32 to index
      scf.for %k = %c0 to %c32 step %c16 {
        %v = vector.load %x[%from, %k] : memref<?x32xf32>, vector<16xf32>
        vector.store %v, %y[%i, %k] : memref<?x32xf32>, vector<16xf32>
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect",
    "::sandwich::block::BlockDialect", "::sandwich::phase::PhaseDialect",
    "::sandwich::tile::TileDialect"
  ];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU whose registers hold the sums of attention, or host">
  ];
}

def PhaseToLLVM : Pass<"phase-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Give phase programs their C entry points";
  let description = [{
    For each phase program `NAME` adds the function `sandwich_NAME` of the C
    type `SandwichPhaseFunction` (sandwich/Runtime/PhaseABI.h), which reads the
    step's fields and calls the program; barriers and what ranks do together
    become calls through the step, and so do marks, where the step has somebody
    who profiles. Programs become private. Beside the function stands the
    constant `sandwich_NAME_plan`, a `SandwichPlan` of what the code relies on.
    A program that computes the same as an earlier one goes: its entry point calls
    the other. A team used by anything but the operations of `phase` in its
    program is an error, and so are ranks that the weights are not divided among.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def TileToLLVM : Pass<"tile-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Turn operations on tiles into intrinsics of AMX";
  let description = [{
    Replaces the operations of `tile` by LLVM's intrinsics that take a tile's
    number. A function with `tile.configure` keeps what is configured in 64 bytes
    of its stack, loads it where that changes, and releases the tiles where it
    returns. An operation outside of functions is an error.

    ```mlir
    tile.load 4, %x[%i, %k] : memref<?x2080xbf16>
    // becomes
    llvm.call_intrinsic "llvm.x86.tileloadd64"(%c4, %pointer, %c4160) : (i8, !llvm.ptr, i64) -> ()
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def KernelToVector : Pass<"kernel-to-vector", "::mlir::ModuleOp"> {
  let summary = "Raise hand-written kernels to loops over vectors";
  let description = [{
    Replaces every public function of dialect `kernel` by a `func.func` of
    structured control flow, arithmetic and vectors that any CPU can compute, and
    what it calls is inlined. Pointers are memrefs of one dimension, of the numbers
    that they are read as, or of bytes; variables are values, and an intrinsic is
    what its expression for one lane says of all lanes: additions, shuffles, masked
    loads, sums of halves.

    ```mlir
    %x = kernel.intrinsic "_mm512_maskz_loadu_ps"(%k, %p) : (vector<16xi1>, !kernel.pointer<const f32>) -> vector<16xf32>
    %y = kernel.intrinsic "_mm512_reduce_add_ps"(%x) : (vector<16xf32>) -> f32
    // becomes
    %x = vector.maskedload %p[%i], %k, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %a = vector.shuffle %x, %x [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
    %b = vector.shuffle %x, %x [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>, vector<16xf32>
    %c = arith.addf %a, %b : vector<8xf32>
    ```

    A branch that ends early takes what comes behind it into its other side.
    What is checked by `kernel.trap` is taken for true, and nothing before what an
    argument points to may be reached. A function with anything
    else that has no such form, as a loop that is left early, stays as it is,
    with a warning at the place that it stops at.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def VectorToBlock : Pass<"vector-to-block", "::mlir::ModuleOp"> {
  let summary = "Make kernels of any width of raised ones";
  let description = [{
    Replaces every function over vectors, as `kernel-to-vector` leaves them, by a
    kernel of dialect `block`. A loop over neighbors in memory, one or several
    vectors each turn, goes by blocks whose size is a parameter, `LANES`, that is as
    it was where nobody tunes it. It is one if lanes are apart, or sums over all of
    them, be they put together by shuffles, halves or one after the other; several
    vectors a turn are one larger block if the same is computed of each. What a loop
    sums up is a number behind it.

    ```mlir
    %sums = scf.for %i = %zero to %n step %c16 iter_args(%sum = %zeros) -> (vector<16xf32>) {
      %x = vector.load %memory[%i] : memref<?xf32>, vector<16xf32>
      %next = arith.addf %sum, %x : vector<16xf32>
      scf.yield %next : vector<16xf32>
    }
    // shuffles and sums of halves of %sums
    // becomes
    %lanes = block.size <LANES>
    %sums = scf.for %i = %zero to %n step %lanes iter_args(%sum = %zeros) -> (tensor<?xf32, #block.sizes<LANES>>) {
      %range = block.range %i to %n : !block.range<LANES>
      %x = block.load %memory[%range] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
      %next = arith.addf %sum, %x : tensor<?xf32, #block.sizes<LANES>>
      scf.yield %next : tensor<?xf32, #block.sizes<LANES>>
    }
    %total = block.reduce add %sums : tensor<?xf32, #block.sizes<LANES>> -> f32
    ```

    A loop whose turns are apart, but for sums, does several of them at once, as many
    as `ROWS` says. A loop that goes by tiles, the last one smaller, has their size
    as a parameter, called as the source does, if what its turns hand on is the same
    for any size: sums, what is largest, and the sums of an online softmax. Vectors in
    no such loop become blocks of as many numbers as they have. Memory that is
    reached by rows of a known length has rows; other sizes are those of arguments,
    which C does not tell: `x_size`, `x_rows`. What is written overlaps nothing else
    that arguments point to. A function with anything that has no such form, as a
    shuffle that is no part of a sum, stays as it is, with a warning at the place.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::sandwich::block::BlockDialect"
  ];
}

def BlockToVector : Pass<"block-to-vector", "::mlir::ModuleOp"> {
  let summary = "Make kernels over blocks for one choice of parameters";
  let description = [{
    Replaces every kernel of dialect `block` by a function of loops over vectors,
    with its parameters as they are given, or as untuned. A block becomes a
    vector for each of its rows, and a loop over blocks one over whole ones, and a
    turn behind it, with masks, for what is left. Where a size of an argument is
    given as well, that dimension is static, and what is left is known.

    ```mlir
    scf.for %first = %zero to %n step %lanes {
      %i = block.range %first to %n : !block.range<LANES>
      %x = block.load %memory[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
      ...
    }
    // becomes, of LANES = 16
    scf.for %first = %zero to %whole step %c16 {
      %x = vector.load %memory[%first] : memref<?xf32>, vector<16xf32>
      ...
    }
    scf.if %isLeft {
      %mask = vector.create_mask %count : vector<16xi1>
      %x = vector.maskedload %memory[%whole], %mask, %zeros : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      ...
    }
    ```
  }];
  let options = [
    ListOption<"parameters", "parameters", "std::string",
               "What parameters, constants and sizes are: NAME=NUMBER">,
    Option<"checkBounds", "check-bounds", "bool", /*default=*/"false",
           "Reach nothing beyond the sizes of memory, and give 0, or the line of "
           "what would have: what is not proven is checked">,
    Option<"instructions", "instructions", "std::string", /*default=*/"\"\"",
           "What multiplies matrices of bf16, X86_AVX512_BF16 or X86_AMX_BF16, "
           "where sizes allow it: else FMA does">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect", "::sandwich::tile::TileDialect"
  ];
}

#endif // SANDWICH_CONVERSION_PASSES_TD
