"""`gdbext pdb` in tmux: a real terminal with real keys, in a shell that has jobs."""

import sys

import pytest

from tests.inferiors.pdb_job import PdbJob
from tests.tmux import SHELL, Tmux

pytestmark = pytest.mark.gdb
PROMPT = "(Pdb) "


@pytest.fixture
def opened(tmp_path):
    """A job whose rank 1 has its prompt in a window, while the other one waits."""
    (tmp_path / "meet").mkdir(mode=0o700)
    with PdbJob(tmp_path / "meet", ranks=2, steps=2).start() as job:
        job.all_waiting()
        with Tmux({"GDBEXT_PDB_DIR": str(tmp_path / "meet")}) as window:
            window.enter(f"{sys.executable} -m gdbext pdb")
            window.until(PROMPT)
            yield job, window


def test_keys(opened):
    job, window = opened
    assert "\n100\n" in window.answer("p mine", PROMPT)
    window.press("Up")  # what was typed before
    window.until("p mine")
    window.press("Enter")
    assert "\n100\n" in window.until(PROMPT)
    window.type("p mne")
    window.press("Left", "Left")
    window.type("i")
    window.until("p mine")
    window.press("Enter")
    assert "\n100\n" in window.until(PROMPT)
    window.type("p mine + ")  # a line that nobody wants any more
    window.until("p mine + ")  # the kernel drops what was not read when Ctrl-C comes
    window.press("C-c")
    window.until(PROMPT)
    window.type("p mi")
    window.press("Tab", "Enter")  # completed by the rank
    assert "\n100\n" in window.until("p mine", PROMPT)
    window.answer("interact", ">>> ")
    assert "\n1100\n" in window.answer("print(mine + 1000)", ">>> ")
    window.press("C-d")  # back to pdb, and not out of it
    assert "\n100\n" in window.until(PROMPT) + window.answer("p mine", PROMPT)
    window.press("C-z")
    window.until("Stopped", SHELL)
    assert "done" not in job[0].drained()  # it still waits
    window.enter("fg")
    window.until("-m gdbext pdb")
    assert "\n100\n" in window.answer("p mine", PROMPT)
    assert "(time 2)" in window.answer("c", PROMPT)
    window.press("C-d")
    window.until(SHELL)
    for talker in job.others():  # both steps, to the end
        assert talker.rest().count("done") == 2
        assert not talker.process.returncode
    assert not job.sockets()


def test_control_c_while_the_rank_computes(opened):
    _, window = opened
    window.enter("exec('print(10 ** 6)\\nwhile True: pass')")
    window.until("1000000")
    window.press("C-c")
    window.until("alone? ")
    assert "Interrupt" in window.answer("s", PROMPT)
    assert "\n100\n" in window.answer("p mine", PROMPT)


def test_the_window_is_killed(opened):
    job, window = opened
    window.close()
    for rank in (0, 1):
        job[rank].until("done 101" if rank else "done 1")
    job[1].until("opens its prompt")  # the second time, and nobody is there
    assert job[0].process.poll() is None
