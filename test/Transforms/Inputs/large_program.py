#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a phase program larger than any model's: large_program.py SHAPE N.

nested-loops  N loops, one in another, with an operation at each level
casts         N casts of one buffer, one of another, and its last use
residuals     a phase of N matmuls, each of which adds to the one before
weights       N weights that nothing uses
norms         a phase of N norms, each of the one before
linears       a phase of N linear layers, each of the one before, with a weight
              of its own
readers       a phase of N linear layers in a loop that read the same from
              outside of it, with a weight each
"""
import sys

PROGRAM = """func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>,
    %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>,
    %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index,
    %team: !phase.team) attributes {phase.program = #phase.program<threads = 2,
    max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
"""
PHASE = """func.func @phase(%ids: tensor<?xi32>, %positions: tensor<?xi32>,
    %slots: tensor<?xi32>, %segments: tensor<?x4xi32>,
    %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 16, f32>)
    -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
"""
TYPES = ("memref<?x64xf32>", "memref<?x64xf32, strided<[64, 1], offset: ?>>")


def nested_loops(count):
    lines = [PROGRAM]
    for i in range(count):
        lines += ["lm.embed %ids, @e into %x : "
                  "memref<?xi32> into memref<?x64xf32>",
                  f"scf.for %i{i} = %c0 to %c4 step %c1 {{"]
    lines.append("gemm.matmul %x, @w epilogue(<none>) into %logits : "
                 "memref<?x64xf32> into memref<?x64xf32>")
    return lines + ["}"] * count + ["return }"]


def casts(count):
    lines = [PROGRAM, "%cast0 = memref.cast %x : {0} to {0}".format(TYPES[0])]
    for i in range(1, count):
        lines.append(f"%cast{i} = memref.cast %cast{i - 1} : "
                     f"{TYPES[(i - 1) % 2]} to {TYPES[i % 2]}")
    return lines + [
        "lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>",
        f"gemm.matmul %cast{count - 1}, @w epilogue(<none>) into %logits : "
        f"{TYPES[(count - 1) % 2]} into memref<?x64xf32>", "return }"]


def phase(first, following, count):
    tensor = "tensor<?x64xf32>"
    lines = [PHASE, f"""%x = lm.embed %ids, @e : tensor<?xi32> -> {tensor}
  %v0 = {first} : {tensor} -> {tensor}"""]
    for i in range(1, count):
        lines.append(f"%v{i} = {following.format(f'%v{i - 1}')} : "
                     f"{tensor} -> {tensor}")
    return lines + [f"%last = lm.gather_rows %v{count - 1}, %rows : "
                    f"{tensor}, tensor<?xi32> -> {tensor}",
                    f"return %last : {tensor} }}"]


def residuals(count):
    return phase("gemm.matmul %x, @w epilogue(<none>)",
                 "gemm.matmul %x, @w epilogue(<add_residual>) "
                 "residual({} : tensor<?x64xf32>)", count)


def norms(count):
    return phase("lm.rms_norm %x, @n epsilon 1.0",
                 "lm.rms_norm {}, @n epsilon 1.0", count)


def weights_and_phase(count, lines):
    return [f'lm.weight @w{i} : tensor<64x64xf32> from ["w{i}"]'
            for i in range(count)] + lines


def linears(count):
    tensor = "tensor<?x64xf32>"
    lines = [PHASE, f"%v0 = lm.embed %ids, @e : tensor<?xi32> -> {tensor}"]
    for i in range(count):
        lines.append(f"%v{i + 1} = lm.linear %v{i}, @w{i} : {tensor} -> {tensor}")
    return weights_and_phase(count, lines + [
        f"%last = lm.gather_rows %v{count}, %rows : "
        f"{tensor}, tensor<?xi32> -> {tensor}", f"return %last : {tensor} }}"])


def readers(count):
    tensor = "tensor<?x64xf32>"
    lines = [PHASE, f"""%x = lm.embed %ids, @e : tensor<?xi32> -> {tensor}
  %y = lm.embed %ids, @e : tensor<?xi32> -> {tensor}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = scf.for %i = %c0 to %c1 step %c1 iter_args(%v0 = %y) -> ({tensor}) {{"""]
    for i in range(count):
        lines += [f"%l{i} = lm.linear %x, @w{i} : {tensor} -> {tensor}",
                  f"%v{i + 1} = lm.add %v{i}, %l{i} : {tensor}"]
    return weights_and_phase(count, lines + [
        f"scf.yield %v{count} : {tensor} }}",
        f"%last = lm.gather_rows %z, %rows : "
        f"{tensor}, tensor<?xi32> -> {tensor}", f"return %last : {tensor} }}"])


def weights(count):
    return [f'lm.weight @w{i} : tensor<8xf32> from ["w"]' for i in range(count)]


if __name__ == "__main__":
    shapes = {"nested-loops": nested_loops, "casts": casts,
              "residuals": residuals, "norms": norms, "weights": weights,
              "linears": linears, "readers": readers}
    print('lm.weight @e : tensor<320x64xf32> from ["e"]')
    print('lm.weight @n : tensor<64xf32> from ["n"]')
    print('lm.weight @w : tensor<64x64xf32> from ["w"]')
    print("\n".join(shapes[sys.argv[1]](int(sys.argv[2]))))
