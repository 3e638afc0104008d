"""NCCL's own status service (RAS, NCCL 2.24 and newer): asked over TCP, in JSON where it can, else in text.

The protocol is NCCL's `src/ras/client_support.cc`; each rank process listens on `localhost:28028` or NCCL_RAS_ADDR, and
any of them answers for the whole job. A stopped rank does not answer, so it is asked before the stop.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from typing import List, Optional, Tuple

from gdbext.model.witness import Witness
from gdbext.witnesses import ras_json, ras_text
from gdbext.witnesses.addresses import is_bindable
from gdbext.witnesses.question import Question, absent_witness, failed_witness, present_witness

NAME = "RAS"
DEFAULT_ADDRESS = "localhost:28028"
MOST_BYTES = 16 << 20
"""A job of 1,024 ranks in ten communicators answers with about 3 MB."""
_LINE = 256
_SAVED = 0.3  # seconds kept back for reading what came


class NotRas(Exception):
    """Whoever listens there speaks something else, or falls silent in the middle."""


def ask(question: Question) -> Witness:
    """What RAS knows: who has launched less than the others, who is missing, who has errors."""
    if question.variable("NCCL_RAS_ENABLE") == "0":
        return absent_witness(NAME, "switched off by NCCL_RAS_ENABLE=0")
    if not _same_network(question):
        return absent_witness(NAME, "the ranks are in another network namespace")
    address = question.variable("NCCL_RAS_ADDR") or DEFAULT_ADDRESS
    host, port = split_address(address)
    if port is None:
        return failed_witness(NAME, f"NCCL_RAS_ADDR={address[:60]} is not an address")
    try:
        connection = _connect(host, port, question)
    except socket.gaierror as error:
        return failed_witness(NAME, f"{address[:60]}: {error.strerror}")
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            return absent_witness(NAME, f"port {port} closed")
        return failed_witness(NAME, f"{address[:60]}: {error.strerror or 'no connection in time'}")
    if connection is None:
        return absent_witness(NAME, f"{address[:60]} is not this host")
    with connection:
        try:
            is_json, answer = query_status(connection, question)
        except NotRas as error:
            return failed_witness(NAME, f"port {port}: {error}")
        except OSError as error:
            return failed_witness(NAME, f"port {port}: {error.strerror or 'no answer in time'}")
    read = ras_json.statements if is_json else ras_text.statements
    try:
        about, said = read(answer, question.by_pid())
    except (ValueError, RecursionError) as error:
        return failed_witness(NAME, f"its answer could not be read ({str(error)[:100]})")
    return present_witness(NAME, about, tuple(said))


def hosts(address: str, seconds: float) -> List[str]:
    """The hosts of all ranks, as the service there names them. Raises ValueError, OSError, NotRas."""
    host, port = split_address(address)
    question = Question((), time.monotonic() + seconds)
    connection = None if port is None else _connect(host, port, question)
    if connection is None:
        raise ValueError("no address of this host")
    with connection:
        is_json, answer = query_status(connection, question)
    if not is_json:
        raise ValueError("it answers in text, which names no hosts")
    return ras_json.hosts(answer)


def split_address(text: str) -> Tuple[str, Optional[int]]:
    """Host and port of `host:port`, `[v6]:port` or `:port`."""
    host, _, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    return host.strip("[]") or "localhost", number if 0 < number < 65536 else None


def _same_network(question: Question) -> bool:
    """Whether one of the ranks has our network. Unreadable counts as ours: that costs a refused connection."""
    ours = _namespace(f"{question.proc}/self/ns/net")
    theirs = [_namespace(f"{question.proc}/{one.pid}/ns/net") for one in question.ranks]
    known = [one for one in theirs if one is not None]
    return ours is None or not known or ours in known


def _namespace(path: str) -> Optional[str]:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _connect(host: str, port: int, question: Question) -> Optional[socket.socket]:
    """A connection; None where the address belongs to another machine: a rank listens on its own host only."""
    last: Optional[OSError] = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:4]:
        connection = socket.socket(family, kind, protocol)
        try:
            if not is_bindable(family, str(address[0])):
                connection.close()
                continue
            connection.settimeout(max(0.01, question.left - _SAVED))
            connection.connect(address)
        except OSError as error:
            connection.close()
            last = error
            continue
        return connection
    if last is not None:
        raise last
    return None


def query_status(connection: socket.socket, question: Question) -> Tuple[bool, str]:
    """(is JSON, the status). Raises `NotRas` for another protocol, a silence or an answer without end."""
    reader = _Reader(connection, question)
    if not reader.ask("CLIENT PROTOCOL 2").startswith("SERVER PROTOCOL"):
        raise NotRas("the service that answers is not RAS")
    reader.ask("TIMEOUT 1")  # seconds that RAS may collect; what has not come then is in the answer as a timeout
    is_json = reader.ask("SET FORMAT json") == "OK"
    reader.send("VERBOSE STATUS")
    return is_json, reader.rest()


class _Reader:
    """Lines, then everything until the end, with a bound on bytes and on time."""

    def __init__(self, connection: socket.socket, question: Question) -> None:
        self._connection, self._question = connection, question
        self._held = b""

    def ask(self, line: str) -> str:
        """Send a line; the line that comes back."""
        self.send(line)
        while b"\n" not in self._held:
            piece = self._receive()
            if not piece:
                raise NotRas("the connection was closed in the middle")
            self._held += piece
            if len(self._held) > _LINE and b"\n" not in self._held[:_LINE]:
                raise NotRas("the service that answers is not RAS")
        answer, _, self._held = self._held.partition(b"\n")
        return answer.decode("utf-8", "replace").strip()

    def send(self, line: str) -> None:
        self._connection.settimeout(max(0.01, self._question.left - _SAVED))
        self._connection.sendall(line.encode() + b"\n")

    def rest(self) -> str:
        pieces: List[bytes] = [self._held]
        size = len(self._held)
        while True:
            piece = self._receive()
            if not piece:
                return b"".join(pieces).decode("utf-8", "replace")
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise NotRas(f"it does not stop after {MOST_BYTES >> 20} MiB")

    def _receive(self) -> bytes:
        left = self._question.left - _SAVED
        if left <= 0:
            raise NotRas("no answer in time")
        self._connection.settimeout(left)
        try:
            return self._connection.recv(1 << 16)
        except socket.timeout:
            raise NotRas("no answer in time") from None
