#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies the bundled model, with a longer context and a chat template.

    make_model.py MODEL OUT_DIR

A text of the whole context runs for seconds, so that tests find it running.
"""
import json
import os
import shutil
import sys

CONTEXT = 8192

# Of the kind that Hermes and Qwen use, tools among it.
TEMPLATE = """\
{%- if tools %}
{{- 'Tools:\\n' }}
{%- for tool in tools %}
{{- tool | tojson }}
{{- '\\n' }}
{%- endfor %}
{{- 'Calls are <tool_call> and </tool_call> around JSON.\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
{{- raise_exception('the role ' + message.role + ' is not known') }}
{%- endif %}
{{- message.role + ': ' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": ' + call.function.name | tojson }}
{{- ', "arguments": ' + call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- 'assistant:' }}
{%- endif %}
"""


def main():
    model, folder = sys.argv[1:]
    shutil.copytree(model, folder)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["max_position_embeddings"] = CONTEXT
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    # One of the two places that a template may be at; the other goes first.
    template = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(template):
        os.remove(template)
    path = os.path.join(folder, "tokenizer_config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["chat_template"] = TEMPLATE
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


main()
