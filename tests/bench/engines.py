"""What `scripts/bench vllm` and `scripts/bench sglang` share: each server of a table is started and diagnosed once."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.accuracy import REPOSITORY, Program, alarms, looks, machine, misses, play, totals
from tests.conftest import gdbs
from tests.inferiors import engine_server
from tests.inferiors.engine_server.server import Server

MODEL = Path(engine_server.__file__).with_name("model.py")


def installed(name, what, fill):
    """The Python of an environment in `.cache`, made once; `fill` gets the words of its pip and its packages."""
    folder = REPOSITORY / ".cache" / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {what} into {folder} (3 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        fill([str(python), "-m", "pip", "-q"], next(folder.glob("lib/python3*/site-packages")))
        (folder / "ready").touch()
    return python


def measure(engine, served, install, description):
    """The command line of the bench of an engine; `install` gives its Python where none is named."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {engine.name}", description=description)
    parser.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="servers whose name has one in it")
    parser.add_argument("--which", choices=("hangs", "healthy"), help="only these")
    parser.add_argument(
        "--gdb", nargs="+", default=gdbs()[:1], help="these gdbs; the first of the suite where left out"
    )
    parser.add_argument("--python", type=Path, metavar="FILE", help="a Python that has the engine")
    parser.add_argument("--json", metavar="FILE", help="the looks as JSON too, written after each server")
    parser.add_argument("--keep", metavar="FOLDER", help="each look, its answer and the roles' pids, into this folder")
    options = parser.parse_args()
    python, results = options.python or install(), []
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="site-model-") as folder:
        subprocess.run([str(python), str(MODEL), folder], check=True, stderr=subprocess.DEVNULL)
        for row in served:
            if not any(text in row.name for text in options.only):
                continue
            if options.which and row.healthy != (options.which == "healthy"):
                continue
            start = lambda row=row: Server(engine, row, python, Path(folder))  # noqa: E731 - one line, used once
            program = Program(engine.name, row.name, start, row.causes, roles=row.culprits)
            play(looks(program, options.gdb, 1, options.keep), program, results, options.json)
    print(f"{len(results)} looks. {machine()}.\n")
    print(totals(results), alarms(results), "Not right:\n\n" + misses(results), sep="\n\n")
