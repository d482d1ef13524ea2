#!/usr/bin/python3
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs artifacts on two hosts, which are network namespaces with a cable
between them.

    hosts.py logits MODEL_DIR ARTIFACT...   compares with one host, and with the
                                            reference
    hosts.py faults ARTIFACT                lets all that can end end; needs 4
                                            ranks
    hosts.py hangs MODEL RANKS              lets ranks of that model of the unit
                                            tests compute or sleep for ever
    hosts.py run COMMAND...                 runs COMMAND on both
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "Inputs"))
import compare_logits
import leftovers
from reference import Reference

HOSTS = "a", "b"
SUBNET = "10.77.0"
# What may pass until all have ended, on a machine that does much else. What
# does pass is printed.
SECONDS = 10


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Network:
    """Two network namespaces, gone with this."""

    def __init__(self):
        self.name = f"sandwich{os.getpid()}"
        self.folder = None

    def space(self, host):
        return f"{self.name}-{host}"

    def __enter__(self):
        # Whatever ends this program, nothing is to be left behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(1))
        try:
            self.folder = tempfile.mkdtemp(prefix="hosts")
            for host in HOSTS:
                ip("netns", "add", self.space(host))
            ip("link", "add", "cable", "netns", self.space("a"), "type", "veth",
               "peer", "name", "cable", "netns", self.space("b"))
            for number, host in enumerate(HOSTS, 1):
                ip("-n", self.space(host), "address", "add",
                   f"{SUBNET}.{number}/24", "dev", "cable")
                ip("-n", self.space(host), "link", "set", "lo", "up")
            self.set_cable("up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in HOSTS:
            for process in self.processes(host):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "delete", self.space(host)],
                           stderr=subprocess.DEVNULL)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def set_cable(self, state):
        for host in HOSTS:
            ip("-n", self.space(host), "link", "set", "cable", state)

    def processes(self, host):
        found = subprocess.run(["ip", "netns", "pids", self.space(host)],
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        return [int(line) for line in found.stdout.split()]

    def find(self, host, program, word):
        """Processes of `host` that run `program` with `word`."""
        found = []
        for process in self.processes(host):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if os.path.basename(words[0]) == program.encode() \
                    and word.encode() in words:
                found.append(process)
        return found

    def start(self, command, **options):
        """Starts `command` on both hosts, by mpirun on the first."""
        settings = {
            "plm_rsh_agent": os.path.join(HERE, "start_on_host.sh"),
            "btl": "self,tcp",
            "btl_tcp_if_include": f"{SUBNET}.0/24",
            "oob_tcp_if_include": f"{SUBNET}.0/24",
            # mpirun and its daemons find out that they are cut off.
            "oob_tcp_keepalive_time": "1",
            "oob_tcp_keepalive_intvl": "1",
            "oob_tcp_keepalive_probes": "1",
            # mpirun ends the others without giving them time for it.
            "odls_base_sigkill_timeout": "0",
        }
        mpirun = ["mpirun", "--allow-run-as-root", "-np", str(len(HOSTS)),
                  "--host", ",".join(HOSTS), "--bind-to", "none"]
        for setting in settings.items():
            mpirun += ["--mca", *setting]
        environment = dict(os.environ, SANDWICH_HOSTS=self.name,
                           TMPDIR=self.folder)
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space("a"), "unshare", "--uts", "sh",
             "-c", 'hostname a && exec "$@"', "sh", *mpirun, *command],
            env=environment, **options)

    def run(self, command):
        with self.start(command) as process:
            if process.wait() != 0:
                sys.exit(f"exit status {process.returncode}")


def check_logits(network, model, artifacts):
    reference = Reference(model)
    vocab = reference.config["vocab_size"]
    ids = np.random.default_rng(1).integers(vocab, size=64)
    expected = reference.logits(ids)
    out = os.path.join(network.folder, "logits")
    for artifact in artifacts:
        inspected = subprocess.run(["sandwich-run", "inspect", "--json",
                                    artifact], stdout=subprocess.PIPE,
                                   check=True)
        ranks = json.loads(inspected.stdout)["ranks"]
        for chunk in 64, 5, 1:
            command = ["sandwich-run", "logits", artifact, "--out", out,
                       "--token-ids", ",".join(map(str, ids)),
                       f"--chunk={chunk}"]
            subprocess.run(command, check=True)
            alone = np.fromfile(out, "<f4").reshape(-1, vocab)
            network.run([*command, "--mpi"])
            actual = np.fromfile(out, "<f4").reshape(-1, vocab)
            what = f"{os.path.basename(artifact)} in pieces of {chunk}"
            compare_logits.check(what, expected, actual, (2e-4, None, 1e-4))
            compare_logits.check(what + " and one host", alone, actual,
                                 (None, None, 1e-4))
            # The order of additions is the same with one rank on each host.
            if ranks == len(HOSTS) and not np.array_equal(alone, actual):
                sys.exit(f"{what}: bits differ from those of one host")
        check_cache_size(network, artifact)


def check_cache_size(network, artifact):
    """--kv-memory is the size of all ranks' parts, wherever they are."""
    sizes = []
    for start, more in (subprocess.Popen, []), (network.start, ["--mpi"]):
        with start(["sandwich-run", "generate", artifact, "--token-ids", "1,2",
                    "--max-tokens", "2", "--kv-memory=1MiB", *more],
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                   text=True) as process:
            _, log = process.communicate(timeout=60)
        assert process.returncode == 0, log
        assert "rank " not in log, log
        sizes += re.findall(r"KV cache .* for (\d+) tokens", log)
    assert len(sizes) == 2 and sizes[0] == sizes[1], sizes


class Group:
    """A benchmark on both hosts that works until it is ended."""

    def __init__(self, network, artifact):
        self.network = network
        self.process = network.start(
            ["sandwich-run", "bench", "--mpi", artifact, "-p", "16", "-n", "16",
             "-r", "1000000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while [len(self.leaders(host)) + len(self.followers(host))
               for host in HOSTS] != [2, 2]:
            assert time.monotonic() < deadline, "ranks do not start"
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)

    def leaders(self, host):
        return self.network.find(host, "sandwich-run", "bench")

    def followers(self, host):
        return self.network.find(host, "exe", "rank")

    def ends_with(self, what, since):
        """One of the lines written, which has to match `what`."""
        _, errors = self.process.communicate(timeout=60)
        left = HOSTS
        while left and time.monotonic() < since + SECONDS:
            left = [host for host in HOSTS if self.network.processes(host)]
            time.sleep(0.01)
        seconds = time.monotonic() - since
        print(f"{what}: {seconds:.2f} s", flush=True)
        assert not left, f"processes are left on {left}: {errors}"
        assert self.process.returncode != 0 and re.search(what, errors), errors


def check_faults(network, artifact):
    mark = leftovers.mark_processes()
    moments = random.Random(1)

    def let(what, fault, moment=None):
        """What is left after `fault(group)` says `what`."""
        group = Group(network, artifact)
        time.sleep(moments.uniform(0, 0.5) if moment is None else moment)
        since = time.monotonic()
        fault(group)
        group.ends_with(what, since)

    def end(processes, how=signal.SIGKILL):
        os.kill(processes[0], how)

    killed = r"was killed by signal 9 \(SIGKILL\)"
    for _ in range(3):
        # Those that mpirun started; it is quicker than their heartbeats.
        let("process rank 1 with PID .* on node b exited on signal 9",
            lambda group: end(group.leaders("b")))
        let("process rank 0 with PID .* on node a exited on signal 9",
            lambda group: end(group.leaders("a")))
        # Those that these started.
        let(rf"error: host b: rank 3 \(process \d+\) {killed}",
            lambda group: end(group.followers("b")))
        let(rf"error: rank 1 \(process \d+\) {killed}",
            lambda group: end(group.followers("a")))
    let(r"error: host b \(process \d+\) does not answer any more",
        lambda group: end(group.leaders("b"), signal.SIGSTOP), 1)
    let(r"error: host b: rank 3 \(process \d+\) does not answer any more",
        lambda group: end(group.followers("b"), signal.SIGSTOP), 1)
    # What processes write goes through mpirun.
    let("", lambda group: end(network.find("a", "mpirun", "bench")))
    # Whoever finds out first says it.
    let(r"error: host b \(process \d+\) does not answer any more|"
        r"Remote daemon: \S+ on node b",
        lambda group: network.set_cable("down"), 1)
    assert not leftovers.marked_processes(mark)


def check_hangs(network, model, ranks):
    """Each rank, in the step of a prompt. What the steps do is told by
    unittests/Runtime/Inputs/hash_model.h."""
    work, loop, leave = 250, 251, 252

    def run(*tokens):
        command = ["sandwich-run", "logits", "--mpi", model, "--out",
                   os.path.join(network.folder, "logits"), "--token-ids",
                   ",".join(map(str, tokens))]
        since = time.monotonic()
        with network.start(command, stderr=subprocess.PIPE,
                           text=True) as process:
            _, errors = process.communicate(timeout=120)
        left = HOSTS
        while left and time.monotonic() < since + 120:
            left = [host for host in HOSTS if network.processes(host)]
        return process.returncode, errors, time.monotonic() - since

    # A rank that takes six times as long as the others, or all that take long.
    for tokens in (work, 120, 1, 1), (work, 20, 1, 6), (work, 1, 30, 2):
        status, errors, seconds = run(*tokens)
        print(f"{tokens}: {seconds:.2f} s", flush=True)
        assert status == 0, errors
    for rank in range(ranks):
        host = "host b: " if rank >= ranks // len(HOSTS) else ""
        for token, reason in ((loop, "it has computed for"),
                              (leave, "all its threads sleep while")):
            status, errors, seconds = run(token, rank)
            what = rf"error: {host}rank {rank} \(process \d+\) hangs: {reason}"
            print(f"{what}: {seconds:.2f} s", flush=True)
            assert status != 0 and re.search(what, errors), errors
            # The time to start is part of it.
            assert seconds < 2 * SECONDS


def main():
    with Network() as network:
        what, *arguments = sys.argv[1:]
        if what == "logits":
            check_logits(network, arguments[0], arguments[1:])
        elif what == "faults":
            check_faults(network, arguments[0])
        elif what == "hangs":
            check_hangs(network, arguments[0], int(arguments[1]))
        else:
            network.run(arguments)


main()
