"""HTTP to the server of an engine: one request a connection, no redirects, no proxies, bounded answers."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from typing import FrozenSet, NamedTuple, Optional

from gdbext.knowledge.profilers import RECOGNISES
from gdbext.model.errors import GdbextError
from gdbext.model.profiling import ProfileServer

_MOST = 16 << 20
_MOST_CHARACTERS = 300  # characters of an answer that are shown


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """What it says, in one line: the `message` or `detail` of a JSON answer, else its text."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            found = None
        inner = found.get("error", found) if isinstance(found, dict) else None
        for key in ("message", "detail", "error"):
            value = inner.get(key) if isinstance(inner, dict) else None
            if isinstance(value, str):
                return " ".join(value.split())[:_MOST_CHARACTERS]
        return " ".join(self.text.split())[:_MOST_CHARACTERS]


class NoServer(GdbextError):
    """It cannot be reached, or went away in the middle."""


class Http:
    """`token` is sent to servers of the job alone, as OpenAI's API has it."""

    def __init__(self, token: Optional[str] = None) -> None:
        self.token = token

    def post(self, server: ProfileServer, path: str, body: Optional[object], timeout: float) -> Answer:
        """Raises `NoServer`."""
        data = None if body is None else json.dumps(body)
        return self._ask(server, "POST", path, data, timeout)

    def get(self, server: ProfileServer, path: str, timeout: float = 10.0) -> Answer:
        """Raises `NoServer`."""
        return self._ask(server, "GET", path, None, timeout)

    def routes(self, server: ProfileServer) -> Optional[FrozenSet[str]]:
        """The paths that it answers at; None where it does not tell. Raises `NoServer`."""
        answer = self.get(server, RECOGNISES)
        try:
            found = json.loads(answer.text) if answer.good else None
        except (ValueError, RecursionError):
            return None
        paths = found.get("paths") if isinstance(found, dict) else None
        return frozenset(paths) if isinstance(paths, dict) else None

    def _ask(self, server: ProfileServer, method: str, path: str, data: Optional[str], timeout: float) -> Answer:
        headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if data is not None else {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = _connection(server, timeout)
        try:
            connection.request(method, path, None if data is None else data.encode(), headers)
            with connection.getresponse() as reply:  # closed here: Ctrl-C in a finalizer would be lost
                return Answer(reply.status, reply.read(_MOST).decode("utf-8", "replace"))
        except socket.timeout:  # before Python 3.10 that is no TimeoutError
            raise NoServer(f"{server.url}{path} did not answer within {timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NoServer(f"{server.url}{path}: {why}") from None
        finally:
            connection.close()


def _connection(server: ProfileServer, timeout: float) -> http.client.HTTPConnection:
    if not server.tls:
        return http.client.HTTPConnection(server.host, server.port, timeout=timeout)
    context = ssl.create_default_context()
    if server.pid is not None:  # a socket that a process of the job holds: its certificate is for another name
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(server.host, server.port, timeout=timeout, context=context)


def matches(pattern: str, answer: Answer) -> bool:
    """Whether an answer says what a regex of `knowledge.profilers` looks for."""
    return bool(pattern) and re.search(pattern, answer.text[:_MOST], re.IGNORECASE) is not None
