"""Jobs of which we know who is late: 40 that were never run, and 10 recorded ones; and what `trace diagnose` says.

python -m tests.traces.truth prints the table of docs/traces.md.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from gdbext.traces.diagnosis import diagnose
from gdbext.traces.trace_files import find_trace_files
from gdbext.traces.traces_of_job import read_job
from tests.traces.making import Plan, write
from tests.traces.recording import KINDS

RECORDED = Path(__file__).parents[1] / "data" / "traces" / "recorded"


@dataclass
class Truth:
    name: str
    cause: str
    culprits: tuple = ()
    plan: Plan = None
    before: str = ""  # what the culprit did before, where the answer must say it
    also: tuple = ()  # other right answers


def _late(name, late, who, before, **more):
    return Truth(name, "late-rank", (who,), Plan(late=late, who=who, **more), before)


CLOCKS = {"offsets": {1: 5_000, 2: -300_000, 3: 700}, "drifts": {1: 100.0, 2: -100.0}}

GENERATED = (
    Truth("even", "not-late", plan=Plan()),
    Truth("even, 8 ranks", "not-late", plan=Plan(ranks=8, seed=3)),
    Truth("even, 2 ranks", "not-late", plan=Plan(ranks=2, seed=4)),
    Truth("even, 128 ranks", "not-late", plan=Plan(ranks=128, steps=6, layers=2, kernels=2)),
    Truth("even, work varies at random by 8 %", "not-late", plan=Plan(jitter=0.08, seed=5)),
    Truth("even, clocks apart and drifting", "not-late", plan=Plan(steps=60, work=8000, **CLOCKS)),
    Truth("even, overlapping kernels", "not-late", plan=Plan(overlap=3)),
    Truth("even, CUDA graphs", "not-late", plan=Plan(graphs=True, seed=6)),
    Truth("even, times in whole microseconds", "not-late", plan=Plan(old=True)),
    Truth("even, no arguments on collectives", "not-late", plan=Plan(named=False, ranks=8)),
    Truth("even, four groups", "not-late", plan=Plan(ranks=16, groups=4)),
    _late("longer kernel", "kernel", 2, "kernel"),
    _late("longer kernel, 8 ranks", "kernel", 7, "kernel", ranks=8, by=0.3),
    _late("longer kernel, 128 ranks", "kernel", 77, "kernel", ranks=128, steps=6, layers=2, kernels=2),
    _late("longer kernel, 15 % of the work", "kernel", 1, "kernel", by=0.15),
    _late("longer kernel, clocks apart and drifting", "kernel", 3, "kernel", steps=60, work=8000, **CLOCKS),
    _late("longer kernel, CUDA graphs and overlaps", "kernel", 0, "kernel", graphs=True, overlap=2),
    _late("longer kernel, whole microseconds", "kernel", 2, "kernel", old=True),
    _late("longer kernel, one rank of four groups", "kernel", 9, "kernel", ranks=16, groups=4),
    _late("host sleeps", "host", 1, "idle"),
    _late("host sleeps, 8 ranks", "host", 6, "idle", ranks=8, by=0.4),
    _late("host sleeps, no arguments", "host", 3, "idle", named=False),
    _late("host sleeps, two hosts", "host", 2, "idle", hosts=True, offsets={2: 900.0, 3: 900.0}),
    _late("host sleeps, every third collective", "host", 0, "idle", every=3, steps=20),
    _late("data loader", "data", 3, "idle"),
    _late("data loader, once a step", "data", 1, "idle", every=4, by=3.0, steps=20),
    _late("compilation", "compile", 2, "idle"),
    _late("first use of kernels", "first-use", 0, "idle"),
    _late("copies from the host", "copy", 2, "copy"),
    _late("copies, 8 ranks", "copy", 5, "copy", ranks=8),
    Truth("rotating", "rotating-late-rank", (0, 1, 2, 3), Plan(late="rotating")),
    Truth("rotating, 8 ranks", "rotating-late-rank", tuple(range(8)), Plan(late="rotating", ranks=8, by=0.8)),
    Truth(
        "rotating, clocks apart",
        "rotating-late-rank",
        (0, 1, 2, 3),
        Plan(late="rotating", steps=60, work=8000, **CLOCKS),
    ),
    Truth("unequal work", "imbalance", (2, 3), Plan(late="imbalance")),
    Truth("unequal work, 8 ranks", "imbalance", (4, 5, 6, 7), Plan(late="imbalance", ranks=8)),
    Truth("transfers slow in every second step", "slow-transfer", (), Plan(late="transfer")),
    Truth(
        "transfers slow in one of two groups",
        "slow-transfer",
        (4, 5, 6, 7),
        Plan(late="slow-link", ranks=8, groups=2, who=1),
    ),
    Truth("the late rank has no trace", "unknown", (), Plan(late="kernel", who=1, absent=(1,))),
    Truth("one rank alone", "unknown", (), Plan(ranks=4, absent=(1, 2, 3))),
    Truth(
        "late once in the whole profile", "not-late", (), Plan(late="host", who=1, every=48, by=20.0), also=("unknown",)
    ),
)


def _recorded():
    causes = {"even": "not-late", "rotating": "rotating-late-rank"}
    before = {"kernel": "kernel", "host": "idle", "data": "idle", "rotating": ""}
    for kind, ranks in KINDS.items():
        sort = kind.split("-")[0]
        yield Truth(f"recorded: {kind}", causes.get(sort, "late-rank"), ranks, before=before.get(sort, ""))


def answer(truth):
    """(right, wrong and sure, the answer)."""
    if truth.plan is None:
        diagnosis = _judged(RECORDED / truth.name.partition(": ")[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            write(truth.plan, folder)
            diagnosis = _judged(folder)
    verdict = diagnosis.verdict
    ranks = tuple(diagnosis.files[at].rank for at in verdict.culprits)
    right = verdict.cause in (truth.cause, *truth.also) and (verdict.cause != truth.cause or ranks == truth.culprits)
    if right and truth.before:
        rows = {diagnosis.files[one.process].rank: one.before for one in diagnosis.lateness}
        right = all(rows[rank] == truth.before for rank in truth.culprits)
    sure = verdict.cause != "unknown" and verdict.confidence == "high"
    return right, not right and sure, diagnosis


def _judged(folder):
    return diagnose(read_job(find_trace_files([str(folder)]), True, lambda text: None, 1))


ALL = (*GENERATED, *_recorded())


def table():
    """Rows for docs/traces.md."""
    rows = []
    for truth in ALL:
        right, _, diagnosis = answer(truth)
        verdict = diagnosis.verdict
        said = " ".join(str(diagnosis.files[at].rank) for at in verdict.culprits[:8])
        rows.append([truth.name, truth.cause, verdict.cause, verdict.confidence, said, "yes" if right else "**no**"])
    return tabulate(rows, ["job", "truth", "answer", "confidence", "culprits", "right"], tablefmt="github")


if __name__ == "__main__":
    print(table())
