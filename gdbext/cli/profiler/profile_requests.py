"""Requests that are sent to an engine while its profiler runs: from a file, all at once up to a limit."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import Any, List, NamedTuple, Sequence, Tuple

from gdbext.cli.profiler.profile_http import Http
from gdbext.knowledge.profilers import REQUEST_PATHS
from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.profiling import ProfileServer

_MOST_BYTES = 64 << 20
_MOST = 4096
_AT_ONCE = 64
_ANSWER_SECONDS = 600.0
_MOST_PROBLEMS = 3


class Request(NamedTuple):
    path: str
    body: object


def read_requests(name: str) -> Tuple[Request, ...]:
    """A JSON file with one body, a list of them, or one a line; `{"path": ..., "body": ...}` says where it goes.

    Raises `GdbextError`.
    """
    with refused_as(f"cannot read {name}"), open(name, encoding="utf-8") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{name} is longer than {_MOST_BYTES >> 20} MB", "fewer requests are enough for a profile")
    bodies = _bodies(name, text)
    if not 0 < len(bodies) <= _MOST:
        raise UsageError(f"{name} holds {len(bodies)} requests", f"1 to {_MOST}")
    return tuple(_request(name, number, body) for number, body in enumerate(bodies, 1))


def _bodies(name: str, text: str) -> List[Any]:
    try:
        found = json.loads(text)
        return found if isinstance(found, list) else [found]
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise UsageError(
            f"{name} is neither JSON nor JSON lines", '{"model": ..., "prompt": ..., "max_tokens": 16}'
        ) from None


def _request(name: str, number: int, body: Any) -> Request:
    if not isinstance(body, dict):
        raise UsageError(f"{name}: request {number} is not a JSON object")
    path = body.get("path")
    if isinstance(path, str) and set(body) <= {"path", "body"}:
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
            raise UsageError(f"{name}: request {number}: {path[:60]!r} is not a path", '"path": "/v1/completions"')
        return Request(path, body.get("body"))
    found = next((to for key, to in REQUEST_PATHS if key in body), None)
    if found is None:
        raise UsageError(f"{name}: request {number} does not say where it goes", '{"path": "/...", "body": {...}}')
    return Request(found, body)


class Sender:
    """Sends them while its `with` block runs. Nobody waits for answers that have not come by its end."""

    def __init__(self, http: Http, server: ProfileServer, requests: Sequence[Request]) -> None:
        self._http, self._server = http, server
        self._left = deque(requests)
        self._total = len(requests)
        self._changed = threading.Condition()
        self.sent = self.failed = 0
        self.problems: Tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return self._total > 0

    def wait(self, seconds: float) -> bool:
        """Whether all are answered; waits so long for it."""
        with self._changed:
            return self._changed.wait_for(lambda: self.sent == self._total, max(0.0, seconds))

    def __enter__(self) -> Sender:
        for _ in range(min(_AT_ONCE, self._total)):
            threading.Thread(target=self._work, daemon=True).start()  # one that never ends must not hold our own end
        return self

    def __exit__(self, *_: object) -> None:
        self._left.clear()

    def _work(self) -> None:
        while True:
            try:
                one = self._left.popleft()
            except IndexError:
                return
            try:
                answer = self._http.post(self._server, one.path, one.body, _ANSWER_SECONDS)
                problem = "" if answer.good else f"{one.path} answered {answer.status}: {answer.said}"
            except GdbextError as error:
                problem = str(error)
            with self._changed:
                self.sent += 1
                self.failed += bool(problem)
                if problem and problem not in self.problems and len(self.problems) < _MOST_PROBLEMS:
                    self.problems = (*self.problems, problem)
                self._changed.notify_all()
