# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs bench-serve with options that make no sense, each of which must end with
status 2 and name the option.

    wrong_usage.py COMMAND...
"""
import subprocess
import sys

CASES = (
    ("--rate", "--rate=0"),
    ("--rate", "--rate=1,nan"),
    ("--rate", "--rate=1,x"),
    ("--requests", "--requests=0"),
    ("--arrivals", "--arrivals=sometimes", "--rate=1"),
    ("--arrivals=poisson needs --rate", "--arrivals=poisson"),
    ("--arrivals=burst needs --rate", "--burst-size=3"),
    ("closed loop has no --rate", "--arrivals=closed", "--rate=1"),
    ("closed loop has no --rate", "--concurrency=2", "--find-goodput",
     "--ttft-slo=1"),
    ("--concurrency is for", "--concurrency=2", "--arrivals=poisson",
     "--rate=1"),
    ("--concurrency", "--concurrency=0"),
    ("--burst-period excludes --rate", "--burst-period=1", "--rate=1"),
    ("--burst-size and --burst-period", "--burst-size=2", "--arrivals=uniform",
     "--rate=1"),
    ("--burst-size", "--burst-size=0", "--rate=1"),
    ("--burst-period", "--burst-period=nan"),
    ("--burstiness is for", "--burstiness=2", "--arrivals=uniform", "--rate=1"),
    ("--burstiness", "--burstiness=0", "--rate=1"),
    ("--burstiness", "--burstiness=nan", "--rate=1"),
    ("--prompt-tokens", "--prompt-tokens=0"),
    ("--prompt-tokens", "--prompt-tokens=9-3"),
    ("--output-tokens", "--output-tokens=x"),
    ("take the place of a --trace", "--prompt-tokens=3", "--trace=lmsys"),
    ("--seed is for", "--trace=/dev/null", "--seed=2"),
    ("--endpoint", "--endpoint=embeddings"),
    ("--prompt-as", "--prompt-as=images"),
    ("chat's prompts are text", "--endpoint=chat", "--prompt-as=tokens"),
    ("--vocabulary", "--vocabulary=3"),
    ("--vocabulary", "--vocabulary=99999999999"),
    ("--temperature", "--temperature=-1"),
    ("--temperature", "--temperature=nan"),
    ("--timeout", "--timeout=0"),
    ("--timeout", "--timeout=inf"),
    ("--find-goodput needs --ttft-slo", "--find-goodput", "--rate=1"),
    ("--slo-scale", "--slo-scale=1,2", "--rate=1"),
    ("--attainment", "--attainment=0.5"),
    ("--html", "--html="),
    ("--context", "--context=0"),
    ("--prefix-share", "--prefix-share=-1"),
)

for expected, *options in CASES:
    result = subprocess.run(sys.argv[1:] + options, capture_output=True,
                            text=True, timeout=60)
    first = result.stderr.partition("\n")[0]
    if (result.returncode != 2 or not first.startswith("error: ")
            or expected not in first or result.stdout):
        sys.exit(f"{options}: expected '{expected}', status 2; status "
                 f"{result.returncode}: {result.stderr}{result.stdout}")
