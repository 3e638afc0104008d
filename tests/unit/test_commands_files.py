"""Files that commands write."""

import errno
import os
import stat
from argparse import ArgumentTypeError

import pytest

from gdbext.commands.files import document_name, write_private
from gdbext.model.errors import GdbextError


def test_only_the_owner_may_read_it(tmp_path):
    write_private(str(tmp_path / "hang.json"), "x")
    assert stat.S_IMODE(os.stat(tmp_path / "hang.json").st_mode) == 0o600
    assert os.listdir(tmp_path) == ["hang.json"]


def test_the_old_file_stays_when_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "hang.json").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(GdbextError, match="No space left"):
        write_private(str(tmp_path / "hang.json"), "new")
    assert (tmp_path / "hang.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["hang.json"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_private(str(tmp_path / "pipe"), "text")
    assert os.read(reader, 100) == b"text"
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    os.close(reader)


def test_a_link_still_leads_to_the_file(tmp_path):
    (tmp_path / "real").write_text("old and longer")
    (tmp_path / "link").symlink_to("real")
    write_private(str(tmp_path / "link"), "new")
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_no_folder(tmp_path):
    with pytest.raises(GdbextError, match="No such file"):
        write_private(str(tmp_path / "no" / "folder"), "x")


def test_a_pid_is_no_name_of_a_document():
    assert document_name("./4711") == "./4711"
    with pytest.raises(ArgumentTypeError, match="4711 is a number: put --json behind it"):
        document_name("4711")


def test_what_is_not_whole_has_no_name(tmp_path, monkeypatch):
    """Whoever is killed while it writes leaves nothing."""
    seen, link = [], os.link

    def noting(*names, **more):
        seen.append(os.listdir(tmp_path))
        link(*names, **more)

    monkeypatch.setattr(os, "link", noting)
    for text in ("first", "second"):
        write_private(str(tmp_path / "look"), text)
        assert (tmp_path / "look").read_text() == text
    assert seen == [[], ["look"]] and os.listdir(tmp_path) == ["look"]
    assert (tmp_path / "look").stat().st_mode & 0o777 == 0o600


def test_a_file_system_without_nameless_files(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "link", refused)
    write_private(str(tmp_path / "look"), "text")
    assert (tmp_path / "look").read_text() == "text" and os.listdir(tmp_path) == ["look"]
