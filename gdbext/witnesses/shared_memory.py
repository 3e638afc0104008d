"""Room in /dev/shm as a rank sees it (its container's mount), and files that NCCL left there."""

from __future__ import annotations

import os
import time
from typing import ContextManager, Dict, Iterator, List, Tuple

from gdbext.knowledge.causes.witnesses import SHM_PER_CONNECTION, SHM_ROOM
from gdbext.model.text.ranges import counted
from gdbext.model.witness import Statement, Witness
from gdbext.safe_open import files
from gdbext.witnesses.question import Asked, Question, absent_witness, present_witness

NAME = "/dev/shm"  # noqa: S108 - a place, no file of ours
_MOST_FILES = 4096


def ask(question: Question) -> Witness:
    """One statement a mount: ranks of one container share it."""
    mounts: Dict[int, List[Asked]] = {}
    reason = "no rank's is readable"
    for one in question.ranks:
        try:
            with _folder(one, question.proc) as folder:
                device = os.fstat(folder).st_dev
        except OSError as error:
            reason = (error.strerror or reason).lower()
            continue
        mounts.setdefault(device, []).append(one)
    statements: List[Statement] = []
    for ranks in mounts.values():
        statements += _mount_statements(ranks, question, len(mounts) == 1)
    if not mounts:
        return absent_witness(NAME, reason)
    about = statements[0].text if len(mounts) == 1 else f"{len(mounts)} mounts"
    return present_witness(NAME, about, tuple(statements))


def _folder(one: Asked, proc: str) -> ContextManager[int]:
    return files.folder("/dev/shm", f"{proc}/{one.pid}/root")  # noqa: S108


def _mount_statements(ranks: List[Asked], question: Question, only: bool) -> Iterator[Statement]:
    try:
        with _folder(ranks[0], question.proc) as folder:
            room, left = os.statvfs(folder), _nccl_files(folder, question)
    except OSError:
        return
    total, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    full = total > 0 and free < SHM_PER_CONNECTION
    text = f"{_size(free)} of {_size(total)} free"
    index = ranks[0].index if full else None
    says = "shm-full" if full else "shm-room" if only and free >= SHM_ROOM else "fact"
    yield Statement(text + (": no room for another NCCL connection" if full else ""), says, index)
    if left:
        names = ", ".join(name for name, _ in left[:3])
        held = _size(sum(size for _, size in left))
        yield Statement(
            f"{counted(len(left), 'file')} of NCCL, older than the job, with {held} ({names}): left behind", "fact"
        )


def _nccl_files(folder: int, question: Question) -> List[Tuple[str, int]]:
    """Files of communicators that were there before the oldest rank began: their owners are gone, or another job's."""
    if question.started is None:
        return []
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found: List[Tuple[str, int]] = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_FILES:
                    break
                if entry.name.startswith("nccl-"):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_mtime < boot + question.started - 1:
                        found.append((entry.name[:40], status.st_blocks * 512))
    except OSError:
        return found
    return sorted(found)


def _size(count: int) -> str:
    """`64 MiB`, `1.5 GiB`."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
