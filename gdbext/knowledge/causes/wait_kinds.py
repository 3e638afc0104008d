"""What every kind of wait waits for: an edge of the wait-for graph. Rows, no logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

from gdbext.model.waits import ALL, ANY


@dataclass(frozen=True)
class WaitRow:
    """A thread in this kind of wait points to a node of kind `target`."""

    target: str  # a key of model/waits.py NODES
    strength: str
    source: str
    needs: str = ALL


_CUDA = "CUDA programming guide, implicit synchronization; NVIDIA/nccl#48"
_DEVICE = WaitRow("device", "named", _CUDA)

WAITS: Mapping[str, WaitRow] = {
    "pinned-host-alloc": _DEVICE,
    "device-alloc": _DEVICE,
    "device-free": _DEVICE,
    "cublas": _DEVICE,
    "module-load": WaitRow("device", "named", "CUDA programming guide, lazy loading"),
    "kernel-launch": WaitRow("device", "named", "NVIDIA/nccl#750, #1766"),
    "stream-sync": _DEVICE,
    "event-sync": _DEVICE,
    "device-sync": _DEVICE,
    "memcpy-sync": _DEVICE,
    "nccl-init": WaitRow("rendezvous", "named", "NVIDIA/nccl#1260"),
    "nccl-group-launch": WaitRow("collective", "named", "NCCL user guide"),
    "nccl-destroy-abort": WaitRow("communicator", "named", "NVIDIA/nccl#829, #1013"),
    "store-wait": WaitRow("rendezvous", "named", "torch TCPStore; NVIDIA/nccl#865"),
    "mpi": WaitRow("collective", "named", "mpi.h"),
    "gloo": WaitRow("collective", "named", "torch ProcessGroupGloo.cpp"),
    "ipc-queue": WaitRow("queue", "named", "queues of the engines, multiprocessing", ANY),
    "gil": WaitRow("lock", "named", "CPython ceval_gil.c"),
    "mutex": WaitRow("lock", "named", "glibc nptl/"),
    "condvar-idle": WaitRow("condition", "named", "glibc nptl/", ANY),
    "io": WaitRow("peer", "named", "system calls of Linux", ANY),
    "unknown": WaitRow("unknown", "assumed", "nothing was recognised", ANY),
}
"""By label of labels.WAIT_KINDS. Kinds without a row wait for nothing: the thread itself is an end."""

LINKS = {
    "runs": "the device is running it, or has it queued, and is busy until then",
    "member": "has not reached it",
    "holds": "holds it",
    "other end": "has the other end open",
    "not read": "has the other end open, and its event loop does not read it",
    "unopened": "has not opened the other end",
    "unasked": "was never asked for anything",
    "kept": "has it and does not give it back",
    "ended": "held it and is gone",
    "forked": "held it in the parent when the child was forked",
    "called elsewhere": "is in another operation of the same communicator",
    "set up elsewhere": "is in a collective, and not in the set-up",
    "seeks key": "waits for a key of the store instead",
    "other communicator": "is in an operation of another communicator",
    "next collective": "will be missing from the next one",
    "blocked launch": "launches are blocking, or the launch queue is full",
    "peer memory": "opens the memory of another GPU",
    "lazy launch": "loads the kernel first, which waits for the device",
    "leader first": "works alone first, and the others wait on purpose",
    "local rank": "is driven by no thread",
    "left": "waits as well, and no other thread is left",
    "ends": "is being ended, and something in it does not end",
    "file lock": "is locked, by another process or by one that left it behind",
    "left behind": "has no owner any more: it was left behind, or its owner is in another container or on another host",
    "exit": "frees it while the process exits",
    "said": "is named by a log line, a witness or a counter",
}
"""Kinds of edges besides the labels of waits."""

PLAIN_NAME = r"_*(?:GI_)?_*(?:libc_)?(?P<name>[a-z]\w*)$"
"""How the C library spells the functions that programs call: `__GI___libc_read` is `read`."""

NOT_JOINED: Tuple[str, ...] = ("mpi-one-sided",)
"""Frame rules of ranks that wait within the library for what the others need not call."""

LEFT_EARLY: Tuple[str, ...] = ("mpi-finalize",)
"""Frame rules of ranks that are done: they come to no further collective."""

OF_PARENT: Tuple[str, ...] = ("mpi-init",)
"""Frame rules of set-ups that are collectives of the communicator that the new one is made of."""
