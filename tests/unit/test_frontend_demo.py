"""`gdbext demo`: the recorded looks in the package can still be read, and are judged as their scenarios say."""

import os
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.cli import demo
from gdbext.commands.demo_looks import FOLDER, NAMES
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.front_end import gdbext
from tests.inferiors.scenarios import BY_NAME


def test_there_is_a_look_at_every_hang():
    assert set(NAMES) == set(BY_NAME)
    assert sum(os.path.getsize(os.path.join(FOLDER, f"{name}.json")) for name in NAMES) < 1 << 20


@pytest.mark.parametrize("name", NAMES)
def test_a_look_can_still_be_read_and_is_judged_right(name):
    verdict = judge(load_snapshot(Path(FOLDER, f"{name}.json").read_bytes())).verdict
    assert verdict.cause in (BY_NAME[name].cause, *BY_NAME[name].also_causes)


def test_the_recorded_look_is_shown_with_the_next_command():
    done = gdbext("demo", "--recorded")
    assert done.returncode == 1 and "cudaMallocHost" in done.stdout
    assert f"$ gdbext diagnose {FOLDER}/pinned-alloc.json" in done.stderr
    assert "next" in done.stdout.lower() and "pinned-alloc.json" in done.stdout.split("\n\n")[-1]
    healthy = gdbext("demo", "healthy-idle", "--recorded", "-q")
    assert healthy.returncode == 0 and healthy.stderr == ""


def test_the_list_and_an_unknown_name():
    lines = gdbext("demo", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert "pinned-alloc                implicit-sync-vs-collective" in lines
    done = gdbext("demo", "nothing")
    assert done.returncode == 2 and "gdbext demo --list" in done.stderr


@pytest.mark.parametrize("tools", [True, False])
def test_in_a_clone_with_a_compiler_the_engine_is_started(monkeypatch, tools):
    started = []
    monkeypatch.setattr(demo.shutil, "which", lambda name: name if tools else None)
    monkeypatch.setattr(demo.os, "execv", lambda path, words: started.append(words[1:]))
    gdbext("demo", "sigbus")
    assert started == ([["--hang", "sigbus"]] if tools else [])
