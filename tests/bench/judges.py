"""Two judges on all labelled data: `scripts/bench judges [--corpus FOLDER] [--save FILE] [--against FILE] [--pin]`.

Run it with --save at one commit and with --against at another: a row for each set and judge, then every case that got
better and every one that got worse. Read are the open batches of tests/data/real, tests/data/field,
tests/data/dialects, and folders in the format of the batches that are named.

right     the cause is the label, or what is acceptable too; of labels that are open: left open
open      the label names a cause and the answer is "unknown"
wrong     another cause; `sure` of them with high confidence
decisive  the labelled process and thread are named
A case got worse when its grade fell (right > open > wrong > confidently wrong), or its deciding thread was lost.

With --pin the answers of this commit become those that the tests expect: of all these texts
(tests/unit/test_analysis_answers.py), and of the looks of tests/unit/verdict_scenes.py.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tabulate import tabulate

from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.job import JobSnapshot
from gdbext.parsers import parse_files
from tests.unit import verdict_scenes

DATA = Path(__file__).resolve().parents[1] / "data"
PINNED = DATA / "answers.json"
"""What the judge answers to every case of the repository that is open: a change of it is made on purpose."""
_GRADES = ("right", "open", "wrong", "sure")


class Case(NamedTuple):
    """A labelled look. `decisive`: process, thread or None where the label has none."""

    set: str
    name: str
    snapshot: JobSnapshot
    causes: Tuple[str, ...]
    decisive: Optional[Tuple[int, str]]


def _pasted(name: str, text: bytes) -> JobSnapshot:
    return parse_files([(name, text)])


def _of_folder(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.json")):
        case: Dict[str, Any] = json.loads(path.read_text())
        if case.get("scope") == "adjacent":
            continue
        truth = case["truth"]
        text = path.with_suffix(".txt")
        causes = (truth["cause"], *truth.get("also_acceptable", {}).get("cause", ()))
        process, thread = truth["decisive"].get("process"), truth["decisive"].get("thread")
        named = None if process is None or thread is None else (process, str(thread))
        yield Case(folder.name, path.stem, _pasted(text.name, text.read_bytes()), causes, named)


def _of_field(folder: Path) -> Iterator[Case]:
    for name, truth in json.loads((folder / "labels.json").read_text()).items():
        text = (folder / f"{name}.txt").read_bytes()
        decisive = truth["process"], truth["thread"]
        yield Case("field", name, _pasted(f"{name}.txt", text), tuple(truth["cause"]), decisive)


def _of_dialects(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.txt")):
        for block in re.split(r"^@@ ", path.read_text(), flags=re.MULTILINE)[1:]:
            head, text = block.split("\n", 1)
            name, *rest = (part.strip() for part in head.split("|"))
            expected = dict(one.split("=", 1) for one in rest)
            snapshot = _pasted("dialect.txt", text.encode())
            yield Case("dialects", name, snapshot, tuple(expected["cause"].split(",")), None)


def cases(folders: Sequence[Path] = ()) -> Iterator[Case]:
    """Every labelled case of the repository that is open, and those of further folders."""
    for folder in (*sorted(path for path in (DATA / "real").glob("batch-*") if path.is_dir()), *folders):
        yield from _of_folder(folder)
    yield from _of_field(DATA / "field")
    yield from _of_dialects(DATA / "dialects")


class Answer(NamedTuple):
    """What a judge says of a case."""

    cause: str
    confidence: str
    process: Optional[int]
    thread: Optional[str]
    culprits: Tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.cause} ({self.confidence})"


def answer(case: Case) -> Answer:
    """Of the judge of this commit."""
    verdict = judge(case.snapshot).verdict
    decisive = verdict.decisive_process, verdict.decisive_thread
    return Answer(verdict.cause, verdict.confidence, *decisive, verdict.culprits)


def pin(answers: Dict[str, Answer]) -> None:
    """A line for each case, so that a difference shows which one changed."""
    lines = (f" {json.dumps(name)}: {json.dumps(said)}" for name, said in sorted(answers.items()))
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def grade(case: Case, said: Answer) -> str:
    """One of `_GRADES`, the best first."""
    if said.cause in case.causes:
        return "right"
    if said.cause == "unknown":
        return "open"
    return "sure" if said.confidence == "high" else "wrong"


def is_named(case: Case, said: Answer) -> bool:
    """Whether the labelled thread decides."""
    if case.decisive is None:
        return True
    process, thread = case.decisive
    return said.process == process and _id(said.thread) == _id(thread)


def _id(text: object) -> str:
    return str(text).strip().lower().replace("thread ", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", type=Path, action="append", default=[], help="a folder in the format of the batches"
    )
    parser.add_argument("--save", type=Path, help="write the answers of this commit to a file")
    parser.add_argument("--against", type=Path, help="compare with the answers in a file")
    parser.add_argument("--pin", action="store_true", help="write what the tests expect")
    options = parser.parse_args()
    if options.pin:
        pin({f"{case.set}/{case.name}": answer(case) for case in cases()})
        verdict_scenes.TEXT.write_text(verdict_scenes.all_told())
        return
    known = json.loads(options.against.read_text()) if options.against else {}
    totals: Dict[Tuple[str, str], Counter] = {}
    changed: Dict[str, List[List[str]]] = {"better": [], "worse": []}
    graded: Dict[Tuple[str, str], Counter] = {}
    saved: Dict[str, Answer] = {}
    for case in cases(options.corpus):
        name = f"{case.set}/{case.name}"
        now = saved[name] = answer(case)
        before = Answer(*known[name]) if name in known else now
        for judged_by, said in (("before", before), ("now", now)) if known else (("now", now),):
            total = totals.setdefault((case.set, judged_by), Counter())
            total.update([grade(case, said), "cases"])
            total["decisive"] += is_named(case, said)
            if judged_by == "now" and said.cause != "unknown":
                sure = graded.setdefault((case.set, said.confidence), Counter())
                sure.update(["answers", "right" if said.cause in case.causes else "wrong"])
        old, new = ((_GRADES.index(grade(case, one)), not is_named(case, one)) for one in (before, now))
        row = [name, case.causes[0], str(before), str(now), f"{now.process}, {now.thread}"]
        if new[0] > old[0] or new[1] > old[1]:
            changed["worse"].append(row)
        elif new < old:
            changed["better"].append(row)
    if options.save:
        options.save.write_text(json.dumps(saved))
    print(tabulate(_rows(totals), ["set", "judge", "cases", *_GRADES, "decisive"], tablefmt="github"))
    print("\nOf the answers that name a cause, by their confidence\n")
    print(tabulate(_by_confidence(graded), ["confidence", "set", "answers", "right"], tablefmt="github"))
    for title, rows in changed.items() if known else ():
        print(f"\n{title}: {len(rows)}\n")
        print(tabulate(rows, ["case", "label", "before", "now", "decisive now"], tablefmt="github"))


def _by_confidence(graded: Dict[Tuple[str, str], Counter]) -> List[List[object]]:
    """How often an answer of each confidence is right, in each set and in all of them."""
    rows: List[List[object]] = []
    for confidence in reversed(CONFIDENCE):
        sets = {name: total for (name, one), total in graded.items() if one == confidence}
        whole = sum(sets.values(), Counter())
        for name, total in (*sets.items(), ("together", whole)):
            rows.append([confidence, name, total["answers"], total["right"]])
    return rows


def _rows(totals: Dict[Tuple[str, str], Counter]) -> List[List[object]]:
    whole: Dict[str, Counter] = {}
    rows: List[List[object]] = []
    for (name, judged_by), total in totals.items():
        rows.append([name, judged_by, total["cases"], *(total[one] for one in _GRADES), total["decisive"]])
        whole.setdefault(judged_by, Counter()).update(total)
    for judged_by, total in whole.items():
        rows.append(["together", judged_by, total["cases"], *(total[one] for one in _GRADES), total["decisive"]])
    return rows


if __name__ == "__main__":
    main()
