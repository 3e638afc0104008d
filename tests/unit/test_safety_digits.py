"""Numbers without an end, and digits that are none, in text of others: an answer or one line, never a traceback."""

import re
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

import gdbext
from gdbext.cli.chosen_processes import split_inputs
from gdbext.cli.pdb.inject import parse_place
from gdbext.commands.argument_types import frame_count, number, positive, rank_number
from gdbext.commands.chosen_ranks import parse_ranks
from gdbext.discovery.proc.devices import _device
from gdbext.discovery.ranks.rank_variables import number as count_of
from gdbext.model.errors import UsageError
from gdbext.model.text.digits import integer_or_none, is_whole
from gdbext.rankpdb.identity import rank_of
from tests.unit.test_parsers_fuzz import answer, texts

ROOT = Path(gdbext.__file__).parent
LONG = "9" * 5000  # Python refuses more than 4,300
ODD = (LONG, "²", "٣", "-1", "", "1" * 20, "0x7")
KERNEL = """
    discovery/proc/procfs.py discovery/locks_pipes_sockets/sockets.py discovery/preflight_checks/attach_permission.py
    discovery/ranks/chosen_job.py capture/without_stop/kernel_threads.py capture/without_stop/counters.py
    capture/without_stop/sleeping_threads.py witnesses/question.py witnesses/kernel_log.py collect/gdbs_side_by_side.py
    rankpdb/missing_rank.py discovery/locks_pipes_sockets/file_locks.py
"""
"""What they read is the kernel's."""
OTHERS = """
    model/text/digits.py rankpdb/identity.py witnesses/flight_recorder.py witnesses/ras.py commands/error.py
    model/text/mangled.py parsers/assemble/threads.py capture/machine/x86_64/stored_argument.py
    capture/machine/x86_64/call_argument.py commands/output.py cli/error.py parsers/formats/logs.py
"""
"""With a limit of their own, or without a number."""


def test_who_asks_for_digits_reads_no_text_of_others():
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        if re.search(r"\.is(?:digit|decimal|numeric)\b", path.read_text("utf-8")):
            found.add(str(path.relative_to(ROOT)))
    assert found == set(KERNEL.split()) | set(OTHERS.split()), "use gdbext.model.text.digits"


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number_of_a_program(text):
    assert integer_or_none(text) is None and not is_whole(text)
    assert count_of(text) is None and rank_of({"RANK": text}) is None
    assert split_inputs([text]) == ([], [text])
    assert _device("cuda", 0, text, []) in (f"cuda:0 ({text[:12]})", None if text else "cuda:0")
    for kind, error in (
        (number, ArgumentTypeError),
        (rank_number, ArgumentTypeError),
        (positive, ArgumentTypeError),
        (frame_count, ValueError),
        (parse_ranks, UsageError),
        (parse_place, UsageError),
    ):
        with pytest.raises(error):
            kind(f"train.py:{text}" if kind is parse_place else text)


def test_numbers_are_numbers():
    assert integer_or_none("007") == 7 and integer_or_none("9" * 19) == 10**19 - 1 and integer_or_none(None) is None
    assert parse_ranks("0-3,7") == (0, 1, 2, 3, 7) and parse_place("a:b.py:3") == ("a:b.py", 3)
    assert split_inputs(["12", "x.txt"]) == ([12], ["x.txt"])


def places(data):
    """Every place of a number that has other words around it than those before: the text around it, in two pieces."""
    seen = set()
    lines = data.splitlines(keepends=True)
    for at, line in enumerate(lines):
        for found in re.finditer(rb"\d+", line[:400]):
            ends = line[: found.start()], line[found.end() :]
            around = tuple(re.sub(rb"[0-9a-f]+", b"", end) for end in (ends[0][-40:], ends[1][:25]))
            if around not in seen:
                seen.add(around)
                yield b"".join(lines[max(0, at - 20) : at]) + ends[0], ends[1] + b"".join(lines[at + 1 : at + 10])


@pytest.mark.parametrize("digits", [LONG.encode(), "²".encode()], ids=["long", "odd"])
def test_pasted_stacks_with_such_numbers(digits):
    """Every sixtieth place; all of them, in the texts of tests/data/real too, took some minutes and found three."""
    made = [place for text in texts() for place in places(text)][::60]
    assert len(made) > 40
    for before, behind in made:
        answer(before + digits + behind)


@pytest.mark.parametrize(
    "line",
    [
        'Thread N (Thread 0x7f7e2d5ff740 (LWP 4001) "python"):\n#0  0x1 in f () from /x.so\n',
        'Thread N (active): "MainThread"\n    f (x.py:1)\n',
        'Process 600: sglang::scheduler_DPN_TPN_EPN\nThread 600 (idle): "MainThread"\n    f (x.py:1)\n',
    ],
)
@pytest.mark.parametrize("digits", [LONG, "²"], ids=["long", "odd"])
def test_those_that_were_a_traceback(line, digits):
    diagnosis, lines = answer(line.replace("N", digits).encode())
    assert lines and diagnosis.verdict.cause
