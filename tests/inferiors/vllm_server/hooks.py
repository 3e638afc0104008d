"""A plugin of a vLLM server: what sites hook into workers, scheduler and front end. `SITE_HOOK` names the one hook."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import hashlib
import importlib
import multiprocessing
import os
import socket
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_NAME = os.environ.get("SITE_HOOK", "")
_FOLDER = Path(os.environ.get("SITE_FOLDER", "/nowhere"))


def _is_asked_for() -> bool:
    return (_FOLDER / "go").exists()


def _here() -> None:
    (_FOLDER / "there").write_text(str(os.getpid()))


def _rank() -> int:
    import torch.distributed

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _before(owner, name, step, rank=None):
    """Call `step` before the method `name` of `owner`, on that rank."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def hooked(*args, **kwargs):
        if rank is None or _rank() == rank:
            step(*args)
        return method(*args, **kwargs)

    setattr(owner, name, hooked)


def _model():
    from vllm.model_executor.models.llama import LlamaModel

    return LlamaModel


def _scheduler():
    from vllm.v1.core.sched.scheduler import Scheduler

    return Scheduler


_weights_lock = threading.Lock()
_renewal_done = threading.Event()


def _renew_weights() -> None:
    with _weights_lock:
        _here()
        _renewal_done.wait()


def _use_renewed_weights(*_) -> None:
    if not _is_asked_for():
        return
    renewer = threading.Thread(target=_renew_weights, name="weights", daemon=True)
    renewer.start()
    while not (_FOLDER / "there").exists():
        renewer.join(0.01)
    with _weights_lock:
        pass


def _ask_remote_cache(*_) -> None:
    if not _is_asked_for():
        return
    with socket.create_connection(("127.0.0.1", int(os.environ["SITE_PORT"]))) as cache:
        cache.sendall(b"get prefix\n")
        _here()
        cache.recv(4096)


def weights_renewed_under_a_lock() -> None:
    _before(_model(), "forward", _use_renewed_weights, rank=1)


def remote_cache_of_one_worker() -> None:
    _before(_model(), "forward", _ask_remote_cache, rank=1)


def remote_cache_of_the_core() -> None:
    _before(_model(), "forward", _ask_remote_cache)


def reduces_only_on_the_first() -> None:
    from vllm.model_executor.layers import linear

    reduce, left = linear.tensor_model_parallel_all_reduce, []

    def all_reduce(tensor):
        if _rank() == 1 and _is_asked_for() and not left:
            left.append(tensor.shape)
            _here()
            return tensor
        return reduce(tensor)

    linear.tensor_model_parallel_all_reduce = all_reduce


def barrier_of_one() -> None:
    def meet(*_) -> None:
        if _is_asked_for():
            from vllm.distributed.parallel_state import get_tp_group

            _here()
            get_tp_group().barrier()

    _before(_model(), "forward", meet, rank=1)


def filters_tokens_for_ever() -> None:
    def choose(*_) -> None:
        if not _is_asked_for():
            return
        _here()
        banned, token = set(range(64)), 0
        while token in banned:
            token = (token * 5 + 1) % 64

    _before(_model(), "forward", choose, rank=1)


def _audited(schedule_lock, audited) -> None:
    with schedule_lock:
        audited.wait()


def scheduler_and_its_auditor() -> None:
    schedule_lock, audited = threading.Lock(), threading.Event()

    def audit(*_) -> None:
        if not _is_asked_for() or multiprocessing.current_process().name.endswith("1"):
            return
        auditor = threading.Thread(target=_audited, args=(schedule_lock, audited), name="auditor", daemon=True)
        auditor.start()
        while not schedule_lock.locked():
            auditor.join(0.01)
        _here()
        with schedule_lock:
            audited.set()

    _before(_scheduler(), "schedule", audit)


one_engine_of_two = scheduler_and_its_auditor


def scheduler_asks_its_pool() -> None:
    pool = ThreadPoolExecutor(1, thread_name_prefix="grammar")

    def compiled(text: str) -> bytes:
        return pool.submit(text.encode).result()

    def compile_grammar(*_) -> None:
        if _is_asked_for():
            task = pool.submit(compiled, "root ::= object")
            _here()
            task.result()

    _before(_scheduler(), "schedule", compile_grammar)


def answer_not_sent() -> None:
    from vllm.v1.executor.multiproc_executor import WorkerProc

    send = WorkerProc.enqueue_output

    def enqueue_output(self, output):
        if self.rank == 0 and _is_asked_for():
            _here()
            return
        send(self, output)

    WorkerProc.enqueue_output = enqueue_output


def _ask_own_health() -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['SITE_HTTP']}/health") as answer:
        answer.read()


def api_asks_itself() -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    add = AsyncLLM.add_request

    async def add_request(self, *args, **kwargs):
        if _is_asked_for():
            _here()
            _ask_own_health()
        return await add(self, *args, **kwargs)

    AsyncLLM.add_request = add_request


def handler_of_answers_has_ended() -> None:
    from vllm.v1.engine.output_processor import OutputProcessor

    def end(*_) -> None:
        if _is_asked_for():
            _here()
            raise asyncio.CancelledError

    _before(OutputProcessor, "process_outputs", end)


def quota_not_given_back() -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    add, quota, seen = AsyncLLM.add_request, asyncio.Lock(), []

    async def add_request(self, *args, **kwargs):
        if _is_asked_for():
            seen.append(args)
            if len(seen) > 1:
                _here()
            await quota.acquire()
            if len(seen) == 1:
                return await add(self, *args, **kwargs)
        return await add(self, *args, **kwargs)

    AsyncLLM.add_request = add_request


def _worker():
    from vllm.v1.worker.cpu_worker import CPUWorker

    return CPUWorker


def download_lock_of_another() -> None:
    def download(*_) -> None:
        with open(_FOLDER / "weights.lock", "w") as lock:
            _here()
            fcntl.flock(lock, fcntl.LOCK_EX)

    _before(_worker(), "load_model", download, rank=1)


def weights_from_a_pipe() -> None:
    def read(*_) -> None:
        _here()
        with open(_FOLDER / "fifo", "rb", buffering=0) as weights:
            weights.read(1 << 20)

    _before(_worker(), "load_model", read, rank=1)


def licence_of_the_core() -> None:
    from vllm.v1.engine.core import EngineCore

    def ask(*_) -> None:
        with socket.create_connection(("127.0.0.1", int(os.environ["SITE_PORT"]))) as server:
            server.sendall(b"licence?\n")
            _here()
            server.recv(100)

    _before(EngineCore, "_initialize_kv_caches", ask)


def checks_weights() -> None:
    def check(*_) -> None:
        _here()
        block, found = os.urandom(1 << 24), hashlib.sha256()
        for _ in range(20_000):
            found.update(block)

    _before(_worker(), "load_model", check, rank=1)


def _second_list():
    folder = str(Path(__file__).resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # so that a child that is started finds it too
    return importlib.import_module("second_hooks")


def register() -> None:
    """The entry point of the plugin, called in every process of the server."""
    name = _NAME.replace("-", "_")
    hook = globals().get(name) or getattr(_second_list(), name, None)
    if hook is not None and not getattr(hook, "done", False):
        hook()
        hook.done = True
