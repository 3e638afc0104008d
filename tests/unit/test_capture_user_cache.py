"""What is kept between two looks: private, bounded, and nothing that anybody else may have written."""

import os
import stat
from pathlib import Path

import pytest

from gdbext.capture import user_cache


@pytest.fixture
def folder(tmp_path):
    return user_cache.folder_of({"XDG_CACHE_HOME": str(tmp_path / "cache")})


def names(folder):
    return sorted(os.listdir(folder))


def test_the_folder_is_made_for_us_alone(tmp_path):
    found = user_cache.folder_of({"XDG_CACHE_HOME": str(tmp_path / "a" / "b"), "HOME": "/nowhere"})
    assert found == str(tmp_path / "a" / "b" / "gdbext")
    assert stat.S_IMODE(os.stat(found).st_mode) == 0o700
    assert user_cache.folder_of({"XDG_CACHE_HOME": str(tmp_path / "a" / "b")}) == found
    assert user_cache.folder_of({"HOME": str(tmp_path)}) == str(tmp_path / ".cache" / "gdbext")
    assert user_cache.folder_of({"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)}).startswith(str(tmp_path))


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HOME": ""},
        {"HOME": "here"},
        {"XDG_CACHE_HOME": "/proc/none"},
        {"XDG_CACHE_HOME": "/tmp", "GDBEXT_CACHE": "off"},
    ],
)
def test_no_folder_is_no_error(environ):
    assert user_cache.folder_of(environ) is None


def test_what_was_written_is_read(folder):
    assert user_cache.write(folder, "one.symbols", b"content")
    assert user_cache.read(folder, "one.symbols") == b"content"
    assert user_cache.write(folder, "one.symbols", b"newer")
    assert user_cache.read(folder, "one.symbols") == b"newer"
    assert names(folder) == ["one.symbols"], "no draft stays"
    assert stat.S_IMODE(os.stat(Path(folder, "one.symbols")).st_mode) == 0o600


def test_nothing_kept_is_an_answer(folder):
    assert user_cache.read(folder, "none") is None
    assert user_cache.read(None, "none") is None
    assert not user_cache.write(None, "none", b"")
    os.rmdir(folder)
    assert user_cache.read(folder, "none") is None
    assert not user_cache.write(folder, "none", b"x")


@pytest.mark.parametrize("name", ["../one", "", "a/b", ".." + "/" * 3, "x" * 300])
def test_names_do_not_lead_out_of_the_folder(folder, name):
    assert not user_cache.write(folder, name, b"x")
    assert user_cache.read(folder, name) is None
    assert names(folder) == []


def test_what_others_could_write_is_not_read(folder, tmp_path, monkeypatch):
    user_cache.write(folder, "one", b"x")
    path = Path(folder, "one")
    path.chmod(0o620)
    assert user_cache.read(folder, "one") is None
    path.chmod(0o600)
    assert user_cache.read(folder, "one") == b"x"
    os.symlink(path, Path(folder, "link"))
    assert user_cache.read(folder, "link") is None
    os.mkfifo(Path(folder, "pipe"), 0o600)
    assert user_cache.read(folder, "pipe") is None, "and it does not wait for a writer"
    os.mkdir(Path(folder, "dir"), 0o700)
    assert user_cache.read(folder, "dir") is None
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert user_cache.read(folder, "one") is None, "a file of another user"
    assert user_cache.folder_of({"XDG_CACHE_HOME": str(tmp_path / "cache")}) is None, "a folder of another user"


@pytest.mark.parametrize("kind", ["open to the group", "link", "file"])
def test_a_folder_that_is_not_ours_alone_is_not_used(tmp_path, kind):
    path = tmp_path / "gdbext"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(0o700)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o770)
    assert user_cache.folder_of({"XDG_CACHE_HOME": str(tmp_path)}) is None


def test_the_longest_unused_go_when_it_is_full(folder):
    for number in range(4):
        assert user_cache.write(folder, f"entry{number}", bytes(100), limit=1000)
        os.utime(Path(folder, f"entry{number}"), (number, number))
    Path(folder, ".new-dead-writer").write_bytes(bytes(50))
    os.utime(Path(folder, ".new-dead-writer"), (2, 2))
    assert user_cache.read(folder, "entry0", limit=1000) == bytes(100), "it counts as used now"
    assert user_cache.write(folder, "last", bytes(150), limit=349)
    assert names(folder) == ["entry0", "last"]
    assert not user_cache.write(folder, "large", bytes(400), limit=349)


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not user_cache.write(folder, "one", b"x")
    assert names(folder) == []
