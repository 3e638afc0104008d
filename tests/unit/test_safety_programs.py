"""Which gdb runs: never one that another user can have put on the PATH."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gdbext
from gdbext.collect.gdb_runs.batch_runs import find_gdb
from gdbext.discovery.proc import programs
from gdbext.model.errors import GdbextError

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root, not a package")


def program(folder, name="gdb", mode=0o755):
    """A gdb that would leave a trace."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\ntouch "$(dirname "$0")/ran"\n')
    path.chmod(mode)
    return path


@pytest.fixture
def own(tmp_path):
    """One that is this user's alone."""
    return program(tmp_path / "own")


def search(*folders, name="gdb"):
    return programs.find(name, {"PATH": os.pathsep.join(map(str, folders))})


def test_the_first_one_that_runs(own, tmp_path):
    program(tmp_path / "text", mode=0o644)
    (tmp_path / "folder" / "gdb").mkdir(parents=True)
    assert search(tmp_path / "text", tmp_path / "folder", "/nowhere", own.parent) == (str(own), ())
    assert search("/nowhere") == (None, ())


@pytest.mark.parametrize("entry", ["", ".", "bin", "../here"])
def test_the_present_folder_is_not_on_the_path(entry, own, tmp_path, monkeypatch):
    for name in ("here", "here/bin"):
        program(tmp_path / name)
    monkeypatch.chdir(tmp_path / "here")
    found = search(entry, own.parent)
    assert found.path == str(own)
    assert "PATH contains the current directory" in found.passed_over[0]
    assert programs.find(f"./{own.name}").path == "./gdb"  # whoever says so wants it


def test_what_everybody_can_replace_is_passed_over(own, tmp_path):
    for name, at in (("file", "file/gdb"), ("folder", "folder"), ("above", "above")):
        above = tmp_path / name
        made = program(above) if name != "above" else program_below(above)
        (tmp_path / at).chmod(0o777)
        found = search(made.parent, own.parent)
        assert found.path == str(own)
        assert "everybody can replace" in found.passed_over[0]
        (tmp_path / at).chmod(0o755)
        assert search(made.parent, own.parent).path == str(made)


def program_below(above):
    above.mkdir()
    return program(above / "bin")


def test_a_link_is_followed_and_looked_at(own, tmp_path):
    open_one = program(tmp_path / "open")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "gdb").symlink_to(open_one)
    (tmp_path / "through").symlink_to(tmp_path / "open")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for folder in ("links", "through"):
        assert search(tmp_path / folder, own.parent).path == str(own)
    assert search(tmp_path / "round", own.parent).path == str(own)
    (tmp_path / "links" / "gdb").unlink()
    (tmp_path / "links" / "gdb").symlink_to(os.path.relpath(own, tmp_path / "links"))
    assert search(tmp_path / "links").path == str(tmp_path / "links" / "gdb")


@root
@pytest.mark.parametrize("what", ["file", "folder", "link in /tmp"])
def test_as_root_not_what_another_user_can_replace(what, own, tmp_path):
    made = program(tmp_path / "theirs")
    if what == "link in /tmp":
        (tmp_path / "links").mkdir()
        (tmp_path / "links").chmod(0o1777)
        (tmp_path / "links" / "gdb").symlink_to(own)
        made = tmp_path / "links" / "gdb"
        os.chown(made, NOBODY, NOBODY, follow_symlinks=False)
    else:
        os.chown(made if what == "file" else made.parent, NOBODY, NOBODY)
    found = search(made.parent, own.parent)
    assert found.path == str(own)
    assert f"user {NOBODY} can replace" in found.passed_over[0]


@root
def test_as_root_not_what_a_group_can_replace(own, tmp_path):
    made = program(tmp_path / "shared")
    os.chown(made.parent, 0, NOBODY)
    made.parent.chmod(0o775)
    assert f"group {NOBODY} can replace" in search(made.parent, own.parent).passed_over[0]


@root
def test_the_owner_of_gdbext_is_trusted(own, tmp_path, monkeypatch):
    """Its code runs already: `sudo .venv/bin/gdbext` with a gdb of the same environment."""
    package = tmp_path / "package.py"
    package.touch()
    made = program(tmp_path / "theirs")
    for path in (package, made, made.parent):
        os.chown(path, NOBODY, NOBODY)
    monkeypatch.setattr(gdbext, "__file__", str(package))
    programs._trusted.cache_clear()
    try:
        assert search(made.parent, own.parent).path == str(made)
    finally:
        programs._trusted.cache_clear()


def test_without_another_one_the_error_names_it_and_the_way(tmp_path, monkeypatch):
    made = program(tmp_path / "open")
    made.parent.chmod(0o777)
    monkeypatch.setenv("PATH", str(made.parent))
    monkeypatch.delenv("GDBEXT_GDB", raising=False)
    with pytest.raises(GdbextError) as error:
        find_gdb()
    said = f"not used: {made} (everybody can replace {made.parent}); name it with --gdb PATH if you trust it"
    assert str(error.value) == said
    assert find_gdb(str(made)) == str(made)
    assert not (made.parent / "ran").exists()


@pytest.mark.process
def test_a_command_uses_none_of_them(tmp_path, own):
    """The whole way, in a folder with a gdb and with the present folder first on PATH."""
    made = program(tmp_path / "here")
    words = [sys.executable, "-m", "gdbext", "doctor", "--json"]
    path = os.pathsep.join((".", str(own.parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path(gdbext.__file__).parents[1])}
    environment.pop("GDBEXT_GDB", None)
    subprocess.run(words, cwd=made.parent, env=environment, capture_output=True)
    assert (own.parent / "ran").exists() and not (made.parent / "ran").exists()
