"""Reports from public threads: what is read of them is what a person read of them first."""

import json
from pathlib import Path

import pytest

from gdbext.analysis.failures.gpu_findings import findings
from gdbext.parsers import parse_files
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream

FOLDER = Path(__file__).parents[1] / "data" / "gpu_reports"
LABELS = json.loads((FOLDER / "labels.json").read_text())


def read(name):
    return parse_files([(f"{name}.txt", (FOLDER / f"{name}.txt").read_bytes())])


def told(finding):
    """What a label may ask, of one finding."""
    error = finding.error
    place = error.places[0] if error.places else None
    near = error.nearest
    return {
        **{
            name: getattr(error, name)
            for name in ("kind", "space", "access", "size", "kernel", "problem", "call", "error")
        },
        "place": place.function if place else "",
        "file": place.file if place else "",
        "line": place.line if place else None,
        "thread": place.thread if place else "",
        "block": place.block if place else "",
        "sides": [one.access for one in error.places],
        "hazards": error.hazards,
        "near": [near.side, near.distance, near.size] if near else None,
        "engine": finding.engine_frame.function if finding.engine_frame else None,
    }


def differences(name):
    """Field by field: (what, label, read), and how many fields were asked."""
    label = LABELS[name]
    job = read(name)
    found = findings(job)
    problems = [line for process in job.processes for line in process.problems]
    asked, wrong = 2 + len(label.get("said", ())), []
    if len(found) != len(label["errors"]):
        wrong.append(("errors", len(label["errors"]), len(found)))
    if sum(one.count for one in found) != label["count"]:
        wrong.append(("count", label["count"], sum(one.count for one in found)))
    wrong += [("said", line, problems) for line in label.get("said", ()) if not any(line in one for one in problems)]
    for want, one in zip(label["errors"], found):
        have = told(one)
        asked += len(want)
        for key, value in want.items():
            same = have[key] == value
            if key in ("kernel", "place", "engine") and value:
                same = (have[key] or "").startswith(value)
            if not same:
                wrong.append((key, value, have[key]))
    return asked, wrong


@pytest.mark.parametrize("name", sorted(LABELS))
def test_a_report_of_a_public_thread(name):
    _, wrong = differences(name)
    assert wrong == []


@pytest.mark.parametrize("name", sorted(LABELS))
def test_whether_it_is_whole(name):
    reader = ReportStream()
    reader.feed_bytes((FOLDER / f"{name}.txt").read_bytes())
    assert [one.ended for one in reader.finished()] == [LABELS[name].get("ended", False)]


def test_each_has_its_source_and_numbers_are_even():
    assert sorted(LABELS) == sorted(path.stem for path in FOLDER.glob("*.txt"))
    assert all(int(one["source"].rpartition("#")[2]) % 2 == 0 for one in LABELS.values())
