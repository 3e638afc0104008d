"""Attaching to several processes, switching, releasing: whatever happens, every target runs on afterwards."""

import re
import signal
import subprocess
import sys

import pytest

from tests.gdb.gdbrun import INIT, QUIET, Target, Terminal, gdb_batch
from tests.polling import DEADLINE, wait_until

pytestmark = pytest.mark.gdb


def rank(number, world=3):
    return {"env": {"RANK": str(number), "WORLD_SIZE": str(world), "LC_ALL": "C"}}


def attach(*targets):
    return "llm-attach-all " + " ".join(str(target.pid) for target in targets)


def by_pid(table):
    return {row["process"]["pid"]: row for row in table["ranks"]}


def test_attach_list_select_apply_release(any_gdb):
    with Target("threads", 2, **rank(1)) as one, Target("plain", **rank(0)) as zero:
        answer = gdb_batch(
            any_gdb,
            attach(one, zero) + " --json",
            "llm-rank 1",
            "llm-ranks --json",
            "p $_llm_rank()",
            "llm-rank apply --json all thread apply 1 bt",
            "llm-rank apply --json 0 p sizeof(struct ncclComm)",
            "llm-rank apply 0-1 p 1 +",
            "p $_llm_rank()",
            "show schedule-multiple",
            "llm-detach-all --json",
            "show schedule-multiple",
            "info inferiors",
        )
        one.assert_free()
        zero.assert_free()
    attached, listed, everywhere, first, released = answer.documents
    assert [(row["process"]["rank"], row["state"], row["problem"]) for row in attached["ranks"]] == [
        (0, "stopped", None),
        (1, "stopped", None),
    ]
    assert [row["current"] for row in attached["ranks"]] == [True, False]
    assert all(0 < row["attach_ms"] <= row["held_ms"] for row in attached["ranks"])
    assert any("llm-detach-all" in note for note in attached["notes"])
    assert [row["current"] for row in listed["ranks"]] == [False, True]
    assert [output["rank"] for output in everywhere["outputs"]] == [0, 1]
    assert all("ncclAllReduce" in output["text"] for output in everywhere["outputs"])
    assert first["outputs"][0]["text"].endswith("= 24\n")
    assert re.findall(r"^\$\d+ = (\d+)$", answer.out, re.MULTILINE) == ["1", "1"]  # the selection came back
    assert answer.out.count("A syntax error in expression") == 2
    assert [row["state"] for row in released["ranks"]] == ["released", "released"]
    assert re.findall(r"all processes is (\w+)", answer.out) == ["on", "off"]
    assert len(re.findall(r"<null>", answer.out)) == 1  # one empty inferior is left, as at the start
    assert "Switching" not in answer.text


def test_rank_0_is_inferior_1_and_rank_1_inferior_2(any_gdb):
    with Target("plain", **rank(2)) as two, Target("plain", **rank(0)) as zero, Target("plain", **rank(1)) as one:
        answer = gdb_batch(any_gdb, attach(two, zero, one) + " --output /dev/null", "info inferiors", "llm-detach-all")
        for target in (zero, one, two):
            target.assert_free()
    found = re.findall(r"^[* ] (\d+) +process (\d+)", answer.out, re.MULTILINE)
    assert [(int(number), int(pid)) for number, pid in found] == [(1, zero.pid), (2, one.pid), (3, two.pid)]


def test_one_dead_one_traced_one_attached_twice_and_gdb_itself(any_gdb):
    with Target("plain") as good, Target("plain") as traced, Target("plain") as dead, Terminal(any_gdb) as other:
        other.expect(re.escape(Terminal.PROMPT))
        other.command(f"attach {traced.pid}")
        dead.kill()
        answer = gdb_batch(
            any_gdb,
            "python import os; gdb.set_convenience_variable('me', os.getpid())",
            attach(good, traced, dead) + " --json",
            attach(good) + " --json",
            'eval "llm-attach-all %d --json", $me',
            "llm-ranks --json",
        )
        good.assert_free()
        other.command("detach")
        traced.assert_free()
    first, again, itself, listed = answer.documents
    rows = by_pid(first)
    assert rows[good.pid]["state"] == "stopped" and rows[good.pid]["problem"] is None
    assert f"traced by process {other.pid}" in rows[traced.pid]["problem"]
    assert any(f"no process {dead.pid}" in note for note in first["notes"])
    assert "already" in by_pid(again)[good.pid]["problem"]
    assert "debugger itself" in itself["ranks"][0]["problem"]
    assert [row["process"]["pid"] for row in listed["ranks"]] == [good.pid]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("moment", [0, "attached"])
def test_a_process_that_dies_while_it_is_attached_to(any_gdb, moment):
    """While symbols are read ahead, or between its stop and the end of the attach: the others go on."""
    with Target("plain") as good, Target("plain") as dying:
        when = dying.pid if moment else 0
        kill = (
            "python import os; gdb.events.new_objfile.connect(lambda event: "
            f"os.kill({dying.pid}, 9) if gdb.selected_inferior().pid == {when} else None)"
        )
        answer = gdb_batch(any_gdb, kill, attach(dying, good) + " --json", "llm-ranks --json")
        good.assert_free()
    table, listed = answer.documents
    assert "cannot attach: " in by_pid(table)[dying.pid]["problem"]
    assert by_pid(table)[good.pid]["state"] == "stopped"
    assert [row["process"]["pid"] for row in listed["ranks"]] == [good.pid]


@pytest.mark.parametrize("ending", ["llm-detach-all", "detach inferiors 1", "quit"])
def test_a_stopped_process_stays_stopped(any_gdb, ending):
    with Target("plain") as target:
        target._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: target.status("State") == "T")
        answer = gdb_batch(any_gdb, attach(target) + " --json", "llm-stacks --json", ending)
        assert answer.documents[0]["ranks"][0]["state"] == "stopped"
        assert target.status("TracerPid") == "0"
        assert target.status("State") == "T"
        target._process.send_signal(signal.SIGCONT)
        target.assert_free()


def end_of_input(terminal):
    terminal.send("\x04")
    terminal.expect(r"\(y or n\)")
    terminal.send("\x04")  # no answer is a yes
    terminal.wait()


def quit_and_confirm(terminal):
    terminal.send("quit\n")
    terminal.expect(r"\(y or n\)")
    terminal.send("y\n")
    terminal.wait()


def killed(terminal):
    terminal.kill()


def terminal_closed(terminal):
    terminal.hang_up()
    terminal.process.wait(DEADLINE)


@pytest.mark.parametrize("end", [end_of_input, quit_and_confirm, killed, terminal_closed])
def test_however_gdb_ends_the_targets_run_on(any_gdb, end):
    with Target("threads", 3) as one, Target("plain") as two, Terminal(any_gdb, f"source {INIT}") as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        printed = terminal.command(attach(one, two))
        assert "All attached ranks are stopped" in " ".join(printed.split())
        assert {one.status("TracerPid"), two.status("TracerPid")} == {str(terminal.pid)}
        end(terminal)
        one.assert_free()
        two.assert_free()


def test_the_end_of_a_script_on_standard_input(any_gdb):
    with Target("plain") as one:
        script = f"source {INIT}\n{attach(one)}\n"
        done = subprocess.run([any_gdb, *QUIET], input=script, capture_output=True, text=True, timeout=DEADLINE)
        assert "All attached ranks are stopped" in " ".join(done.stdout.split())
        one.assert_free()


INTERRUPT = (
    "python import gdb, os, signal; from gdbext.inside_gdb.session import gdb_session as s; "
    "attach_one = s.GdbSession._attach_one; "
    "s.GdbSession._attach_one = lambda self, process, *rest: "
    "(attach_one(self, process, *rest), os.kill(os.getpid(), signal.SIGINT), sum(range(10**7)))[0]"
)


def test_ctrl_c_in_the_middle_lets_go_of_what_was_attached(any_gdb):
    with Target("plain") as one, Target("plain") as two:
        answer = gdb_batch(
            any_gdb, INTERRUPT, attach(one, two), "info inferiors", "show schedule-multiple", "show confirm"
        )
        one.assert_free()
        two.assert_free()
    assert "interrupted: nothing is attached (1 process released)" in answer.err
    assert "Traceback" not in answer.text
    assert re.findall(r"^\*? *(\d+) +<null>", answer.out, re.MULTILINE) == ["1"]
    assert "processes is off" in answer.out


def test_ctrl_c_on_the_terminal_while_symbols_are_read(any_gdb):
    """The keyboard's signal arrives when it wants; afterwards nothing is attached and gdb is usable."""
    slow = "python import time; from gdbext.inside_gdb.base import symbols as s"
    slow += "; s.add = lambda files: [time.sleep(0.01) for _ in range(100000)]"
    with Target("plain") as one, Terminal(any_gdb, f"source {INIT}", slow) as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.send(attach(one) + "\n")
        terminal.expect("reading symbols")
        terminal.interrupt()
        terminal.expect(re.escape(Terminal.PROMPT) + r"\Z")
        one.assert_free()
        assert "no process is attached" in terminal.command("llm-detach-all")
        # gdb 13.1 may leave an empty one: the signal comes twice there.
        listed = terminal.command("info inferiors")
        assert re.search(r"^\*? *1 +<null>", listed, re.MULTILINE) and not re.search(r"process \d", listed)


def test_an_error_of_ours_lets_go_too(turn_gdb):
    bug = "python from gdbext.inside_gdb.session import gdb_session as s; s.numbered = lambda process: 1 / 0"
    with Target("plain") as one:
        answer = gdb_batch(turn_gdb, bug, attach(one), "set llm debug on", attach(one), "info inferiors")
        one.assert_free()
    lines = answer.err.splitlines()
    assert any("ZeroDivisionError" in line and "set llm debug on" in line for line in lines)
    assert any("in _attach_one" in line for line in lines)
    assert "process" not in answer.out.replace("processes", "")


def test_an_error_before_the_first_rank_leaves_nothing_set(turn_gdb):
    """Else the times of threads would be taken for new ones after every later step."""
    bug = "python from gdbext.inside_gdb.session import gdb_session as s; s.ATTACH_SETTINGS = {'language': 'nonsense'}"
    look = "python import gc; ours = next(one for one in gc.get_objects() if isinstance(one, s.GdbSession))"
    tell = "python print('left:', ours._held.attaching, ours._guard._held)"
    with Target("plain") as one:
        answer = gdb_batch(turn_gdb, bug, attach(one), look, tell)
        one.assert_free()
    assert "nonsense" in answer.err and "left: False {}" in answer.out


def test_the_selection_of_before_is_kept_by_looking(any_gdb):
    with Target("threads", 3) as target:
        answer = gdb_batch(
            any_gdb, attach(target), "thread 3", "frame 1", "llm-stacks --json", "p $_thread", "frame function answer"
        )
        kept = gdb_batch(any_gdb, attach(target), "up", "up", "llm-stacks", "frame")
        target.assert_free()
    assert "$1 = 3" in answer.out
    assert re.search(r"^#2 ", kept.out, re.MULTILINE)


def test_nothing_attached_is_said_with_the_next_step(turn_gdb):
    answer = gdb_batch(
        turn_gdb, "llm-detach-all", "llm-rank apply all bt", "llm-rank 3", "llm-rank", "llm-continue", "llm-tensor list"
    )
    assert answer.out == ""
    lines = answer.err.splitlines()
    assert len(lines) == 6
    assert lines[4].endswith("llm-attach-all attaches") and "being run" not in lines[4]
    assert ".;" not in lines[5]


def test_attaching_again_is_said_in_one_line(turn_gdb):
    with Target("plain", **rank(0)) as one, Target("plain", **rank(1)) as two, Target("plain", **rank(2)) as three:
        answer = gdb_batch(turn_gdb, "set width 0", attach(one, two, three), attach(one, two, three))
        three.assert_free()
    (line,) = [line for line in answer.out.splitlines() if "already" in line]
    assert line.startswith("ranks 0-2: attached to this gdb already")


def test_a_breakpoint_names_the_rank(turn_gdb):
    with Target("plain", **rank(0)) as one, Target("plain", **rank(1)) as two:
        answer = gdb_batch(turn_gdb, attach(one, two), "llm-break answer --rank 1", "llm-break delete")
    assert "at answer, rank 1," in answer.out


def test_the_users_own_inferior_is_left_alone(any_gdb):
    """A program that was loaded before, and a process attached by hand, stay what they are."""
    with Target("plain", **rank(0)) as by_hand, Target("plain", **rank(1)) as ours:
        answer = gdb_batch(
            any_gdb, f"attach {by_hand.pid}", attach(ours), "llm-ranks --json", "llm-detach-all", "info inferiors"
        )
        by_hand.assert_free()
        ours.assert_free()
    (listed,) = answer.documents
    assert [row["process"]["rank"] for row in listed["ranks"]] == [0, 1]
    assert [row["inferior"] for row in listed["ranks"]] == [1, 2]


def test_the_rank_is_read_from_memory_where_proc_lost_it(turn_gdb):
    """As setproctitle leaves it: /proc/PID/environ is wiped, the C library's environment is not."""
    script = "import setproctitle, sys; setproctitle.setproctitle('x'); print('ready', flush=True); sys.stdin.read()"

    environment = {"RANK": "5", "WORLD_SIZE": "8", "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            answer = gdb_batch(turn_gdb, f"llm-attach-all {process.pid} --json")
        finally:
            process.kill()
    assert answer.documents[0]["ranks"][0]["process"]["rank"] == 5
