"""Functions of Python's standard library that call into C and wait there, and servers that wait for requests.

What waits in C leaves no Python frame of its own: the function that called it is the innermost one.
"""

from __future__ import annotations

from dataclasses import replace

from gdbext.knowledge.engines.frame_rows import QUEUE_FILES, QUEUE_WAITS, python_in_c, python_thread, python_wait
from gdbext.knowledge.frame_precedence import LEAF, OUTER, PYTHON

DEBUGGER = "python-debugger"
"""Frame rule of a prompt of Python's debugger."""

RULES = (
    replace(
        python_wait(
            DEBUGGER,
            "io",
            r"_?cmdloop|interaction",
            r"(^|/)(pdb|IPython/core/debugger|pudb/debugger)\.py$",
            "pdb.py: breakpoint() or set_trace() was called, and the prompt reads a terminal or pipe",
            rank=OUTER + 1,
        ),
        calls=r"(\w+\.)?onecmd$",  # a command that was typed is being run
    ),
    python_wait(
        "python-lock-of-processes",
        "mutex",
        r"__enter__",
        r"(multiprocess(ing)?|billiard)/synchronize\.py$",
        "multiprocessing/synchronize.py: a lock that processes share",
    ),
    python_wait(
        "python-import-lock",
        "mutex",
        r"acquire|_lock_unlock_module|_get_module_lock",
        r"importlib\._bootstrap>$|(^|/)importlib/_bootstrap\.py$",
        "importlib/_bootstrap.py: another thread imports the module",
    ),
    python_in_c(
        "python-import-file",
        "io",
        r"get_data|_path_stat|path_stats|_path_is\w+|_fill_cache|_write_atomic|set_data",
        r"importlib\._bootstrap_external>$|(^|/)importlib/_bootstrap_external\.py$",
        "importlib/_bootstrap_external.py: reads a module or asks for its date; slow on a network file system",
        rank=PYTHON - 1,
    ),
    python_in_c(
        "python-import-library",
        "native-compute",
        r"create_module|exec_module",
        r"importlib\._bootstrap_external>$|(^|/)importlib/_bootstrap_external\.py$",
        "importlib/_bootstrap_external.py, ExtensionFileLoader: loads a shared library and runs its initialisation",
        rank=LEAF + 1,
    ),
    python_in_c(
        "python-start-child",
        "io",
        r"_execute_child|read_signed|connect_to_new_process|ensure_running|spawnv_passfds|_launch",
        r"(^|/)subprocess\.py$|(multiprocess(ing)?|billiard)/(forkserver|util|popen_\w+)\.py$",
        "subprocess.py, multiprocessing/popen_*.py: starts a child and waits for its first word",
    ),
    python_in_c(
        "python-exit",
        "condvar-idle",
        r"_exit_function|_python_exit",
        r"(multiprocess(ing)?|billiard)/util\.py$|concurrent/futures/(thread|process)\.py$",
        "run at exit: waits for children, or for the threads of executors",
    ),
    python_in_c(
        "python-names",
        "io",
        r"do_handshake|getfqdn|gethostby\w+|getaddrinfo|_new_conn|create_connection",
        r"(^|/)(ssl|socket|urllib3/(util/)?\w+|aiohttp/\w+|httpcore/(_backends/)?\w+)\.py$",
        "socket.py, ssl.py, urllib3: looks up a name, connects, shakes hands",
    ),
    python_in_c(
        "python-log-lock",
        "mutex",
        r"handle",
        r"(^|/)logging/__init__\.py$",
        "logging/__init__.py: the handler's lock; from CPython 3.13 on without a frame of its own",
    ),
    python_in_c(
        "python-log-write",
        "io",
        r"flush|emit",
        r"(^|/)logging/(__init__|handlers)\.py$",
        "logging/__init__.py, StreamHandler: writes to a file or pipe; a full pipe that nobody reads blocks",
    ),
    python_in_c(
        "event-loop-runner",
        "io",
        r"run|run_forever|run_until_complete",
        r"(^|/)(uvloop/(__init__|loop)|asyncio/runners|asyncio/base_events)\.pyx?$",
        "asyncio/runners.py with uvloop, whose own functions are C: an event loop without work; called idle only where "
        "the wait itself shows, since a traceback of Ctrl-C ends here as well",
    ),
    python_wait(
        "python-servers-idle",
        "ipc-queue",
        QUEUE_WAITS,
        QUEUE_FILES,
        "multiprocessing/managers.py: the process of a manager, and its threads, without a request",
        rank=PYTHON + 2,
        idle=True,
        by=r"serve_client|serve_forever|accepter",
    ),
    python_wait(
        "servers-idle",
        "io",
        r"wait_for_termination|block_thread|serve_forever",
        r"(^|/)(grpc/_server|grpc/aio/_server|gradio/blocks|multiprocessing/managers)\.py$",
        "grpcio _server.py, Gradio blocks.py: the main thread waits for the end of its server",
        rank=PYTHON + 3,
        idle=True,
    ),
    python_in_c(
        "web-servers-idle",
        "io",
        r"sleep|wait|poll2?|run_for_one",
        r"(^|/)(gunicorn/(arbiter|workers/\w+)|waitress/wasyncore|asyncore|pyftpdlib/ioloop)\.py$",
        "gunicorn arbiter.py, workers/sync.py; waitress wasyncore.py: waits for a request or a signal",
        rank=PYTHON,
        idle=True,
    ),
    python_thread(
        "supervisor-threads",
        r"always_pong|pong",
        r"uvicorn/supervisors/multiprocess\.py$",
        "uvicorn supervisors/multiprocess.py: a worker's answer to its supervisor",
        "server",
    ),
    python_thread(
        "zmq-threads",
        r"run|_run|run_device|_on_\w+_process",
        r"(^|/)zmq/(utils/garbage|auth/\w+|devices/\w+|log/\w+)\.py$",
        "pyzmq utils/garbage.py, auth/thread.py, devices: threads of its own",
        "ZeroMQ",
    ),
    python_thread(
        "watching-loop",
        r"_?\w*(monitor|watch(dog|er)?|heart_?beat|keep_?alive|publisher|reporter|poller|listener|cleaner|cleanup"
        r"|refresh(er)?|purge|evict(ion)?|liveness|health_?check|stats|metrics|usage|expir\w+|prun\w+|janitor)"
        r"(_?(loop|thread|thread_run|worker|checker|controller|run|main|daemon|periodically|forever|task))?",
        r"/",
        "how libraries name threads that watch, report or clean up while they sleep",
        "watchdog",
        by="run",
    ),
)
