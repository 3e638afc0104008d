"""llm-break says what is so: of ranks that are gone, of threads, of signals; and comes back whatever gdb forgets."""

import json
import os
import re
import signal

import pytest

from tests.gdb.break_job import PROMPT, Held, Job
from tests.polling import wait_until

pytestmark = pytest.mark.gdb


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as running:
        yield running


def places(terminal):
    """By rank, as `llm-break list` has them."""
    said = terminal.command("llm-break list --json")
    assert "{" in said, said
    return {one["rank"]: one for one in json.loads(said[said.index("{") : said.rindex("}") + 1])["ranks"]}


def test_where_a_rank_is_and_whether_it_is(any_gdb, tmp_path):
    """The thread that came is not the main thread; a killed rank is nowhere."""
    with Job(tmp_path, IN_A_THREAD="1") as job, Held(any_gdb, job) as terminal:
        terminal.command("llm-break decode_step --rank 1 --others hold --wait 30")
        terminal.in_step()
        assert "ranks 0,2 wait at the same place" in terminal.command("llm-continue")
        assert ["decode_step" in one["function"] for one in places(terminal).values()] == [True] * 3
        terminal.command("llm-rank 0")
        assert "decode_step" in terminal.command("frame"), "the thread that came, not the first one"
        assert "decode_step" in terminal.command("llm-rank apply 2 frame")
        terminal.command("python min(gdb.selected_inferior().threads(), key=lambda one: one.num).switch()")
        assert "decode_step" not in terminal.command("frame")
        assert ["decode_step" in one["function"] for one in places(terminal).values()] == [True] * 3
        job.kill(1)
        job.kill(2)
        found = places(terminal)
        assert [(one["state"], bool(one["hit"]), one["held"]) for one in (found[0], found[1], found[2])] == [
            ("stopped", False, True),
            ("killed", False, False),
            ("killed", False, False),
        ]
        assert found[2]["function"] is None
        assert terminal.command("llm-ranks").count(" killed ") == 2
        terminal.command("llm-detach-all")
        job.assert_free(0)


KILLS = (
    "python import os; from gdbext.inside_gdb.rank_breakpoints import gathering as g; release = g.Gathering.release; "
    "g.Gathering.release = lambda self: (release(self), os.path.exists('/proc/{pid}') and os.kill({pid}, 9))[0]"
)


def test_a_rank_that_is_killed_right_before_it_is_resumed_is_named(any_gdb, job):
    with Held(any_gdb, job) as terminal:
        terminal.command("llm-break decode_step --rank 1 --others hold --wait 60")
        assert "rank 1 is at decode_step" in terminal.command("llm-continue")
        job.set("gone", 2, 1)
        terminal.command(KILLS.format(pid=job.pids[2]))
        # gdb may give its prompt before the ranks have stopped, and what is said then comes behind it.
        terminal.send("llm-continue\n")
        said = terminal.expect(r"(?:rank 1 is at decode_step|stopped on the way)[^\n]*\n")
        terminal.send("python print('syn' + 'ced')\n")
        said = " ".join((said + terminal.expect(r"synced\s+\(gdb\) \Z")).split())
        assert "Command aborted" not in said and "Traceback" not in said
        if "rank 1 is at decode_step" not in said:
            assert re.search(r"stopped on the way|(process \d+ was killed while it was held|a rank has ended)", said)
            said = terminal.command("llm-continue")
        assert re.search("rank 1 is at decode_step; (rank 0 waits|the others are)", said), said
        assert 2 not in places(terminal)
        terminal.command("llm-detach-all")
        job.assert_free(0, 1)


def test_our_signal_is_not_seen_and_theirs_is_passed_on(any_gdb, job):
    with Held(any_gdb, job) as terminal:
        terminal.command("llm-break report --rank 2 --others hold --wait 1")
        terminal.send("llm-continue\n")
        said = terminal.expect(PROMPT)
        assert "ranks 0-1 did not arrive in 1 s and are stopped where they are" in " ".join(said.split())
        assert "SIGURG" not in said
        terminal.confirmed("llm-break delete")
        terminal.command("llm-break report --rank 2 --if 0 == 1")
        terminal.send("llm-continue\n")
        job.assert_running(0, 1, 2)
        assert [job.get("urgent", rank) for rank in range(3)] == [0, 0, 0]  # none of ours came through
        os.kill(job.pids[0], signal.SIGURG)
        job.until("urgent", 0, 1)
        job.assert_running(0, 1, 2)
        assert "SIGURG" not in terminal.interrupt_until(PROMPT)
        assert "SIGURG" in terminal.command("info breakpoints")
        terminal.confirmed("llm-break delete")
        assert "SIGURG" not in terminal.command("info breakpoints")
        terminal.command("handle SIGURG stop print")
        terminal.send("llm-continue\n")
        job.assert_running(0, 1, 2)
        os.kill(job.pids[0], signal.SIGURG)
        assert "received signal SIGURG" in terminal.expect(PROMPT)
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


def switches(pid):
    """How often its main thread has gone to sleep."""
    with open(f"/proc/{pid}/task/{pid}/status") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.MULTILINE)[1])


def test_gdb_looks_again_while_ranks_run(any_gdb, job):
    """It may have put an exec aside, and wait for the next event for ever (1 of 10 when it is aimed at)."""
    with Held(any_gdb, job) as terminal:
        terminal.send("llm-continue\n")  # nobody stops: gdb has nothing to do
        job.assert_running(0, 1, 2)
        first = switches(terminal.pid)
        wait_until(lambda: switches(terminal.pid) >= first + 4, "gdb looks again")
        terminal.interrupt_until(PROMPT)
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


FAILS = (
    "python from gdbext.inside_gdb.rank_breakpoints import gathering as g; resume = g.resume\n"
    "python def failing(coming, everybody, quietly=True): g.resume = resume; g._begin(coming[0]); "
    "raise gdb.error('no such thread')\n"
    "python g.resume = failing"
)


def test_ranks_that_run_after_an_error_are_stopped_and_can_be_resumed(any_gdb, job):
    """gdb fails at the second rank when the first one runs already."""
    with Held(any_gdb, job) as terminal:
        for policy in ("hold", "stop"):
            terminal.command(f"llm-break decode_step --rank 1 --others {policy} --wait 60")
            assert "rank 1 is at decode_step" in terminal.command("llm-continue")
            for line in FAILS.splitlines():
                terminal.command(line)
            terminal.send("llm-continue\n")
            terminal.expect(r"gdb failed at a rank \(no such thread\)")
            terminal.expect("stopped on the way; llm-continue resumes all")
            assert "rank 1 is at decode_step" in terminal.command("llm-continue")
            terminal.confirmed("llm-break delete")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)
