"""How real pastes are read: `scripts/bench real [FOLDER ...]`, by default every unpacked batch of tests/data/real.

Runs `gdbext diagnose --json` on each text and compares the document with the label beside it. A line for each miss,
then a row for each batch. A batch counts by its first reading, before any rule is changed for it (docs/accuracy.md).

answered   of the texts that hold a stack or a log line that decides, those that get a document
threads    threads found, at most as many as the text shows
wait       the deciding thread (of a log: its process) waits in what the label says, or in what is acceptable too;
           a label of low confidence counts half
decisive   the labelled process and thread are named; of a log the process, or the silent rank, as decisive or culprit
cause      of labels that name one: right, open ("unknown"), wrong; of labels that are open: claimed
sure       wrong causes, and claims where none is known, said with high confidence
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tabulate import tabulate

REAL = Path(__file__).resolve().parents[1] / "data" / "real"
SECONDS = 60
Json = Dict[str, Any]


def read(path: Path) -> Optional[Json]:
    """The document that gdbext gives of a text; None where it gives none."""
    command = [sys.executable, "-m", "gdbext", "diagnose", "-q", str(path), "--json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        document: Json = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return document if "verdict" in document else None


def score(case: Json, found: Optional[Json]) -> Tuple[Counter, List[str]]:
    """What one case adds to the totals, and its misses in words."""
    total: Counter = Counter(cases=1)
    misses: List[str] = []
    decides = case.get("evidence", "stack") != "none"
    total["threads of"] = sum(len(one["threads"]) for one in case["processes"])
    total["answered of"] = int(decides)
    weight = 0.5 if case["truth"]["confidence"] == "low" else 1.0
    scored = case["truth"]["decisive"]["process"] is not None or "rank" in case["truth"]["decisive"]
    total["wait of"], total["decisive of"] = (weight, 1) if scored else (0, 0)
    if found is None:
        if decides:
            misses.append("not answered")
        found = {"processes": [], "verdict": {}}
    else:
        total["answered"] = int(decides)
    total["threads"] = min(sum(len(one["threads"]) for one in found["processes"]), total["threads of"])
    if total["threads"] < total["threads of"]:
        misses.append(f"threads: {total['threads']} of {total['threads of']}")
    if scored:
        total.update(_of_thread(case["truth"], found, weight, misses))
    total.update(_of_cause(case["truth"], found["verdict"], misses))
    return total, misses


def _of_thread(truth: Json, found: Json, weight: float, misses: List[str]) -> Counter:
    total: Counter = Counter()
    kind = _kind(truth["decisive"], found["processes"])
    if kind in _fair(truth, "wait"):
        total["wait"] = weight
    else:
        misses.append(f"wait: {truth['wait']}, not {kind}")
    if _is_named(truth["decisive"], found):
        total["decisive"] = 1
    else:
        misses.append(f"decisive: {truth['decisive']}, not {found['verdict'].get('decisive')}")
    return total


def _of_cause(truth: Json, verdict: Json, misses: List[str]) -> Counter:
    cause, confidence = verdict.get("cause") or "unknown", verdict.get("confidence")
    fair = cause in _fair(truth, "cause")
    named = truth["cause"] != "unknown"
    outcome = "right" if named and fair else "open" if named and cause == "unknown" else "wrong" if named else ""
    if not named and not fair:
        outcome = "claimed"
    total: Counter = Counter({"named": int(named), "unnamed": int(not named), outcome: 1})
    total["sure"] = int(not fair and cause != "unknown" and confidence == "high")
    if outcome not in ("", "right"):
        misses.append(f"cause: {truth['cause']}, not {cause} ({confidence})")
    return total


def _fair(truth: Json, what: str) -> List[str]:
    return [truth[what], *truth.get("also_acceptable", {}).get(what, [])]


def _kind(decisive: Json, processes: List[Json]) -> Optional[str]:
    """What the document says of the labelled thread, or of the labelled process where the label has no thread."""
    process = _process(decisive, processes)
    if process is None:
        return None
    if decisive.get("thread") is None:
        kind: Optional[str] = (process.get("wait") or {}).get("kind")
        return kind
    kinds = {_id(one["id"]): one["kind"] for one in process["threads"]}
    alone = next(iter(kinds.values())) if len(kinds) == 1 else None
    return kinds.get(_id(decisive["thread"]), alone)


def _process(decisive: Json, processes: List[Json]) -> Optional[Json]:
    if decisive.get("rank") is not None:
        return next((one for one in processes if one.get("rank") == decisive["rank"]), None)
    index = decisive["process"]
    return processes[index] if index is not None and index < len(processes) else None


def _is_named(decisive: Json, found: Json) -> bool:
    verdict = found["verdict"]
    said = verdict.get("decisive") or {}
    if decisive.get("thread") is not None:
        return said.get("process") == decisive["process"] and _id(said.get("thread")) == _id(decisive["thread"])
    process = _process(decisive, found["processes"])
    index = process["index"] if process is not None else decisive["process"]
    return index is not None and (said.get("process") == index or index in (verdict.get("culprits") or ()))


def _id(text: object) -> str:
    """'3' equals 'Thread 3', '0x7f..' equals itself."""
    return str(text).strip().lower().replace("thread ", "")


def _cases(folder: Path) -> Iterator[Tuple[Path, Json]]:
    for path in sorted(folder.glob("*.json")):
        case = json.loads(path.read_text())
        if case.get("scope") != "adjacent":
            yield path.with_suffix(".txt"), case


def _row(name: str, total: Counter) -> List[object]:
    def share(key: str) -> str:
        whole = total[f"{key} of"]
        return f"{total[key]:g}/{whole:g} ({100 * total[key] / whole:.0f} %)" if whole else "-"

    return [
        name,
        total["cases"],
        *(share(key) for key in ("answered", "threads", "wait", "decisive")),
        f"{total['right']}, {total['open']}, {total['wrong']} of {total['named']}",
        f"{total['claimed']} of {total['unnamed']}",
        total["sure"],
    ]


HEADS = ["batch", "cases", "answered", "threads", "wait", "decisive", "cause right, open, wrong", "claimed", "sure"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with cases")
    options = parser.parse_args()
    rows = []
    whole: Counter = Counter()
    for folder in options.folders or sorted(path for path in REAL.glob("batch-*") if path.is_dir()):
        total: Counter = Counter()
        for path, case in _cases(folder):
            added, misses = score(case, read(path))
            total.update(added)
            for miss in misses:
                print(f"{folder.name}/{path.stem:50} {miss}", file=sys.stderr)
        whole.update(total)
        rows.append(_row(folder.name, total))
    if len(rows) > 1:
        rows.append(_row("together", whole))
    print(tabulate(rows, HEADS, tablefmt="github"))


if __name__ == "__main__":
    main()
