# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Python's jinja2, configured as Hugging Face's transformers does for chat
templates (`transformers/utils/chat_template_utils.py`), and the program that
runs ours.
"""

import datetime
import functools
import json
import os
import subprocess

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

RENDER_TEMPLATES = os.environ["RENDER_TEMPLATES"]

# The clock of render-templates.
NOW = datetime.datetime(2024, 7, 26, 15, 4, 5)

# What a tokenizer_config.json names.
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Generation(jinja2.ext.Extension):
    """`{% generation %}`, which marks what the assistant wrote."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("render_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def render_body(self, caller):
        return caller()


class Raised(Exception):
    """What a template raises."""


def raise_exception(message):
    raise Raised(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


ENVIRONMENT = make_environment()


@functools.lru_cache(maxsize=100)
def compiled(template):
    return ENVIRONMENT.from_string(template)


def render_reference(template, variables):
    """What render-templates gives, of jinja2: an object of `text`, or of
    `error`."""
    try:
        text = compiled(template).render(**variables)
        text.encode()
        return {"text": text}
    except Raised as error:
        return {"error": str(error), "raised": True}
    except Exception as error:  # of any kind, as templates do anything
        return {"error": f"{type(error).__name__}: {error}", "raised": False}


def render_ours(cases):
    run = subprocess.run(
        [RENDER_TEMPLATES], input=json.dumps(cases), capture_output=True, text=True
    )
    if (run.returncode, run.stderr) != (0, ""):
        raise AssertionError(f"{RENDER_TEMPLATES}: {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def difference(ours, reference):
    """In what two results differ, or nothing. Of errors only those that the
    template raised have the same message."""
    if "error" in reference:
        if "error" not in ours:
            return f"jinja2: {reference['error']}\nours:   {ours['text']!r}"
        if reference["raised"] != ours.get("raised", False) or (
            reference["raised"] and ours["error"] != reference["error"]
        ):
            return f"jinja2: {reference['error']}\nours:   {ours['error']}"
        return None
    if "error" in ours:
        return f"jinja2: {reference['text']!r}\nours:   {ours['error']}"
    if ours["text"] != reference["text"]:
        return f"jinja2: {reference['text']!r}\nours:   {ours['text']!r}"
    return None
