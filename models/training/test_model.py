# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the model, its folder and the training loop's parts; skipped without torch."""

import random
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("needs Debian's python3-torch") from error

from llama import LlamaConfig, LlamaForCausalLM, generate
from model_folder import read_model, write_model
from tokenizer import Tokenizer
from train import TokenStream, mean_loss

BUNDLED = Path(__file__).resolve().parents[1] / "jargon-llama"
TINY = LlamaConfig(
    vocab_size=258, hidden_size=16, intermediate_size=24, num_hidden_layers=2, max_position_embeddings=32
)


class ModelTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_later_tokens_do_not_change_earlier_logits(self):
        model = LlamaForCausalLM(TINY).eval()
        ids = torch.randint(0, TINY.vocab_size, (1, 12))
        changed = ids.clone()
        changed[0, 8:] = 0
        with torch.no_grad():
            self.assertTrue(torch.allclose(model(ids)[0, :8], model(changed)[0, :8], atol=1e-6))
            self.assertFalse(torch.allclose(model(ids)[0, 8:], model(changed)[0, 8:], atol=1e-3))

    def test_folder_holds_the_weights_rounded_to_bfloat16(self):
        model = LlamaForCausalLM(TINY)
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder), model, Tokenizer([]))
            self.assertFalse(list(Path(folder).glob("*.partial")))
            stored, tokenizer = read_model(Path(folder))
        self.assertEqual(stored.config, TINY)
        self.assertEqual(tokenizer.vocabulary_size, TINY.vocab_size)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(stored.state_dict()[name], tensor.to(torch.bfloat16).float()), name)

    def test_generation_stops_at_the_end_and_repeats_for_a_seed(self):
        model = LlamaForCausalLM(TINY).eval()
        texts = [generate(model, [1, 2], 40, 257, 1.0, torch.Generator().manual_seed(3)) for _ in range(2)]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(generate(model, [1, 2], 40, texts[0][4], 1.0, torch.Generator().manual_seed(3)), texts[0][:4])


class TokenStreamTest(unittest.TestCase):
    def test_each_epoch_holds_every_entry_once_and_pieces_fit(self):
        entries = [[10 * number, 10 * number + 1] for number in range(9)]
        whole = TokenStream(entries, seed=1).read(0, 36).tolist()
        for epoch in (whole[:18], whole[18:]):
            self.assertEqual(sorted(epoch), sorted(sum(entries, [])))
        self.assertNotEqual(whole[:18], whole[18:])
        stream = TokenStream(entries, seed=1)
        self.assertEqual([id for start in range(0, 36, 4) for id in stream.read(start, 4).tolist()], whole)


class BundledModelTest(unittest.TestCase):
    def test_it_is_small_and_has_learnt_word_order(self):
        model, tokenizer = read_model(BUNDLED)
        self.assertLessEqual(model.parameter_count(), 4_000_000)
        sentence = "A program that runs on the machine, used by hackers in the early days of the Internet."
        words = sentence.split(" ")
        random.Random(1).shuffle(words)
        ordered, _ = mean_loss(model, [tokenizer.encode(sentence)])
        shuffled, _ = mean_loss(model, [tokenizer.encode(" ".join(words))])
        self.assertLess(ordered + 1, shuffled)


if __name__ == "__main__":
    unittest.main()
