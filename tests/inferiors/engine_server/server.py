"""Starts a server of an engine's table, lets its clients ask, waits until the fault is there, and ends it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Callable, ContextManager, Dict, Iterator, List, Tuple

from tests.inferiors.demo import _die_with_parent
from tests.inferiors.engine_server.engine import Engine
from tests.inferiors.engine_server.table import Served
from tests.inferiors.torch_job import free_port
from tests.polling import comes_true

_DEADLINE = 240.0  # seconds until a server serves
_SETTLES = 3.0  # seconds in which a request that is answered would be
_SETTINGS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


class Server:
    """`pids`: role -> pid; `asked`: the HTTP server's pid, as a user would name it."""

    def __init__(self, engine: Engine, row: Served, python: Path, model: Path) -> None:
        self._engine, self._row, self._python, self._model = engine, row, python, model
        self.pids: Dict[str, int] = {}
        self._clients: List[threading.Thread] = []
        self._ended = threading.Event()

    @property
    def asked(self) -> List[int]:
        return [self.pids["api"]]

    def __enter__(self) -> Server:
        with contextlib.ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="site-")))
            self._port = free_port()
            mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            stack.callback(self._ended.set)
            stack.enter_context(self._started(mute.getsockname()[1]))
            self._come_to_the_fault()
            self._left = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    @contextlib.contextmanager
    def _started(self, mute: int) -> Iterator[None]:
        """The engine finds the plugin by its metadata, as every installed one."""
        engine, row, info = self._engine, self._row, self._folder / "site_hooks-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-hooks\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{engine.group}]\nsite_hooks = site_hooks:register\n")
        (self._folder / "site_hooks.py").symlink_to(engine.hooks)
        os.mkfifo(self._folder / "fifo")
        hook = {"SITE_HOOK": row.name, "SITE_FOLDER": str(self._folder), "SITE_PORT": str(mute)}
        environment = {**os.environ, **_SETTINGS, **engine.settings, **hook}
        environment.update({"PYTHONPATH": str(self._folder), "SITE_HTTP": str(self._port)})
        environment.update(dict.fromkeys(engine.caches, str(self._folder / "cache")))
        with open(self._folder / "log", "wb") as log, contextlib.ExitStack() as stack:
            if row.beside:
                self.pids["other"] = stack.enter_context(BESIDE[row.beside](self._folder)).pid
            self._process = subprocess.Popen(
                [str(self._python), *engine.words(str(self._model), str(self._port)), *row.options],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
            try:
                yield
            finally:
                pids = _below(self._process.pid)
                for pid in pids:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                self._process.wait()

    def _come_to_the_fault(self) -> None:
        row = self._row
        if row.when == "start":
            self._until(lambda: (self._folder / "there").exists(), "the fault")
        elif row.when == "says":
            self._until(lambda: row.says in self._said(), row.says)
        else:
            self._until(self._serves, "serving")
            for _ in range(2 if row.asks == "before" or row.when else 0):
                self._ask(8)
        self._find_roles()
        (self._folder / "go").touch()
        if row.stops:
            os.kill(self.pids[row.stops], signal.SIGSTOP)
        for client in CLIENTS.get(row.asks, ()):
            thread = threading.Thread(target=client, args=(self,), daemon=True)
            thread.start()
            self._clients.append(thread)
            select.select([], [], [], 0.5)
        if row.when == "request" and not row.stops:
            self._until(lambda: (self._folder / "there").exists(), "the fault")
        select.select([], [], [], _SETTLES)
        if row.when == "request" and not any(one.is_alive() for one in self._clients):
            raise RuntimeError(f"{row.name}: the request was answered: {self._said()[-800:]}")

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        comes_true(lambda: holds() or self._process.poll() is not None, _DEADLINE)
        if not holds():
            raise RuntimeError(f"{self._row.name} did not come to {what}: {self._said()[-1500:]}")

    def _said(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _serves(self) -> bool:
        if self._engine.serves:
            return self._engine.serves in self._said()
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=2).status == 200
        return False

    def _ask(self, tokens: int, stream: bool = False, pause: float = 0.0, replica: str = "", **more: object) -> None:
        body = {"model": str(self._model), "prompt": "once upon a time", "max_tokens": tokens, "ignore_eos": True}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/completions",
            json.dumps({**body, "stream": stream, **more}).encode(),
            {"Content-Type": "application/json", **({"X-data-parallel-rank": replica} if replica else {})},
        )
        with urllib.request.urlopen(request) as answer:
            while answer.read(256) and not self._ended.wait(pause):
                pass

    def _find_roles(self) -> None:
        self.pids["api"] = self._process.pid
        for pid in _below(self._process.pid):
            title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace").strip()
            role = self._engine.role(title)
            if role:
                self.pids[role] = pid
        there = self._folder / "there"
        if there.exists() and self._row.culprits:
            self.pids.setdefault(self._row.culprits[0][0], int(there.read_text()))


@contextlib.contextmanager
def _helper(program: str, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python that runs the program with the file, says so, and then stands still."""
    words = ["python3", "-c", f"import fcntl, os, sys; {program}; print(flush=True); input()", str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_die_with_parent) as one:
        assert one.stdout is not None
        one.stdout.readline()
        try:
            yield one
        finally:
            one.kill()


def _downloader(folder: Path) -> ContextManager[subprocess.Popen[bytes]]:
    """It holds the lock of the weights."""
    return _helper("f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)", folder / "weights.lock")


def _shipper(folder: Path) -> ContextManager[subprocess.Popen[bytes]]:
    """It has the pipe open, and reads nothing."""
    return _helper("f = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)", folder / "fifo")


BESIDE = {"downloader": _downloader, "shipper": _shipper}


def _below(pid: int) -> Tuple[int, ...]:
    """The process and all that it has started."""
    children = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(one) for one in (task / "children").read_text().split()]
    return (pid, *(below for child in children for below in _below(child)))


def _asks(server: Server) -> None:
    with contextlib.suppress(OSError):
        server._ask(8)


def _asks_on(server: Server) -> None:
    with contextlib.suppress(OSError):
        while not server._ended.is_set():
            server._ask(64)


def _asks_much(server: Server) -> None:
    with contextlib.suppress(OSError):
        while not server._ended.is_set():
            server._ask(1900)


def _reads_slowly(server: Server) -> None:
    with contextlib.suppress(OSError):
        server._ask(1900, stream=True, pause=1.0)


_SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}


def _asks_a_replica(server: Server) -> None:
    with contextlib.suppress(OSError):
        server._ask(8, replica="0")


def _asks_by_a_schema(server: Server) -> None:
    with contextlib.suppress(OSError):
        server._ask(64, ignore_eos=False, structured_outputs={"json": _SCHEMA})


def _asks_by_a_schema_on(server: Server) -> None:
    while not server._ended.is_set():
        _asks_by_a_schema(server)


def _asks_long_questions(server: Server) -> None:
    with contextlib.suppress(OSError):
        for number in itertools.count():
            if server._ended.is_set():
                return
            server._ask(1, prompt=f"{number}" + "once upon a time " * 115)


def _puts_to_sleep(server: Server) -> None:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{server._port}/sleep?level=1", data=b"").read()


CLIENTS = {
    "one": (_asks,),
    "two": (_asks, _asks),
    "four": (_asks,) * 4,
    "load": (_asks_on,) * 2,
    "long": (_asks_much,),
    "slow": (_reads_slowly,),
    "on": (_asks_on,),
    "replica": (_asks_a_replica,),
    "schema": (_asks_by_a_schema,),
    "schemas": (_asks_by_a_schema_on,) * 2,
    "prompts": (_asks_long_questions,),
    "sleep": (_puts_to_sleep,),
}
