"""A plugin of a SGLang server: what sites hook into ranks, detokenizer and front end. `SITE_HOOK` names the one hook.

The server calls `register` in each of its processes; a hook is put into those of its `_in` alone.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import http.client
import multiprocessing
import os
import queue
import re
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sglang.srt.plugins.hook_registry import HookRegistry, HookType

_NAME = os.environ.get("SITE_HOOK", "")
_FOLDER = Path(os.environ.get("SITE_FOLDER", "/nowhere"))
_MANAGERS = "sglang.srt.managers"
_SCHEDULER = f"{_MANAGERS}.scheduler.Scheduler"
_RECEIVER = f"{_MANAGERS}.scheduler_components.request_receiver.SchedulerRequestReceiver"
_RUNNER = "sglang.srt.model_executor.model_runner.ModelRunner"
_DETOKENIZER = f"{_MANAGERS}.detokenizer_manager.DetokenizerManager"
_TOKENIZER = f"{_MANAGERS}.tokenizer_manager.TokenizerManager"
_CONTROLLER = f"{_MANAGERS}.data_parallel_controller.DataParallelController"
_SOCKETS = f"{_MANAGERS}.multi_tokenizer_mixin.SocketMapping"


def _is_asked_for() -> bool:
    return (_FOLDER / "go").exists()


def _here() -> None:
    (_FOLDER / "there").write_text(str(os.getpid()))


def _rank() -> int:
    import torch.distributed

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _title() -> bytes:
    return Path("/proc/self/cmdline").read_bytes().rstrip(b"\0 ")


def _process() -> str:
    """A scheduler has no title yet when it asks."""
    if multiprocessing.parent_process() is None:
        return "api"
    titles = {b"sglang::detokenizer": "detokenizer", b"sglang::data_parallel_controller": "controller"}
    return titles.get(_title(), "scheduler")


def _in(process: str):
    def marked(hook):
        hook.process = process
        return hook

    return marked


def _before(target: str, step, rank=None) -> None:
    """Call `step` before that method, on that rank, once a request has asked for it."""

    def hooked(*args, **kwargs) -> None:
        if _is_asked_for() and rank in (None, _rank()):
            step(*args)

    HookRegistry.register(target, hooked, HookType.BEFORE)


def _at_start(target: str, step, rank=None) -> None:
    """The same at once, while the server starts."""

    def hooked(*args, **kwargs) -> None:
        if rank in (None, _rank()):
            step()

    HookRegistry.register(target, hooked, HookType.BEFORE)


def _around(target: str, step) -> None:
    HookRegistry.register(target, step, HookType.AROUND)


def _ask(port: str, path: str) -> bytes:
    asked = http.client.HTTPConnection("127.0.0.1", int(os.environ[port]))
    asked.request("GET", path)
    return asked.getresponse().read()


@_in("scheduler")
def pages_and_statistics() -> None:
    pages, statistics, evicting = threading.Lock(), threading.Lock(), threading.Event()
    counted = {"evicted": 0, "used": 0}

    def evict(used: threading.Event) -> None:
        with pages:
            evicting.set()
            used.wait()
            with statistics:
                counted["evicted"] += 1

    def use_pages(*_) -> None:
        used = threading.Event()
        threading.Thread(target=evict, args=(used,), name="evictor", daemon=True).start()
        with statistics:
            evicting.wait()
            used.set()
            _here()
            with pages:
                counted["used"] += 1

    _before(f"{_SCHEDULER}.run_batch", use_pages, rank=1)


@_in("scheduler")
def remote_store_of_one_rank() -> None:
    def fetch_prefix(*_) -> None:
        _here()
        _ask("SITE_PORT", "/prefix/0")

    _before(f"{_RUNNER}.forward", fetch_prefix, rank=1)


@_in("scheduler")
def small_reductions() -> None:
    left = []

    def all_reduce(reduce, group, tensor):
        if _rank() == 1 and _is_asked_for() and not left:
            left.append(tensor.shape)
            _here()
            return tensor
        return reduce(group, tensor)

    _around("sglang.srt.distributed.parallel_state.GroupCoordinator.all_reduce", all_reduce)


@_in("scheduler")
def pattern_of_one_rank() -> None:
    pattern = re.compile(r"(\w+\s?)+$")

    def check_text(*_) -> None:
        _here()
        pattern.match("once upon a time " * 8 + "!")

    _before("sglang.srt.layers.sampler.Sampler.forward", check_text, rank=1)


@_in("scheduler")
def tenants_meet() -> None:
    groups = {}

    def meet_tenants(*_) -> None:
        import torch.distributed as dist

        if not groups:
            groups.update({tenant: dist.new_group([0, 1], backend="gloo") for tenant in ("first", "second")})
        for tenant in sorted(groups, reverse=_rank() == 1):
            _here()
            dist.barrier(groups[tenant])

    _before(f"{_SCHEDULER}.run_batch", meet_tenants)


@_in("scheduler")
def journal_of_requests() -> None:
    journal = queue.Queue(maxsize=2)

    def write_journal() -> None:
        with open(_FOLDER / "journal" / "requests", "a") as file:
            while True:
                file.write(f"{journal.get()}\n")

    writer = threading.Thread(target=write_journal, name="journal", daemon=True)

    def note(requests, *_):
        if requests and _is_asked_for():
            if writer.ident is None:
                writer.start()
            for request in requests:
                for name in ("rid", "input_ids", "sampling_params", "stream"):
                    if journal.full():
                        _here()
                    journal.put((name, getattr(request, name, None)))
        return requests

    HookRegistry.register(f"{_RECEIVER}._pull_raw_reqs", note, HookType.AFTER)


@_in("detokenizer")
def words_of_the_detokenizer() -> None:
    lock, known = threading.Lock(), {}

    def remember(word: int) -> None:
        with lock:
            known[word] = known.get(word, 0) + 1

    def count_words(_, batch) -> None:
        with lock:
            for words in batch.decode_ids:
                _here()
                for word in words:
                    remember(word)

    _before(f"{_DETOKENIZER}.handle_batch_token_id_out", count_words)


@_in("detokenizer")
def texts_for_a_shipper() -> None:
    def ship(_, batch) -> None:
        record = repr((batch.rids, batch.decode_ids)).encode().ljust(1 << 20)
        with open(_FOLDER / "fifo", "wb", buffering=0) as texts:
            _here()
            texts.write(record)

    _before(f"{_DETOKENIZER}.handle_batch_token_id_out", ship)


@_in("detokenizer")
def moderated_texts() -> None:
    def handle(detokenize, manager, batch):
        texts = detokenize(manager, batch)
        if not _is_asked_for():
            return texts
        _here()
        return None

    _around(f"{_DETOKENIZER}.handle_batch_token_id_out", handle)


@_in("api")
def model_of_a_request() -> None:
    def ask_model(*_) -> None:
        _here()
        _ask("SITE_HTTP", "/model_info")

    _before(f"{_TOKENIZER}._tokenize_one_request", ask_model)


@_in("api")
def quota_of_requests() -> None:
    quota, seen = asyncio.Lock(), []

    async def tokenize(original, manager, request):
        if _is_asked_for():
            seen.append(request)
            if len(seen) > 1:
                _here()
            await quota.acquire()
        return await original(manager, request)

    _around(f"{_TOKENIZER}._tokenize_one_request", tokenize)


@_in("api")
def answers_with_a_deadline() -> None:
    def check_deadline(*_) -> None:
        _here()
        raise asyncio.CancelledError

    _before(f"{_TOKENIZER}._handle_batch_output", check_deadline)


@_in("api")
def templates_in_a_pool() -> None:
    pool = ThreadPoolExecutor(1, thread_name_prefix="templates")

    def rendered(text: str) -> str:
        return pool.submit(str.strip, text).result()

    async def tokenize(original, manager, request):
        if _is_asked_for():
            _here()
            await asyncio.get_running_loop().run_in_executor(pool, rendered, str(request.text))
        return await original(manager, request)

    _around(f"{_TOKENIZER}._tokenize_one_request", tokenize)


@_in("scheduler")
def shared_download() -> None:
    def download() -> None:
        with open(_FOLDER / "weights.lock", "w") as lock:
            _here()
            fcntl.flock(lock, fcntl.LOCK_EX)

    _at_start(f"{_RUNNER}.load_model", download, rank=1)


@_in("detokenizer")
def licence_of_the_detokenizer() -> None:
    def ask_licence() -> None:
        with socket.create_connection(("127.0.0.1", int(os.environ["SITE_PORT"]))) as server:
            server.sendall(b"licence?\n")
            _here()
            server.recv(100)

    _at_start(f"{_DETOKENIZER}.init_tokenizer", ask_licence)


@_in("scheduler")
def converts_weights() -> None:
    def convert() -> None:
        import torch

        _here()
        block = torch.randn(512, 512)
        for _ in range(100_000):
            block = torch.nn.functional.normalize(block @ block.T)

    _at_start(f"{_RUNNER}.load_model", convert, rank=1)


@_in("scheduler")
def progress_of_fetches() -> None:
    def agree_on_fetched(scheduler, *_) -> None:
        import torch

        room = 1 - _rank()
        for _request in scheduler.waiting_queue[:room]:
            _here()
            torch.distributed.all_reduce(torch.ones(1), group=scheduler.tp_cpu_group)

    _before(f"{_SCHEDULER}.get_new_batch_prefill", agree_on_fetched)


@_in("scheduler")
def pages_of_a_loader() -> None:
    ordered, loaded, known = queue.Queue(), queue.Queue(), {}

    def load() -> None:
        while True:
            pages = known.get(ordered.get())
            if pages is not None:
                loaded.put(pages)

    loader = threading.Thread(target=load, name="loader", daemon=True)

    def load_pages(*_) -> None:
        if loader.ident is None:
            loader.start()
        ordered.put("prefix")
        _here()
        loaded.get()

    _before(f"{_SCHEDULER}.run_batch", load_pages, rank=1)


@_in("scheduler")
def slots_of_grammars() -> None:
    slots, asked = threading.BoundedSemaphore(1), []

    def ask_for_grammar(_, request) -> None:
        asked.append(request)
        request.sampling_params.regex = f"[a-z ]{{{len(asked)}}}"

    def compile_grammar(compile_one, backend, key, reasoning):
        if len(asked) > 1:
            _here()
        slots.acquire()
        if len(asked) == 1:
            raise ValueError(key)
        grammar = compile_one(backend, key, reasoning)
        slots.release()
        return grammar

    _before("sglang.srt.constrained.grammar_manager.GrammarManager.process_req_with_grammar", ask_for_grammar)
    _around("sglang.srt.constrained.base_grammar_backend.BaseGrammarBackend._init_value_dispatch", compile_grammar)


@_in("detokenizer")
def beats_of_the_detokenizer() -> None:
    beats, texts, beating = threading.Lock(), threading.Lock(), threading.Event()
    counted = {"beats": 0, "texts": 0}

    def beat() -> None:
        with beats:
            beating.set()
            with texts:
                counted["beats"] = counted["texts"]

    def count_texts(*_) -> None:
        with texts:
            threading.Thread(target=beat, name="beats", daemon=True).start()
            beating.wait()
            _here()
            with beats:
                counted["texts"] += 1

    _before(f"{_DETOKENIZER}.handle_batch_token_id_out", count_texts)


@_in("api")
def figures_of_the_server() -> None:
    figures, scraping = _FOLDER / "figures", threading.Event()

    async def count_tasks() -> int:
        return len(asyncio.all_tasks())

    def scrape(loop: asyncio.AbstractEventLoop) -> None:
        with open(figures, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            scraping.set()
            file.write(str(asyncio.run_coroutine_threadsafe(count_tasks(), loop).result()))

    def note_request(*_) -> None:
        threading.Thread(target=scrape, args=(asyncio.get_running_loop(),), name="scrape", daemon=True).start()
        scraping.wait()
        with open(figures) as file:
            _here()
            fcntl.flock(file, fcntl.LOCK_EX)

    _before(f"{_TOKENIZER}._tokenize_one_request", note_request)


@_in("api")
def weights_of_a_request() -> None:
    written = []

    async def tokenize(original, manager, request):
        if _is_asked_for():
            _here()
            async with manager.model_update_lock.writer_lock:
                written.append(request)
        return await original(manager, request)

    _around(f"{_TOKENIZER}._tokenize_one_request", tokenize)


@_in("detokenizer")
def answers_for_workers() -> None:
    def send(send_to, sockets, worker, answer, **kwargs) -> None:
        if _is_asked_for():
            _here()
        else:
            send_to(sockets, worker, answer, **kwargs)

    _around(f"{_SOCKETS}.send_output", send)


@_in("controller")
def advised_replicas() -> None:
    def ask_adviser(*_) -> None:
        _here()
        _ask("SITE_PORT", "/replica")

    _before(f"{_CONTROLLER}.maybe_external_dp_rank_routing", ask_adviser)


@_in("scheduler")
def replica_without_memory() -> None:
    def take_memory(*_) -> None:
        if _title().endswith(b"DP1"):
            _here()
            os.kill(os.getpid(), signal.SIGKILL)

    _before(f"{_SCHEDULER}.run_batch", take_memory)


@_in("scheduler")
def stages_meet() -> None:
    def meet(_, requests) -> None:
        import torch.distributed

        if requests:
            _here()
            torch.distributed.barrier()

    _before(f"{_SCHEDULER}.process_input_requests", meet)


@_in("scheduler")
def compiles_kernels() -> None:
    def compile_kernels() -> None:
        import torch

        _here()
        for length in range(8, 4096):
            torch._dynamo.reset()
            block = torch.randn(length, length)
            torch.compile(lambda block: torch.nn.functional.gelu(block @ block).sum(), dynamic=False)(block)

    _at_start(f"{_RUNNER}.load_model", compile_kernels, rank=0)


@functools.lru_cache(maxsize=1)
def register() -> None:
    """The entry point of the plugin, called in every process of the server."""
    hook = globals().get(_NAME.replace("-", "_"))
    if hook is not None and hook.process == _process():
        hook()
