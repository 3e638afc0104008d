"""Files that commands write."""

import errno
import os
import stat

import pytest

from gdbext.commands.user_files import append_private, check_writable, write_private
from gdbext.model.errors import GdbextError, UsageError


def test_only_the_owner_may_read_it(tmp_path):
    write_private(str(tmp_path / "hang.json"), "x")
    assert stat.S_IMODE(os.stat(tmp_path / "hang.json").st_mode) == 0o600
    assert os.listdir(tmp_path) == ["hang.json"]


def test_the_old_file_stays_when_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "hang.json").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(GdbextError, match="No space left"):
        write_private(str(tmp_path / "hang.json"), "new", force=True)
    assert (tmp_path / "hang.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["hang.json"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_private(str(tmp_path / "pipe"), "text")
    assert os.read(reader, 100) == b"text"
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    os.close(reader)


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_not_followed(tmp_path, force):
    """Whoever can make it chooses what is overwritten."""
    (tmp_path / "real").write_text("old")
    for name, aim in (("link", "real"), ("dangling", "nowhere")):
        (tmp_path / name).symlink_to(aim)
        for write in (write_private, append_private):
            with pytest.raises(UsageError, match=f"{name} is a symbolic link, which gdbext does not follow"):
                write(str(tmp_path / name), "new", *([force] if write is write_private else []))
    assert (tmp_path / "real").read_text() == "old" and not (tmp_path / "nowhere").exists()


def test_what_is_there_is_overwritten_only_when_asked_for(tmp_path):
    path = tmp_path / "hang.json"
    path.write_text("old")
    for refused in (check_writable, lambda name: write_private(name, "new")):
        with pytest.raises(UsageError, match="exists; choose another name; --force overwrites it"):
            refused(str(path))
    assert path.read_text() == "old"
    write_private(str(path), "new", force=True)
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["hang.json"]
    with pytest.raises(UsageError, match="exists and is not a file"):
        check_writable(str(tmp_path), force=True)


def test_a_file_that_appears_meanwhile_stays(tmp_path, monkeypatch):
    link = os.link

    def late(*names, **more):
        (tmp_path / "hang.json").write_text("theirs")
        link(*names, **more)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UsageError, match="exists"):
        write_private(str(tmp_path / "hang.json"), "ours")
    assert (tmp_path / "hang.json").read_text() == "theirs" and os.listdir(tmp_path) == ["hang.json"]


def test_a_descriptor_of_ours_is_written_to(tmp_path):
    """`--save >(gzip > look.gz)` of a shell."""
    reading, writing = os.pipe()
    try:
        write_private(f"/dev/fd/{writing}", "text")
        assert os.read(reading, 100) == b"text"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_log_grows(tmp_path):
    for text in ("one\n", "two\n"):
        append_private(str(tmp_path / "log"), text)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_no_folder(tmp_path):
    with pytest.raises(GdbextError, match=r"cannot write .*folder: .*/no is not a folder"):
        write_private(str(tmp_path / "no" / "folder"), "x")


def test_what_is_not_whole_has_no_name(tmp_path, monkeypatch):
    """Whoever is killed while it writes leaves nothing."""
    seen, link = [], os.link

    def noting(*names, **more):
        seen.append(os.listdir(tmp_path))
        link(*names, **more)

    monkeypatch.setattr(os, "link", noting)
    write_private(str(tmp_path / "look"), "text")
    assert seen[0] == [] and os.listdir(tmp_path) == ["look"]
    assert (tmp_path / "look").read_text() == "text" and (tmp_path / "look").stat().st_mode & 0o777 == 0o600


def test_a_file_system_without_nameless_files(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "link", refused)
    write_private(str(tmp_path / "look"), "text")
    assert (tmp_path / "look").read_text() == "text" and os.listdir(tmp_path) == ["look"]
