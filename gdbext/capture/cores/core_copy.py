"""A core file as capture/stop/copy_of_process.py copies a process: registers and stacks."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence

from gdbext.capture.copies.copied_process import Budget, ProcessCopy, ThreadCopy
from gdbext.capture.copies.stack_bytes import StackCopier
from gdbext.capture.cores.core_file import MOST_PARTS, CoreBuffer, CoreFile
from gdbext.capture.cores.core_objects import CoreObjects
from gdbext.capture.cores.core_process import StartBlock
from gdbext.capture.memory.auxiliary_vector import auxiliary
from gdbext.capture.memory.process_memory import Block, merge

_AT_SYSINFO_EHDR = 33  # where the vdso lies
_VDSO_LIMIT = 64 << 10


def copy_core(
    core: CoreFile, objects: CoreObjects, block: Optional[StartBlock], budget: Optional[Budget] = None
) -> ProcessCopy:
    """The copy. Its main thread comes first, as in every copy; what cannot be read is in its problems."""
    budget = budget or Budget()
    row = core.architecture
    assert row is not None
    problems: List[str] = [f"the core is cut short: {core.cut}; copy it again"] if core.cut else []
    with_registers = [thread for thread in core.notes.threads if len(thread.registers) >= row.registers]
    if not with_registers:
        problems.append("the core has no threads in it: its notes are missing or cut off")
    problems += core.limits
    if core.notes.count > len(core.notes.threads):
        problems.append(f"only {len(with_registers)} of {core.notes.count} threads were read")
    registers: Dict[int, Sequence[int]] = {thread.tid: thread.registers[: row.registers] for thread in with_registers}
    buffer = CoreBuffer(core, budget.total)
    main_top = block.address if block is not None else 0
    stacks = StackCopier(core.notes.pid or 0, objects.maps, main_top, row, buffer, budget.stack)
    stacks.copy(registers, 0.0)
    signals: Dict[int, int] = {thread.tid: thread.signal for thread in with_registers}
    threads = [
        ThreadCopy(
            tid=tid,
            registers=tuple(words),
            pc=words[row.pc],
            sp=words[row.sp],
            signal=signals[tid],
            truncated=stacks.truncated(tid),
            problem=_problem(stacks.problem(tid)),
        )
        for tid, words in registers.items()
    ]
    unread = sum(thread.problem is not None for thread in threads)
    if unread:
        why = "cut off" if core.cut else "not dumped (see coredump_filter in core(5))"
        why = "among those that gdbext did not read" if len(core.parts) == MOST_PARTS else why
        problems.append(f"the stacks of {unread} of {len(threads)} threads are not in the core: {why}")
    blocks = [Block(address, data) for address, data in buffer.pieces.items() if data]
    return ProcessCopy(
        pid=core.notes.pid or 0,
        threads=tuple(sorted(threads, key=lambda thread: thread.tid != core.notes.pid)),
        blocks=tuple(merge(blocks + _vdso(core))),
        maps=objects.maps,
        auxv=core.notes.auxv,
        exe=objects.program or core.notes.command,
        architecture=row,
        problems=tuple(problems),
    )


def _problem(text: Optional[str]) -> Optional[str]:
    return None if text is None else f"{text} of the core"


def _vdso(core: CoreFile) -> List[Block]:
    """The kernel's code page: a debugger takes the unwind table of its frames from memory, there is no file."""
    part = core.part_at(auxiliary(core.notes.auxv).get(_AT_SYSINFO_EHDR, 0))
    data = core.present(part.start, min(part.end - part.start, _VDSO_LIMIT)) if part is not None else b""
    return [Block(part.start, data)] if part is not None and data else []
