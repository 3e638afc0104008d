"""Where programs of Python wait for work that comes from outside: event loops, servers, workers of pools.

A row holds only where the wait is called right from the loop that waits for work (`by`): a callback of an event loop,
or a task of a pool, that waits in the same function is at work.
"""

from __future__ import annotations

from gdbext.knowledge.frame_precedence import LEAF, LOCK, PYTHON
from gdbext.knowledge.row_kinds import FrameRule

SIGNAL_WAIT = "signal-wait"
ACCEPT, PYTHON_ACCEPT = "accept", "accept-idle"


def _python(id: str, kind: str, function: str, file: str, source: str, by: str = "") -> FrameRule:
    return FrameRule(
        id, kind, rf"({function})$", source, file=file, language="python", rank=PYTHON + 2, idle=True, by=by
    )


RULES = (
    _python(
        "asyncio-idle",
        "io",
        r"select",
        r"(^|/)selectors\.py$",
        "asyncio/base_events.py: an event loop without work",
        r"_run_once$",
    ),
    FrameRule(
        "uvloop-idle",
        "io",
        r"run_forever$",
        "uvloop: an event loop without work, when nothing is called from it",
        file=r"(^|/)uvloop/\w+\.py$",
        language="python",
        rank=LEAF + 3,
        idle=True,
    ),
    FrameRule(
        "uvloop-loop",
        "io",
        r"__pyx_\w*uvloop_4loop_4Loop_(\w*run_forever|_run)$",
        "uvloop/loop.pyx, as its wheels have it: an event loop without work, when nothing is called from it",
        rank=LEAF + 3,
        idle=True,
        calls=r"__pyx_\w*uvloop_4loop_\w*(Handle__run|_on_\w+|callback\w*)$",
    ),
    _python(
        "server-idle",
        "io",
        r"select|_poll",
        r"(^|/)selectors\.py$",
        "socketserver.py: a server without requests",
        r"(serve_forever|handle_request)$",
    ),
    _python(PYTHON_ACCEPT, "io", r"_?accept", r"(^|/)(socket|ssl)\.py$", "socket.py: a server waits for a connection"),
    _python(
        "pool-worker-idle",
        "ipc-queue",
        r"get",
        r"multiprocessing/queues\.py$",
        "multiprocessing/pool.py, concurrent/futures/process.py, torch data/_utils/worker.py: a worker without a task",
        r"(worker|_process_worker|_worker_loop)$",
    ),
    _python(
        "comfyui-idle",
        "condvar-idle",
        r"get",
        r"(^|/)execution\.py$",
        "ComfyUI main.py: the worker waits for a prompt",
        r"prompt_worker$",
    ),
    FrameRule(ACCEPT, "io", r"_*(GI_)?_*(libc_)?accept4?$", "accept(2)", rank=LOCK + 1, idle=True),
    FrameRule(
        SIGNAL_WAIT,
        "condvar-idle",
        r"_*(GI_)?_*(libc_)?(sigwait|sigwaitinfo|sigtimedwait|pause|sigsuspend)$",
        "sigwait(3): a main thread that leaves the work to others until it is told to end",
        rank=LOCK + 1,
        idle=True,
    ),
)
