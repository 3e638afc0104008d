"""`gdbext demo`: the recorded looks in the package can still be read, and are judged as their scenarios say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.cli import demo
from gdbext.commands.demo_looks import FOLDER, NAMES
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.front_end import gdbext
from tests.inferiors.scenarios import BY_NAME

ROOT = Path(__file__).parents[2]


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
    (after,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["next"]]
    assert "pinned-alloc.json" in after or "the same with -v" in after, "a path that is too long is left out"
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


def test_live_says_what_is_lacking(monkeypatch):
    monkeypatch.setattr(demo.shutil, "which", lambda name: None if name == "g++" else name)
    done = gdbext("demo", "--live")
    assert done.returncode == 4 and "g++ not found" in done.stderr and "gdbext demo --recorded" in done.stderr
    both = gdbext("demo", "--live", "--recorded")
    assert both.returncode == 2


@pytest.fixture
def installed(tmp_path):
    """The package as a wheel has it."""
    words = [sys.executable, "setup.py", "-q", "build_py", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    return tmp_path / "gdbext" / "demo"


@pytest.mark.process
def test_an_installed_package_starts_the_engine_from_its_sources(installed, monkeypatch, tmp_path):
    """Its sources are all there: it lists its hangs, and knows its build by their content."""
    started = []
    monkeypatch.setattr(demo.gdbext, "__file__", str(tmp_path / "gdbext" / "__init__.py"))
    monkeypatch.setattr(demo, "FOLDER", str(installed))
    monkeypatch.setattr(demo.shutil, "which", lambda name: name)
    monkeypatch.setattr(demo.os, "execve", lambda path, words, environ: started.append((words, environ)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GDBEXT_CACHE", raising=False)
    gdbext("demo", "sigbus", "--live")
    ((words, environ),) = started
    assert words[2:] == ["--hang", "sigbus"] and environ["GDBEXT_DEMO_BUILD"].startswith(str(tmp_path / "cache"))
    listed = subprocess.run([*words[:2], "--list"], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert listed.stderr == "" and [line.split()[0] for line in listed.stdout.splitlines()].count("sigbus") == 1
    built = "from tests.inferiors import demo_build as b; print(b.__file__, b.BUILD, b._digest(), len(b._steps()[0]))"
    there = subprocess.run([sys.executable, "-c", built], cwd="/", env=environ, capture_output=True, text=True)
    here = subprocess.run([sys.executable, "-c", built], cwd=ROOT, capture_output=True, text=True)
    assert there.stdout.split()[2:] == here.stdout.split()[2:], there.stderr
    assert there.stdout.startswith(str(installed)) and environ["GDBEXT_DEMO_BUILD"] in there.stdout
