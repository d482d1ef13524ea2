#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR that sandwich-compile must refuse: malformed, of another model, or with
sizes that nothing could hold."""
import json
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../Inputs"))
from bad_input import BadInputTest, unittest

HUGE = "9223372036854775807"


class IR(BadInputTest):
    def setUp(self):
        super().setUp()
        self.config["num_key_value_heads"] = 1
        self.write_model()

    def emit(self, level, *options):
        return subprocess.run(
            ["sandwich-compile", self.model, "-q", "--threads=2",
             "--dtype=f32", "--target=x86-64-avx2", f"--emit={level}",
             *options],
            check=True, stdout=subprocess.PIPE).stdout.decode()

    def refuse_ir(self, text, pattern, *options):
        self.write("x.mlir", text)
        self.refuse_compile(pattern, "--ir=" + self.path("x.mlir"),
                            "--dtype=f32", "--emit=asm", *options)
        self.refuse_compile(pattern, "--ir=" + self.path("x.mlir"),
                            "--dtype=f32", *options)

    def refuse_edits(self, text, edits, *options):
        for pattern, replacement, error in edits:
            edited = re.sub(pattern, replacement, text, count=1)
            self.assertNotEqual(edited, text, pattern)
            with self.subTest(pattern=pattern, replacement=replacement):
                self.refuse_ir(edited, error, *options)

    def test_files(self):
        self.refuse_compile("absent.mlir", "--ir=" + self.path("absent.mlir"))
        self.refuse_compile("model", "--ir=" + self.model)
        os.mkfifo(self.path("fifo"))
        self.refuse_compile("fifo", "--ir=" + self.path("fifo"))
        self.refuse_ir("", "x.mlir: has no function @prefill")
        self.refuse_ir("module {", "x.mlir: line 1: ")
        self.refuse_ir(b"\0\xff\n\n}", "x.mlir: ")
        self.refuse_ir("(" * 100000, "x.mlir: ")
        self.refuse_ir("module { func.func @prefill() { return } }",
                       "x.mlir: @prefill needs lm.phase")

    def test_deeply_nested(self):
        self.refuse_ir("module {" * 100000, "x.mlir: ")
        self.refuse_ir("module attributes {a = " + "[" * 200000, "x.mlir: ")

    def test_other_levels(self):
        self.refuse_ir(self.emit("loop-ir"), "x.mlir: ")
        self.refuse_ir(self.emit("llvm-ir"), "x.mlir: ")

    def test_of_another_model(self):
        text = self.emit("schedule-ir")
        self.refuse_compile("x.mlir: .*f32", "--dtype=bf16",
                            "--ir=" + self.write("x.mlir", text))
        for field, value in (("num_hidden_layers", 1), ("vocab_size", 321),
                             ("num_key_value_heads", 2),
                             ("intermediate_size", 128), ("head_dim", 32),
                             ("tie_word_embeddings", True)):
            self.config[field], kept = value, self.config.get(field)
            self.write_model()
            with self.subTest(field=field):
                self.refuse_ir(text, "x.mlir: ")
            self.config[field] = kept
            if kept is None:
                del self.config[field]

    def test_model_ir(self):
        text = self.emit("model-ir")
        self.refuse_edits(text, (
            ("tensor<320x64xf32>", f"tensor<{HUGE}x64xf32>", "x.mlir: "),
            ("tensor<320x64xf32>", "tensor<4294967296x4294967296xf32>",
             "x.mlir: "),
            ("tensor<320x64xf32>", "tensor<?x64xf32>", "x.mlir: "),
            ("tensor<320x64xf32>", "tensor<320x64x1xf32>", "x.mlir: "),
            ("tensor<64x64xf32> layers 2", f"tensor<64x64xf32> layers {HUGE}",
             "x.mlir: "),
            ("tensor<64x64xf32> layers 2", "tensor<64x64xf32> layers -1",
             "x.mlir: "),
            ("tensor<64xf32> layers 2", "tensor<48xf32> layers 2",
             "x.mlir: "),
            (r'"model\.embed_tokens\.weight"', '"absent"', "x.mlir: "),
            (r"layers = 2, heads = 1", f"layers = {HUGE}, heads = 1",
             "x.mlir: "),
            (r"head_dim = 16", f"head_dim = {HUGE}", "x.mlir: "),
            (r"head_dim = 16", "head_dim = 0", "x.mlir: "),
            (r"arith.constant 2 : index", "arith.constant 3 : index", "."),
            (r"arith.constant 2 : index", f"arith.constant {HUGE} : index",
             "."),
            (r"arith.constant 0 : index", "arith.constant -1 : index", "."),
            (r"@layers\.mlp\.up_proj\[", "@layers.mlp.down_proj[", "."),
            (r"@layers\.mlp\.up_proj\[", "@absent[", "."),
            (r"(lm\.linear %\w+, @layers\.mlp\.down_proj)\[%\w+\]", r"\1", "."),
            (r"%14 = lm.add %arg8, %13", "%14 = lm.add %13, %13", "."),
            (r"(lm\.rotary_table %arg1) frequencies \[1\.0", r"\1 frequencies [2.0, 1.0",
             "."),
            (r"(lm\.append_kv %\w+, )%\w+", r"\1%arg7", r"line \d+: "),
            (r"lm.phase<prefill>", "lm.phase<decode>", "."),
            (r"return %5", "return %arg0", "."),
            # Weights of its own.
            (r"(%0 = lm\.rotary_table )",
             r"builtin.module { lm.weight @e : tensor<320x64xf32> from "
             r'["model.embed_tokens.weight"] func.func @f(%i: tensor<?xi32>) {'
             r" %x = lm.embed %i, @e : tensor<?xi32> -> tensor<?x64xf32>"
             r" return } }\n\1", "cannot be in a phase"),
            # What the runtime checks the ranges of.
            ("rotary_table %arg1", "rotary_table %arg0",
             "must take the positions"),
            ("slots %arg2", "slots %arg1", "must take the cache slots"),
            ("blocks %arg4", "blocks %arg2", "must take the block tables"),
            (r"(?s)%2 = (scf\.for .*? iter_args\(%arg8 = %1)\) -> "
             r"\(tensor<\?x64xf32>\)(.*?segments )%arg3(.*?scf\.yield %\d+) : "
             r"tensor<\?x64xf32>(.*?gather_rows )%2",
             r"%2:2 = \1, %other = %arg3) -> (tensor<?x64xf32>, "
             r"tensor<?x4xi32>)\2%other\3, %other : "
             r"tensor<?x64xf32>, tensor<?x4xi32>\4%2#0",
             "must take the segments"),
            ("lm.embed %arg0", "lm.embed %arg1", "must take the token ids"),
        ))

    def test_what_is_no_model(self):
        for level in ("model-ir", "schedule-ir"):
            self.refuse_edits(self.emit(level), (
                # What a rank that runs it would end by.
                (r"(%0 = lm\.rotary_table )",
                 r"%p = llvm.mlir.zero : !llvm.ptr "
                 r"%l = llvm.load volatile %p : !llvm.ptr -> i64\n\1",
                 r"x.mlir: line \d+: 'llvm\.mlir\.zero' op cannot be in a "
                 "phase"),
                (r"(%0 = lm\.rotary_table )",
                 r'llvm.inline_asm has_side_effects "ud2", "" : () -> ()\n\1',
                 r"x.mlir: line \d+: 'llvm\.inline_asm' op cannot be in a "
                 "phase"),
                # Names that the compiler gives.
                (r"module {", r"module {\nfunc.func private "
                 r"@X86_AVX2_F32_6x16_ld80()",
                 r"x.mlir: line \d+: 'func\.func' op cannot be in a model"),
                (r"(?s)(func\.func @)prefill(.*?\n  })",
                 r"\1prefill\2\n\1more\2",
                 "x.mlir: @more is no phase that the runtime has$"),
            ))

    def test_instructions_of_another_target(self):
        text = subprocess.run(
            ["sandwich-compile", self.model, "-q", "--threads=2",
             "--target=x86-64-avx512-bf16", "--emit=schedule-ir"],
            check=True, stdout=subprocess.PIPE).stdout.decode()
        self.refuse_compile("micro-kernel X86_AVX512_BF16_12x32",
                            "--ir=" + self.write("x.mlir", text))

    def test_schedule_ir(self):
        text = self.emit("schedule-ir")
        slice = r"slice = \[6, 32, 64\]"
        self.refuse_edits(text, (
            ("X86_AVX2_F32_6x16", "X86_AVX2_F32_60x160", "x.mlir: "),
            ("X86_AVX2_F32_6x16", "X86_AVX9_F32_6x16", "x.mlir: "),
            ("X86_AVX2_F32_6x16", f"X86_AVX2_F32_{HUGE}x16", "x.mlir: "),
            ("X86_AVX2_F32_6x16", f"X86_AVX2_F32_{HUGE}0x16", "x.mlir: "),
            ("X86_AVX2_F32_6x16", "X86_AVX512_BF16_12x32", "x.mlir: "),
            # Not what the target has.
            ("X86_AVX2_F32_6x16", "X86_AVX512_F32_12x32", "."),
            ("X86_AVX2_F32_6x16", "X86_AMX_BF16_32x32", "x.mlir: "),
            (slice, "slice = [0, 32, 64]", "x.mlir: "),
            (slice, "slice = [6, 31, 64]", "x.mlir: "),
            (slice, f"slice = [{HUGE}, 32, 64]", "."),
            (slice, "slice = [6, 9223372036854775776, 64]", "."),
            (slice, f"slice = [6, 32, {HUGE}]", "."),
            (slice, f"slice = [6, 32, {HUGE}0]", "x.mlir: "),
            (r"threads = \[1, 2, 1\]", "threads = [1, 0, 1]", "x.mlir: "),
            (r"threads = \[1, 2, 1\]", f"threads = [1, {HUGE}, 1]", "."),
            (r"threads = \[1, 2, 1\]",
             "threads = [4294967296, 4294967296, 2]", "."),
            (r"threads = \[1, 2, 1\]", "threads = [1, 3, 1]", "."),
            (r"threads = \[1, 2, 1\]", "threads = [1, 1, 3]", "."),
            (r"threads = \[1, 2, 1\]", "threads = [1, 1, 1024]", "."),
            (r"(prefetch = \[\d+, 8192\])", r"\1, streams = 2", "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", rf"\1, streams = {HUGE}",
             "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", r"\1, order = sideways",
             "x.mlir: "),
            (r"prefetch = \[\d+, 8192\]", f"prefetch = [{HUGE}, 8192]", "."),
            (r"prefetch = \[\d+, 8192\]", f"prefetch = [8, {HUGE}]", "."),
            (r"prefetch = \[\d+, 8192\]", "prefetch = [-1, 8192]", "x.mlir: "),
            (r"<6 : <micro", "<0 : <micro", "x.mlir: "),
            (r"<6 : <micro", f"<{HUGE} : <micro", "x.mlir: "),
            (r", \? : <micro", ", 25 : <micro", "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", rf"\1, k_chunk = {HUGE}", "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", r"\1, k_chunk = -1", "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", r"\1, input = packed",
             "x.mlir: "),
            (r"(prefetch = \[\d+, 0\])", r"\1, streamed = both",
             "x.mlir: "),
            ("panel = 16", "panel = 64", "."),
            ("panel = 16", "panel = 0", "x.mlir: "),
            ("panel = 16, tile = 16", f"panel = {HUGE}, tile = {HUGE}", "."),
            ("k_step = 1", "k_step = 7", "."),
            (r"packing #gemm\.packing<[^>]*>", "packing 7 : i64", "x.mlir: "),
            ("interleave 16", "interleave 17", "."),
            ("interleave 16", f"interleave {HUGE}", "."),
            ("interleave 16", "interleave 0", "x.mlir: "),
            (" interleave 16", "", "."),
            (r"epilogue\(<silu_mul>\)", "epilogue(<none>)", "x.mlir: "),
            (r"epilogue\(<add_residual>\) residual\(%arg8",
             "epilogue(<add_residual>) residual(%0", "x.mlir: "),
            (r'\["model\.layers\.\{\}\.self_attn\.q_proj\.weight", ',
             "[", "x.mlir: "),
        ))

    def test_embedding_tables(self):
        self.config["num_key_value_heads"] = 2
        self.write_model()
        small = (r'\1  lm.weight @small : tensor<64x64xf32> from '
                 r'["model.layers.0.self_attn.q_proj.weight"]\n\2@small')
        for options in ((), ("--tensor-parallel=2",)):
            for level in ("model-ir", "schedule-ir"):
                self.refuse_edits(self.emit(level, *options), (
                    # A token id can be any of the vocabulary.
                    (r"(?s)(module {\n)(.*?lm\.embed %arg0, )@embedding", small,
                     r"x.mlir: line \d+: 'lm\.embed' op needs the 320 rows of "
                     r"the vocabulary, weight @small has 64$"),
                ), *options)

    def test_what_ranks_have_of_weights(self):
        self.config.update(num_key_value_heads=2, attention_bias=True,
                           architectures=["Qwen3ForCausalLM"],
                           model_type="qwen3")
        self.write_model()
        ranks = "--tensor-parallel=2"
        attention = r"layers.self_attn\."
        first = " shard <first, ranks = 2>"

        def has(op, weight, needed, actual):
            return (rf"x.mlir: line \d+: '{op}' op needs weight "
                    rf'@"?{weight}"? {needed}, not {actual}$')

        def in_shards(kind):
            return rf"in shards of '{kind}'"

        # All ranks look up all tokens, and normalize all channels alike.
        whole = (
            (r"(@embedding : tensor)<320x(64xf32> from .*)",
             r"\1<160x\2 shard <rows, ranks = 2>",
             has(r"lm\.embed", "embedding", "whole", in_shards("rows"))),
            (r"(@embedding : .*)", r"\1" + first,
             has(r"lm\.embed", "embedding", "whole", in_shards("first"))),
            (r"(@final_norm : .*)", r"\1" + first,
             has(r"lm\.rms_norm", "final_norm", "whole", in_shards("first"))),
        )
        for level, linear, norm, projection, source in (
                ("model-ir", r"lm\.linear", r"lm\.rms_norm", "q_proj",
                 "k_proj"),
                ("schedule-ir", r"gemm\.matmul", r"gemm\.matmul", "qkv_proj",
                 "q_proj")):
            self.refuse_edits(self.emit(level, ranks), whole + (
                (rf"(@{attention}q_norm : .*)", r"\1" + first,
                 has(norm, attention + "q_norm", "whole", in_shards("first"))),
                (rf"(@{attention}k_norm : .*)", r"\1" + first,
                 has(norm, attention + "k_norm", "whole", in_shards("first"))),
                # Every rank would add the bias to its part of the sum.
                (rf"(@{attention}o_proj\.bias : .*){first}", r"\1",
                 has(linear, attention + r"o_proj\.bias", in_shards("first"),
                     "whole")),
                # What nobody adds up would differ from rank to rank.
                (rf"(@{attention}{projection}\.bias : .* from ).*",
                 rf'\1["model.layers.{{}}.self_attn.{source}.bias"]{first}',
                 has(linear, attention + rf"{projection}\.bias",
                     in_shards("rows"), in_shards("first"))),
                (r"(@head : tensor<160x64xf32> from ).*",
                 rf'\1["model.layers.0.mlp.gate_proj.weight"]{first}',
                 has(linear, "head", "whole", in_shards("first"))),
            ), ranks)

    def test_schedule_ir_of_one_rank(self):
        self.config["num_key_value_heads"] = 2
        self.write_model()
        self.refuse_ir(self.emit("schedule-ir"),
                       "x.mlir: is schedule IR of one rank, which cannot be "
                       "divided; give model IR, or IR made with "
                       "--tensor-parallel=2$", "--tensor-parallel=2")

    def test_threads(self):
        def differ(phase, there, asked):
            return (rf"x.mlir: @{phase} has lm\.threads = {there}, but the "
                    rf"options ask for {asked}$")

        text = self.emit("model-ir", "--decode-threads=1")
        self.refuse_ir(text, differ("decode", 1, 2))
        self.refuse_ir(text, differ("decode", 1, 3), "--decode-threads=3")
        self.refuse_ir(self.emit("schedule-ir", "--decode-threads=1"),
                       differ("decode", 1, 2))
        prefill = text.replace("#lm.phase<prefill>",
                               "#lm.phase<prefill>, lm.threads = 1 : i64")
        self.refuse_ir(prefill, differ("prefill", 1, 2), "--decode-threads=1")
        # That of the other phase says nothing about it.
        self.emit("asm", "--ir=" + self.write("x.mlir", text),
                  "--decode-threads=1")
        # Nobody asked for as many as this machine has.
        command = ["sandwich-compile", self.model, "-q", "--dtype=f32",
                   "--target=x86-64-avx2", "--ir=" + self.path("x.mlir")]
        loops = subprocess.run(command + ["--emit=loop-ir"], check=True,
                               stdout=subprocess.PIPE).stdout.decode()
        self.assertRegex(loops, r"@decode\(.* #phase\.program<threads = 1,")
        cpu = min(os.sched_getaffinity(0))
        plan = {"prefill_cores": [[cpu]], "decode_cores": [[cpu]]}
        self.write("plan.json", json.dumps({"configurations": [plan]}))
        self.write("x.mlir", text.replace("lm.threads = 1", "lm.threads = 2"))
        self.refuse(command + ["--emit=asm",
                               "--plan=" + self.path("plan.json")],
                    differ("decode", 2, 1))

    def test_sums_over_ranks(self):
        self.config["num_key_value_heads"] = 2
        self.write_model()
        ranks = "--tensor-parallel=2"
        def unsummed(read, reader):
            return (rf"x.mlir: line \d+: '{reader}' op reads the result of "
                    rf"{read}, one rank's part, before lm\.all_reduce sums it$")

        mixed = (r"x.mlir: line \d+: '%s' op sums what is one rank's part and "
                 r"what all ranks have alike$")
        whole = (r"x.mlir: line \d+: 'lm\.all_reduce' op sums what is no part "
                 r"of a sum over the ranks$")
        self.refuse_edits(self.emit("model-ir", ranks), (
            # The first sum of a layer, then the second, is not used.
            (r"lm\.rms_norm %17,", "lm.rms_norm %16,",
             unsummed(r"lm\.add", r"lm\.rms_norm")),
            (r"scf\.yield %25", "scf.yield %24",
             unsummed(r"lm\.add", r"scf\.yield")),
            # Rows are dealt, and then read beside the sum too, or dealt again.
            (r"lm\.rms_norm %17,", "lm.rms_norm %15,",
             unsummed(r"lm\.deal_rows", r"lm\.rms_norm")),
            (r"lm\.deal_rows %17", "lm.deal_rows %15",
             unsummed(r"lm\.deal_rows", r"lm\.deal_rows")),
            # Without the linear layer's part, that is in no sum any more.
            (r"lm\.add %15, %14", "lm.add %15, %arg8", mixed % r"lm\.add"),
            # Every rank adds the whole residual.
            (r"lm\.add %15, %14", "lm.add %arg8, %14", mixed % r"lm\.add"),
            (r"lm\.all_reduce %16", "lm.all_reduce %arg8", whole),
        ), ranks)
        matmul = r"gemm\.matmul"
        self.refuse_edits(self.emit("schedule-ir", ranks), (
            (r"lm\.rms_norm %11,", "lm.rms_norm %10,",
             unsummed(matmul, r"lm\.rms_norm")),
            (r"scf\.yield %15", "scf.yield %14",
             unsummed(matmul, r"scf\.yield")),
            (r"residual\(%11 ", "residual(%10 ", unsummed(matmul, matmul)),
            (r" among 2\)", ")", mixed % matmul),
            (r"lm\.all_reduce %10", "lm.all_reduce %arg8", whole),
        ), ranks)

    def test_epilogues_of_shards(self):
        self.config["num_key_value_heads"] = 2
        self.write_model()
        ranks = "--tensor-parallel=2"
        text = re.sub(r" schedules\(.*?>>\)| packing #gemm\.packing<.*?>", "",
                      self.emit("schedule-ir", ranks))
        misfit = (r"x.mlir: line \d+: 'gemm\.matmul' op has an epilogue that "
                  r"does not fit a weight of which ranks have %s$")
        gate_up = r"@layers\.mlp\.gate_up_proj"

        def refuse(edits, error):
            edited = text
            for pattern, replacement in edits:
                edited, count = re.subn(pattern, replacement, edited)
                self.assertGreater(count, 0, pattern)
            self.refuse_ir(edited, error, ranks)

        # Gates that are parts of sums.
        refuse(((fr"({gate_up} : tensor)<160x64xf32>(.*) shard <rows",
                 r"\1<320x32xf32>\2 shard <columns"),
                (fr"%12, ({gate_up}\[.*) : tensor<\?x64xf32> -> .*",
                 r"%9, \1 : tensor<?x32xf32> -> tensor<?x160xf32>"),
                (r"(@layers\.mlp\.down_proj : tensor)<64x80xf32>(.*) shard <.*?>",
                 r"\1<64x160xf32>\2"),
                (r"(@layers\.mlp\.down_proj\[.*) : tensor<\?x80xf32> ->",
                 r"\1 : tensor<?x160xf32> ->")), misfit % "columns")
        # A residual that is dealt to sums that every rank has whole.
        refuse(((r"(@layers\.self_attn\.o_proj : tensor)<64x32xf32>(.*) shard <.*?>",
                 r"\1<64x64xf32>\2"),
                (r"%9, (@layers\.self_attn\.o_proj\[.*) : tensor<\?x32xf32> ->",
                 r"%7, \1 : tensor<?x64xf32> ->")), misfit % "no columns")


unittest.main()
