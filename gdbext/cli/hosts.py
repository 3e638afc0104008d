"""`--hosts`: the work of a command done on many hosts at once, and its answers made one."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

from gdbext.cli.chosen_processes import split_inputs
from gdbext.cli.terminal import Progress, write_lines
from gdbext.collect.gdb_runs.batch_runs import NO_GDB
from gdbext.collect.hosts.host_names import CONTAINER, POD_END, SSH, hosts_of
from gdbext.collect.hosts.one_file import of_this_installation
from gdbext.model.checkup import Checkup
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.host import HostLook
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.snapshot_builder.several_hosts import merge_hosts

_HANDED_ON = ("name", "engine", "samples", "interval", "max_pause", "frames", "deadline", "jobs")
_FLAGS = ("no_stop", "once", "together", "no_witnesses", "scan")
_LISTING = ("ranks", "doctor")
"""Commands whose answer comes as a document; that of the others as a snapshot, which is judged here."""
_SECONDS = 120.0  # for a command without --deadline


def look(options: argparse.Namespace, progress: Progress) -> JobSnapshot:
    """The look of all hosts as one. Raises `GdbextError` when none of them could be read."""
    hosts, looks = _asked(options, progress, load_snapshot, "snapshot")
    return merge_hosts(hosts, looks)


def jobs(options: argparse.Namespace, progress: Progress) -> Tuple[List[Job], bool]:
    """The jobs of all hosts; whether all hosts could be read. Raises `GdbextError` when none could be."""
    hosts, found = _asked(options, progress, lambda data: _listings().read_jobs(data), "list of jobs")
    unread = [host for host in hosts if not host.read]
    for host in unread:
        progress.warn(f"{host.name} was not read: {host.reason}")
    return _listings().jobs_of(found), not unread


def checkup(options: argparse.Namespace, progress: Progress) -> Checkup:
    """The points of all hosts. Raises `GdbextError` when none could be read."""
    hosts, found = _asked(options, progress, lambda data: _listings().read_points(data), "check-up")
    one: Checkup = _listings().checkup_of(found, {host.name: host.reason for host in hosts if not host.read})
    return one


def _listings() -> ModuleType:
    return importlib.import_module("gdbext.collect.hosts.listings")  # here: nothing else needs ClusterShell


def _asked(
    options: argparse.Namespace, progress: Progress, read: Callable[[bytes], Any], what: str
) -> Tuple[List[HostLook], Dict[str, Any]]:
    """How it went with each host, and what `read` made of the answers. Raises `GdbextError` when there is none."""
    hosts = hosts_of(options.hosts)
    if len(hosts.names) > options.max_hosts:
        raise UsageError(
            f"--hosts names {len(hosts.names)} hosts, more than {options.max_hosts}",
            f"if that is meant, --max-hosts {len(hosts.names)}",
        )
    plan_words = remote_arguments(options)
    if importlib.util.find_spec("ClusterShell") is None:
        raise GdbextError("the package ClusterShell is missing", "python3 -m pip install ClusterShell")
    program, compiled = of_this_installation()
    fan_out = importlib.import_module("gdbext.collect.hosts.fan_out")  # here, for the same reason
    plan = fan_out.Plan(
        via=_shell_command(options, hosts.via),
        words=plan_words,
        program=program,
        compiled=compiled,
        without_gdb=("--gdb", NO_GDB) if plan_words[0] == "diagnose" else (),
        deadline=(getattr(options, "deadline", None) or _SECONDS) + 60,
    )
    progress.say(f"asking {len(hosts.names)} hosts by {plan.via.replace('%h', 'HOST')}")
    found: Dict[str, Any] = {}
    hosts_read: List[HostLook] = []
    for answer in fan_out.ask_hosts(hosts.names, plan, progress.say):
        problem = answer.problem
        if answer.look is not None:
            try:
                found[answer.host] = read(answer.look)
            except (GdbextError, ValueError) as error:
                problem = f"its reply is not a {what}: {error}"
            answer.look = None  # 512 of them are as large as what was read of them
        hosts_read.append(
            HostLook(
                name=answer.host,
                read=answer.host in found,
                reason="" if answer.host in found else problem or "no answer",
                offset=round(answer.offset, 6),
                error=round(answer.error, 6),
                gdb=answer.has_gdb,
            )
        )
    if not found:
        first = hosts_read[0]
        others = f" (and {len(hosts_read) - 1} more)" if len(hosts_read) > 1 else ""
        raise NothingFound(f"no host could be read: {first.name}: {first.reason}{others}")
    return hosts_read, found


def dry_run(options: argparse.Namespace) -> None:
    """Print what would run where. Raises `UsageError` without `--hosts`."""
    if not options.hosts:
        raise UsageError("--dry-run goes with --hosts")
    hosts = hosts_of(options.hosts)
    via = _shell_command(options, hosts.via)
    said = "gdbext " + " ".join(remote_arguments(options)).replace("{LOOK}", "FILE")
    write_lines([*(f"{via.replace('%h', name)} sh" for name in hosts.names), f"# there, from a private folder: {said}"])


def remote_arguments(options: argparse.Namespace) -> Tuple[str, ...]:
    """What gdbext is asked there. Raises `UsageError` for what means something on one host only."""
    pids, files = split_inputs(options.inputs)
    if files or pids or options.pgid is not None or options.parent is not None:
        raise UsageError(
            "--hosts cannot be combined with pids, --pgid, --parent or files",
            "they belong to one host: choose the job with --name or --engine",
        )
    if options.command in _LISTING:
        found = [options.command, "--json", "--output", "{LOOK}"]
    else:
        found = ["comms"] if options.command == "comms" else ["diagnose", "--look-only"]
        found += ["--quiet", "--save", "{LOOK}"]
    for name in _HANDED_ON:
        value = getattr(options, name, None)
        if value is not None:
            found += [f"--{name.replace('_', '-')}", str(value)]
    found += [f"--{name.replace('_', '-')}" for name in _FLAGS if getattr(options, name, False)]
    return tuple(found)


def _shell_command(options: argparse.Namespace, usual: str) -> str:
    """The command that leads to a shell of the host."""
    via = options.via or usual
    if options.user:
        if options.via or usual != SSH:
            raise UsageError("--user is for ssh", "write it into --via")
        via = via.replace("%h", f"{options.user}@%h")
    if options.container:
        if options.via or not usual.endswith(POD_END) or not CONTAINER.fullmatch(options.container):
            raise UsageError(
                "--container is the name of a container of a pod (k8s:)",
                "write it into --via: --via 'ssh %h podman exec -i NAME'",
            )
        via = f"{usual[: -len(POD_END)]} --container={options.container}{POD_END}"
    return f"{via} sudo -n" if options.sudo else via
