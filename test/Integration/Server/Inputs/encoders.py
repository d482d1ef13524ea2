#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server with a model that embeds, one that ranks and one that generates.

    encoders.py FOLDER

Compiles small random models in FOLDER, serves them, and compares what the API
answers with the reference and with `sandwich-run embed`.
"""
import base64
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "..", "..", "Inputs")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PORT = re.compile(r"ready at (http://[^ \n]*)")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


def write_tokenizer(folder):
    """WordPiece of single letters, with BERT's templates."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS]
    ids = {token: index for index, token in enumerate(vocabulary)}

    def special(name, kind):
        return {"SpecialToken": {"id": name, "type_id": kind}}

    def sequence(name, kind):
        return {"Sequence": {"id": name, "type_id": kind}}

    tokenizer = {
        "version": "1.0", "normalizer": None, "decoder": None,
        "added_tokens": [
            {"id": ids[name], "content": name, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False,
             "special": True} for name in vocabulary[:4]],
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]", 0), sequence("A", 0),
                       special("[SEP]", 0)],
            "pair": [special("[CLS]", 0), sequence("A", 0),
                     special("[SEP]", 0), sequence("B", 1),
                     special("[SEP]", 1)],
            "special_tokens": {
                name: {"id": name, "ids": [ids[name]], "tokens": [name]}
                for name in ("[CLS]", "[SEP]")}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
                  "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": ids}}
    with open(os.path.join(folder, "tokenizer.json"), "w",
              encoding="utf-8") as file:
        json.dump(tokenizer, file)


def make_models(folder):
    for family in "bert", "bert-reranker":
        path = os.path.join(folder, family)
        run(sys.executable, "-B", os.path.join(INPUTS, "make_encoder.py"), path,
            "--family", family, "--set", "max_position_embeddings=64")
        write_tokenizer(path)
        run("sandwich-compile", path, "-q", "--dtype=f32", "--threads=1", "-o",
            path + ".sandwich")
    path = os.path.join(folder, "llama")
    run(sys.executable, "-B", os.path.join(INPUTS, "make_checkpoint.py"), path)
    run("sandwich-compile", path, "-q", "--threads=1", "-o",
        path + ".sandwich")


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            ["sandwich-run", "serve", *arguments, "--port", "0"],
            stderr=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stderr:
            found = PORT.search(line)
            if found:
                self.url = found.group(1)
                break
        assert self.url, "the server did not start"
        # Nobody must wait for a full pipe.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, path, body=None, status=200):
        request = urllib.request.Request(
            self.url + path, None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                got, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            got, text = error.code, error.read()
        assert got == status, (path, body, got, text)
        return json.loads(text)

    def count(self, name, device):
        """A metric of a device."""
        with urllib.request.urlopen(self.url + "/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(name + "{") and f'"{device}"' in line:
                    return float(line.split()[-1])
        raise AssertionError(f"no {name} of {device}")

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0


def expect_near(actual, expected, limit=1e-5):
    assert len(actual) == len(expected), (len(actual), len(expected))
    worst = max(abs(a - b) for a, b in zip(actual, expected))
    assert worst <= limit, worst


def reference(folder, family, lines):
    return [json.loads(line) for line in run(
        sys.executable, "-B", os.path.join(INPUTS, "encoder_reference.py"),
        "run", os.path.join(folder, family),
        input="".join(json.dumps(line) + "\n" for line in lines)).splitlines()]


def ids_of(text):
    return [2, *(LETTERS.index(letter) + 4 for letter in text.split()), 3]


def check_embeddings(server, folder):
    texts = ["a b c", "z", "h e l l o"]
    expected = reference(folder, "bert", [ids_of(text) for text in texts])
    answer = server.ask("/v1/embeddings", {"model": "bert", "input": texts})
    assert [entry["index"] for entry in answer["data"]] == [0, 1, 2]
    for entry, vector in zip(answer["data"], expected):
        expect_near(entry["embedding"], vector)
    assert answer["usage"] == {"prompt_tokens": 15, "total_tokens": 15}, answer
    encoded = server.ask("/v1/embeddings", {
        "model": "bert", "input": texts[0], "encoding_format": "base64"})
    data = base64.b64decode(encoded["data"][0]["embedding"])
    expect_near(struct.unpack(f"<{len(data) // 4}f", data), expected[0])
    tokens = server.ask("/v1/embeddings", {
        "model": "bert", "input": ids_of(texts[1])})
    expect_near(tokens["data"][0]["embedding"], expected[1])
    for vector, wanted in zip(server.ask("/embed", {"inputs": texts}),
                              expected):
        expect_near(vector, wanted)
    # As the command does.
    printed = run("sandwich-run", "embed",
                  os.path.join(folder, "bert.sandwich"), "--file", "-",
                  input="\n".join(texts))
    for line, wanted in zip(printed.splitlines(), expected):
        expect_near(json.loads(line), wanted)
    rows = server.ask("/embed_all", {"inputs": "a b"})
    assert len(rows) == 1 and len(rows[0]) == 4 and len(rows[0][0]) == 64
    near = server.ask("/similarity", {"inputs": {
        "source_sentence": "a b c", "sentences": ["a b c", "z"]}})
    assert near[0] > 0.99999 > near[1], near
    with_prompt = server.ask("/embed", {"inputs": "a", "prompt_name": "query"})
    again = server.ask("/embed", {"inputs": "query: a"})
    expect_near(with_prompt[0], again[0])


def check_client_of_npm(server, folder):
    """Skipped where it is not installed; see clients.py."""
    clients = os.environ.get("SANDWICH_TEST_CLIENTS")
    if not clients or not shutil.which("node") or \
            not os.path.isdir(os.path.join(clients, "node_modules/openai")):
        return
    # Modules are looked for beside the script.
    path = os.path.join(folder, "npm")
    os.mkdir(path)
    shutil.copy(os.path.join(HERE, "openai_embeddings.mjs"), path)
    os.symlink(os.path.join(os.path.abspath(clients), "node_modules"),
               os.path.join(path, "node_modules"))
    vectors = json.loads(run(
        "node", os.path.join(path, "openai_embeddings.mjs"),
        env=dict(os.environ, OPENAI_API_KEY="none",
                 OPENAI_BASE_URL=server.url + "/v1", NO_PROXY="127.0.0.1",
                 no_proxy="127.0.0.1")))
    for vector, wanted in zip(vectors, reference(folder, "bert", [
            ids_of(text) for text in ("a b c", "z", "h e l l o")])):
        expect_near(vector, wanted)


def check_reranking(server, folder):
    query, documents = "a b", ["c", "d e f", "b a"]
    pairs = [[ids_of(query) + ids_of(text)[1:],
              [0] * 4 + [1] * (len(text.split()) + 1)] for text in documents]
    scores = [row[0] for row in reference(folder, "bert-reranker", pairs)]
    order = sorted(range(3), key=lambda i: -scores[i])
    answer = server.ask("/rerank", {"query": query, "texts": documents,
                                    "raw_scores": True})
    assert [entry["index"] for entry in answer] == order, answer
    expect_near([entry["score"] for entry in answer],
                [scores[i] for i in order], 2e-5)
    answer = server.ask("/v1/rerank", {
        "model": "bert-reranker", "query": query, "documents": documents,
        "top_n": 2, "return_documents": True})
    assert [entry["index"] for entry in answer["results"]] == order[:2]
    assert answer["results"][0]["document"]["text"] == documents[order[0]]
    assert all(0 < entry["relevance_score"] < 1 for entry in answer["results"])


def check_errors(server):
    long = " ".join("a" * 70)
    told = server.ask("/v1/embeddings", {"model": "bert", "input": long}, 400)
    assert "72" in told["error"]["message"] and "64" in told["error"]["message"]
    assert told["error"]["code"] == "context_length_exceeded", told
    told = server.ask("/embed", {"inputs": long}, 400)
    assert "72" in told["error"] and told["error_type"] == "Validation", told
    assert len(server.ask("/embed", {"inputs": long, "truncate": True})) == 1
    told = server.ask("/rerank", {"query": "a", "texts": [long]}, 400)
    assert "64" in told["error"], told
    assert len(server.ask("/rerank", {"query": "a", "texts": [long],
                                      "truncate": True})) == 1
    for body in ({"model": "bert-reranker", "input": "a"},
                 {"model": "llama", "input": "a"}, {"model": "bert"},
                 {"model": "bert", "input": ""}, {"model": "bert", "input": []},
                 {"model": "bert", "input": [10**9]},
                 {"model": "bert", "input": "a", "dimensions": 3}):
        server.ask("/v1/embeddings", body, 400)
    server.ask("/v1/embeddings", {"model": "none", "input": "a"}, 404)
    server.ask("/v1/completions", {"model": "bert", "prompt": "a"}, 400)
    server.ask("/embed", {"inputs": "a", "normalize": False}, 400)


def check_together(server):
    """Embeddings while texts are generated; each is what it is alone."""
    alone = server.ask("/embed", {"inputs": "a b c"})[0]
    prompt = {"model": "llama", "prompt": [5, 6, 7], "max_tokens": 40,
              "temperature": 0}
    text = server.ask("/v1/completions", prompt)["choices"][0]["text"]
    failures = []

    def attempt(work):
        try:
            for _ in range(10):
                work()
        except AssertionError as error:
            failures.append(error)

    def embed():
        expect_near(server.ask("/embed", {"inputs": ["z", "a b c"]})[1], alone)

    def generate():
        answer = server.ask("/v1/completions", prompt)
        assert answer["choices"][0]["text"] == text, answer

    threads = [threading.Thread(target=attempt, args=(work,))
               for work in (embed, generate, embed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def write_devices(path, **fields):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fields, file)


def burst(server, count):
    """The statuses of requests that come at once."""
    statuses = []

    def ask():
        request = urllib.request.Request(
            server.url + "/v1/embeddings",
            json.dumps({"input": "a b c"}).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                statuses.append(answer.status)
        except urllib.error.HTTPError as error:
            assert error.headers["Retry-After"], error
            statuses.append(error.code)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses)


def check_devices(folder):
    """An accelerator that is slow, and this CPU for what finds it full."""
    devices = os.path.join(folder, "devices.json")
    artifact = os.path.join(folder, "bert.sandwich")
    slow = {"name": "npu", "type": "simulated", "alpha": 0.4, "beta": 0.4,
            "depth": 2}
    cpu = {"name": "cpu", "type": "cpu", "depth": 64}
    write_devices(devices, heterogeneous=True, devices=[slow, cpu])
    server = Server(artifact, "--devices", devices)
    try:
        assert burst(server, 6) == [200] * 6
        assert server.count("sandwich_device_accepted_total", "npu") == 2
        assert server.count("sandwich_device_accepted_total", "cpu") == 4
        assert server.count("sandwich_device_overflowed_total", "npu") == 4
    finally:
        server.stop()
    # Alone, it is busy.
    write_devices(devices, heterogeneous=False, devices=[slow, cpu])
    server = Server(artifact, "--devices", devices)
    try:
        assert burst(server, 6) == [200] * 2 + [429] * 4
    finally:
        server.stop()
    # Another server is a device, and what is not there is left out.
    other = Server(artifact)
    remote = {"name": "remote", "type": "remote", "depth": 2,
              "url": other.url + "/v1/embeddings"}
    gone = {"name": "gone", "type": "remote", "depth": 2,
            "url": "http://127.0.0.1:9/embed"}
    write_devices(devices, devices=[gone, remote])
    try:
        expected = other.ask("/embed", {"inputs": "a b c"})[0]
        server = Server(artifact, "--devices", devices)
        try:
            expect_near(server.ask("/embed", {"inputs": "a b c"})[0], expected)
            assert server.count("sandwich_device_answered_total", "remote") == 1
        finally:
            server.stop()
    finally:
        other.stop()
    # Depths that are not told are measured, once.
    depths = os.path.join(folder, "depths.json")
    npu = {"name": "npu", "type": "simulated", "alpha": 0.05, "beta": 0.1}
    write_devices(devices, heterogeneous=True, slo_seconds=0.5,
                  devices=[npu, {"name": "cpu", "type": "cpu"}])
    found = []
    for _ in range(2):
        server = Server(artifact, "--devices", devices, "--depths", depths)
        try:
            found.append([server.count("sandwich_device_queue_depth", name)
                          for name in ("npu", "cpu")])
        finally:
            server.stop()
    assert 1 <= found[0][0] <= 8 and found[0][1] >= 1, found
    assert found[0] == found[1], found
    with open(depths, encoding="utf-8") as file:
        saved = [entry["depth"] for entry in json.load(file)["devices"]]
    assert saved == found[0], (saved, found)
    for fields, message in (
            ({"devices": []}, "devices must be a list"),
            ({"devices": [{"name": "x", "type": "tpu"}]},
             'devices[0].type is "tpu"; it must be "cpu", "remote" or '
             '"simulated"'),
            ({"devices": [{"name": "x", "type": "remote",
                           "url": "http://localhost/api"}]},
             "must end with /v1/embeddings or /embed"),
            ({"devices": [gone]}, "no device")):
        write_devices(devices, **fields)
        result = subprocess.run(
            ["sandwich-run", "serve", artifact, "--devices", devices, "--port",
             "0"], capture_output=True, text=True)
        assert result.returncode == 1 and message in result.stderr, result


def main():
    folder = sys.argv[1]
    make_models(folder)
    server = Server(*(os.path.join(folder, name + ".sandwich")
                      for name in ("bert", "bert-reranker", "llama")))
    try:
        check_embeddings(server, folder)
        check_client_of_npm(server, folder)
        check_reranking(server, folder)
        check_errors(server)
        check_together(server)
        tokens = server.ask("/tokenize", {"model": "bert", "prompt": "a b"})
        assert tokens["tokens"] == ids_of("a b"), tokens
        models = server.ask("/v1/models")["data"]
        assert [entry["max_model_len"] for entry in models][:2] == [64, 64]
        state = server.ask("/status")["models"][0]
        assert state["state"] == "ready" and state["totals"]["texts"] > 0
    finally:
        server.stop()
    check_devices(folder)


if __name__ == "__main__":
    main()
