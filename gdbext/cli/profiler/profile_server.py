"""Where the HTTP server of a job listens: by its command line and the sockets that its processes hold."""

from __future__ import annotations

import argparse
import json
from typing import Dict, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit

from gdbext.cli.profiler.profile_http import Http
from gdbext.discovery.locks_pipes_sockets.sockets import listeners
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.argument_words import option
from gdbext.knowledge.profilers import PROFILERS, RECOGNISES, ProfilerRow
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.profiling import ProfileServer
from gdbext.model.text.digits import integer_or_none
from gdbext.witnesses.addresses import is_this_host

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what others are bound to
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TLS = ("--ssl-certfile", "--ssl-keyfile")


def server_of(job: Job, proc: ProcFS, port: Optional[int], folder: Optional[str]) -> ProfileServer:
    """The one server of the job. `port` and `folder` are the user's word. Raises `GdbextError` with the next step."""
    row = row_of(job.engine)
    members = (*job.others, *job.ranks)
    commands = {one.pid: _arguments(proc, one.pid) for one in members}
    _check_namespace(proc, members)
    held = listeners(proc, commands)
    owners = {_split(address): pids for address, pids in held.items()}
    host, number, why = _choose(row, owners, commands, members, port)
    pid = min(owners[host, number])
    return ProfileServer(
        engine=row.engine,
        host=_ANY.get(host, host),
        port=number,
        pid=pid,
        tls=any(option(words, _TLS) is not None for words in commands.values()),
        recognised=why,
        folder=folder or _folder(row, proc, commands),
        root="" if _same_files(proc, pid) else f"{proc.root}/{pid}/root",
    )


def row_of(engine: Optional[str]) -> ProfilerRow:
    """Raises GdbextError for an engine whose profiler is not started over HTTP."""
    row = PROFILERS.get(engine or "")
    if row is None:
        hint = "gdbext run --profile -- COMMAND starts one with its profiler on"
        raise GdbextError(f"{engine or 'this job'} has no profiler that can be started over HTTP", hint)
    return row


def named_server(options: argparse.Namespace, http: Http) -> ProfileServer:
    """The server of `--url`, recognised by its routes. Raises `UsageError` or `GdbextError`."""
    parts = urlsplit(options.url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query or parts.username:
        raise UsageError(f"--url {options.url[:80]} is not a server address", "--url http://HOST:PORT")
    if not is_here(host) and not options.yes:
        raise UsageError(f"{host} is not this host, and a profiler slows a server down", "--yes starts it anyway")
    server = ProfileServer(
        engine="", host=host, port=port or (443 if parts.scheme == "https" else 80), tls=parts.scheme == "https"
    )
    routes = http.routes(server)
    if routes is None:
        hint = f"its {RECOGNISES} is switched off: run gdbext on its host, where its process tells"
        raise GdbextError(f"{server.url} is not recognised as a server of an engine, and no request was sent", hint)
    row = next((row for row in PROFILERS.values() if set(row.proof) <= routes), None)
    if row is None:
        known = ", ".join(PROFILERS)
        raise GdbextError(f"{server.url} is not recognised as one of {known}; no request was sent", "check the address")
    return ProfileServer(
        engine=row.engine,
        host=server.host,
        port=server.port,
        pid=None,
        tls=server.tls,
        recognised=f"its routes are those of {row.engine}",
        folder=options.dir,
    )


def is_here(host: str) -> bool:
    """Whether an address is of this host, without asking anybody for a name."""
    return host in _LOOPBACK or is_this_host(host)


def _choose(
    row: ProfilerRow,
    owners: Dict[Tuple[str, int], Set[int]],
    commands: Dict[int, Tuple[str, ...]],
    members: Sequence[RankProcess],
    port: Optional[int],
) -> Tuple[str, int, str]:
    """Address, port, and why that is the engine's server."""
    stated = {integer_or_none(option(words, ("--port",))) for words in commands.values()} - {None}
    for wanted, why in (
        ({port} if port is not None else stated, "--port" if port is not None else "the --port of its command line"),
        ({row.port} if port is None and not stated else set(), f"the default port of {row.engine}"),
    ):
        found = sorted(one for one in owners if one[1] in wanted)
        if len({number for _, number in found}) > 1:
            ports = ", ".join(sorted({str(number) for _, number in found}))
            raise UsageError(f"the job has servers on ports {ports}", "choose one by --port N")
        if found:
            host, number = found[0]
            return host, number, f"{why}, held by pid {min(owners[found[0]])} of the job"
    wanted = {port} if port is not None else stated
    listens = ", ".join(sorted({str(number) for _, number in owners}, key=int)) or "none"
    where = f"port {', '.join(map(str, sorted(wanted, key=str)))}" if wanted else f"{row.engine}'s port {row.port}"
    if not members or not owners:
        hint = "wait until it has started; root sees the sockets of other users"
        raise NothingFound(f"no process of the job listens on {where} (or its sockets may not be read)", hint)
    hint = "--port N names it; wait until the server has started"
    raise NothingFound(f"no process of the job listens on {where}; they listen on {listens}", hint)


def _split(address: str) -> Tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _arguments(proc: ProcFS, pid: int) -> Tuple[str, ...]:
    words = proc.cmdline(pid)
    return () if isinstance(words, Missing) else words


def _check_namespace(proc: ProcFS, members: Sequence[RankProcess]) -> None:
    """Its ports are not ours in another network namespace."""
    ours = proc.namespace(proc.self_pid() or 0, "net")
    spaces = {proc.namespace(one.pid, "net"): one.pid for one in reversed(members)}  # of several, the front end
    known = [pid for space, pid in spaces.items() if not isinstance(space, Missing) and space != ours]
    if ours and known and ours not in spaces:
        raise GdbextError(
            "the job has a network of its own (a container): its port cannot be reached from here",
            f"nsenter -t {known[0]} -n gdbext profile ..., or --url where the port is published",
        )


def _same_files(proc: ProcFS, pid: int) -> bool:
    ours, theirs = proc.namespace(proc.self_pid() or 0, "mnt"), proc.namespace(pid, "mnt")
    chroot = proc.filesystem_root(pid)
    return (isinstance(theirs, Missing) or ours == theirs) and (isinstance(chroot, Missing) or chroot == "/")


def _folder(row: ProfilerRow, proc: ProcFS, commands: Dict[int, Tuple[str, ...]]) -> Optional[str]:
    """Where the server was told to write traces."""
    for words in commands.values():
        value = option(words, row.folder_options)
        for text in filter(None, [value]):
            return _in_json(text, row.folder_key) if text.lstrip().startswith("{") else text
    for pid in commands:
        environ = proc.environ(pid)
        for name in row.folder_variables:
            if not isinstance(environ, Missing) and environ.get(name):
                return environ[name]
    return None


def _in_json(text: str, key: str) -> Optional[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None
