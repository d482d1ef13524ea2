#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of what others have written by hand is imported, raised to vectors, and
raised to text with parameters.

    foreign_kernels.py FOLDER [--include FOLDER]...

FOLDER has checkouts of ggml, llama.cpp, XNNPACK (with pthreadpool beside it),
simsimd, hnswlib, vllm, sglang, onnxruntime (with GSL), xFasterTransformer and
ik_llama.cpp, by these names: those that are missing are left out. Some kernels
include headers of PyTorch or of libraries that are not public; --include is a
folder with those, or with stand-ins for what a kernel does not use of them.
Nothing is changed in the files. A program is compiled of what is imported, to
see that it is C++.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

AVX2 = ["avx", "avx2", "fma", "f16c"]
AVX512 = AVX2 + ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"]
BF16 = AVX512 + ["avx512bf16", "avx512vnni"]
TILES = BF16 + ["amx-bf16", "amx-tile", "amx-int8"]

GGML = ["-D_GNU_SOURCE", "-DGGML_CPU_FP16_TO_FP32=_cvtsh_ss", "-Iggml/include",
        "-Iggml/src", "-Iggml/src/ggml-cpu"]
LLAMA = ["-D_GNU_SOURCE", "-Illama.cpp/ggml/include", "-Illama.cpp/ggml/src",
         "-Illama.cpp/ggml/src/ggml-cpu"]
XNNPACK = ["-IXNNPACK", "-IXNNPACK/include", "-Ipthreadpool/include"]
VLLM = ["-Ivllm/csrc/cpu"]
SGLANG = ["--std=c++20", "-Isglang/sgl-kernel/csrc/cpu"]
IK = ["-D_GNU_SOURCE", "-DIQK_IMPLEMENT", "-DGGML_USE_IQK_MULMAT",
      "-Iik_llama.cpp/ggml/include", "-Iik_llama.cpp/ggml/src",
      "-Iik_llama.cpp/ggml/src/iqk"]
MLAS = "onnxruntime/onnxruntime/core/mlas/"
ONNX = ["--std=c++20", "-DBUILD_MLAS_NO_ONNXRUNTIME",
        "-Ionnxruntime/onnxruntime", f"-I{MLAS}inc", f"-I{MLAS}lib",
        "-Ionnxruntime/include/onnxruntime", "-IGSL/include"]
QUANTS = "ggml/src/ggml-cpu/arch/x86/quants.c"

# What it computes, its file, the function, what it is written for, options.
KERNELS = [
    ("dot f32", "llama.cpp/ggml/src/ggml-cpu/ggml-cpu.c", "ggml_vec_dot_f32",
     AVX512, LLAMA),
    ("softmax", "llama.cpp/ggml/src/ggml-cpu/ggml-cpu.c",
     "ggml_vec_soft_max_f32", AVX512, LLAMA),
    ("dot q8_0", QUANTS, "ggml_vec_dot_q8_0_q8_0", AVX2, GGML),
    ("dot q4_0", QUANTS, "ggml_vec_dot_q4_0_q8_0", AVX2, GGML),
    ("dot q4_K", QUANTS, "ggml_vec_dot_q4_K_q8_K", AVX2, GGML),
    ("softmax", "XNNPACK/src/f32-raddstoreexpminusmax/gen/f32-raddstoreexpminus"
     "max-avx512f-rr1-p5-scalef-u64-acc4.c", None, AVX512, XNNPACK),
    ("gemm", "XNNPACK/src/f32-gemm/gen/f32-gemm-7x32-minmax-avx512f-"
     "broadcast.c", None, AVX512, XNNPACK),
    ("dot f32", "simsimd/include/simsimd/dot.h", "simsimd_dot_f32_haswell",
     AVX2, ["-DSIMSIMD_NATIVE_BF16=0", "-Isimsimd/include"]),
    ("rms norm", "vllm/csrc/cpu/layernorm.cpp", "rms_norm_impl<float>", AVX512,
     VLLM),
    ("attention", "vllm/csrc/cpu/attention.cpp",
     "reduceQKBlockKernel<float, 64, 16, 4>::call", AVX512, VLLM),
    ("attention", "sglang/sgl-kernel/csrc/cpu/flash_attn.h",
     "flash_attn_softmax<at::BFloat16, 32, 64>::apply", TILES, SGLANG),
    ("attention", "llama.cpp/ggml/src/ggml-cpu/ggml-cpu.c",
     "ggml_compute_forward_flash_attn_ext_f16", AVX2, LLAMA),
    ("rms norm", "xFasterTransformer/src/kernels/rmsnorm_kernels.cpp",
     "xft::rmsNorm<float,float,float>", BF16,
     [f"-IxFasterTransformer/{each}" for each in
      ("include", "src/common", "src/utils", "src/kernels")]),
    ("rms norm", "ik_llama.cpp/ggml/src/iqk/iqk_cpu_ops.cpp",
     "rms_rms_add(int, float, float, const float *, const float *, const float "
     "*, const float *, float *)", AVX2, IK),
    ("dot int8", MLAS + "lib/qkv_quant_kernel_avx2.cpp", "FusedDotInt8<float>",
     AVX2, ONNX),
    ("attention", MLAS + "lib/linear_attention_kernel_avx512f.cpp",
     "FusedTokenN1Avx512<true>", AVX512, ONNX),
]


def first_problem(text):
    for line in text.splitlines():
        for mark in ("error: ", "warning: "):
            if mark in line:
                return line.split(mark, 1)[1]
    return text.strip()


def attempt(root, work, kernel, includes):
    """What became of one: imported, raised, its parameters as text, or None, and
    what stopped it."""
    _, path, function, features, options = kernel
    imported, raised = os.path.join(work, "kernel"), os.path.join(work, "raised")
    command = ["sandwich-import", path, "-o", imported + ".mlir",
               *options, *("-I" + each for each in includes),
               *("-m" + each for each in features)]
    if function:
        command.append("--function=" + function)
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if result.returncode:
        return False, False, None, first_problem(result.stderr)
    subprocess.run(["sandwich-import", imported + ".mlir", "--emit=cpp", "-o",
                    imported + ".cpp"], check=True)
    subprocess.run(["clang++-22", "-w", "-fsyntax-only", "-std=gnu++17",
                    *("-m" + each for each in features), imported + ".cpp"],
                   check=True)
    result = subprocess.run(["sandwich-opt", imported + ".mlir",
                             "--kernel-to-vector", "-o", raised + ".mlir"],
                            capture_output=True, text=True)
    if result.returncode or "warning: " in result.stderr:
        return True, False, None, first_problem(result.stderr)
    text = imported + ".kernel"
    result = subprocess.run(["sandwich-import", imported + ".mlir", "--emit=text",
                             "-o", text], capture_output=True, text=True)
    if result.returncode:
        return True, True, None, first_problem(result.stderr)
    # It is text, and can be read again.
    subprocess.run(["sandwich-import", text, "-o", imported + ".high.mlir"],
                   check=True)
    with open(text, encoding="utf-8") as file:
        parameters = re.findall(r"(\w+): tune\(", file.read())
    return True, True, sorted(set(parameters)), ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", 1)[0],
        epilog=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--include", action="append", default=[])
    arguments = parser.parse_args()
    includes = [os.path.abspath(each) for each in arguments.include]
    counts = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as work:
        for kernel in KERNELS:
            what, path, function = kernel[:3]
            if not os.path.exists(os.path.join(arguments.folder, path)):
                continue
            imported, raised, parameters, problem = attempt(
                arguments.folder, work, kernel, includes)
            counts = [counts[0] + 1, counts[1] + imported, counts[2] + raised,
                      counts[3] + (parameters is not None)]
            print("|", " | ".join([
                what, path.split("/")[0], (function or os.path.basename(path))
                .split("(")[0], "yes" if imported else "no",
                "yes" if raised else "no",
                "no" if parameters is None else " ".join(parameters) or "none",
                problem]), "|")
    print(f"{counts[1]} of {counts[0]} imported, {counts[2]} raised to vectors, "
          f"{counts[3]} to text")
    return 0 if counts[0] else 1


if __name__ == "__main__":
    sys.exit(main())
