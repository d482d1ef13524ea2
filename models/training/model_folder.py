# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes and reads a Hugging Face model folder: config, bfloat16 weights, tokenizer.

Every file is written beside its final place and renamed, so that a reader sees either
the old file or the whole new one.
"""

import json
import os
import struct
from pathlib import Path

import numpy
import torch

from llama import LlamaConfig, LlamaForCausalLM
from tokenizer import BEGIN_OF_TEXT, END_OF_TEXT, Tokenizer


def write_and_rename(path: Path, contents: bytes) -> None:
    """Puts the contents at the path, or leaves what was there."""
    beside = path.with_name(path.name + ".partial")
    with open(beside, "wb") as stream:
        stream.write(contents)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def json_bytes(value: object, indent: int | None = 2) -> bytes:
    return (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode()


def safetensors_bytes(tensors: dict[str, torch.Tensor]) -> bytes:
    """Returns a safetensors file of the tensors, rounded to the nearest bfloat16."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blocks, offset = [], 0
    for name in sorted(tensors):
        rounded = tensors[name].detach().contiguous().to(torch.bfloat16)
        block = rounded.view(torch.int16).numpy().tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(rounded.shape),
            "data_offsets": [offset, offset + len(block)],
        }
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The format asks for data at a multiple of 8 bytes.
    return struct.pack("<Q", len(text)) + text + b"".join(blocks)


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Returns the bfloat16 tensors of a file that `safetensors_bytes` made, as float32."""
    contents = path.read_bytes()
    (header_size,) = struct.unpack_from("<Q", contents)
    header = json.loads(contents[8 : 8 + header_size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
        bits = numpy.frombuffer(contents[begin:end], dtype="<u2").astype(numpy.uint32) << 16
        tensors[name] = torch.from_numpy(bits.view(numpy.float32)).reshape(entry["shape"])
    return tensors


def write_model(folder: Path, model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    """Writes everything but the model card."""
    config = model.config
    ids = {"bos_token_id": tokenizer.begin_of_text, "eos_token_id": tokenizer.end_of_text}
    folder.mkdir(parents=True, exist_ok=True)
    write_and_rename(folder / "model.safetensors", safetensors_bytes(model.state_dict()))
    write_and_rename(folder / "tokenizer.json", json_bytes(tokenizer.to_hugging_face(), indent=1))
    write_and_rename(
        folder / "tokenizer_config.json",
        json_bytes(
            {
                "add_bos_token": True,
                "add_eos_token": False,
                "added_tokens_decoder": {
                    str(id): {
                        "content": content,
                        "lstrip": False,
                        "normalized": False,
                        "rstrip": False,
                        "single_word": False,
                        "special": True,
                    }
                    for content, id in ((BEGIN_OF_TEXT, tokenizer.begin_of_text), (END_OF_TEXT, tokenizer.end_of_text))
                },
                "bos_token": BEGIN_OF_TEXT,
                "clean_up_tokenization_spaces": False,
                "eos_token": END_OF_TEXT,
                "model_max_length": config.max_position_embeddings,
                "tokenizer_class": "PreTrainedTokenizerFast",
            }
        ),
    )
    write_and_rename(
        folder / "generation_config.json",
        json_bytes({**ids, "do_sample": True, "temperature": 0.8, "top_p": 0.95}),
    )
    write_and_rename(
        folder / "config.json",
        json_bytes(
            {
                "architectures": ["LlamaForCausalLM"],
                "attention_bias": False,
                "attention_dropout": 0.0,
                **ids,
                "head_dim": config.head_dim,
                "hidden_act": "silu",
                "hidden_size": config.hidden_size,
                "initializer_range": config.initializer_range,
                "intermediate_size": config.intermediate_size,
                "max_position_embeddings": config.max_position_embeddings,
                "mlp_bias": False,
                "model_type": "llama",
                "num_attention_heads": config.num_attention_heads,
                "num_hidden_layers": config.num_hidden_layers,
                "num_key_value_heads": config.num_key_value_heads,
                "rms_norm_eps": config.rms_norm_eps,
                "rope_scaling": None,
                "rope_theta": config.rope_theta,
                "tie_word_embeddings": True,
                "torch_dtype": "bfloat16",
                "use_cache": True,
                "vocab_size": config.vocab_size,
            }
        ),
    )


def read_model(folder: Path) -> tuple[LlamaForCausalLM, Tokenizer]:
    """Reads back a folder that `write_model` wrote."""
    stored = json.loads((folder / "config.json").read_text())
    config = LlamaConfig(**{name: stored[name] for name in LlamaConfig.__dataclass_fields__})
    model = LlamaForCausalLM(config)
    model.load_state_dict(read_safetensors(folder / "model.safetensors"))
    tokenizer = Tokenizer.from_hugging_face((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return model.eval(), tokenizer
