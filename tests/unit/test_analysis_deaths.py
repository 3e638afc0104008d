"""How texts say that a process died: in reports, in words of launchers and of the kernel, and by frames."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

TEXTS = Path(__file__).parents[1] / "data" / "deaths.txt"


def cases():
    for block in re.split(r"^@@ ", TEXTS.read_text(), flags=re.MULTILINE)[1:]:
        head, text = block.split("\n", 1)
        name, *expected = (part.strip() for part in head.split("|"))
        yield pytest.param(text, dict(one.split("=", 1) for one in expected), id=name)


def place(answer, who):
    """The process that `rank3` or `pid4677` names; without a name the one that decides."""
    if not who:
        return 0 if len(answer.processes) == 1 else answer.verdict.decisive_process
    what, number = re.fullmatch(r"(rank|pid)(\d+)", who).groups()
    return next((at for at, one in enumerate(answer.snapshot.processes) if getattr(one, what) == int(number)), None)


@pytest.mark.parametrize(("text", "expected"), list(cases()))
def test_a_death_is_read(text, expected):
    answer = judge(parse_files([("paste.txt", text.encode())]))
    at = place(answer, expected.get("who"))
    wait = None if at is None else answer.processes[at].wait
    assert str(wait and wait.kind) in expected["wait"].split(",")
    assert "thread" not in expected or wait.thread == expected["thread"]


def test_a_report_without_a_stack_is_of_a_process_of_its_own():
    """In the order of the text, and its words are not put down to the one whose stack is there."""
    text = "".join(
        f"[n1:{pid}] *** Process received signal ***\n[n1:{pid}] Signal: Aborted (6)\n{stack}"
        for pid, stack in ((71, ""), (70, "[n1:70] [ 0] /lib/libc.so.6(+0x42520)[0x7fa11aa9d520]\n"))
    )
    answer = judge(parse_files([("paste.txt", text.encode())]))
    assert [(one.pid, len(one.threads)) for one in answer.snapshot.processes] == [(71, 0), (70, 1)]
    assert [one.wait.kind for one in answer.processes] == ["exited-or-crashed"] * 2
