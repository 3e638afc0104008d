"""What to do when an attach is refused, in the words of the place we are in: a host, Docker, Podman, Kubernetes."""

from __future__ import annotations

from typing import Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

YAMA_LOCKED = (
    "boot with another setting (/etc/sysctl.d); until then ask NCCL's status service, or end a rank with a core file: "
    "kill -ABRT"
)

UNINTERRUPTIBLE = "read /proc/{pid}/stack as root and dmesg: a driver or a network file system holds it"

_PLACES: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("kubernetes", ("kubepods", "/kubelet/", "kubernetes.io")),
    ("podman", ("libpod", "/containers/storage/", "/.containerenv")),
    ("docker", ("/docker/", "docker-", "/containerd/")),
)
"""Marks in /proc/self/cgroup and /proc/self/mountinfo. The order matters: Kubernetes may run on any of the others."""

_RUNTIMES = ("/docker/", "/containerd/", "/containers/storage/", "/libpod/", "/kubelet/")
"""Parts of the paths below which they mount the files of containers, as the host sees them."""

# First what helps while the job hangs: a new start of its container ends it. Tried with Podman (docs/safety.md).
_CAPABILITY = {
    "kubernetes": (
        "add a debug container: kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=general -- gdbext "
        "diagnose; for the next "
        'start: securityContext: {capabilities: {add: ["SYS_PTRACE"]}} in the container'
    ),
    "podman": (
        "enter with all rights: podman exec --privileged --user 0 -it CONTAINER bash; for the next start: "
        "--cap-add=SYS_PTRACE"
    ),
    "docker": (
        "enter with all rights: docker exec --privileged --user 0 -it CONTAINER bash; for the next start: "
        "--cap-add=SYS_PTRACE"
    ),
    "host": (
        "run with sudo; as root of a container, start it with --cap-add=SYS_PTRACE (Kubernetes: securityContext: "
        '{capabilities: {add: ["SYS_PTRACE"]}})'
    ),
}

_SECCOMP = {
    "kubernetes": (
        "run gdbext on the node as root, or start the pod with securityContext: {seccompProfile: {type: Unconfined}}"
    ),
    "podman": "run gdbext on the host as root, or start the container with --security-opt seccomp=unconfined",
    "docker": "run gdbext on the host as root, or start the container with --security-opt seccomp=unconfined",
    "host": "work from a shell that is not filtered (a service manager or sandbox has set the filter)",
}

_ENTERING = {
    "kubernetes": "debug with kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=sysadmin -- gdbext "
    "diagnose",
    "podman": "start the container of this gdb with --cap-add=SYS_ADMIN",
    "docker": "start the container of this gdb with --cap-add=SYS_ADMIN",
    "host": "run gdb with sudo",
}


def place(proc: ProcFS) -> str:
    """Where we run: "kubernetes", "podman", "docker" or "host"."""
    groups, mounts = proc.text("self/cgroup"), proc.text("self/mountinfo")
    seen = "" if isinstance(groups, Missing) else groups
    if not isinstance(mounts, Missing):
        seen += "\n".join(line for line in mounts.splitlines() if not _of_a_host(line))
    return next((name for name, marks in _PLACES if any(mark in seen for mark in marks)), "host")


def _of_a_host(mount: str) -> bool:
    """A line of mountinfo (proc_pid_mountinfo(5)): in a host the files of its containers are mounted as well."""
    fields = mount.split(" ", 5)
    return len(fields) > 5 and any(folder in fields[4] for folder in _RUNTIMES)


def for_capability(proc: ProcFS) -> str:
    """CAP_SYS_PTRACE is missing, and nothing less will do."""
    return _CAPABILITY[place(proc)]


def for_seccomp(proc: ProcFS) -> str:
    """A filter refuses ptrace(2)."""
    return _SECCOMP[place(proc)]


def for_entering(proc: ProcFS) -> str:
    """gdb opens files of another mount namespace by setns(2), which needs CAP_SYS_ADMIN."""
    return _ENTERING[place(proc)]


def other_user(proc: ProcFS, user: str) -> str:
    """The target belongs to somebody else. Who has its user and no more capabilities than it needs no SYS_PTRACE."""
    here = place(proc)
    if here == "host":
        return "run with sudo" if user == "0" else f"run with sudo, or as that user: sudo -u '#{user}' ..."
    if here == "kubernetes":
        return f"{for_capability(proc)}, or runAsUser: {user} for gdbext"
    return f"enter as that user: {here} exec --user {user} -it CONTAINER bash" + (
        "" if user == "0" else f", or {for_capability(proc)}"
    )


def for_yama(proc: ProcFS) -> str:
    if place(proc) == "host":
        return "run with sudo, or: sudo sysctl kernel.yama.ptrace_scope=0"
    return f"on the host: sudo sysctl kernel.yama.ptrace_scope=0; or {for_capability(proc)}"


def for_security_module(proc: ProcFS) -> str:
    """Nothing in /proc explains the refusal: SELinux, AppArmor, or a container's limits."""
    if place(proc) == "host":
        return "run with sudo; if that fails too, look for a denial of SELinux or AppArmor in dmesg"
    return f"{for_capability(proc)}; an AppArmor or SELinux profile may also forbid it (dmesg on the host)"


def outside_our_users() -> str:
    """We are root of a rootless container or a sandbox; the target is not in it."""
    return "run gdbext on the host with sudo, or inside the container of the rank with --cap-add=SYS_PTRACE"


def other_users(pid: str) -> str:
    """The target is in another user namespace."""
    return f"run gdbext inside the container, or: sudo nsenter --target {pid} -U"
