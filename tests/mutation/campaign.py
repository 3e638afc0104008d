"""Mutants of the verdict, each against the tests that run it: `scripts/mutate [--sample N] [--seed S] [--only FILE]`.

mutmut writes every mutant of gdbext/analysis/waits and asks of each the fast tests that reach its function. All of it
happens in a copy below .cache/mutate, one mutant at a time; one that takes too long is stopped and counts as killed.
The survivors are printed with their difference: each asks for a test, is equivalent, or changes nothing but a wording.

operators (mutmut's): a number plus one; a text spelled differently; True and False swapped; a value None; an augmented
assignment plain; `not` removed; an argument None or left out; str methods swapped; a lambda None; is, in, break and
continue swapped; arithmetic, comparison and boolean operators swapped; both arms of a conditional expression.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

from tabulate import tabulate

from tests.mutation import rows

HERE = Path(__file__).resolve().parents[2]
WORK = HERE / ".cache" / "mutate"
MUTATED = "gdbext/analysis/waits"
TESTS = (
    *("scenes", "rivals", "waits", "judge", "locks", "communicators", "witnesses", "log_lines", "running", "progress"),
    *("unread", "several", "crashes", "watching", "engine", "callable", "answers"),
)
"""Of tests/unit/test_analysis_*.py: fast, and of the whole verdict."""
OTHERS = ("test_explain_verdict", "test_render_chain")
LEFT_OUT = "not thousand"
"""Tests of large jobs, which take seconds."""
SECONDS = 30.0
"""A mutant may take this long and as long again as its tests take."""

_SETTINGS = """[mutmut]
source_paths = gdbext
only_mutate =
{only}
also_copy =
    docs
pytest_add_cli_args_test_selection =
{tests}
pytest_add_cli_args =
    -p
    no:cacheprovider
    -p
    tests.mutation.order
    -k
    {left_out}
use_git_change_detection = false
timeout_multiplier = 1.0
timeout_constant = {seconds}
"""


def prepare(only: Sequence[str]) -> None:
    """A copy of what is needed, with mutmut's settings."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    left = shutil.ignore_patterns("__pycache__", "sealed", "inferiors", "gdb")
    for folder in ("gdbext", "docs", "tests"):
        shutil.copytree(HERE / folder, WORK / folder, ignore=left if folder == "tests" else None)
    shutil.copy(HERE / "pyproject.toml", WORK)
    names = [*(f"test_analysis_{name}" for name in TESTS), *OTHERS]
    tests = [path for path in (f"tests/unit/{name}.py" for name in names) if (WORK / path).exists()]
    lines = {"only": [f"{MUTATED}/{name}" for name in only], "tests": tests}
    told = {key: "\n".join(f"    {one}" for one in some) for key, some in lines.items()}
    (WORK / "setup.cfg").write_text(_SETTINGS.format(**told, seconds=SECONDS, left_out=LEFT_OUT))


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def mutants(only: Sequence[str]) -> List[str]:
    """Names of all that mutmut makes of the files."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    found: List[str] = []
    for path in sorted(path for name in only for path in Path(MUTATED).glob(name)):
        made = mutate_file_contents(str(path), path.read_text())
        found += [get_mutant_name(path, name) for name in made.mutant_names]
    return found


def results(names: Sequence[str]) -> Dict[str, str]:
    """What became of each, in mutmut's words."""
    from mutmut.stats import status_by_exit_code

    codes: Dict[str, object] = {}
    for path in Path("mutants", MUTATED).glob("*.meta"):
        codes.update(json.loads(path.read_text())["exit_code_by_key"])
    return {name: status_by_exit_code[codes.get(name)] for name in names}


def show(name: str) -> str:
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    return "\n".join(str(get_diff_for_mutant(name)).splitlines()[2:])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--only", action="append", metavar="FILE", help="a file of analysis/waits, like chain.py")
    parser.add_argument("--survivors", type=Path, help="write the survivors with their differences to a file")
    parser.add_argument(
        "--again", type=Path, help="the mutants of such a file once more, where their functions did not change"
    )
    parser.add_argument("--rows", action="store_true", help="the rows of wait_causes.py and waits.py instead")
    options = parser.parse_args()
    if options.rows:
        made, unnoticed = rows.campaign()
        print("\n".join(unnoticed))
        print(f"{made} changes of rows, {made - len(unnoticed)} killed, {len(unnoticed)} survived")
        return
    only = options.only or ["*.py"]
    again = options.again.read_text() if options.again else ""
    prepare(only)
    with inside(WORK):
        everything = mutants(only)
        names = everything
        if options.sample is not None and options.sample < len(everything):
            names = sorted(random.Random(options.seed).sample(everything, options.sample))
        if options.again:
            listed = {line[2:].split(":")[0] for line in again.splitlines() if line.startswith("# ")}
            names = [name for name in everything if name in listed]
        chosen = names if len(names) < len(everything) else []
        words = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", "1", *chosen]
        with open("mutmut.log", "w") as log:
            done = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
        told = results(names)
        left = [name for name, status in told.items() if status != "killed" and status != "timeout"]
        survivors = "\n".join(f"# {name}: {told[name]}\n{show(name)}\n" for name in left)
    if options.survivors:
        options.survivors.write_text(survivors)
    else:
        print(survivors)
    print(summary(told, f"mutmut {version('mutmut')}, {len(names)} of {len(everything)} mutants, seed {options.seed}"))
    sys.exit(done.returncode)


def summary(told: Dict[str, str], heading: str) -> str:
    """A row for each file, and one for all."""
    rows: Dict[str, Counter] = {}
    for name, status in told.items():
        for file in (name.split(".x", 1)[0].rsplit(".", 1)[-1] + ".py", "together"):
            rows.setdefault(file, Counter()).update([status, "mutants"])
    keys = ["mutants", "killed", "timeout", "survived", "no tests", "suspicious", "segfault", "not checked"]
    shown = [key for key in keys if any(total[key] for total in rows.values())]
    together = rows.pop("together", Counter())
    table = [[file, *(total[key] for key in shown)] for file, total in (*sorted(rows.items()), ("together", together))]
    return f"{heading}\n\n{tabulate(table, ['file', *shown], tablefmt='github')}"


if __name__ == "__main__":
    main()
