"""Mutations of saved snapshots, each read, judged and written in every way there is: an answer or one line, never an
internal error.

What follows from the seed is the document: `--only N` plays a round again, with its traceback.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Counter, Dict, List, Tuple

from gdbext.analysis.communicators.joined_communicators import communicator_table
from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.cli import diagnosis_bundle
from gdbext.knowledge.labels import CAUSES, WAIT_KINDS
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.verdict import Diagnosis
from gdbext.render import Style, dumps, render
from gdbext.render.safe_text import is_live
from tests.fuzz.mutating import bases, mutated

STYLES = (Style(80), Style(60, color=True), Style(200, color=True, unicode=False))
REFUSED = "not a gdbext snapshot"


def round_of(seed: int, number: int, documents: List[Dict[str, Any]], folder: Path) -> str:
    """What became of one document: "read", or why it was refused. Raises whatever should not happen."""
    data = mutated(random.Random(seed * 1_000_003 + number), documents)
    try:
        snapshot = load_snapshot(data)
    except GdbextError as error:
        assert str(error).startswith((REFUSED, "snapshot has schema")), str(error)
        assert len(str(error)) < 500, str(error)
        return REFUSED
    check(snapshot, folder)
    return "read"


def check(snapshot: JobSnapshot, folder: Path) -> None:
    """All that is made of a snapshot, and what must be true of it."""
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot
    diagnosis = judge(snapshot)
    diagnosis = replace(diagnosis, tree=merge(snapshot, diagnosis.processes))
    assert diagnosis.verdict.cause in CAUSES
    assert all(one.wait.kind in WAIT_KINDS for one in diagnosis.processes)
    answers = (diagnosis, diagnosis.tree, report(diagnosis), communicator_table(snapshot.processes))
    for answer in (*answers, snapshot):
        for style in STYLES:
            lines = "".join(render(answer, style))
            assert not any(map(is_live, lines.replace("\x1b[", "")))
    for answer in answers:
        text = dumps(answer)
        assert text.isascii() and json.loads(text), "compared with the schema, where the tests run"
    keep(diagnosis, folder)


def keep(diagnosis: Diagnosis, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    diagnosis_bundle.write(str(folder), diagnosis, running=False)
    load_snapshot((folder / diagnosis_bundle.SNAPSHOT).read_bytes())


def run(seed: int, numbers: range, deadline: float) -> Tuple[Counter[str], List[int]]:
    """Rounds until there are no more of them, or no more time. What became of them, and those that failed."""
    documents, counts, failed = bases(), collections.Counter[str](), []
    until = time.monotonic() + deadline
    with tempfile.TemporaryDirectory() as home:
        for number in numbers:
            if time.monotonic() > until:
                break
            try:
                counts[round_of(seed, number, documents, Path(home) / "bundle")] += 1
            except Exception as problem:
                failed.append(number)
                print(f"round {number}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
                if len(numbers) == 1:
                    raise
    return counts, failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.rounds)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    begin = time.monotonic()
    counts, failed = run(options.seed, numbers, options.deadline)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    done, took = sum(counts.values()) + len(failed), time.monotonic() - begin
    print(f"seed {options.seed}: {done:,} rounds from {numbers[0]} in {took:.0f} s, {dict(counts)}", end=", ")
    print(f"{len(failed)} failed, at most {most} MiB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
