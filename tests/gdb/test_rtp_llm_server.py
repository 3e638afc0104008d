"""The walk-through of docs/breakpoints.md: a breakpoint in a server, hit by a request over HTTP.

With a stand-in for RTP-LLM: its processes, titles, variables, library path and C++ names; no model and no device.
"""

import json
import sys

import pytest

from tests.gdb.gdbrun import Terminal
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
