"""Whether another process has a piece of shared memory too."""

import json
import subprocess
import sys

import pytest

from gdbext.discovery.locks_pipes_sockets.shared_mappings import Mapped, SharedMemory
from gdbext.discovery.proc.procfs import ProcFS

LINE = "7f00-7f10 rw-s 00000000 00:1a {}                 {}\n"
OWN = Mapped("7f00-7f10", "00:1a", 25131, "/dev/zero (deleted)")


EXECUTED, FORKED = 0x400100, 0x400140  # flags as a kernel shows them


def proc(folder, maps, sessions=(), flags=()):
    for pid, text in maps.items():
        (folder / str(pid)).mkdir()
        if text is not None:
            (folder / str(pid) / "maps").write_text(text)
        session = dict(sessions).get(pid, 5)
        (folder / str(pid) / "stat").write_text(
            f"{pid} (worker) S 1 5 {session} 0 -1 {dict(flags).get(pid, FORKED)} {'0 ' * 60}"
        )
    return SharedMemory(ProcFS(str(folder)))


@pytest.mark.parametrize(
    ("others", "sessions", "flags", "shared"),
    [
        ({8: LINE.format(25132, "/dev/zero (deleted)")}, (), (), False),
        ({8: LINE.format(25131, "/dev/zero (deleted)")}, (), (), True),
        ({8: None}, (), (), True),  # it may not be read, and may be a fork
        ({8: None}, (), ((7, EXECUTED), (8, FORKED)), True),
        ({8: None}, (), ((7, FORKED), (8, EXECUTED)), True),  # what it was forked from
        ({8: None}, (), ((7, EXECUTED), (8, EXECUTED)), False),
        ({1: None}, ((1, 1),), (), False),
    ],
    ids=["another memory", "the same", "unreadable", "child", "parent", "programs of their own", "another session"],
)
def test_memory_without_a_name_is_shared_with_who_maps_it(tmp_path, others, sessions, flags, shared):
    found = proc(tmp_path, {7: LINE.format(25131, "/dev/zero (deleted)"), **others}, sessions, flags)
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


WITH_CHILD = """
import json, mmap, multiprocessing, os
from gdbext.discovery.locks_pipes_sockets import shared_mappings
from gdbext.discovery.locks_pipes_sockets.shared_mappings import Mapped, SharedMemory
from gdbext.discovery.proc.procfs import ProcFS

def mapped():
    with open("/proc/self/maps") as maps:
        lines = [line.split(None, 5) for line in maps if "/dev/shm/sem." in line or "/dev/zero" in line]
    return [Mapped(line[0], line[3], int(line[4]), line[5].strip()) for line in lines]

def shared():
    memory = SharedMemory(ProcFS())
    return {one.path: memory.is_shared(os.getpid(), one) for one in mapped()}

shared_mappings.SECONDS = 60  # whatever else the host runs
fork = multiprocessing.get_context("fork")
slots = fork.Semaphore(0)
memory = mmap.mmap(-1, 4096)
alone = shared()
child = fork.Process(target=slots.acquire)
child.start()
with_child = shared()
slots.release()
child.join()
print(json.dumps([alone, with_child]))
"""


@pytest.mark.process
def test_a_semaphore_of_multiprocessing_is_shared_with_its_children():
    # A program of its own: nothing else is forked from it, and nobody else is in its session.
    answer = subprocess.run(
        [sys.executable, "-c", WITH_CHILD], capture_output=True, text=True, start_new_session=True, timeout=120
    )
    alone, with_child = json.loads(answer.stdout or "[0, 0]")
    assert sorted(path.split(".")[0] for path in alone) == ["/dev/shm/sem", "/dev/zero (deleted)"], answer.stderr
    assert set(alone.values()) == {False}, alone
    assert set(with_child.values()) == {True}, with_child
