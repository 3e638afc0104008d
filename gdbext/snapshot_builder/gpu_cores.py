"""GPU cores beside what else is known of the ranks: each is given to its process, and says which kernel sits where."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.failures.gpu_findings import launcher_frames, own_frame
from gdbext.analysis.stacks.frame_facts import FrameBook
from gdbext.analysis.view.places import place
from gdbext.analysis.view.resident_kernels import collective_of, kernel_text, running_kernels
from gdbext.capture.gpu_cores.gpu_core_state import read_state
from gdbext.knowledge.errors.compute_sanitizer import GPU_CORE
from gdbext.model.codes import Given, ReadState
from gdbext.model.errors import GdbextError
from gdbext.model.gpu_core import GpuCoreListing, GpuCoreState, GpuException, ResidentKernel
from gdbext.model.gpu_errors import DevicePlace, GpuError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.text.ranges import counted, ranks
from gdbext.model.witness import Statement, Witness

NAME = "GPU cores"
MOST_KERNELS = 64  # of one process
_MOST_ERRORS = 64
_FAULTED_ALONE = "faulted_contexts_only"  # among the flags that a core was written with
_TOGETHER = 120.0  # seconds within which cores are of one moment, as those of one trigger are


def read_all(paths: Sequence[str], say: Callable[[str], None]) -> GpuCoreListing:
    """All of them; a line for each that cannot be read."""
    cores: List[GpuCoreState] = []
    unread: List[str] = []
    for number, path in enumerate(dict.fromkeys(paths), 1):
        if len(paths) > 1:
            say(f"reading GPU core {number} of {len(paths)}")
        try:
            cores.append(read_state(path))
        except GdbextError as error:
            unread.append(str(error))
    return GpuCoreListing(tuple(cores), tuple(unread))


def with_gpu_cores(snapshot: JobSnapshot, listing: GpuCoreListing) -> JobSnapshot:
    """The look with what the GPU cores say. A core that no process of the look has written is one of its own."""
    processes = list(snapshot.processes)
    problems: List[str] = []
    seen: Dict[int, List[GpuCoreState]] = {}
    for core in listing.cores:
        owners = _owners(snapshot.processes, core)
        if len(owners) > 1:
            problems.append(
                f"{os.path.basename(core.path)} may be of {_named([processes[at] for at in owners])}: they have the"
                " same pid or thread numbers; it is shown by itself"
            )
        at = owners[0] if len(owners) == 1 else len(processes)
        if at == len(processes):
            title = None if core.pid is not None else os.path.basename(core.path)
            processes.append(
                RankSnapshot(index=at, threads=(), pid=core.pid, host=core.host, title=title, source=Given.CORE)
            )
        seen.setdefault(at, []).append(core)
        processes[at] = _with(processes[at], core)
    for line in listing.unread:
        one = RankSnapshot(index=len(processes), threads=(), title=line.partition(":")[0], source=Given.CORE)
        processes.append(replace(one, state=ReadState.PARTIAL, problems=(line,)))
    times = [core.written_at for core in listing.cores if core.written_at is not None]
    return replace(
        snapshot,
        processes=tuple(processes),
        problems=(*snapshot.problems, *problems),
        taken_at=snapshot.taken_at if snapshot.taken_at is not None else max(times, default=None),
        witnesses=(*snapshot.witnesses, _witness(processes, seen)) if seen else snapshot.witnesses,
    )


def _owners(processes: Sequence[RankSnapshot], core: GpuCoreState) -> List[int]:
    """Whose it may be: by the threads that launched its kernels, and by the pid in its name."""
    here = [one for one in processes if None in (one.host, core.host) or _same_host(one.host, core.host)]
    by_pid = [one.index for one in here if core.pid is not None and one.pid == core.pid]
    tids = set(core.host_tids)
    by_thread = [one.index for one in here if tids and tids <= {thread.lwp for thread in one.threads}]
    both = [at for at in by_pid if at in by_thread]
    if both or by_pid:
        return both or by_pid
    # Without a pid in the name the threads alone decide; with another pid it is another process.
    return by_thread if core.pid is None else []


def _same_host(one: Optional[str], other: Optional[str]) -> bool:
    return (one or "").partition(".")[0] == (other or "").partition(".")[0]


def _named(processes: Sequence[RankSnapshot]) -> str:
    return " or ".join(one.label for one in processes[:4])


def _with(process: RankSnapshot, core: GpuCoreState) -> RankSnapshot:
    name = os.path.basename(core.path)
    # That none was found says that none was there, unless something of the file was not read, or not written.
    whole = core.kernels or not (core.problems or _FAULTED_ALONE in core.flags)
    return replace(
        process,
        gpu_errors=(*process.gpu_errors, *map(_error, core.exceptions[:_MOST_ERRORS])),
        kernels=(*(process.kernels or ()), *core.kernels)[:MOST_KERNELS] if whole else process.kernels,
        problems=(*process.problems, *(f"{name}: {text}" for text in core.problems)),
    )


def _error(found: GpuException) -> GpuError:
    first = found.frames[0] if found.frames else None
    at = DevicePlace(
        function=first.function or "" if first else found.kernel,
        file=first.file or "" if first else "",
        line=first.line if first else None,
        thread=found.thread,
        block=found.block,
    )
    return GpuError(
        kind="device-fault",
        text=found.name,
        problem=found.means,
        tool=GPU_CORE,
        kernel=found.kernel,
        places=(at,),
        device_frames=found.frames[1:],
        host_thread=found.host_tid,
        count=max(found.lanes, 1),
    )


def _witness(processes: Sequence[RankSnapshot], seen: Dict[int, List[GpuCoreState]]) -> Witness:
    """Which kernel sits on whose GPU, equal ones together; who has none while the others are in a collective."""
    statements: List[Statement] = []
    groups: Dict[Tuple[bool, str], List[int]] = {}
    book = FrameBook()
    for at in sorted(seen):
        for kernel in running_kernels(processes[at]):
            text = kernel_text(kernel) + _launched(processes[at], kernel, book)
            groups.setdefault((collective_of(kernel.name) is None, text), []).append(at)
    for (computes, text), owners in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        says = "kernel" if computes or len(owners) > 1 else "spins"
        line = f"{_owner_of_core([processes[at] for at in owners])} in {text}"
        statements.append(Statement(line, says, owners[0] if len(owners) == 1 else None))
    statements += _without_kernel(processes, seen)
    files = counted(sum(map(len, seen.values())), "file")
    return Witness(name=NAME, state="present", reason=files, statements=tuple(statements))


def _launched(process: RankSnapshot, kernel: ResidentKernel, book: FrameBook) -> str:
    """Where the thread that launched it is now, by its stack: no longer at the launch."""
    frame = own_frame(launcher_frames(process, kernel.host_tid), book, "native")
    return "" if frame is None else f", launched by a thread that is now in {place(frame)}"


def _without_kernel(processes: Sequence[RankSnapshot], seen: Dict[int, List[GpuCoreState]]) -> List[Statement]:
    """Ranks whose GPU had nothing to do while all others were in a collective: cores of one moment, without a fault."""
    cores = [core for some in seen.values() for core in some]
    times = [core.written_at for core in cores]
    known = [one for one in times if one is not None]
    together = len(known) == len(times) and max(known) - min(known) <= _TOGETHER
    idle = [at for at in seen if processes[at].kernels is not None and not running_kernels(processes[at])]
    busy = [at for at in seen if any(collective_of(one.name) for one in running_kernels(processes[at]))]
    whole = not any(core.problems or core.exceptions for core in cores)
    if not (together and whole and idle and busy) or len(idle) + len(busy) < len(seen):
        return [Statement(f"{_owner_of_core([processes[at]])} in no kernel", "kernel", at) for at in idle]
    others = _owner_of_core([processes[at] for at in busy])
    return [
        Statement(f"{_owner_of_core([processes[at]])} in no kernel, {others} in a collective", "behind", at)
        for at in idle
    ]


def _owner_of_core(processes: Sequence[RankSnapshot]) -> str:
    numbers = [one.rank for one in processes if one.rank is not None]
    if len(numbers) == len(processes):
        labels = ranks(numbers)
    else:
        labels = ", ".join(one.label for one in processes[:8])
    return f"the GPU of {labels} is" if len(processes) == 1 else f"the GPUs of {labels} are"
