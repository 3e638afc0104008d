"""The walk-through of docs/breakpoints.md: a breakpoint in a server, hit by a request over HTTP.

With a stand-in for RTP-LLM: its processes, titles, variables, library path and C++ names; no model and no device.
"""

import json
import re
import sys

import pytest

from tests.gdb.gdbrun import Terminal, gdb_batch
from tests.inferiors.demo import state_of
from tests.inferiors.rtp_llm_job import RtpLlmJob
from tests.tmux import SHELL, Tmux

pytestmark = pytest.mark.gdb
PROMPT = Terminal.PROMPT


def test_a_request_hits_the_breakpoint(turn_gdb, tmp_path):
    with RtpLlmJob() as job, Tmux({"GDBEXT_GDB": turn_gdb}) as window:
        pids = job.pids()
        ranks = [pids["rtp_llm_rank-0"], pids["rtp_llm_rank-1"]]
        assert job.ask("hello").answer() == {"response": 15}
        window.enter("alias gdbext='" + sys.executable + " -m gdbext'")
        window.until(SHELL)

        ours = f"--engine rtp-llm --parent {pids['rtp_llm_backend_server']}"  # other tests have such titles, too
        window.enter(f"gdbext attach {ours}")
        said = window.until(PROMPT)
        assert "rtp_llm_rank-0" in said and "rtp_llm_frontend_server" not in said.partition("threads")[2]
        window.answer("llm-break rtp_llm::NormalExecutor::process --rank 1 --others hold --wait 30 --limit 60", PROMPT)
        window.enter("llm-continue")
        window.until("llm-continue")
        request = job.ask("hello world")
        said = window.until(PROMPT)
        assert "rank 1 is at rtp_llm::NormalExecutor::process; rank 0 wait" in said
        assert "token_count=11" in said
        assert request.waits
        assert "= 11" in window.answer("print token_count", PROMPT)
        assert "context_batch_size = 1" in window.answer("print inputs", PROMPT)
        assert "passed rank 1: 1" in window.answer("llm-break", PROMPT)
        window.enter("llm-continue")
        assert request.answer() == {"response": 33}

        window.press("C-c")
        window.until(PROMPT)
        window.press("C-d")
        window.until("Quit anyway? (y or n) ")
        window.enter("y")
        window.until(SHELL)
        assert [state_of(pid)[1] for pid in ranks] == [0, 0]
        assert job.ask("hello again").answer() == {"response": 33}

        window.answer(f"gdbext vscode {ours} --into {tmp_path}", SHELL)
        found = json.loads((tmp_path / "launch.json").read_text())["configurations"]
        assert [one["processId"] for one in found if one["type"] == "cppdbg"] == list(map(str, ranks))


def test_other_processes_of_the_engine_are_read_beside_the_held_ranks(turn_gdb):
    """A server can hang in one of them while its ranks wait for work; gdb attaches to the ranks alone."""
    with RtpLlmJob() as job:
        pids = job.pids()
        ours = f"--engine rtp-llm --parent {pids['rtp_llm_backend_server']}"
        answer = gdb_batch(turn_gdb, f"llm-attach-all {ours}", "llm-nccl-diagnose --json", "info inferiors")
        assert job.ask("hello").answer() == {"response": 15}
    (diagnosis,) = answer.documents
    held = {pids["rtp_llm_rank-0"], pids["rtp_llm_rank-1"]}
    assert {one["pid"] for one in diagnosis["processes"] if one["role"] == "rank"} == held
    (server,) = [one for one in diagnosis["processes"] if one["role"] != "rank"]
    assert (server["role"], server["pid"]) == ("backend server", pids["rtp_llm_backend_server"])
    assert server["threads"] and server["index"] == 2
    assert diagnosis["pause_ms"]["per_rank"]["backend server"] > 0
    assert {int(pid) for pid in re.findall(r"process (\d+)", answer.out)} == held
    assert "reading the engine's other processes too: backend server" in answer.err


def test_the_held_ranks_are_diagnosed_where_the_others_cannot_be_read(turn_gdb):
    module = "gdbext.inside_gdb.stacks.other_ranks"
    without = f"python import {module} as beside; beside.interpreters = lambda: []"
    with RtpLlmJob() as job:
        ours = f"--engine rtp-llm --parent {job.pids()['rtp_llm_backend_server']}"
        answer = gdb_batch(turn_gdb, f"llm-attach-all {ours}", without, "llm-nccl-diagnose --json")
    (diagnosis,) = answer.documents
    assert [one["role"] for one in diagnosis["processes"]] == ["rank", "rank"]
    assert "the engine's other processes were not read: no python3 found" in answer.err
    assert "Traceback" not in answer.err
