# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Llama architecture for training: the same mathematics and parameter names as
Hugging Face's LlamaForCausalLM (rotary positions, grouped-query attention, SwiGLU,
RMS norms, tied embeddings), plus dropout, which only training uses.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class LlamaConfig:
    """The shape of a model; the names are those of Hugging Face's config.json."""

    vocab_size: int
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    max_position_embeddings: int = 512
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    initializer_range: float = 0.02

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


def rotary_tables(config: LlamaConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosine and sine of shape [max_position_embeddings, head_dim]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / config.rope_theta**exponents
    angles = torch.outer(torch.arange(config.max_position_embeddings, dtype=torch.float32), frequencies)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def rotate(states: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Rotates each head by its position; element i pairs with element i + head_dim / 2."""
    first, second = states.chunk(2, -1)
    return states * cosine + torch.cat((-second, first), -1) * sine


class RMSNorm(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        query_size = config.num_attention_heads * config.head_dim
        key_value_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, query_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, key_value_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, key_value_size, bias=False)
        self.o_proj = nn.Linear(query_size, config.hidden_size, bias=False)

    def forward(
        self, states: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        batch, tokens, _ = states.shape
        head_dim = self.config.head_dim

        def heads(projected: torch.Tensor) -> torch.Tensor:
            return projected.view(batch, tokens, -1, head_dim).transpose(1, 2)

        query = rotate(heads(self.q_proj(states)), cosine, sine)
        key = rotate(heads(self.k_proj(states)), cosine, sine)
        value = heads(self.v_proj(states))
        group = self.config.num_attention_heads // self.config.num_key_value_heads
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(head_dim) + mask, -1)
        return self.o_proj((weights @ value).transpose(1, 2).reshape(batch, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(states)) * self.up_proj(states))


class DecoderLayer(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.input_layernorm = RMSNorm(config)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config)
        self.mlp = FeedForward(config)


class Decoder(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config)


class LlamaForCausalLM(nn.Module):
    """A Llama whose output head is its embedding; `state_dict` has Hugging Face's names."""

    def __init__(self, config: LlamaConfig, dropout: float = 0.0):
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.dropout = nn.Dropout(dropout)
        cosine, sine = rotary_tables(config)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)
        size = config.max_position_embeddings
        mask = torch.full((size, size), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        # The projections that write to the residual stream start smaller, so that its
        # variance at the start does not grow with the number of layers.
        residual_scale = 1 / math.sqrt(2 * config.num_hidden_layers)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                writes_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=config.initializer_range * (residual_scale if writes_residual else 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape [batch, tokens, vocab_size] for ids of [batch, tokens]."""
        tokens = ids.shape[1]
        cosine, sine, mask = self.cosine[:tokens], self.sine[:tokens], self.mask[:tokens, :tokens]
        states = self.dropout(self.model.embed_tokens(ids))
        for layer in self.model.layers:
            attended = layer.self_attn(layer.input_layernorm(states), cosine, sine, mask)
            states = states + self.dropout(attended)
            states = states + self.dropout(layer.mlp(layer.post_attention_layernorm(states)))
        return functional.linear(self.model.norm(states), self.model.embed_tokens.weight)

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())


@torch.no_grad()
def generate(
    model: LlamaForCausalLM,
    ids: list[int],
    count: int,
    end_of_text: int,
    temperature: float,
    generator: torch.Generator,
) -> list[int]:
    """Returns at most `count` new ids, fewer where the model ends the text itself.

    Temperature 0 takes the likeliest token. Without a cache: each token costs a pass
    over all tokens before it, which is quick enough at this size.
    """
    new: list[int] = []
    while len(new) < count:
        window = (ids + new)[-model.config.max_position_embeddings :]
        logits = model(torch.tensor([window]))[0, -1]
        if temperature == 0:
            chosen = int(logits.argmax())
        else:
            chosen = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator))
        if chosen == end_of_text:
            break
        new.append(chosen)
    return new
