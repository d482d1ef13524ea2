#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves OpenVINO GenAI's continuous batching to `sandwich-run bench-serve`.

    openvino_genai_server.py DIR [--port 8082] [--threads 2] [--sequences 32]

DIR holds openvino_model.xml and openvino_tokenizer.xml. It answers streamed
/v1/completions whose prompts are token ids, and spares OpenVINO what a server does
beside: tokens are told by their ids, and nothing is checked. It needs a Python that
has openvino-genai. Without --precision and --kv-precision these are OpenVINO's own
choice for the CPU; its KV cache is then of 8 bits.
"""
import argparse
import http.server
import json
import pathlib
import queue
import sys
import threading
import time

try:
    import numpy
    import openvino
    import openvino_genai
except ImportError as missing:
    sys.exit(f"error: {sys.executable} has no openvino-genai: {missing}")


class Engine:
    """Steps while there are requests, and hands tokens on after each."""

    def __init__(self, arguments):
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_batched_tokens = arguments.batched_tokens
        scheduler.max_num_seqs = arguments.sequences
        scheduler.enable_prefix_caching = False
        scheduler.dynamic_split_fuse = True
        scheduler.cache_size = arguments.cache_gib
        properties = {
            "INFERENCE_NUM_THREADS": arguments.threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        if arguments.precision:
            properties["INFERENCE_PRECISION_HINT"] = arguments.precision
        if arguments.kv_precision:
            properties["KV_CACHE_PRECISION"] = arguments.kv_precision
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            str(arguments.model), scheduler, "CPU", properties
        )
        self.changed = threading.Condition()
        self.requests = 0
        self.waiting = []
        threading.Thread(target=self.run, daemon=True).start()

    def submit(self, prompt, most):
        """A queue of lists of tokens, in the end None."""
        tokens = queue.SimpleQueue()
        with self.changed:
            self.waiting.append((prompt, most, tokens))
            self.changed.notify()
        return tokens

    def add(self, prompt, most):
        self.requests += 1
        return self.pipeline.add_request(
            self.requests,
            openvino.Tensor(numpy.array([prompt], numpy.int64)),
            openvino_genai.GenerationConfig(
                max_new_tokens=most, ignore_eos=True, do_sample=False
            ),
        )

    def run(self):
        live = []
        while True:
            with self.changed:
                while not live and not self.waiting:
                    self.changed.wait()
                added, self.waiting = self.waiting, []
            live += [(self.add(prompt, most), tokens) for prompt, most, tokens in added]
            self.pipeline.step()
            for handle, tokens in live:
                while handle.can_read():
                    for output in handle.read().values():
                        tokens.put(list(output.generated_ids))
                if handle.get_status() != openvino_genai.GenerationStatus.RUNNING:
                    tokens.put(None)
            live = [
                each
                for each in live
                if each[0].get_status() == openvino_genai.GenerationStatus.RUNNING
            ]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None
    name = ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = {"object": "list", "data": [{"id": self.name, "object": "model"}]}
        self.answer(models)

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def chunk(self, choices, **more):
        self.event(
            json.dumps(
                {
                    "id": "cmpl-1",
                    "object": "text_completion",
                    "created": int(time.time()),
                    "model": self.name,
                    "choices": choices,
                    **more,
                }
            )
        )

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(size))
        tokens = self.engine.submit(request["prompt"], request["max_tokens"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        made = 0
        while (piece := tokens.get()) is not None:
            made += len(piece)
            text = "".join(f" {token}" for token in piece)
            self.chunk([{"index": 0, "text": text, "finish_reason": None}])
        self.chunk([{"index": 0, "text": "", "finish_reason": "length"}])
        usage = {
            "prompt_tokens": len(request["prompt"]),
            "completion_tokens": made,
            "total_tokens": len(request["prompt"]) + made,
        }
        self.chunk([], usage=usage)
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--port", type=int, default=8082)
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--sequences", type=int, default=32, metavar="N")
    parser.add_argument("--batched-tokens", type=int, default=256, metavar="N")
    parser.add_argument("--cache-gib", type=int, default=4, metavar="N")
    parser.add_argument("--precision", metavar="f32|bf16|f16")
    parser.add_argument("--kv-precision", metavar="u8|f16|bf16|f32")
    arguments = parser.parse_args()
    Handler.engine = Engine(arguments)
    Handler.name = arguments.model.name
    with Server(("127.0.0.1", arguments.port), Handler) as server:
        print(f"serving {arguments.model} on port {arguments.port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
