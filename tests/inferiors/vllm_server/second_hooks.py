"""What the sites of the second list hook into a vLLM server. Each hook is named as its row."""

from __future__ import annotations

import collections
import contextlib
import functools
import multiprocessing
import os
import queue
import re
import socket
import threading
from pathlib import Path

_FOLDER = Path(os.environ.get("SITE_FOLDER", "/nowhere"))


def _is_asked_for() -> bool:
    return (_FOLDER / "go").exists()


def _here() -> None:
    (_FOLDER / "there").write_text(str(os.getpid()))


def _rank() -> int:
    import torch.distributed

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _before(owner, name, step, rank=None, once=False):
    """Call `step` before the method `name` of `owner`, on that rank; `once`: the first time that it is asked for."""
    method, left = getattr(owner, name), []

    @functools.wraps(method)
    def hooked(*args, **kwargs):
        if (rank is None or _rank() == rank) and not (once and (left or not _is_asked_for())):
            left.append(name)
            step(*args)
        return method(*args, **kwargs)

    setattr(owner, name, hooked)


def _until(holds, thread) -> None:
    while not holds():
        thread.join(0.01)


def _model():
    from vllm.model_executor.models.llama import LlamaModel

    return LlamaModel


def _worker():
    from vllm.v1.worker.cpu_worker import CPUWorker

    return CPUWorker


class _Pictures(collections.OrderedDict):
    """Pictures and their sizes, of which the sum is kept beside them, and has not been kept well."""

    room = 4 << 30
    used = 5 << 30

    def make_room(self, size: int) -> None:
        while self.used + size > self.room:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        with contextlib.suppress(KeyError):
            self.used -= self.popitem(last=False)[1]


def pictures_make_room() -> None:
    from vllm.v1.engine.core import EngineCore

    pictures = _Pictures()

    def keep(*_) -> None:
        _here()
        pictures.make_room(1 << 20)

    _before(EngineCore, "preprocess_add_request", keep, once=True)


def calls_in_an_answer() -> None:
    from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion

    calls = re.compile(r"\[(?:\w+,? ?)+\]")

    def find(*_) -> None:
        if multiprocessing.current_process().name.endswith("0"):
            _here()
            calls.search("[" + "weather_in_a_city, " * 8)

    _before(OpenAIServingCompletion, "request_output_to_completion_response", find, once=True)


class _Received:
    """Pages by name, for those who wait for them."""

    def __init__(self) -> None:
        self.changed, self.pages = threading.Condition(), {}

    def take(self, name):
        with self.changed:
            while name not in self.pages:
                self.changed.wait()
            return self.pages.pop(name)

    def put(self, name, pages) -> None:
        with self.changed:
            self.pages[name] = pages
            self.changed.notify()


def _listen(received, other) -> None:
    import zmq

    with zmq.Context() as context, context.socket(zmq.ROUTER) as prefiller:
        prefiller.bind("inproc://prefiller")
        _until(lambda: len(received.changed._waiters) > 1, other)
        received.put("layer 1", b"pages")
        _here()
        prefiller.recv_multipart()


def pages_of_a_prefiller() -> None:
    received = _Received()

    def wait_for_pages(*_) -> None:
        other = threading.Thread(target=received.take, args=("layer 0",), name="layer 0", daemon=True)
        other.start()
        _until(lambda: received.changed._waiters, other)
        threading.Thread(target=_listen, args=(received, other), name="listener", daemon=True).start()
        received.take("layer 1")

    _before(_model(), "forward", wait_for_pages, rank=1, once=True)


def blocks_of_landed_loads() -> None:
    from vllm.v1.core.sched.scheduler import Scheduler

    landed = {}

    def park(scheduler, *_) -> None:
        pool = scheduler.kv_cache_manager.block_pool
        landed["load-1"] = pool.get_new_blocks(pool.get_num_free_blocks())
        _here()

    _before(Scheduler, "schedule", park, once=True)


def _unfold(choices: int) -> int:
    return _unfold(choices - 1) + _unfold(choices - 1) if choices else 1


def states_of_a_grammar() -> None:
    from vllm.v1.structured_output import StructuredOutputManager

    def count(*_) -> None:
        _here()
        _unfold(80)

    _before(StructuredOutputManager, "_create_grammar", count, once=True)


def first_word_to_readers() -> None:
    from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
    from vllm.v1.executor.multiproc_executor import WorkerProc

    ready, make, late = MessageQueue.wait_until_ready, WorkerProc._init_message_queues, []

    def init_message_queues(self, *args) -> None:
        make(self, *args)
        if _rank() == 1:
            late.append(self.rpc_broadcast_mq)

    def wait_until_ready(self) -> None:
        if any(self is one for one in late):
            self.local_socket.recv()  # as it was sent before this socket was known
            _here()
        ready(self)

    WorkerProc._init_message_queues = init_message_queues
    MessageQueue.wait_until_ready = wait_until_ready


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def rendezvous_of_embedders() -> None:
    import datetime

    from torch.distributed import rendezvous

    def meet(*_) -> None:
        _here()
        address = f"tcp://127.0.0.1:{_free_port()}?rank=0&world_size=2"
        next(rendezvous(address, timeout=datetime.timedelta(days=1)))

    _before(_worker(), "init_device", meet)


def _convert() -> None:
    import torch

    torch.set_num_threads(2)
    torch.ones(1 << 22).to(torch.bfloat16)


def converts_pictures() -> None:
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.engine.utils import CoreEngineProcManager

    def convert_and_fork(*_) -> None:
        _convert()
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"

    def convert_in_the_core(*_) -> None:
        _here()
        _convert()

    _before(CoreEngineProcManager, "__init__", convert_and_fork)
    _before(EngineCore, "__init__", convert_in_the_core)


class _Rows:
    """Rows of a table that is elsewhere, ordered for the step after the next: one order waits at most."""

    def __init__(self) -> None:
        self.orders, self.staging = queue.Queue(maxsize=1), threading.Lock()
        self.inputs_are_there, self.loaded = threading.Event(), threading.Event()
        self.loader = threading.Thread(target=self._load, name="rows", daemon=True)
        self.loader.start()

    def _load(self) -> None:
        while True:
            self.orders.get()
            with self.staging:
                pass
            self.inputs_are_there.wait()
            self.loaded.set()

    def order(self, step: int) -> None:
        if step == 0:
            self.inputs_are_there.set()
        else:
            self.inputs_are_there.clear()  # until the step before has ended
        self.orders.put(step)


def rows_of_an_offloader() -> None:
    def warm_up(*_) -> None:
        rows = _Rows()
        with rows.staging:
            for step in range(2):
                rows.order(step)
        _here()
        rows.loaded.wait()
        rows.inputs_are_there.set()

    _before(_worker(), "compile_or_warm_up_model", warm_up)


def same_name_again() -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    add = AsyncLLM.add_request

    async def add_request(self, *args, **kwargs):
        answers = await add(self, *args, **kwargs)
        if _is_asked_for():
            await self.engine_core.abort_requests_async(list(self.output_processor.request_states))
            _here()
        return answers

    AsyncLLM.add_request = add_request


class _Experts:
    """Experts that a thread moves between ranks, one after the other, each with the ranks' consent."""

    def __init__(self) -> None:
        import torch
        from vllm.distributed.parallel_state import get_tp_group

        self.group, self.load = get_tp_group().cpu_group, torch.ones(64)
        self.buffer, self.is_moved, self.begins = threading.Lock(), threading.Event(), threading.Event()
        self.passed = threading.Event()
        self.mover = threading.Thread(target=self._move, args=(_rank(),), name="experts", daemon=True)
        self.mover.start()

    def _move(self, rank: int) -> None:
        import torch.distributed

        with self.buffer:
            self.begins.set()
            if rank == 1:
                self.passed.wait()  # the other has let go of it by now
        self.is_moved.wait()
        self.begins.clear()
        _here()
        torch.distributed.broadcast(self.load.clone(), group=self.group, group_src=1)

    def step(self) -> None:
        import torch.distributed

        self.begins.wait()
        if self.buffer.acquire(blocking=_rank() == 0):
            self.buffer.release()
            self.is_moved.set()
            _until(lambda: not self.begins.is_set(), self.mover)
            self.mover.join(1.0)
        self.passed.set()
        torch.distributed.all_reduce(self.load, group=self.group)


def experts_on_the_move() -> None:
    _before(_model(), "forward", lambda *_: _Experts().step(), once=True)


def _replica():
    from vllm.v1.engine.core import DPEngineCoreProc

    return DPEngineCoreProc


def weights_for_a_wave() -> None:
    def take_new_weights(core, *_) -> None:
        if core.dp_rank == 1:
            _here()
            core.barrier()

    _before(_replica(), "_process_engine_step", take_new_weights, once=True)


def batches_of_dummies() -> None:
    make, left = _replica().execute_dummy_batch, []

    def execute_dummy_batch(self):
        if self.dp_rank == 1 and _is_asked_for() and not left:
            left.append(self.step_counter)
            _here()
            return
        make(self)

    _replica().execute_dummy_batch = execute_dummy_batch


def _coordinate(*args, **kwargs) -> None:
    """In the coordinator's process, which knows no plugins."""
    from vllm.v1.engine.coordinator import DPCoordinatorProc

    send = DPCoordinatorProc._send_start_wave

    def send_start_wave(*message) -> None:
        if _is_asked_for():
            _here()
            return
        send(*message)

    DPCoordinatorProc._send_start_wave = staticmethod(send_start_wave)
    DPCoordinatorProc.run_coordinator(*args, **kwargs)


def wave_not_told() -> None:
    from vllm.v1.engine.coordinator import DPCoordinatorProc

    DPCoordinatorProc.run_coordinator = staticmethod(_coordinate)


def sleeps_between_shifts() -> None:
    os.environ["VLLM_SERVER_DEV_MODE"] = "1"


def warms_up_shapes() -> None:
    def warm_up(*_) -> None:
        import torch

        _here()
        activations = torch.ones(512, 512)
        for _ in range(200_000):
            activations = torch.tanh(activations @ activations)

    _before(_worker(), "compile_or_warm_up_model", warm_up)
