#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bursts of queries to this CPU beside a simulated accelerator.

    real_cpu.py ARTIFACT [--alpha S] [--beta S] [--slo S] [--seconds S]
                [--tokens N] [--sandwich-run PATH]

Serves ARTIFACT, a model that embeds, behind an accelerator that takes alpha
seconds for each query and beta for each batch, and the CPU for what finds its
queue full (WindVE, V). Depths of both queues are measured by the server. Then
bursts of as many queries as both queues hold come for so many seconds, and for
a tenth of them to the accelerator alone. Tells how many queries were answered,
and how many of these within the SLO.
"""
import argparse
import http.client
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time

READY = re.compile(r"ready at http://([^ \n:]*):(\d+)")


class Server:
    def __init__(self, arguments, heterogeneous, folder):
        devices = os.path.join(folder, "devices.json")
        with open(devices, "w", encoding="utf-8") as file:
            json.dump({
                "heterogeneous": heterogeneous,
                "slo_seconds": arguments.slo,
                "query_tokens": arguments.tokens,
                "devices": [
                    {"name": "accelerator", "type": "simulated",
                     "alpha": arguments.alpha, "beta": arguments.beta,
                     "noise": 0.01},
                    {"name": "cpu", "type": "cpu"}]}, file)
        self.process = subprocess.Popen(
            [arguments.sandwich_run, "serve", arguments.artifact, "--port", "0",
             "--no-log-requests", "--devices", devices],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = READY.search(line)
            if found:
                self.host, self.port = found.group(1), int(found.group(2))
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def depths(self):
        connection = self.connect()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return {name: int(float(value)) for name, value in re.findall(
            r'sandwich_device_queue_depth\{device="([^"]*)"[^}]*\} (\S+)', text)}

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run_bursts(server, count, seconds, arguments):
    """Seconds of each query that was answered, and how many were refused."""
    latencies, refused = [], [0]
    lock = threading.Lock()
    barrier = threading.Barrier(count)
    end = time.monotonic() + seconds

    def client(seed):
        generator = random.Random(seed)
        connection = server.connect()
        while True:
            body = json.dumps({"input": [
                generator.randrange(1000, 2000)
                for _ in range(arguments.tokens)]})
            # All decide alike, as all are here.
            if barrier.wait() == 0:
                decision[0] = time.monotonic() < end
            barrier.wait()
            if not decision[0]:
                return
            start = time.monotonic()
            connection.request("POST", "/v1/embeddings", body,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            took = time.monotonic() - start
            with lock:
                if answer.status == 200:
                    latencies.append(took)
                else:
                    assert answer.status == 429, answer.status
                    refused[0] += 1

    decision = [True]
    threads = [threading.Thread(target=client, args=(seed,))
               for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, refused[0]


def report(name, count, latencies, refused, slo):
    kept = sum(latency <= slo for latency in latencies)
    ordered = sorted(latencies)
    print(f"{name}: bursts of {count}, {len(latencies)} answered, {kept} "
          f"({100 * kept / max(len(latencies), 1):.2f}%) within {slo} s, "
          f"median {ordered[len(ordered) // 2]:.3f} s, longest "
          f"{ordered[-1]:.3f} s; {refused} BUSY", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("artifact")
    parser.add_argument("--alpha", type=float, default=0.0179)
    parser.add_argument("--beta", type=float, default=0.27)
    parser.add_argument("--slo", type=float, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--tokens", type=int, default=75)
    parser.add_argument("--sandwich-run", default="sandwich-run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments, True, folder)
        try:
            depths = server.depths()
            count = sum(depths.values())
            print(f"depths: {depths}, concurrency grows by "
                  f"{100 * depths.get('cpu', 0) / depths['accelerator']:.1f}%",
                  flush=True)
            report("with overflow", count,
                   *run_bursts(server, count, arguments.seconds, arguments),
                   arguments.slo)
        finally:
            server.stop()
        server = Server(arguments, False, folder)
        try:
            report("without", count,
                   *run_bursts(server, count, arguments.seconds / 10,
                               arguments), arguments.slo)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
