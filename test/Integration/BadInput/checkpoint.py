#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints that sandwich-compile must refuse. unittests/Frontend has the
details of each file's format; these are the ways it reaches the user."""
import json
import os
import struct
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(__file__), "../Inputs"))
import make_checkpoint
from bad_input import BadInputTest, unittest


class Files(BadInputTest):
    def setUp(self):
        super().setUp()
        self.write_model()
        self.weights = "model/model.safetensors"

    def test_no_folder(self):
        self.model = self.path("absent")
        self.refuse_compile("absent: No such file or directory")
        self.model = self.write("file", "")
        self.refuse_compile("file: is neither a folder nor a GGUF file")
        os.symlink("nowhere", self.path("dangling"))
        self.model = self.path("dangling")
        self.refuse_compile("dangling")

    def test_missing_empty_and_truncated_config(self):
        text = open(self.path("model/config.json")).read()
        self.write("model/config.json", text[:40])
        self.refuse_compile("config.json: not valid JSON")
        self.write("model/config.json", "")
        self.refuse_compile("config.json: not valid JSON")
        os.unlink(self.path("model/config.json"))
        self.refuse_compile("config.json: cannot open")
        os.mkdir(self.path("model/config.json"))
        self.refuse_compile("config.json: ")
        os.rmdir(self.path("model/config.json"))
        os.mkfifo(self.path("model/config.json"))
        self.refuse_compile("config.json: ")

    def test_config_of_nested_brackets(self):
        self.write("model/config.json", "[" * 1000000)
        self.refuse_compile("config.json: ")

    def test_missing_empty_and_truncated_weights(self):
        data = open(self.path(self.weights), "rb").read()
        self.write(self.weights, data[:-1])
        self.refuse_compile("model.safetensors: tensor")
        self.write(self.weights, data[:100])
        self.refuse_compile("model.safetensors: the header length")
        self.write(self.weights, "")
        self.refuse_compile("model.safetensors: is 0 bytes long")
        os.unlink(self.path(self.weights))
        self.refuse_compile("holds no weights")
        os.mkfifo(self.path(self.weights))
        self.refuse_compile("model.safetensors")
        os.unlink(self.path(self.weights))
        os.symlink("nowhere", self.path(self.weights))
        self.refuse_compile("model.safetensors|holds no weights")

    def test_weights_of_nested_brackets(self):
        header = b"[" * (99 << 20)
        self.write(self.weights, struct.pack("<Q", len(header)) + header)
        self.refuse_compile("model.safetensors: ")

    def test_bad_index(self):
        self.write_model(shards=2)
        os.unlink(self.path(self.weights)) if os.path.exists(
            self.path(self.weights)) else None
        name = "model/model.safetensors.index.json"
        sound = json.load(open(self.path(name)))

        def spoil(change, pattern):
            index = json.loads(json.dumps(sound))
            change(index["weight_map"])
            self.write(name, json.dumps(index))
            self.refuse_compile(pattern)

        first = next(iter(sound["weight_map"]))
        other = "model-00002-of-00002.safetensors"
        spoil(lambda names: names.update({first: "absent.safetensors"}),
              "index.json: .*absent.safetensors")
        spoil(lambda names: names.update({first: "../x.safetensors"}),
              "index.json: .*same folder")
        spoil(lambda names: names.update({first: other}),
              "index.json: .*is not in")
        spoil(lambda names: names.pop(first), "embed_tokens.* is missing")
        spoil(lambda names: names.clear(), "weight_map is {}")
        self.write(name, "")
        self.refuse_compile("index.json: not valid JSON")
        self.write(name, json.dumps(sound))
        os.unlink(self.path("model/" + other))
        self.refuse_compile("model-00002-of-00002.safetensors")

    def test_bad_tokenizer(self):
        for content in ("", "{", "[]", '{"model": {"type": "BPE"}}'):
            self.write("model/tokenizer.json", content)
            self.refuse_compile("tokenizer.json: ")
        os.unlink(self.path("model/tokenizer.json"))
        os.mkdir(self.path("model/tokenizer.json"))
        self.refuse_compile("tokenizer.json: ")
        os.rmdir(self.path("model/tokenizer.json"))
        os.symlink("absent", self.path("model/tokenizer.json"))
        self.refuse_compile("tokenizer.json: cannot open")

    def test_added_tokens_that_the_tokenizer_lacks(self):
        self.write("model/tokenizer.json", json.dumps({
            "version": "1.0", "added_tokens": [],
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1},
                      "merges": []}}))
        added = {"content": "<x>", "special": True}
        self.write("model/tokenizer_config.json",
                   json.dumps({"added_tokens_decoder": {"7": added}}))
        self.refuse_compile('tokenizer_config.json: added_tokens_decoder'
                            '.*"<x>" is not in tokenizer.json')
        self.write("model/tokenizer_config.json",
                   json.dumps({"added_tokens_decoder": {"2": added}}))
        for tokens, reason in (('{"<y>": 3}', '"<y>" is neither'),
                               ('{"<x>": 3}', '"<x>" has another id, 2'),
                               ("[]", "must be an object"),
                               ("{", "not valid JSON")):
            self.write("model/added_tokens.json", tokens)
            self.refuse_compile("added_tokens.json: .*" + reason)
        self.write("model/added_tokens.json", '{"<x>": 2}')
        self.compile("--dtype=f32")


class Config(BadInputTest):
    def test_fields(self):
        self.write_model()
        sound = self.config
        huge = 10**30
        for field, values in {
                "hidden_size": (0, -64, 65, 2**31, 2**63, huge, 64.5, "64",
                                None, [64]),
                "intermediate_size": (0, -1, 2**40, huge, True),
                "num_hidden_layers": (0, -2, 3, 2**20, huge),
                "num_attention_heads": (0, -4, 3, 2**31),
                "num_key_value_heads": (0, -1, 3, 8, 2**31),
                "head_dim": (0, -16, 15, 2**31),
                "vocab_size": (0, -1, 2**31, huge),
                "max_position_embeddings": (0, -1, huge),
                "rms_norm_eps": (0, -1e-5, 1e30, "small"),
                "rope_theta": (0, -1, 1e300, "x"),
                "hidden_act": ("gelu",),
                "architectures": ([], ["BertModel"], "LlamaForCausalLM", None),
                "model_type": ("mistral",),
                "attention_bias": (1, "yes"),
                "mlp_bias": (True,),
                "tie_word_embeddings": ("no",),
                "rope_scaling": ({"rope_type": "yarn", "factor": 2.0},
                                 {"type": "linear"},
                                 {"type": "linear", "factor": 0},
                                 {"type": "linear", "factor": -1.0},
                                 {"rope_type": "llama3", "factor": 8.0},
                                 "linear"),
                "is_causal": (False,),
                "final_logit_softcapping": (30.0,),
                "no_rope_layers": ([1, 0],),
                "quantization_config": ({"quant_method": "awq"},),
                "eos_token_id": (-1, 320, "</s>"),
        }.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    self.write("model/config.json",
                               json.dumps({**sound, field: value}))
                    # Of two fields that contradict each other, either may be
                    # named; a size that is possible but not this checkpoint's
                    # shows in a tensor.
                    self.refuse_compile(f"{field}|config.json implies")

    def test_context_beyond_the_sliding_window(self):
        self.config.update(architectures=["MistralForCausalLM"],
                           model_type="mistral", sliding_window=64,
                           max_position_embeddings=256)
        self.write_model()
        self.refuse_compile("a context of 65 tokens is beyond the model's "
                            "sliding window of 64", "--context=65")
        command = self.compile_command([], "by-default.sandwich")
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the context is 64 tokens, the sliding window",
                      done.stderr)
        for artifact in (self.path("by-default.sandwich"),
                         self.compile("--context=64")):
            inspected = subprocess.run(
                ["sandwich-run", "inspect", artifact, "--json"],
                stdout=subprocess.PIPE, check=True, timeout=300).stdout
            self.assertRegex(inspected, rb'"context_length": ?64\b')

    def test_missing_fields(self):
        self.write_model()
        for field in ("architectures", "hidden_size", "intermediate_size",
                      "num_hidden_layers", "num_attention_heads",
                      "vocab_size", "max_position_embeddings",
                      "rms_norm_eps"):
            config = dict(self.config)
            del config[field]
            self.write("model/config.json", json.dumps(config))
            with self.subTest(field=field):
                self.refuse_compile(f"config.json: {field} is missing")


class Tensors(BadInputTest):
    def entries(self):
        return make_checkpoint.random_tensors(self.config, "F32", 0)

    def test_missing(self):
        for index in (0, 1, 5, -1):
            entries = self.entries()
            name = entries.pop(index)[0]
            self.write_model(entries)
            self.refuse_compile(f"tensor \"{name}\" is missing")

    def test_misshapen(self):
        for index in (0, 1, 5):
            entries = self.entries()
            name, dtype, shape, data = entries[index]
            entries[index] = name, dtype, (*shape, 1), data
            self.write_model(entries)
            self.refuse_compile(f"tensor \"{name}\"")
            if len(shape) == 2 and shape[0] != shape[1]:
                entries[index] = name, dtype, shape[::-1], data
                self.write_model(entries)
                self.refuse_compile(f"tensor \"{name}\"")

    def test_other_element_type(self):
        entries = self.entries()
        name, _, shape, data = entries[3]
        entries[3] = name, "I32", shape, data
        self.write_model(entries)
        self.refuse_compile(f"tensor \"{name}\"")

    def test_not_finite(self):
        for index, bad in ((0, np.nan), (1, np.nan), (2, np.inf),
                           (-2, -np.inf), (-1, np.nan)):
            entries = self.entries()
            name, dtype, shape, data = entries[index]
            values = np.frombuffer(data, "<f4").copy()
            # The last element: of a matrix, all but the last are packed by
            # then.
            values[-1] = bad
            entries[index] = name, dtype, shape, values.tobytes()
            self.write_model(entries)
            with self.subTest(name=name, bad=bad):
                self.refuse_compile(name)

    def test_more_than_bf16_holds(self):
        entries = self.entries()
        name, dtype, shape, data = entries[2]
        values = np.frombuffer(data, "<f4").copy()
        values[-1] = 3.4e38
        entries[2] = name, dtype, shape, values.tobytes()
        self.write_model(entries)
        self.refuse_compile(
            f'model.safetensors: tensor "{name}": element .* is 3.4e.38, '
            "which bf16 cannot hold", "--dtype=bf16")
        self.compile("--dtype=f32")

    def test_tied_head_of_its_own(self):
        entries = self.entries()
        self.assertEqual(entries[-1][0], "lm_head.weight")
        self.config["tie_word_embeddings"] = True
        self.write_model(entries)
        self.refuse_compile('model.safetensors: tensor "lm_head.weight": '
                            '.*"model.embed_tokens.weight"')
        # The same table written twice is usual.
        entries[-1] = ("lm_head.weight", *entries[0][1:])
        self.write_model(entries)
        self.compile("--dtype=f32")

    def test_contradicts_config(self):
        self.write_model()
        self.config["num_hidden_layers"] = 3
        self.write("model/config.json", json.dumps(self.config))
        self.refuse_compile("model.layers.2.* is missing")


unittest.main()
