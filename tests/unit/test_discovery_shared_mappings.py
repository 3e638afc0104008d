"""Whether another process has a piece of shared memory too."""

import mmap
import multiprocessing
import os

import pytest

from gdbext.discovery.locks_pipes_sockets.shared_mappings import Mapped, SharedMemory
from gdbext.discovery.proc.procfs import ProcFS

LINE = "7f00-7f10 rw-s 00000000 00:1a {}                 {}\n"
OWN = Mapped("7f00-7f10", "00:1a", 25131, "/dev/zero (deleted)")


def proc(folder, maps, sessions=()):
    for pid, text in maps.items():
        (folder / str(pid)).mkdir()
        if text is not None:
            (folder / str(pid) / "maps").write_text(text)
        session = dict(sessions).get(pid, 5)
        (folder / str(pid) / "stat").write_text(f"{pid} (worker) S 1 5 {session} {'0 ' * 60}")
    return SharedMemory(ProcFS(str(folder)))


@pytest.mark.parametrize(
    ("others", "sessions", "shared"),
    [
        ({8: LINE.format(25132, "/dev/zero (deleted)")}, (), False),
        ({8: LINE.format(25131, "/dev/zero (deleted)")}, (), True),
        ({8: None}, (), True),  # it may not be read, and may be a fork
        ({1: None}, ((1, 1),), False),
    ],
    ids=["another memory", "the same", "unreadable", "init"],
)
def test_memory_without_a_name_is_shared_with_who_maps_it(tmp_path, others, sessions, shared):
    found = proc(tmp_path, {7: LINE.format(25131, "/dev/zero (deleted)"), **others}, sessions)
    assert found.is_shared(7, OWN) is shared
    assert found.is_shared(7, OWN) is shared


def test_memory_with_a_name_may_be_opened_by_anybody(tmp_path):
    found = proc(tmp_path, {7: ""})
    shm = tmp_path / "7" / "root" / "dev" / "shm"
    shm.mkdir(parents=True)
    (shm / "sem.ready").write_text("")
    inode = (shm / "sem.ready").stat().st_ino
    named = OWN._replace(path="/dev/shm/sem.ready", inode=inode)
    renamed = OWN._replace(path="/dev/shm/sem.x1 (deleted)", inode=inode)  # as sem_open() makes it
    removed = OWN._replace(path="/dev/shm/sem.x2 (deleted)", inode=inode + 1)
    other = OWN._replace(path="/memfd:ring (deleted)", inode=4)
    assert [found.is_shared(7, one) for one in (named, renamed, removed, other)] == [True, True, False, True]


@pytest.mark.process
def test_a_semaphore_of_multiprocessing_is_shared_with_its_children():
    def mapped():
        with open("/proc/self/maps") as maps:
            lines = [line.split(None, 5) for line in maps if "/dev/shm/sem." in line or "/dev/zero" in line]
        return {line[0]: Mapped(line[0], line[3], int(line[4]), line[5].strip()) for line in lines}

    before = mapped()
    fork = multiprocessing.get_context("fork")
    slots = fork.Semaphore(0)
    memory = mmap.mmap(-1, 4096)
    added = [one for addresses, one in mapped().items() if addresses not in before]
    assert added
    assert not any(SharedMemory(ProcFS()).is_shared(os.getpid(), one) for one in added)
    child = fork.Process(target=slots.acquire)
    child.start()
    try:
        assert all(SharedMemory(ProcFS()).is_shared(os.getpid(), one) for one in added)
    finally:
        slots.release()
        child.join()
        memory.close()
