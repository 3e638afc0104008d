"""Ctrl-C while modules are loaded: it counts, but only when they are."""

import importlib
import os
import signal
import subprocess
import sys
import types

import pytest

from gdbext.cli import main
from gdbext.collect.ctrl_c_while_loading import interrupts_wait


@pytest.fixture(autouse=True)
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_is_raised_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_wait():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest of the block")
    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_block_goes_first():
    with pytest.raises(ModuleNotFoundError), interrupts_wait():
        os.kill(os.getpid(), signal.SIGINT)
        raise ModuleNotFoundError("x")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_who_ignores_it_goes_on(handler):
    signal.signal(signal.SIGINT, handler)
    with interrupts_wait():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_command_that_is_being_loaded_does_not_begin(monkeypatch, capsys):
    def load(name):
        os.kill(os.getpid(), signal.SIGINT)
        return types.SimpleNamespace(run=lambda options: begun.append(name))

    begun = []
    monkeypatch.setattr(importlib, "import_module", load)
    assert main.main(["ranks"]) == 130
    assert begun == []
    assert "interrupted; every process keeps running" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("module", ["gdbext.cli", "gdbext.collect.ctrl_c_while_loading", "gdbext.cli.main"])
def test_ctrl_c_before_we_can_wait_for_it_is_no_traceback(module):
    script = f"""
import signal, sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
from gdbext.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
