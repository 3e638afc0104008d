"""What a pod lacks for a look, each with the patch that gives it: told whether or not a rank was found.

Refusals of single ranks have their own words (permission.py). This is what the pod's manifest says, seen from inside.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Tuple

from gdbext.discovery.preflight_checks import permission_remedies
from gdbext.discovery.preflight_checks.attach_permission import SYS_PTRACE, bits, in_other_namespace
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.checkup import Point
from gdbext.model.missing import Missing

_PAUSES = ("pause", "catatonit")  # process 1 of a pod whose containers share their PID namespace; podman's
_KTHREADD = 2


@dataclass(frozen=True)
class PodFacts:
    """What decides. `sees`: "container", "pod" or "node": whose processes there are in our PID namespace."""

    able: bool  # CAP_SYS_PTRACE is effective
    given: bool  # the container was given it
    yama: str  # kernel.yama.ptrace_scope; "0" where there is none
    sees: str
    found: bool  # a job


@dataclass(frozen=True)
class PodRow:
    """One thing that may be missing."""

    lacks: Callable[[PodFacts], bool]
    text: str
    remedy: str
    source: str
    state: str = "warning"


def _patch(spec: Any) -> str:
    """For the pods' owner: a running pod's own fields cannot be changed, so its pods start anew."""
    document = json.dumps({"spec": {"template": {"spec": spec}}}, separators=(",", ":"))
    return f"kubectl patch deployment NAME -p '{document}' (restarts its pods)"


def _context(context: Any) -> Any:
    return {"containers": [{"name": "CONTAINER", "securityContext": context}]}


_DEBUG = (
    "without a restart: kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=general -- gdbext diagnose"
)
_SECURITY = "kubernetes.io, Configure a Security Context for a Pod or Container"

ROWS: Tuple[PodRow, ...] = (
    PodRow(
        lambda pod: not pod.given,
        "this container lacks SYS_PTRACE: it may not inspect processes of other users and, under Yama, none at all",
        f"{_patch(_context({'capabilities': {'add': ['SYS_PTRACE']}}))}; {_DEBUG}",
        _SECURITY,
    ),
    PodRow(
        lambda pod: pod.given and not pod.able,
        "this container has SYS_PTRACE, but only for root, and gdbext runs as another user",
        f"{_patch(_context({'runAsUser': 0}))}; {_DEBUG}",
        f"{_SECURITY}; capabilities(7): a user other than root loses them at execve",
    ),
    PodRow(
        lambda pod: pod.sees == "container" and not pod.found,
        "this container sees only its own processes, not those of the pod's other containers",
        f"{_patch({'shareProcessNamespace': True})}; {_DEBUG}",
        "kubernetes.io, Share Process Namespace between Containers in a Pod: process 1 is /pause then",
    ),
    PodRow(
        lambda pod: pod.yama in ("1", "2") and not pod.able,
        "the node has kernel.yama.ptrace_scope set: without SYS_PTRACE no process may attach, and no manifest "
        "changes that",
        "SYS_PTRACE is enough; else on the node: sudo sysctl kernel.yama.ptrace_scope=0 (a pod cannot set it)",
        "linux Documentation/admin-guide/LSM/Yama.rst; kubernetes.io, Using sysctls: only namespaced ones",
    ),
    PodRow(
        lambda pod: pod.yama == "3",
        "the node has kernel.yama.ptrace_scope=3: no process may attach, not even with SYS_PTRACE",
        permission_remedies.YAMA_LOCKED,
        "linux Documentation/admin-guide/LSM/Yama.rst",
        "hindrance",
    ),
)


def pod_points(proc: ProcFS, found: bool) -> Iterator[Point]:
    """Nothing elsewhere than in a pod. `found`: a job was."""
    if permission_remedies.place(proc) != "kubernetes":
        return
    facts = facts_of(proc, found)
    if facts is None:
        return
    lacking = [Point("pod", row.state, row.text, row.remedy) for row in ROWS if row.lacks(facts)]
    scope_name = {"container": "this container", "pod": "all containers of the pod", "node": "the node"}[facts.sees]
    yield from lacking or [Point("pod", "ok", f"it has SYS_PTRACE, and sees the processes of {scope_name}")]


def facts_of(proc: ProcFS, found: bool) -> Optional[PodFacts]:
    """None where our own rights cannot be read."""
    own = proc.self_pid()
    ours = proc.status(own) if own is not None else Missing("unknown")
    if isinstance(ours, Missing):
        return None
    scope, first, second = proc.text("sys/kernel/yama/ptrace_scope"), proc.stat(1), proc.stat(_KTHREADD)
    paused = not isinstance(first, Missing) and first.comm in _PAUSES
    node = not isinstance(second, Missing) and second.kernel_thread
    return PodFacts(
        able=bool(bits(ours.get("CapEff")) & SYS_PTRACE),
        given=bool(bits(ours.get("CapBnd") or ours.get("CapEff")) & SYS_PTRACE),
        yama="0" if isinstance(scope, Missing) else scope,
        sees="node" if node else "pod" if paused or in_other_namespace(proc, 1) else "container",
        found=found,
    )
