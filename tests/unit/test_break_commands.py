"""llm-break without a gdb: what a command line means, what is printed, and which timeouts run meanwhile."""

import json
import os
import subprocess
import sys

import pytest

from gdbext.analysis.verdict.running_timeouts import timeouts_of
from gdbext.capture.stop import breakpoint_guard
from gdbext.commands import rank_breakpoints
from gdbext.commands.declared.rank_breakpoints import BREAK
from gdbext.commands.gdb_arguments import parse
from gdbext.knowledge.causes.timeouts import TIMEOUTS
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.errors import UsageError
from gdbext.model.job import RankProcess
from gdbext.model.rank_breakpoints import BreakPoint, BreakTable, RankPlace
from gdbext.render.json.document import document
from gdbext.render.style import Style
from gdbext.render.text.rank_breakpoints import break_lines


class Session:
    """Remembers what was asked for."""

    def __init__(self):
        self.breaks = self
        self.asked = []

    def ranks(self):
        return [AttachedRank(RankProcess(100 + rank, "rank", rank=rank), rank + 1) for rank in range(4)]

    def add(self, options):
        self.asked.append(options)
        return BreakTable(())

    def table(self):
        return BreakTable(())


def options_of(line):
    session = Session()
    rank_breakpoints.add(session, parse(BREAK, line))
    return session.asked[0]


def test_defaults_are_those_of_before():
    found = options_of("step.cc:7")
    assert (found.others, found.action, found.limit, found.count, found.pids) == ("stop", "stop", 120.0, 1, None)


@pytest.mark.parametrize(
    ("word", "meaning"), [("hold", "hold"), ("stop", "stop"), ("run", "run"), ("stop-at-same", "hold")]
)
def test_others(word, meaning):
    assert options_of(f"step --others {word} --rank 0-1").others == meaning


def test_log_takes_expressions():
    found = options_of("step --rank 1 --action log step 'a b' --wait 2s")
    assert (found.action, found.expressions, found.wait) == ("log", ("step", "a b"), 2.0)


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("step --if step > 5 && s > 500", "step > 5 && s > 500"),
        ('step --rank 1 --if $_llm_tensor_stat("h","nan")>0', '$_llm_tensor_stat("h","nan")>0'),
        ("'a b' if name[0] == 'x' || y", "name[0] == 'x' || y"),
        ("step if(x)", "(x)"),
        ("step --if=x == 1", "x == 1"),
        ("step --if '$_llm_rank() == 2'", "$_llm_rank() == 2"),
        ("step --if 'a' == 'b'", "'a' == 'b'"),
        ("step --if it's \"open", "it's \"open"),
    ],
)
def test_the_condition_is_the_rest_of_the_line_as_it_was_typed(line, condition):
    assert options_of(line).condition == condition


def test_an_option_behind_the_condition_is_named():
    error = rank_breakpoints.wrong_condition("no breakpoint is set", "x > 5 --count 3", "A syntax error in expression")
    assert error.hint == "--if takes the rest of the line: put --count before it"
    assert not rank_breakpoints.wrong_condition(
        "no breakpoint is set", "x > n --i", "A syntax error in expression"
    ).hint


@pytest.mark.parametrize(
    "line",
    [
        "step --if",
        "step --if ''",
        "step --rank 7",
        "step --rank x",
        "step --others wait",
        "step --action now",
        "step --action stop here",
        "step --limit 0",
        "step --limit nan",
        "step --count 0",
        "--rank 1",
        "--if 1",
    ],
)
def test_wrong_usage_is_one_line(line):
    with pytest.raises(UsageError) as error:
        options_of(line)
    assert "\n" not in str(error.value)


def test_rendering_says_who_waits_where():
    point = BreakPoint(1, "step", False, (101,), "x > 1", 2, "stop", 60.0, {"rank 1": 3}, "hold")
    logged = BreakPoint(2, "done", True, None, None, 1, "log", 60.0, {}, "stop", ("a", "b"))
    places = (RankPlace(100, 0, False, "stopped", "step", None, True), RankPlace(101, 1, True, "stopped", "step", 1))
    answer = BreakTable((point, logged), places)
    text = "\n".join(break_lines(answer, Style(width=200)))
    assert "the others run up to it and wait" in text
    assert "waits there" in text
    assert "at breakpoint 1" in text
    assert "logged only: a, b; pending" in text
    said = document(answer)
    assert said["breakpoints"][0]["others"] == "hold"
    assert [one["held"] for one in said["ranks"]] == [True, False]


@pytest.mark.parametrize(
    ("chosen", "ranks", "said"),
    [("", None, "any rank,"), ("--rank 1", (1,), "rank 1,"), ("--rank 0-2", (0, 1, 2), "ranks 0-2,")],
)
def test_the_ranks_that_were_chosen_are_named(chosen, ranks, said):
    options = options_of(f"step {chosen}")
    assert options.ranks == ranks
    point = BreakPoint(1, "step", False, options.pids, None, 1, "stop", 60.0, {}, ranks=options.ranks)
    text = " ".join(break_lines(BreakTable((point,)), Style(width=200)))
    assert f"at step, {said}" in text and "pid" not in text


def test_without_numbers_it_is_the_pid():
    point = BreakPoint(1, "step", False, (101, 104), None, 1, "stop", 60.0, {})
    assert "at step, pid 101, 104," in " ".join(break_lines(BreakTable((point,)), Style(width=200)))


def test_the_nearest_timeout_comes_first():
    files = ["/x/libnccl.so.2", "/x/libtorch_cuda.so"]
    assert [one.seconds for one in timeouts_of({}, files, None)] == [60, 480, 600]
    given = {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "30", "NCCL_RAS_TIMEOUT_FACTOR": "10", "NCCL_TIMEOUT": "90"}
    found = timeouts_of(given, files, "vllm")
    assert [one.seconds for one in found] == [30, 90, 300, 600, 600]
    assert found[0].words().endswith("(TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=30)")


def test_what_is_switched_off_or_no_number_does_not_count():
    off = {"NCCL_RAS_ENABLE": "0", "TORCH_NCCL_ENABLE_MONITORING": "0", "NCCL_TIMEOUT": "soon"}
    assert [one.seconds for one in timeouts_of(off, ["libnccl.so.2", "libtorch_cuda.so"], None)] == [600]
    assert timeouts_of({}, [], None) == ()


def test_every_timeout_has_a_source():
    assert all(row.source and row.what and (row.seconds or row.variable) for row in TIMEOUTS)


VICTIM = """
import ctypes, sys
code = ctypes.create_string_buffer(b"\\xcc\\x90\\xcc")
print(ctypes.addressof(code), flush=True)
sys.stdin.readline()
print(code.raw[:3].hex(), flush=True)
"""


@pytest.mark.process
def test_the_guard_mends_what_is_left_and_nothing_else():
    """Its input ends as it does when gdb is killed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", VICTIM], **pipes) as victim:
        address = int(victim.stdout.readline())
        places = [[victim.pid, [[address, 0x55], [address + 1, 0x55], [address + 2, 0xCC]]], [1 << 23, [[0, 1]]]]
        with subprocess.Popen([sys.executable, "-I", "-S", breakpoint_guard.__file__], **pipes) as guard:
            guard.stdin.write(json.dumps(places) + "\n")
            guard.stdin.flush()
            assert guard.stdout.readline() == "ready\n"
            guard.stdin.close()
            assert guard.wait(300) == 0
        victim.stdin.write("\n")
        victim.stdin.flush()
        assert victim.stdout.readline() == "5590cc\n"


def test_the_guard_has_no_dependency():
    """It runs on whatever Python 3 there is, without the package."""
    with open(breakpoint_guard.__file__, encoding="utf-8") as file:
        assert "gdbext" not in file.read()
    assert os.path.basename(breakpoint_guard.__file__) == "breakpoint_guard.py"
