"""Whether a process can be attached to, and if not, why and what to do: asked before anything is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.discovery.preflight_checks import permission_remedies
from gdbext.discovery.proc.procfs import ProcFS, Stat
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import counted, ranges_text
from gdbext.scrubbing.secrets_in_text import title_of

SYS_PTRACE = 1 << 19
"""CAP_SYS_PTRACE (capabilities(7), linux/capability.h)."""

_SECCOMP_FILTER = "2"
_DEADLY = "a seccomp filter kills any process that reads another's memory (process_vm_readv)"
_ALL_USERS = (1 << 32) - 1


@dataclass(frozen=True)
class Problem:
    """One obstacle and the way round it. `blocking`: an attach would fail or do harm. `right`: a right is missing."""

    text: str
    remedy: str
    blocking: bool = True
    right: bool = False


@dataclass(frozen=True)
class Preflight:
    """The answer for one process. `ok` when nothing blocks; warnings may stand in `problems` all the same."""

    pid: int
    ok: bool
    problems: Tuple[Problem, ...] = ()

    @property
    def barred(self) -> bool:
        """It lives, and we lack the right to trace it."""
        return any(problem.right for problem in self.problems)


@dataclass(frozen=True)
class _Sides:
    """We and the target, as /proc/PID/status shows both."""

    proc: ProcFS
    pid: int
    name: str  # how a text calls the target: its pid, or a word for it
    stat: Stat
    target: Mapping[str, str]
    ours: Mapping[str, str]
    self_pid: Optional[int]


def check(proc: ProcFS, pid: int) -> Preflight:
    """Everything that speaks against attaching to the process, from /proc alone; stops and changes nothing."""
    problems = _problems(proc, pid, str(pid))
    return Preflight(pid, not any(problem.blocking for problem in problems), tuple(problems))


def attach_problems(proc: ProcFS, pids: Sequence[int]) -> List[Tuple[Problem, Tuple[int, ...]]]:
    """What speaks against attaching to some of these, each once, and to which it applies. A text about one process has
    its number, one about several has PID in its place (`of_several` tells the numbers)."""
    found: Dict[Problem, List[Tuple[int, Problem]]] = {}
    for pid in pids:
        for alike, own in zip(_problems(proc, pid, "PID"), _problems(proc, pid, str(pid))):
            found.setdefault(alike, []).append((pid, own))
    return [
        (which[0][1] if len(which) == 1 else problem, tuple(pid for pid, _ in which))
        for problem, which in found.items()
    ]


def of_several(pids: Sequence[int]) -> str:
    """What PID stands for in a text about several processes, to be put behind it."""
    return f" (PID {ranges_text(pids)})" if len(pids) > 1 else ""


def check_kill_filter(proc: ProcFS) -> None:
    """Before anything is read. Raises GdbextError where a filter would kill us for it: nobody could tell it then."""
    self_pid = proc.self_pid()
    ours = proc.status(self_pid) if self_pid is not None else Missing("unknown")
    if not isinstance(ours, Missing) and ours.get("Seccomp") == _SECCOMP_FILTER and proc.reading_kills():
        raise GdbextError(_DEADLY, permission_remedies.for_seccomp(proc))


def in_other_namespace(proc: ProcFS, pid: int, kind: str = "mnt") -> bool:
    """Both namespaces are known and they are not the same."""
    self_pid = proc.self_pid()
    theirs, ours = (proc.namespace(one, kind) if one is not None else None for one in (pid, self_pid))
    return isinstance(theirs, str) and isinstance(ours, str) and theirs != ours


def _problems(proc: ProcFS, pid: int, name: str) -> List[Problem]:
    stat, target = proc.stat(pid), proc.status(pid)
    if isinstance(stat, Missing) or isinstance(target, Missing):
        return [Problem(f"no process {name} is running", "look for its successor with `gdbext ranks`")]
    self_pid = proc.self_pid()
    ours = proc.status(self_pid) if self_pid is not None else Missing("unknown")
    sides = _Sides(
        proc=proc,
        pid=pid,
        name=name,
        stat=stat,
        target=target,
        ours={} if isinstance(ours, Missing) else ours,
        self_pid=self_pid,
    )
    final = _never(sides)
    if final is not None:
        return [final]
    tracer = _tracer(sides)
    found = [tracer] if tracer is not None else []
    found += _filtered(sides)
    found += _permission(sides)
    found += _warnings(sides)
    return found


def _never(sides: _Sides) -> Optional[Problem]:
    """Targets that cannot be attached to by anybody."""
    name, group = sides.name, sides.target.get("Tgid", str(sides.pid))
    if sides.stat.kernel_thread:
        return Problem(f"{name} is a kernel thread ({sides.stat.comm})", "name a process of the job instead")
    if sides.stat.state in "ZX":
        return _ended(sides)
    if group != str(sides.pid):
        return Problem(f"{name} is a thread of process {group}", f"use {group}")
    if sides.pid == sides.self_pid:
        return Problem(f"{name} is this debugger itself", "name another process")
    return None


def _ended(sides: _Sides) -> Problem:
    """A zombie; or a process of which only the main thread has ended, by pthread_exit."""
    name = f"{sides.name} ({sides.stat.comm})"
    left = [tid for tid in sides.proc.tasks(sides.pid) if tid != sides.pid]
    if left:
        by_hand = f"gdb -p {left[0]} -batch -ex bt > stack.txt; gdbext diagnose stack.txt"
        text = f"the main thread of {name} has ended, and {counted(len(left), 'other thread')} went on"
        return Problem(text, f"gdbext cannot read such a process: read its threads one by one: {by_hand}")
    text = f"{name} has ended and waits for its parent {sides.stat.parent} to notice (zombie)"
    return Problem(text, "its threads are gone: look at its parent, a core file, or the log for its exit code")


def _tracer(sides: _Sides) -> Optional[Problem]:
    tracer = sides.target.get("TracerPid", "0")
    if tracer in ("0", ""):
        return None
    if tracer == str(sides.self_pid):
        return Problem(f"{sides.name} is attached to this debugger already", "use it as it is, or detach it first")
    arguments = sides.proc.cmdline(int(tracer)) if tracer.isdigit() else ()
    name = title_of(arguments) if not isinstance(arguments, Missing) else ""
    text = f"{sides.name} is traced by process {tracer}" + (f" ({name})" if name else "")
    return Problem(text, f"only one tracer is possible: detach or end it (kill {tracer}), it then keeps running")


def _filtered(sides: _Sides) -> List[Problem]:
    """A seccomp filter is in the way: the kernel is asked where it can be, for most filters let us trace."""
    if sides.ours.get("Seccomp") != _SECCOMP_FILTER:
        return []
    remedy = permission_remedies.for_seccomp(sides.proc)
    if sides.proc.reading_kills():
        return [Problem(_DEADLY, remedy)]
    refused = sides.proc.ptrace_filtered()
    if refused:
        text = "a seccomp filter blocks ptrace(2), whatever our privileges"
        return [Problem(text, f"--no-stop works without it; otherwise {remedy}", right=True)]
    if refused is None and not bits(sides.ours.get("CapEff")) & SYS_PTRACE:
        return [Problem("we run under a seccomp filter, which may forbid ptrace", remedy, False)]
    return []


def _permission(sides: _Sides) -> List[Problem]:
    """Why the kernel refuses. Where it can be asked, its own answer decides; else the rules of ptrace(2) do."""
    allowed = sides.proc.may_attach(sides.pid)
    if allowed:
        return []
    user = _user(sides)  # who becomes that user has its capabilities too, as a rule
    found = [problem for problem in (user, _dumpable(sides), _yama(sides)) if problem]
    more = _capabilities(sides) if user is None else None
    found += [more] if more is not None else []
    if allowed is False and not found and _confined(sides):
        text = f"{sides.name} is in another user namespace, where our capabilities do not apply"
        found = [Problem(text, permission_remedies.outside_our_users())]
    if allowed is False and not found:
        found = [
            Problem(
                f"the kernel does not permit tracing {sides.name}", permission_remedies.for_security_module(sides.proc)
            )
        ]
    return [replace(problem, right=True) for problem in found]


def _privileged(sides: _Sides) -> bool:
    """We have CAP_SYS_PTRACE, and it counts: capabilities end at the border of a user namespace."""
    if not bits(sides.ours.get("CapEff")) & SYS_PTRACE:
        return False
    return not in_other_namespace(sides.proc, sides.pid, "user")


def _confined(sides: _Sides) -> bool:
    """We are in a user namespace of our own: its map of users is not the whole one (user_namespaces(7))."""
    users = sides.proc.text("self/uid_map")
    return isinstance(users, str) and users.split() not in ([], ["0", "0", str(_ALL_USERS)])


def _user(sides: _Sides) -> Optional[Problem]:
    if _privileged(sides):
        return None
    mine = _ids(sides.ours.get("Uid"))[1:2]
    theirs = set(_ids(sides.target.get("Uid"))[:3])
    if not mine or theirs == set(mine):
        return None
    user = sorted(theirs)[0]
    if in_other_namespace(sides.proc, sides.pid, "user"):
        text = f"{sides.name} runs as user {user} in another user namespace"
        return Problem(text, permission_remedies.other_users(sides.name))
    if mine[0] == "0":
        text = f"{sides.name} runs as user {user}, and this root has no CAP_SYS_PTRACE"
        inside = permission_remedies.place(sides.proc) != "host"
        return Problem(
            text,
            permission_remedies.other_user(sides.proc, user)
            if inside
            else permission_remedies.for_capability(sides.proc),
        )
    return Problem(
        f"{sides.name} runs as user {user}, we are user {mine[0]}", permission_remedies.other_user(sides.proc, user)
    )


def _dumpable(sides: _Sides) -> Optional[Problem]:
    """The files of /proc/PID belong to root instead of the user when the process is not dumpable (proc_pid(5))."""
    owner, user = sides.proc.owner_of_files(sides.pid), _ids(sides.target.get("Uid"))[1:2]
    if _privileged(sides) or isinstance(owner, Missing) or owner != 0 or not user or user[0] == "0":
        return None
    text = f"{sides.name} is not dumpable: set-user-id, a program we may not read, or prctl(PR_SET_DUMPABLE)"
    return Problem(text, permission_remedies.for_capability(sides.proc))


def _capabilities(sides: _Sides) -> Optional[Problem]:
    """A process with more capabilities than the tracer is out of reach (kernel: cap_ptrace_access_check)."""
    more = bits(sides.target.get("CapPrm")) & ~bits(sides.ours.get("CapPrm"))
    if _privileged(sides) or not more or "CapPrm" not in sides.ours:
        return None
    return Problem(
        f"{sides.name} has capabilities that we lack ({more:#x})", permission_remedies.for_capability(sides.proc)
    )


def _yama(sides: _Sides) -> Optional[Problem]:
    """kernel.yama.ptrace_scope (linux Documentation/admin-guide/LSM/Yama.rst)."""
    scope = sides.proc.text("sys/kernel/yama/ptrace_scope")
    if isinstance(scope, Missing) or scope == "0":
        return None
    if scope == "3":
        return Problem(
            "kernel.yama.ptrace_scope is 3: no process may attach until the next boot", permission_remedies.YAMA_LOCKED
        )
    if _privileged(sides) or (scope == "1" and sides.self_pid in _ancestors(sides.proc, sides.pid)):
        return None
    who = "only parents may attach to their children" if scope == "1" else "only CAP_SYS_PTRACE may attach"
    return Problem(f"kernel.yama.ptrace_scope is {scope}: {who}", permission_remedies.for_yama(sides.proc))


def _warnings(sides: _Sides) -> List[Problem]:
    """What does not forbid an attach, but makes it slow, partial or awkward."""
    found: List[Problem] = []
    pid, name, state = sides.pid, sides.name, sides.stat.state
    if state == "D":
        where = sides.proc.text(f"{pid}/wchan") or "the kernel"
        text = f"{name} sleeps uninterruptibly in {where}: it cannot be stopped before it leaves the kernel"
        found.append(Problem(text, permission_remedies.UNINTERRUPTIBLE.format(pid=name), False))
    if state == "T":
        found.append(Problem(f"{name} is stopped and will stay stopped", f"kill -CONT {name} resumes it", False))
    if sides.self_pid is not None and pid in _ancestors(sides.proc, sides.self_pid):
        text = f"{name} has started this debugger: if it is stopped, this terminal may hang"
        found.append(Problem(text, "leave it out, or work from another terminal", False))
    depth, own_depth = (len(_ids(side.get("NSpid"))) for side in (sides.target, sides.ours))
    if own_depth and depth > own_depth:
        inner = f", as pid {_ids(sides.target.get('NSpid'))[-1]} there" if name == str(pid) else ""
        text = f"{name} runs in a container{inner}: gdbext reads its files through /proc/{name}/root"
        found.append(Problem(text, "", False))
    elif in_other_namespace(sides.proc, sides.pid, "mnt") or _changed_root(sides):
        text = (
            f"{name} sees other files than we do (mount namespace, chroot): gdbext reads them through /proc/{name}/root"
        )
        found.append(Problem(text, "", False))
    return found


def _changed_root(sides: _Sides) -> bool:
    root = sides.proc.filesystem_root(sides.pid)
    return isinstance(root, str) and root != "/"


def _ancestors(proc: ProcFS, pid: int) -> Tuple[int, ...]:
    found: Dict[int, None] = {}
    stat = proc.stat(pid)
    while not isinstance(stat, Missing) and stat.parent > 0 and stat.parent not in found:
        found[stat.parent] = None
        stat = proc.stat(stat.parent)
    return tuple(found)


def _ids(text: Optional[str]) -> Tuple[str, ...]:
    """The numbers of a line of /proc/PID/status."""
    return tuple((text or "").split())


def bits(text: Optional[str]) -> int:
    """A set of capabilities, as /proc/PID/status has it."""
    try:
        return int(text or "0", 16)
    except ValueError:
        return 0
