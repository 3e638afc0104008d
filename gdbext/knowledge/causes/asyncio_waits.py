"""What tasks of asyncio wait for, by their innermost coroutines, and where asyncio keeps its tasks. Rows, no logic."""

from __future__ import annotations

from typing import Tuple

HAS_TASKS = r"(^|/)asyncio/(base_events|runners)\.py$"
"""Files of asyncio that know the module `tasks` by that name."""
RUNS_LOOP = r"^(\w+\.)?(run_forever|run_until_complete|run)$"

LOCKS = "lock"
TURNS = "turn"
WORK = "work"
CHANGES = "change"
OTHERS = "tasks"
CLIENTS = "clients"
ROOM = "room"

WAITS: Tuple[Tuple[str, str, str], ...] = (
    (LOCKS, r"(Lock|Semaphore|BoundedSemaphore)\.acquire$", r"(^|/)asyncio/locks\.py$"),
    (TURNS, r"(Queue\.(put|join)|Barrier\.\w+)$", r"(^|/)asyncio/(queues|locks)\.py$"),
    (CHANGES, r"Condition\.wait\w*$", r"(^|/)asyncio/locks\.py$"),
    (WORK, r"(Queue\.get|Event\.wait)$", r"(^|/)asyncio/(queues|locks)\.py$"),
    (OTHERS, r"TaskGroup\.__aexit__$", r"(^|/)asyncio/taskgroups\.py$"),
    (ROOM, r"\w+\._drain_helper$", r"(^|/)asyncio/streams\.py$"),
    (CLIENTS, r"(Server\.(serve_forever|wait_closed))$", r"(^|/)asyncio/base_events\.py$"),
)
"""What only another task gives (a lock, a turn, a change that it makes), what may come at any time (work, clients),
the end of other tasks, and room to write, which the other end makes.
All else may come from outside: a reply, a timer, a thread."""

READS_WORK = r"(^|\.)(get|recv|receive|pop|take|next|dequeue|consume|__anext__)(_[a-z]\w*)?$"
"""Functions that wait for work: where one of them calls, the change is that there is some."""

ENGINE_ANSWERS: Tuple[Tuple[str, str, str], ...] = (
    (r"AsyncLLM\.(generate|encode)$", r"(^|/)vllm/v1/engine/async_llm\.py$", "vLLM 0.32: RequestOutputCollector.get"),
    (r"MQLLMEngineClient\._process_request$", r"(^|/)vllm/engine/multiprocessing/client\.py$", "vLLM 0.6 to 0.9"),
    (
        r"TokenizerManager\._(wait_one|stream_one)_response$",
        r"(^|/)sglang/srt/managers/tokenizer_manager\.py$",
        "SGLang 0.5.23: state.event.wait()",
    ),
    (r"GenerationResult\._aresult_step$", r"(^|/)tensorrt_llm/executor/result\.py$", "TensorRT-LLM executor/result.py"),
    (
        r"\w*Instance\.async_stream_infer$",
        r"(^|/)lmdeploy/(turbomind/turbomind|pytorch/engine/engine_instance)\.py$",
        "lmdeploy 0.18",
    ),
)
"""(function, file, source) of coroutines of front ends in which a request waits for what the engine answers."""

HANDLES: Tuple[Tuple[str, str, str], ...] = (
    (r"\.run_asgi$", r"(^|/)uvicorn/protocols/", "uvicorn protocols/http/h11_impl.py, websockets/websockets_impl.py"),
    (r"RequestHandler\._handle_request$", r"(^|/)aiohttp/web_protocol\.py$", "aiohttp web_protocol.py"),
)
"""(function, file, source) of coroutines of web servers in which a request is answered: until it has been, or for as
long as a stream or a WebSocket is open."""

CODE_OF_ENGINES = r"(^|/)(vllm|sglang|tensorrt_llm|lmdeploy)/"
"""Files of these engines. What else such a coroutine calls may wait for anything."""

TASK, FUTURE = "Task", "Future"
"""The classes of what a task waits for: the end of another one, and what somebody sets."""

FIRST_TASK = "Task-1"
"""The name of the task that `asyncio.run()` makes. Where it alone waits for a bare future, a server runs for ever."""

GATHERED = ("_GatheringFuture", "_children")
"""The future of gather(), and its list of what it waits for: tasks, or what executors and connections give."""
WAITED = (r"^_wait$", r"(^|/)asyncio/tasks\.py$", "fs")
"""The coroutine of wait(), and its variable with the set of what it waits for."""
