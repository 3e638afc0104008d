"""TurboMind's own checks end the process: message and place of each, at the check, after SIGABRT and from a core."""

import json
import os
import re

import pytest

from tests.conftest import gdbs
from tests.gdb.gdbrun import INFERIORS, build, gdb_batch

pytestmark = pytest.mark.gdb
SOURCE = "check_turbomind.cpp"
LINES = {mark: number for number, text in enumerate((INFERIORS / SOURCE).read_text().splitlines(), 1)
         for mark in re.findall(r"// LINE (\w+)", text)}  # fmt: skip
REPORT, CORE = "turbomind::core::CheckErrorStream::Report", "turbomind::core"
CHECKS = {  # order: the check's function, its message without the place, the engine's function
    "compared": (REPORT, "Check failed: rows == rows_ (7 vs. 3) of 100% 7", "turbomind::Linear::forward"),
    "plain": (REPORT, "Check failed: weights[0] == 'w'", "turbomind::Linear::load"),
    "null": (f"{CORE}::ReportNullError", "'weights' Must be non NULL", "turbomind::Linear::bind"),
    "cuda": ("turbomind::ReportCudaError", "", "turbomind::Linear::launch"),
    "fatal": (f"{CORE}::Logger::LogFatalImpl", "no kernel for 1", "turbomind::Linear::choose"),
}
BUILDS = [(9, "-O2"), (9, "-O0", "-g"), (13, "-O2", "-g"), (14, "-O2"), (14, "-O0"), (14, "-O2", "-g")]


def engine_function(report):
    return report["frames"][report["engine_frame"]]["function"].split(" [clone")[0]


def place(report):
    failure = report["failure"]
    return os.path.basename(failure["file"] or ""), failure["line"]


@pytest.mark.parametrize(
    ("number", "words"), list(enumerate(BUILDS)), ids=[" ".join(map(str, words)) for words in BUILDS]
)
def test_checks_that_abort_have_message_and_place(number, words, tmp_path):
    release, *flags = words
    gdb, log, commands = gdbs()[number % 2], tmp_path / "log.jsonl", []
    orders = [order for order in CHECKS if release >= 14 or order not in ("cuda", "fatal")]
    for order in orders:
        (tmp_path / order).write_text(f"{order}\n")
        keep = [f"gcore {tmp_path}/{order}.core"] if order == "compared" else []
        commands += [f"shell echo '{{}}' >> {log}", f"run < {tmp_path / order} > /dev/null 2>&1", *keep, "kill"]
    program = build(SOURCE, f"-DRELEASE={release}", *flags)
    answer = gdb_batch(gdb, f"file {program}", f"llm-check on --log {log}", *commands)
    parts = [[json.loads(line) for line in part.splitlines()] for part in log.read_text().split("{}\n")[1:]]
    for order, reports in zip(orders, parts):
        function, message, engine = CHECKS[order]
        assert [one["failure"]["kind"] for one in reports] == ["check", "signal"], (order, answer.text)
        for report in reports:
            assert place(report) == (SOURCE, LINES[order]), order
            assert engine_function(report) == engine and report["notes"] == []
        check, end = (one["failure"] for one in reports)
        assert check["what"] == function and check["raised"] == "aborts"
        assert check["text"].endswith(message) and end["text"] == check["text"]
        assert (check["error"] or {}).get("number") == (700 if order == "cuda" else None)
    dead = gdb_batch(gdb, f"file {program}", f"core-file {tmp_path}/compared.core", "llm-check report --json")
    (report,) = dead.documents
    assert report["failure"]["text"] == CHECKS["compared"][1] and place(report) == (SOURCE, LINES["compared"])
    assert report["failure"]["raised"] == f"the failed check {REPORT}" and report["notes"] == []
    assert engine_function(report) == "turbomind::Linear::forward"
