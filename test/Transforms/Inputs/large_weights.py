# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a module with weights that take 2^57 bytes each once they are packed.

    large_weights.py COUNT
"""
import sys

INPUT = "tensor<?x2147483647xf32>"
names = [f"@w{i}" for i in range(int(sys.argv[1]))]
for name in names:
    print(f"lm.weight {name} : tensor<1x2147483647xf32> layers 4096 "
          f'from ["{name}.{{}}"] packing '
          "#gemm.packing<panel = 4096, tile = 32, k_step = 1, k_pack = 1>")
print(f"func.func @f(%x: {INPUT}, %layer: index) {{")
for i, name in enumerate(names):
    print(f"  %{i} = lm.linear %x, {name}[%layer] : {INPUT} -> tensor<?x1xf32>")
print("  return\n}")
