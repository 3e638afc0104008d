"""What a look costs where a rank is large: a thousand libraries, three thousand threads, many symbols; many ranks.

The programs are made here: many small libraries, one of many symbols, threads that sleep some
calls deep in one of them. For each size: wall and CPU time of `gdbext diagnose --once`, the pause, and the most memory
that the front end and one gdb took. Takes about five minutes on two quiet cores.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

from tests.bench.tools import GDBEXT, REPOSITORY, machine
from tests.inferiors.torch_job import die_with_parent

LIBRARY = "int library(int (*next)(int), int x) { return next(x) + 1; }\n"
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int (**functions)(int (*)(int), int);
static int count;
static int wait_here(int x) { for (;;) pause(); return x; }
static void *run(void *number) { functions[(long)number % count](wait_here, 1); return 0; }
int main(int argc, char **argv)
{
    count = atoi(argv[2]);
    functions = calloc(count, sizeof *functions);
    char name[4096];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/lib%d.so", argv[1], i);
        void *library = dlopen(name, RTLD_NOW);
        if (!library || !(functions[i] = (int (*)(int (*)(int), int))dlsym(library, "library"))) return 3;
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (long i = 1; i < atoi(argv[3]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, run, (void *)i)) return 4;
    }
    puts("ready");
    fflush(stdout);
    run(0);
}
"""
RUN = """
import json, resource, sys, time
from gdbext.frontend import cli
begin = time.monotonic()
try:
    status = cli.main(sys.argv[1:])
except SystemExit as end:
    status = end.code
with open("/proc/self/status") as file:  # ru_maxrss is inherited from who started us
    most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump({"wall": time.monotonic() - begin, "status": status,
           "cpu": own.ru_utime + own.ru_stime, "gdb_cpu": children.ru_utime + children.ru_stime,
           "memory": most >> 10, "gdb_memory": children.ru_maxrss >> 10}, sys.stderr)
"""


def build(folder, libraries, symbols):
    """The program and its libraries: one with `symbols` further functions, and many copies of a small one."""
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", folder / "program", folder / "program.c", "-ldl"], check=True)
    names = (f"a_symbol_with_a_rather_long_name_{number}" for number in range(symbols))
    # An assembler makes a hundred thousand functions in a second, a compiler in a minute.
    functions = "".join(
        f".globl {name}\n.type {name},@function\n{name}: ret\n.size {name},.-{name}\n" for name in names
    )
    (folder / "many.s").write_text(f'.text\n{functions}.section .note.GNU-stack,"",@progbits\n')
    (folder / "library.c").write_text(LIBRARY)
    for number, more in enumerate(([folder / "many.s"], [])):
        target = folder / f"lib{number}.so"
        subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", target, folder / "library.c", *more], check=True)
    for number in range(2, libraries):
        shutil.copy(folder / "lib1.so", folder / f"lib{number}.so")


def measure(folder, ranks, libraries, threads, extra):
    """One size: so many processes, looked at once cold and once warm."""
    argv = [str(folder / "program"), str(folder), str(libraries), str(threads)]
    processes = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, preexec_fn=die_with_parent, text=True) for _ in range(ranks)
    ]
    try:
        for process in processes:
            if process.stdout.readline() != "ready\n":
                raise SystemExit(f"a rank with {threads} threads did not start: see `ulimit -u`")
        pids = [str(process.pid) for process in processes]
        found = []
        with tempfile.TemporaryDirectory() as cache:
            for _ in ("cold", "warm"):
                command = [sys.executable, "-c", RUN, *GDBEXT[3:], "--once", "--deadline", "600", *extra, *pids]
                done = subprocess.run(
                    command,
                    cwd=REPOSITORY,
                    env={**os.environ, "XDG_CACHE_HOME": cache},
                    capture_output=True,
                    text=True,
                    stdin=subprocess.DEVNULL,
                )
                answer = json.loads(done.stdout)
                cost = json.loads(done.stderr.splitlines()[-1])
                cost["pause"] = answer["pause_ms"]["max"]
                read = sum(len(one["threads"]) for one in answer["processes"])
                cost["read"] = f"{read} of {ranks * threads}"
                cost["problems"] = sorted({text for one in answer["processes"] for text in one["problems"]})[:3]
                found.append(cost)
        return found
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench size", description=__doc__)
    parser.add_argument("--libraries", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=3000)
    parser.add_argument("--symbols", type=int, default=200000)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    host = machine()
    sizes = [
        ("small", 1, 10, 50, []),
        (f"{options.libraries} libraries", 1, options.libraries, 100, []),
        (f"{options.threads} threads", 1, 10, options.threads, []),
        (f"{options.ranks} ranks", options.ranks, 10, 50, []),
        (f"{options.ranks} ranks, one gdb", options.ranks, 10, 50, ["--jobs", "1"]),
    ]
    lines, kept = [], []
    with tempfile.TemporaryDirectory(prefix="gdbext-size-") as name:
        folder = Path(name)
        begun = time.monotonic()
        build(folder, options.libraries, options.symbols)
        print(f"built in {time.monotonic() - begun:.0f} s; {host}", file=sys.stderr)
        for text, ranks, libraries, threads, extra in sizes:
            cold, warm = measure(folder, ranks, libraries, threads, extra)
            kept.append({"size": text, "cold": cold, "warm": warm})
            print(f"  {text}: {json.dumps(warm)}", file=sys.stderr)
            lines.append(
                [text, warm["read"], f"{cold['wall']:.1f}", f"{warm['wall']:.1f}", f"{warm['cpu']:.1f}",
                 f"{warm['gdb_cpu']:.1f}", f"{warm['pause']:.1f}", f"{warm['memory']}", f"{warm['gdb_memory']}"]
            )  # fmt: skip
    heads = [
        "size",
        "threads",
        "wall s, cold",
        "warm",
        "CPU s, front end",
        "gdb",
        "pause ms",
        "MiB, front end",
        "one gdb",
    ]
    print(host, tabulate(lines, heads, tablefmt="github", disable_numparse=True), sep="\n\n")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": host, "sizes": kept}, indent=1))


if __name__ == "__main__":
    main()
