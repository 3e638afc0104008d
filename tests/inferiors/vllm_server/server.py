"""Starts a server of `table.py`, lets its clients ask, waits until the fault is there, and ends it."""

from __future__ import annotations

import contextlib
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
from typing import Callable, Dict, Iterator, List, Tuple

from tests.inferiors.demo import _die_with_parent
from tests.inferiors.torch_job import free_port
from tests.inferiors.vllm_server.table import Served
from tests.polling import comes_true

_HOOKS = Path(__file__).with_name("hooks.py")
_DEADLINE = 240.0  # seconds until a server serves
_SETTLES = 3.0  # seconds in which a request that is answered would be
_SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


class Server:
    """`pids`: role -> pid; `asked`: the HTTP server's pid, as a user would name it."""

    def __init__(self, row: Served, python: Path, model: Path) -> None:
        self._row, self._python, self._model = row, python, model
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
        """vLLM finds the plugin by its metadata, as every installed one."""
        info = self._folder / "site_hooks-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-hooks\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[vllm.general_plugins]\nsite_hooks = site_hooks:register\n")
        (self._folder / "site_hooks.py").symlink_to(_HOOKS)
        os.mkfifo(self._folder / "fifo")
        hook = {"SITE_HOOK": self._row.name, "SITE_FOLDER": str(self._folder), "SITE_PORT": str(mute)}
        words = ["-m", "vllm.entrypoints.cli.main", "serve", str(self._model), "--load-format", "dummy"]
        words += ["--dtype", "bfloat16", "--max-model-len", "2048", "--host", "127.0.0.1", "--port", str(self._port)]
        environment = {**os.environ, **_SETTINGS, **hook, "PYTHONPATH": str(self._folder), "SITE_HTTP": str(self._port)}
        environment["VLLM_CACHE_ROOT"] = environment["TORCHINDUCTOR_CACHE_DIR"] = str(self._folder / "cache")
        with open(self._folder / "log", "wb") as log, contextlib.ExitStack() as stack:
            if self._row.name == "download-lock-of-another":
                self.pids["other"] = stack.enter_context(_downloader(self._folder)).pid
            self._process = subprocess.Popen(
                [str(self._python), *words, *self._row.options],
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
        elif row.when == "compiles":
            self._until(lambda: "for the compilation" in self._said(), "compiling")
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
        if row.when == "request" and row.asks == "one" and not any(one.is_alive() for one in self._clients):
            raise RuntimeError(f"{row.name}: the request was answered: {self._said()[-800:]}")

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        comes_true(lambda: holds() or self._process.poll() is not None, _DEADLINE)
        if not holds():
            raise RuntimeError(f"{self._row.name} did not come to {what}: {self._said()[-1500:]}")

    def _said(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _serves(self) -> bool:
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=2).status == 200
        return False

    def _ask(self, tokens: int, stream: bool = False, pause: float = 0.0) -> None:
        body = {"model": str(self._model), "prompt": "once upon a time", "max_tokens": tokens, "ignore_eos": True}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/completions",
            json.dumps({**body, "stream": stream}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            while answer.read(256) and not self._ended.wait(pause):
                pass

    def _find_roles(self) -> None:
        self.pids["api"] = self._process.pid
        for pid in _below(self._process.pid):
            title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace").strip()
            if title.startswith("VLLM::EngineCore"):
                self.pids["core1" if title.endswith("1") else "core0"] = pid
            elif title.startswith("VLLM::Worker"):
                self.pids["worker1" if title.endswith("1") else "worker0"] = pid
        there = self._folder / "there"
        if there.exists() and self._row.culprits:
            self.pids.setdefault(self._row.culprits[0][0], int(there.read_text()))


@contextlib.contextmanager
def _downloader(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock of the weights and waits."""
    program = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.flock(f,fcntl.LOCK_EX); print(flush=True); input()"
    words = ["python3", "-c", program, str(folder / "weights.lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_die_with_parent) as one:
        assert one.stdout is not None
        one.stdout.readline()
        try:
            yield one
        finally:
            one.kill()


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


CLIENTS = {
    "one": (_asks,),
    "two": (_asks, _asks),
    "four": (_asks,) * 4,
    "load": (_asks_on,) * 2,
    "long": (_asks_much,),
    "slow": (_reads_slowly,),
}
