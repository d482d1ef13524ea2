# The lit suite mirrors lib/; executed tests are in Integration and say what
# they need:
#   compiler       the compiler was built
#   shared         ../shared is there (SANDWICH_SHARED overrides where)
#   torch          Debian's python3-torch is installed
#   transformers   Debian's Python, or the one that SANDWICH_TEST_TRANSFORMERS is
#                  the path of, has torch and transformers of PyPI
#   mpi            sandwich-run was built with MPI
#   hosts          mpirun is installed, and this user may make network
#                  namespaces and connect them
#   chromium       Debian's chromium is installed
#   haproxy, nginx the proxies are installed
#   containers     SANDWICH_TEST_CONTAINERS is set, this is root, and buildah and
#                  debootstrap are installed
#   aarch64-emulated
#                  qemu-aarch64 is installed, and the preset runtime-aarch64 was
#                  built beside this one, or in the folder that
#                  SANDWICH_TEST_AARCH64 names
#   aarch64-python Python was unpacked beside that one's libraries
#   aarch64-tools  so were the programs for tests that are beside its unit tests
#   cpu-FEATURE    this CPU has FEATURE, by /proc/cpuinfo's name
import ctypes
import os
import shutil
import subprocess

import lit.formats

config.name = "Sandwich"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = config.sandwich_source + "/test"
config.test_exec_root = config.sandwich_binary + "/test"

binaries = config.sandwich_binary + "/bin"
config.environment["PATH"] = os.pathsep.join(
    [binaries, config.llvm_tools, os.environ["PATH"]])
config.environment["SANDWICH_BIN"] = binaries
# More clients than are installed, for clients.py.
if "SANDWICH_TEST_CLIENTS" in os.environ:
    config.environment["SANDWICH_TEST_CLIENTS"] = os.environ["SANDWICH_TEST_CLIENTS"]

if config.sandwich_has_compiler:
    config.available_features.add("compiler")
else:
    config.excludes += ["Dialect", "Conversion", "Transforms", "Pipelines",
                        "Docs"]
if config.sandwich_has_compiler and config.sandwich_has_benchmarks:
    config.available_features.add("benchmarks")

shared = os.environ.get("SANDWICH_SHARED", config.sandwich_source + "/../shared")
if len(os.sched_getaffinity(0)) >= 2:
    config.available_features.add("two-cpus")
if os.path.isdir(shared):
    config.available_features.add("shared")
    config.substitutions.append(("%shared", os.path.realpath(shared)))
config.substitutions.append(("%source", config.sandwich_source))
config.substitutions.append(("%cmake", config.cmake))
config.substitutions.append(("%unittests",
                             config.sandwich_binary + "/unittests"))
python = "/usr/bin/python3"
config.substitutions.append(("%python", python))
if subprocess.run([python, "-c", "import torch"],
                  stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("torch")
transformers_python = os.environ.get("SANDWICH_TEST_TRANSFORMERS", python)
config.substitutions.append(("%transformers_python", transformers_python))
# To import them would take seconds.
if subprocess.run([transformers_python, "-c",
                   "from importlib.util import find_spec; import sys; "
                   "sys.exit(not all(map(find_spec, "
                   "('numpy', 'torch', 'transformers'))))"],
                  stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("transformers")

if os.environ.get("SANDWICH_TEST_CONTAINERS") and os.geteuid() == 0 and all(
        map(shutil.which, ("buildah", "debootstrap"))):
    config.available_features.add("containers")
for proxy in "haproxy", "nginx":
    # Where users do not look.
    if shutil.which(proxy, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        config.available_features.add(proxy)
if shutil.which("chromium"):
    config.available_features.add("chromium")
if config.sandwich_has_mpi:
    config.available_features.add("mpi")
    # With a name of its own, as other suites may run.
    space = f"sandwich{os.getpid()}"
    if shutil.which("mpirun") and shutil.which("ip") and subprocess.run(
            f"ip netns add {space} && "
            f"ip link add cable netns {space} type veth peer name other "
            f"netns {space} && ip netns exec {space} unshare --uts true; "
            f"result=$?; ip netns delete {space}; exit $result",
            shell=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode == 0:
        config.available_features.add("hosts")

if shutil.which("llvm-mca", path=config.environment["PATH"]):
    config.available_features.add("llvm-mca")


def find_sysroot(build):
    """The folder with the libraries of `build`, or nothing."""
    try:
        with open(build + "/CMakeCache.txt", encoding="utf-8") as cache:
            for line in cache:
                if line.startswith("SANDWICH_SYSROOT:"):
                    folder = os.path.realpath(line.split("=", 1)[1].strip())
                    if os.path.exists(folder + "/lib/ld-linux-aarch64.so.1"):
                        return folder
    except OSError:
        pass
    return None


def emulated_run(build, sysroot):
    """A command that runs the sandwich-run of `build` under qemu-aarch64, whose CPU
    tests choose with QEMU_CPU."""
    os.makedirs(config.test_exec_root, exist_ok=True)
    command = config.test_exec_root + "/sandwich-run-aarch64"
    # Other suites may be running.
    new = f"{command}.{os.getpid()}"
    with open(new, "w", encoding="utf-8") as script:
        script.write(f"""#!/bin/sh
# Linux does not know how to start other ranks.
export SANDWICH_RANK_PROGRAM={command}
exec qemu-aarch64 -L {sysroot} {build}/bin/sandwich-run "$@"
""")
    os.chmod(new, 0o755)
    os.rename(new, command)
    return command


# Empty where these are not to be tested.
aarch64 = os.environ.get("SANDWICH_TEST_AARCH64",
                         config.sandwich_binary + "/../runtime-aarch64")
sysroot = find_sysroot(aarch64) if aarch64 else None
if sysroot and shutil.which("qemu-aarch64") and os.path.exists(
        aarch64 + "/bin/sandwich-run"):
    config.available_features.add("aarch64-emulated")
    command = emulated_run(os.path.realpath(aarch64), sysroot)
    config.environment["SANDWICH_RUN_AARCH64"] = command
    config.substitutions.append(("%run_aarch64", command))
    if os.path.exists(sysroot + "/python3") and os.path.exists(
            sysroot + "/usr/lib/python3/dist-packages/numpy"):
        config.available_features.add("aarch64-python")
        config.substitutions.append(("%aarch64_sysroot", sysroot))
        config.substitutions.append((
            "%aarch64_python",
            f"qemu-aarch64 -L {sysroot} "
            f"-E SANDWICH_LIBRARY={os.path.realpath(aarch64)}/lib/libsandwich.so "
            f"-E PYTHONPATH={config.sandwich_source}/python {sysroot}/python3 -B"))
    tools = os.path.realpath(aarch64) + "/unittests"
    if all(os.path.exists(f"{tools}/{tool}")
           for tool in ("capi-example", "encode-texts", "random-mixes")):
        config.available_features.add("aarch64-tools")
        config.substitutions.append(("%qemu_aarch64",
                                     f"qemu-aarch64 -L {sysroot}"))
        config.substitutions.append(("%aarch64_tools", tools))

cpu = set()
try:
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("flags"):
                cpu.update(line.split(":", 1)[1].split())
                break
except OSError:
    pass
config.available_features.update("cpu-" + flag for flag in cpu)


def can_use_amx():
    """Whether the CPU has AMX, and the kernel lets this process use it."""
    if not {"amx_tile", "amx_bf16"} <= set(cpu):
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, request_permission,
                                     tile_data) == 0


# What sandwich-compile --target=x86-64-amx needs for code that runs here:
# nothing where AMX can be used.
config.substitutions.append(
    ("%emulate_amx",
     "" if can_use_amx() else "--loop-passes=test-emulate-amx"))
