"""The exit status: what a look proves, and how much of it could be read (docs/exit-status.md)."""

import json
import re
from pathlib import Path

import pytest

from gdbext.cli import main
from gdbext.model.errors import FINDING, INTERRUPTED, NOTHING, OK, UNTOLD, USAGE
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render.json.document import document

ROOT = Path(__file__).parents[2]


def judged(cause, *states, confidence="medium", decided_by=None, said=()):
    snapshot = JobSnapshot(tuple(RankSnapshot(index, (), state=one) for index, one in enumerate(states)), said=said)
    return Diagnosis(snapshot, (), Verdict(cause, confidence, "", decided_by=decided_by))


@pytest.mark.parametrize(
    ("diagnosis", "hangs", "status"),
    [
        (judged("not-a-hang", "ok", "ok"), False, OK),
        (judged("missing-rank", "ok", "ok"), True, FINDING),
        (judged("missing-rank", "ok", "ok", confidence="low"), True, FINDING),
        (judged("unknown", "ok", "ok"), True, FINDING),
        (judged("missing-rank", "ok", "lost"), True, FINDING),
        (judged("missing-rank", "ok", "partial", confidence="high"), True, FINDING),
        (judged("missing-rank", "ok", "partial", confidence="low"), None, UNTOLD),
        (judged("unknown", "ok", "lost"), None, UNTOLD),
        (judged("not-a-hang", "ok", "partial"), None, UNTOLD),
        (judged("unknown", "ok", "ok", decided_by="gdbext diagnose"), None, UNTOLD),
        (judged("missing-rank", "ok", "ok", decided_by="gdbext diagnose"), None, UNTOLD),
        (judged("unknown", "lost", "lost"), None, NOTHING),
        (judged("unknown"), None, NOTHING),
        (judged("network-transport", said=("NCCL WARN",)), True, FINDING),
    ],
)
def test_a_proven_hang_is_1_whatever_else_could_not_be_read(diagnosis, hangs, status):
    assert diagnosis.hangs is hangs
    assert exit_status(diagnosis.hangs, diagnosis.snapshot.read) == status
    assert document(diagnosis)["verdict"]["hangs"] is hangs


def test_of_the_shell(tmp_path, capsys):
    """Rank 1 is in cudaMallocHost while rank 0 waits for its part; of rank 2 nothing could be read."""

    def rank(number, *functions, **more):
        frames = tuple(Frame(name, module="libcudart.so.12") for name in functions)
        threads = (ThreadStack("1", (*frames, Frame("main", module="engine"))),) if frames else ()
        return RankSnapshot(number, threads, pid=100 + number, rank=number, world_size=3, **more)

    both = (rank(0, "cudaStreamSynchronize"), rank(1, "cudaMallocHost"))
    path = tmp_path / "look.json"
    path.write_text(dump_snapshot(JobSnapshot((*both, rank(2, state="partial", problems=("no permission",))))))
    assert main.main(["diagnose", str(path), "--json", "-q"]) == FINDING
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert (verdict["cause"], verdict["hangs"]) == ("implicit-sync-vs-collective", True)
    path.write_text(dump_snapshot(JobSnapshot((both[0], rank(1, state="partial", problems=("no permission",))))))
    assert main.main(["diagnose", str(path), "--json", "-q"]) == UNTOLD
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["hangs"] is None and verdict["missing"]


def test_other_commands_ask_the_same_table():
    assert [exit_status(found, ALL) for found in (False, True, None)] == [OK, FINDING, UNTOLD]
    assert [exit_status(found, PART) for found in (False, True, None)] == [UNTOLD, FINDING, UNTOLD]
    assert {exit_status(found, NONE) for found in (False, True, None)} == {NOTHING}


def test_the_page_has_all_of_them():
    page = (ROOT / "docs" / "exit-status.md").read_text()
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert numbers == [OK, FINDING, USAGE, UNTOLD, NOTHING, INTERRUPTED]
