# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A made-up OpenVINO GenAI with a made-up model; PA is twice as fast as SDPA."""
import os
import types

from made_up_model import Model

__version__ = "made up"


def Tokenizer(_):
    return None


def TokenizedInputs(ids, mask):
    assert ids.shape == mask.shape and mask.all()
    return [int(token) for token in ids[0]]


def GenerationConfig(**fields):
    assert fields["ignore_eos"] and not fields["do_sample"]
    return fields


class LLMPipeline:
    def __init__(self, folder, _, device, **properties):
        assert device == "CPU"
        assert properties["INFERENCE_PRECISION_HINT"] == "bf16"
        self.model = Model(os.path.join(folder, "openvino_model.xml"))
        self.speed = self.model.speed * \
            {"SDPA": 1, "PA": 2}[properties["ATTENTION_BACKEND"]]

    def generate(self, prompt, config):
        steps = self.model.continuation(prompt, config["max_new_tokens"])
        milliseconds = types.SimpleNamespace(mean=1000 / self.speed)
        return types.SimpleNamespace(
            tokens=[[token for token, _ in steps]],
            scores=[sum(known[token] for token, known in steps)
                    if config.get("logprobs") else 0],
            perf_metrics=types.SimpleNamespace(
                get_ttft=lambda: milliseconds, get_tpot=lambda: milliseconds))
