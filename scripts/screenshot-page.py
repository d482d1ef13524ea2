#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes a picture of the chat page of a server that runs, as the README has it.

    screenshot-page.py URL OUT.png

Needs Debian's chromium. Writes each --message, waits for its answer, looks at
the pictures for --seconds, and takes one of the whole.
"""
import argparse
import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                             "../test/Integration/Server/Inputs"))
import browser


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("out", metavar="OUT.png")
    parser.add_argument("--message", action="append", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=780)
    parser.add_argument("--scale", type=float, default=1.4,
                        help="dots of the picture for each of the page")
    parser.add_argument("--phone", action="store_true",
                        help="with touch, and 390 by 844 unless given")
    parser.add_argument("--dark", action="store_true")
    arguments = parser.parse_args()
    if arguments.phone and (arguments.width, arguments.height) == (1200, 780):
        arguments.width, arguments.height = 390, 844
    if not browser.find():
        sys.exit("error: Debian's chromium is not installed; "
                 "scripts/install-deps.sh --page installs it")
    messages = arguments.message or [
        "How does a paged KV cache share the prefixes of prompts?"]
    try:
        picture = take(arguments, messages)
    except browser.BrowserError as error:
        sys.exit(f"error: {error}")
    with open(arguments.out, "wb") as file:
        file.write(picture)


def take(arguments, messages):
    with browser.Browser() as chromium, chromium.open(
            arguments.url, width=arguments.width, height=arguments.height,
            scale=arguments.scale, phone=arguments.phone,
            dark=arguments.dark) as page:
        page.wait("document.getElementById('model')?.value")
        begun = time.monotonic()
        for count, message in enumerate(messages, 1):
            page.click("document.getElementById('prompt')")
            page.type(message)
            page.click("document.getElementById('send')")
            # As long as it takes.
            while page.evaluate(
                    "document.getElementById('send').hidden || document."
                    f"querySelectorAll('.exchange').length < {count}"):
                time.sleep(0.1)
        time.sleep(max(0, begun + arguments.seconds - time.monotonic()))
        # Neither a focus nor a caret.
        page.evaluate("document.activeElement.blur()")
        time.sleep(0.2)
        return page.screenshot()


if __name__ == "__main__":
    main()
