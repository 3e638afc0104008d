"""Names of Python frames in two ranks of a torch program, on every CPython and with each gdb (scripts/try-pythons).

torch's packages on PyPI need NVIDIA's libraries, some GiB; nothing here calls them, so empty ones stand in.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

from tests.conftest import gdbs
from tests.gdb.gdbrun import INFERIORS, gdb_batch
from tests.inferiors.python_target import interpreters

RELEASES = [(3, minor) for minor in range(8, 15)]
BESIDE_TORCH = ("numpy", "filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec")
ELEMENTS = {
    "hidden": [0, 1, 2, 3, 4, 5],
    "self.hidden": [0, 1, 2, 3, 4, 5],
    'kv[1][1]["k"]': [3, 4, 5],
    'batch["ids"]': [0, 1, 2, 3, 4, 5],
    "self.linear.weight": [0.25] * 4,
    'state["layers.0.weight"]': [0.25] * 4,
    "self.cache": [0, 0, 0],
    "at_the_top": [1, 1],
    "self.queue[0]": [1, 2, 3, 4, 5, 6],
    'self.scales["k"]': [1, 1],
    "self.biases[-1]": [4],
    "config.scale": [2, 3, 4],
    "later.args[0]": [6, 7, 8],
    "owner().hidden": [0, 1, 2, 3, 4, 5],
}
REFUSED = {"self.computed": "property", "hiden": "no variable hiden"}
OVER_RANKS = {"hidden": [[0, 1]], "self.hidden": [[0, 1]], "self.queue[0]": [[0, 1]], "uneven": [[0], [1]]}


def packages(python, release, folder, *names):
    """Packages for an interpreter, installed by its own pip; by the one of this Python where it has none."""
    own = subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0
    others = ["--only-binary=:all:", "--implementation", "cp", "--python-version", ".".join(map(str, release))]
    pip = [
        python if own else sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        str(folder),
        "--no-compile",
    ]
    subprocess.run([*pip, "--upgrade", *([] if own else others), *names], check=True, stdin=subprocess.DEVNULL)


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def stand_ins(libraries, folder):
    """Empty functions for what torch's libraries need of those that are not there, each in the one it is asked of."""
    needed, versions, wanted, there = set(), {}, set(), set()
    for library in libraries:
        for line in lines_of("readelf", "-dW", str(library)):
            needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", line))
        for line in lines_of("nm", "-D", str(library)):
            *_, kind, name = line.split()
            name, _, version = name.replace("@@", "@").partition("@")
            if kind not in "Uwv":
                there.add(name)
            elif version:
                versions.setdefault(version, set()).add(name)
            else:
                wanted.add(name)
    own = {library.name for library in libraries}
    missing = sorted(name for name in needed - own if re.match(r"lib(cu|nv|nccl)", name))
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(missing):
        version = "NVSHMEM" if "nvshmem" in name else name
        names = versions.get(version, set())
        rest = (
            {one for one in wanted - there if re.match(r"cu[a-zA-Z]|nccl|nv|cusparseLt", one)} if number == 0 else set()
        )
        source, script = folder / "empty.s", folder / "empty.map"
        source.write_text("".join(f".globl {one}\n.type {one},@function\n{one}: ret\n" for one in sorted(names | rest)))
        script.write_text(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" if names else "")
        extra = [f"-Wl,--version-script={script}"] if names else []
        command = [
            "gcc",
            "-shared",
            "-nostdlib",
            "-Wl,-z,noexecstack",
            f"-Wl,-soname,{name}",
            *extra,
            "-o",
            str(folder / name),
            str(source),
        ]
        subprocess.run(command, check=True)


@contextlib.contextmanager
def ranks(python, packages_folder, empty):
    """Pids of two ranks that wait in torch_frames.py."""
    environment = {**os.environ, "PYTHONPATH": str(packages_folder), "LD_LIBRARY_PATH": str(empty), "WORLD_SIZE": "2"}
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [python, str(INFERIORS / "torch_frames.py")]
    with contextlib.ExitStack() as stack:
        started = []
        for rank in ("0", "1"):
            started.append(subprocess.Popen(command, env={**environment, "RANK": rank}, **options))
            stack.callback(started[-1].wait)
            stack.callback(started[-1].kill)
        if not all(one.stdout.readline().startswith("ready") for one in started):
            raise RuntimeError("torch did not start")
        yield [one.pid for one in started]


def failures(gdb, first, second):
    """What one gdb does not show as it is, and how many things it was asked."""
    attach = ["set auto-solib-add off", f"attach {first}", "add-inferior", "inferior 2", f"attach {second}"]
    asked = [f"llm-tensor p py2:{name} --json" for name in [*ELEMENTS, *REFUSED]]
    asked += [f"llm-tensor diff py2:{name} --all-ranks --json" for name in OVER_RANKS]
    answer = gdb_batch(gdb, *attach, "inferior 1", *asked, "detach", "inferior 2", "detach")
    values = {one["tensor"]["name"]: one.get("elements") for one in answer.documents if "tensor" in one}
    groups = [[group["ranks"] for group in one["groups"]] for one in answer.documents if "groups" in one]
    wrong = [name for name, elements in ELEMENTS.items() if values.get(f"py2:{name}") != elements]
    wrong += [name for name, reason in REFUSED.items() if f"py2:{name}" in values or reason not in answer.text]
    if groups != list(OVER_RANKS.values()):
        wrong.append(f"diff --all-ranks: {groups}")
    if wrong:
        print(answer.text, file=sys.stderr)
    return wrong, len(asked)


def row(release, python, folder):
    """A line of the table."""
    name = ".".join(map(str, release))
    if not python:
        return [name, "-", "no interpreter: GDBEXT_PYTHONS names more", "-"], False
    version = lines_of(python, "-c", "import sys; print(sys.version.split()[0])")[0]
    site, empty = folder / name, folder / f"{name}-empty"
    try:
        if not (site / "torch").exists():
            packages(python, release, site, "--no-deps", "torch")
            packages(python, release, site, *BESIDE_TORCH)
        if not empty.exists():
            stand_ins(sorted((site / "torch" / "lib").glob("*.so*")), empty)
        torch = re.search(r'__version__ = "([\w.]+)', (site / "torch" / "version.py").read_text().replace("'", '"'))[1]
        with ranks(python, site, empty) as pids:
            found = [failures(gdb, *pids) for gdb in gdbs()]
    except (subprocess.CalledProcessError, RuntimeError) as error:
        return [version, "-", str(error), "-"], False
    told = [
        f"{count - len(wrong)} of {count}" + (f": not {', '.join(wrong)}" if wrong else "") for wrong, count in found
    ]
    return [version, torch, *told], not any(wrong for wrong, _ in found)


def main(asked):
    """Exit status 1 when a release shows something else, or cannot be tried."""
    found = interpreters()
    releases = [tuple(map(int, one.split("."))) for one in asked] or RELEASES
    keep = os.environ.get("GDBEXT_TRY")
    folder = Path(keep or tempfile.mkdtemp())
    rows, fine = [], True
    heads = [re.search(r"(\d+\.\d+)", lines_of(gdb, "--version")[0].rpartition("gdb")[2])[1] for gdb in gdbs()]
    for release in releases:
        folder.mkdir(exist_ok=True)
        line, good = row(release, found.get(release), folder)
        rows.append(line)
        fine = fine and good
        print(json.dumps(line), file=sys.stderr)
        if not keep:
            shutil.rmtree(folder)
    print(
        tabulate(
            rows, ["Python", "torch", *(f"gdb {head}" for head in heads)], tablefmt="github", disable_numparse=True
        )
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
