"""Which hosts are meant by `--hosts`, and how a shell there is reached unless `--via` says it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from gdbext.discovery.proc.programs import find
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.witnesses import ras

SSH = "ssh -T -o BatchMode=yes -o ConnectTimeout=10 %h"
POD_END = " %h --"
"""How the usual command to a pod ends."""
CONTAINER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # an RFC 1123 label, as Kubernetes wants it
_SECONDS = 30
_HOST = re.compile(r"[\w@%.:\[\]-]{1,253}")  # also user@host, an IPv6 address
_ONE_JOB = re.compile(r"\d{1,12}(_\d{1,9})?")


@dataclass(frozen=True)
class Hosts:
    names: Tuple[str, ...]
    via: str


def hosts_of(text: str) -> Hosts:
    """`node[01-64]`, `@group`, `FILE`, `slurm:JOBID`, `k8s:NAMESPACE/SELECTOR`, `ras`. Raises `GdbextError`."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "slurm":
        return _of_slurm(rest)
    if colon and kind == "k8s":
        return _of_kubernetes(rest)
    if text == "ras":
        return _checked(_of_ras(), text, SSH)
    if os.path.isfile(text):
        with open(text, encoding="utf-8", errors="replace") as stream:
            lines = [line.split("#", 1)[0].split() for line in stream.read(1 << 20).splitlines()]
        return _checked(_expanded(",".join(words[0] for words in lines if words)), text, SSH)
    return _checked(_expanded(text), text, SSH)


def _expanded(text: str) -> List[str]:
    from ClusterShell.NodeSet import NodeSet, NodeSetException  # here: the extra `cluster` is not needed to say no

    try:
        return list(NodeSet(text))
    except NodeSetException as error:
        raise UsageError(f"--hosts {text}: {error}", "node[01-64], @group, a file with a host a line") from None


def _checked(names: Sequence[str], text: str, via: str) -> Hosts:
    """What stands in a shell's line must be a name."""
    odd = next((name for name in names if not _HOST.fullmatch(name) or name.startswith("-")), None)
    if odd is not None:
        raise UsageError(f"--hosts: {odd[:60]!r} is not the name of a host")
    if not names:
        raise NothingFound(f"--hosts {text}: no host")
    return Hosts(tuple(dict.fromkeys(names)), via)


def _of_slurm(job: str) -> Hosts:
    if not _ONE_JOB.fullmatch(job):
        raise UsageError(f"slurm:{job[:40]}: a job id is a number", "squeue lists them")
    nodes = _asked("squeue", "--noheader", f"--jobs={job}", "--states=RUNNING", "--format=%N").split()
    via = f"srun --jobid={job} --overlap --nodes=1 --ntasks=1 --nodelist=%h"
    return _checked(_expanded(",".join(nodes)) if nodes else [], f"slurm:{job}", via)


def _of_ras() -> List[str]:
    """As NCCL's status service of a rank on this host names the hosts of its job, often by their addresses."""
    address = os.environ.get("NCCL_RAS_ADDR") or ras.DEFAULT_ADDRESS
    try:
        found = ras.hosts(address, _SECONDS)
    except (ValueError, OSError, ras.NotRas) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GdbextError(
            f"NCCL's status service does not name the hosts ({address[:60]}: {reason})",
            "ask on a host of the job, with NCCL 2.28.7 or newer and its NCCL_RAS_ADDR; or name the hosts",
        ) from None
    return found


def _of_kubernetes(text: str) -> Hosts:
    space, _, selector = text.partition("/")
    if not re.fullmatch(r"[a-z0-9-]{1,63}", space) or not re.fullmatch(r"[\w.,=!()/ -]{1,500}", selector):
        raise UsageError(f"k8s:{text[:60]}", "k8s:NAMESPACE/SELECTOR, such as k8s:serving/app=vllm")
    words = ("get", "pods", f"--namespace={space}", f"--selector={selector}", "--output=name")
    only = "--field-selector=status.phase=Running"
    names = [line.partition("/")[2] for line in _asked("kubectl", *words, only).split()]
    return _checked(names, f"k8s:{text}", f"kubectl exec -i --namespace={space}{POD_END}")


def _asked(program: str, *words: str) -> str:
    path: Optional[str] = find(program).path
    if path is None:
        raise GdbextError(f"{program} is not on PATH", "name the hosts: --hosts 'node[01-08]' --via 'ssh %h'")
    try:
        done = subprocess.run([path, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GdbextError(f"{program} gave no answer: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        raise GdbextError(f"{program}: {said[-1][:200]}")
    return done.stdout.decode("utf-8", "replace")
