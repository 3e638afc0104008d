"""What is known of a blocked thread without a stop: where it stands, its system call, and whether it has run since.

/proc/PID/task/TID/syscall has the number and arguments of the call, sp and pc of a thread that is blocked, and the word
`running` of one that is not (proc_pid_syscall(5)). It needs the right to trace the process (PTRACE_MODE_ATTACH), as
process_vm_readv(2) does; nothing is traced by reading it.
"""

from __future__ import annotations

from array import array
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.copies.syscall_line import GONE, NO_CALL, REFUSED, Standing, call_number, parse_standing
from gdbext.capture.copies.thread_status import thread_state
from gdbext.capture.machine import Architecture
from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.proc_texts import read_text
from gdbext.model.missing import Maybe, Missing

UNKNOWN = 0x5BAD_0C0D_5BAD_0C0D
"""What stands in a register that nobody knows. No address: the two halves of memory are far from it, so that whoever
follows it fails instead of reading something else."""

_WORD = 1 << 64


class Mark(NamedTuple):
    """A thread at one moment. Two marks that are equal, and blocked, mean that it has not run in between: the counters
    change whenever it is given a processor."""

    standing: Standing
    counters: str


def sleep_mark(pid: int, tid: int, proc: str = "/proc") -> Maybe[Mark]:
    """The mark of a thread that is blocked, else why there is none: one of the words above."""
    folder = f"{proc}/{pid}/task/{tid}"
    try:
        counters = _counters(folder)
        standing = parse_standing(read_text(f"{folder}/syscall"))
    except PermissionError:
        return REFUSED
    except OSError:
        return GONE
    return standing if isinstance(standing, Missing) else Mark(standing, counters)


def asleep_in(pid: int, tid: int) -> Optional[Tuple[Mark, Tuple[int, ...]]]:
    """The mark of a thread that sleeps by itself, nobody has stopped it, and its system call as the model has it."""
    seen = sleep_mark(pid, tid)
    if not isinstance(seen, Mark) or thread_state(pid, tid) not in ("S", "D"):
        return None
    number = call_number(seen.standing)
    return None if number is None else (seen, (number, *seen.standing.arguments))


def processor_time(pid: int, tid: int, proc: str = "/proc") -> Optional[int]:
    """Nanoseconds that a thread has used, where the kernel keeps them exactly."""
    try:
        fields = read_text(f"{proc}/{pid}/task/{tid}/schedstat").split()
    except OSError:
        return None
    return int(fields[0]) if len(fields) == 3 and fields[0].isdigit() and fields[2] != "0" else None


def _counters(folder: str) -> str:
    """Time on a processor and the number of times that it got one; where the kernel does not keep these, its context
    switches."""
    try:
        scheduled = read_text(f"{folder}/schedstat")
    except FileNotFoundError:
        scheduled = ""
    if scheduled.split()[2:] not in ([], ["0"]):
        return scheduled
    return "".join(line for line in read_text(f"{folder}/status").splitlines() if "ctxt_switches" in line)


# --- registers ---


def registers_of(standing: Standing, row: Architecture, thread_pointer: int = 0) -> Tuple[int, ...]:
    """The register set as far as it is known, `UNKNOWN` in all others."""
    words = [UNKNOWN] * row.registers
    for index, value in row.fixed:
        words[index] = value
    words[row.call.number] = standing.number % _WORD
    if standing.number != NO_CALL:
        for index, value in zip(row.call.arguments, standing.arguments):
            words[index] = value
        if row.call.pc_too is not None:
            words[row.call.pc_too] = standing.pc
    if row.thread_pointer is not None:
        words[row.thread_pointer] = thread_pointer
    words[row.sp], words[row.pc] = standing.sp, standing.pc
    return tuple(words)


def stands_as(standing: Standing, words: Sequence[int], row: Architecture) -> bool:
    """Whether a blocked thread stands where these registers show it: the same call with the same arguments, perhaps
    gone on with after a stop."""
    if (standing.sp, standing.pc) != (words[row.sp], words[row.pc]):
        return False
    if standing.number not in (_signed(words[row.call.number]), row.call.restart):
        return False
    pairs = zip(row.call.arguments, standing.arguments)
    return all(words[index] == value for index, value in pairs if index != row.call.result)


def _signed(word: int) -> int:
    return word - _WORD if word >> 63 else word


# --- thread pointers ---

_TOP = 16 << 10  # bytes at the upper end of a stack in which glibc's descriptor of the thread lies
_SMALL = 256 << 10  # the descriptor of main lies in a mapping of the loader's that is not larger
_MOST_SMALL = 8 << 20  # bytes of those that are searched
_SELF = 2  # word of tcbhead_t.self: the descriptor's own address, as is its first word (tcb)


def thread_pointers(
    pid: int,
    stacks: Mapping[int, int],
    own_ids: Mapping[int, int],
    maps: MemoryMap,
    memory: ProcessMemory,
    row: Architecture,
) -> Dict[int, int]:
    """Where glibc keeps the descriptor of each thread, which is the value of its thread pointer; 0 where not found.

    `stacks`: sp by thread; `own_ids`: their ids as the process itself knows them, in a container others than ours.
    A descriptor says twice where it lies, and whose it is.
    """
    found = dict.fromkeys(stacks, 0)
    if row.glibc_tid is None:
        return found
    places: Dict[int, Tuple[int, int]] = {}
    for tid, sp in stacks.items():
        home = maps.find(sp)
        if home is not None and tid != pid:
            size = min(_TOP, home.end - home.start)
            places[tid] = (home.end - size, size)
    for (tid, (start, _)), data in zip(places.items(), memory.read_many(list(places.values()))):
        found[tid] = _descriptor(data or b"", start, own_ids[tid], row.glibc_tid)
    if pid in found:
        found[pid] = _of_main(own_ids[pid], maps, memory, row.glibc_tid)
    return found


def _of_main(own_id: int, maps: MemoryMap, memory: ProcessMemory, id_at: int) -> int:
    room = _MOST_SMALL
    for mapping in reversed(list(maps)):  # it was made before most others, and the kernel maps downwards
        size = mapping.end - mapping.start
        if mapping.path or not mapping.permissions.startswith("rw") or size > min(_SMALL, room):
            continue
        room -= size
        found = _descriptor(memory.read(mapping.start, size) or b"", mapping.start, own_id, id_at)
        if found:
            return found
    return 0


def _descriptor(data: bytes, start: int, own_id: int, id_at: int) -> int:
    """Address of the descriptor of a thread in these bytes; it is aligned to 64 bytes."""
    words = array("Q")
    words.frombytes(data[: len(data) & ~63])
    for number, word in enumerate(words[::8]):
        address = start + 64 * number
        if word == address == words[8 * number + _SELF]:
            offset = 64 * number + id_at
            if data[offset : offset + 4] == own_id.to_bytes(4, "little"):
                return address
    return 0
