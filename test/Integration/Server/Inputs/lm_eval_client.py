#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What EleutherAI's lm-evaluation-harness gets of the server OPENAI_BASE_URL.

    lm_eval_client.py TOKENIZER_DIR FOLDER

Its tasks are made in FOLDER, of what the model itself says greedily: among
choices of which one is that, the likeliest is that one, and what it generates
is that. So every task has a score of 1 where the log-probabilities of prompts
and the texts are right.
"""
import json
import os
import random
import sys
import unittest

TOKENIZER, FOLDER = sys.argv[1:3]
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=FOLDER)

import lm_eval
import openai
from lm_eval.tasks import TaskManager

URL = os.environ["OPENAI_BASE_URL"]
MODEL = "served"
QUESTIONS = ["A hacker is", "The net", "To frob:", "Bit rot means", "A kluge",
             "An elegant program", "Foo and", "The system crashed"]
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
target_delimiter: ""
metric_list: [{{metric: {metric}, aggregation: mean, higher_is_better: true}}]
"""


def write_task(name, kind, metric, rows, more):
    data = os.path.join(FOLDER, name + ".jsonl")
    with open(data, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with open(os.path.join(FOLDER, name + ".yaml"), "w",
              encoding="utf-8") as file:
        file.write(TASK.format(name=name, kind=kind, metric=metric, data=data)
                   + more)


def generation(most):
    return ('doc_to_target: "{{answer}}"\n'
            f"generation_kwargs: {{until: [], max_gen_toks: {most}, "
            "do_sample: false, temperature: 0}\n")


class LmEval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        client = openai.OpenAI(max_retries=0)
        random.seed(1)
        choices, texts, chats = [], [], []
        for question in QUESTIONS:
            # The harness sends tokens, none of which begins a text.
            greedy = client.completions.create(
                model=MODEL, prompt=question, max_tokens=8, temperature=0,
                extra_body={"add_special_tokens": False}).choices[0].text
            options = ["".join(random.choices("qxzjkvw ", k=12))
                       for _ in range(3)]
            place = random.randrange(4)
            options.insert(place, greedy)
            choices.append({"question": question, "choices": options,
                            "answer": place})
            texts.append({"question": question, "answer": greedy})
            answer = client.chat.completions.create(
                model=MODEL, max_completion_tokens=8, temperature=0,
                messages=[{"role": "user", "content": question}])
            chats.append({"question": question,
                          "answer": answer.choices[0].message.content})
        write_task("choices", "multiple_choice", "acc", choices,
                   'doc_to_choice: "{{choices}}"\n'
                   'doc_to_target: "{{answer}}"\n')
        write_task("texts", "generate_until", "exact_match", texts,
                   generation(8))
        write_task("chats", "generate_until", "exact_match", chats,
                   generation(8))
        cls.tasks = TaskManager(include_path=FOLDER, include_defaults=False)

    def evaluate(self, model, task, path, **more):
        arguments = {"model": MODEL, "base_url": URL + path,
                     "tokenizer": TOKENIZER, "num_concurrent": 4,
                     "max_retries": 1, "max_length": 2048}
        results = lm_eval.simple_evaluate(
            model=model, model_args=arguments, tasks=[task],
            task_manager=self.tasks, bootstrap_iters=0, **more)["results"][task]
        scores = [value for name, value in results.items()
                  if name.startswith(("acc,", "exact_match,"))]
        self.assertEqual(scores, [1.0], results)

    def test_completions_score_choices(self):
        self.evaluate("local-completions", "choices", "/completions")

    def test_completions_generate(self):
        self.evaluate("local-completions", "texts", "/completions")

    def test_chats_generate(self):
        self.evaluate("local-chat-completions", "chats", "/chat/completions",
                      apply_chat_template=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
