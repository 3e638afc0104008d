"""CPython from inside (C functions) and from outside (Python functions of the standard library and of torch)."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import python_wait
from gdbext.knowledge.engines.torch.groups import FROM, GROUP, NEW_GROUP, RANKS, TO
from gdbext.knowledge.frame_precedence import GIL, LEAF, LOCK, PYTHON, STEP
from gdbext.knowledge.row_kinds import FrameRule

_C10D = r"torch/distributed/distributed_c10d\.py$"
_FUNCTIONAL = r"torch/distributed/(_functional_collectives(_impl)?|nn/functional)\.py$"

THREADS_QUEUE = "python-queue"
"""Frame rule of a wait in a queue.Queue, which connects threads of one process."""

TAKES_LOCK = "python-thread-lock"
"""Frame rule of a wait for a lock that code of Python asks for."""

NOT_REENTRANT = r"lock_PyThread_acquire_lock"
"""What takes a lock that its owner cannot take again, as it can an RLock: CPython Modules/_threadmodule.c."""

LOCK_OF_PYTHON = r"(?:lock_PyThread_acquire_lock|rlock_acquire|acquire_timed)$"
"""What runs the acquire() of a lock that Python code has: of threading, of a Condition, of a Queue."""
GIL_SYMBOLS = r"(?:gil|switch)_(?:cond|mutex)\b|_PyRuntime\+"
"""Variables of CPython's GIL: static until 3.6, since then in _PyRuntime, whose other locks lie on the heap."""
COLLECTS_GARBAGE = (
    r"(?:gc_collect\w*|_PyGC_\w+|visit_(?:decref|reachable)|subtract_refs|deduce_unreachable|move_unreachable"
    r"|collect_(?:generations|with_callback))$"
)
"""Python's garbage collector."""
BETWEEN_INSTRUCTIONS = (
    rf"_?PyErr_CheckSignals|slot_tp_(?:finalize|del)|handle_callback|(?:.*\.)?__del__$|{COLLECTS_GARBAGE}"
)
"""What calls code of Python in the midst of other code: signal handlers (CPython Modules/signalmodule.c), finalisers
(Objects/typeobject.c), callbacks of weak references (Objects/weakrefobject.c), and what collects garbage."""

_COLLECTIVES = (
    (r"all_reduce\w*", "all_reduce"),
    (r"_?all_gather\w*|all_gather_into_tensor", "all_gather"),
    (r"_?broadcast(_\w+)?", "broadcast"),
    (r"_?reduce_scatter\w*", "reduce_scatter"),
    (r"reduce(_multigpu)?", "reduce"),
    (r"all_to_all\w*", "all_to_all"),
    (r"gather(_object)?", "gather"),
    (r"scatter(_object_list)?", "scatter"),
    (r"(monitored_)?barrier", "barrier"),
    (r"i?send(_object_list)?|batch_isend_irecv", "send"),
    (r"i?recv(_object_list)?", "recv"),
)

STARTERS = ("python-spawn-join",)
"""Rules of those who only wait for the end of the ranks that they have started."""


def _collectives() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"python-{collective}",
            "nccl-group-launch",
            rf"({names})$",
            "torch.distributed; accelerate#3104",
            file=f"{_C10D}|{_FUNCTIONAL}",
            language="python",
            rank=PYTHON,
            collective=collective,
            captures=(GROUP, *TO, *FROM),
        )
        for names, collective in _COLLECTIVES
    )


_NATIVE = (
    FrameRule(
        "gil-take",
        "gil",
        r"(take_gil|PyCOND_(TIMED)?WAIT$|PyEval_(RestoreThread|AcquireThread|AcquireLock|AcquireGIL)"
        r"|PyGILState_Ensure|_PyThreadState_Attach"
        r"|((pybind11|nanobind)::)?gil_scoped_acquire\b|pybind11::detail::get_internals"  # pybind11, nanobind
        r"|__Pyx_(PyGILState_Ensure|FastGIL\w*Ensure\w*)|gil_ensure$|_cffi_\w*gil\w*"  # Cython, cffi
        r"|c10::(impl::|detail::)?(\(anonymous namespace\)::)?(ConcretePyInterpreterVTable::decref|concrete_decref_fn)"
        r"|THPVariable_(subclass_dealloc|clear)$)",
        "CPython ceval_gil.c; rapidsai/ucx-py#187; pybind11, nanobind, Cython, cffi; torch PyInterpreter.cpp",
        rank=GIL,
    ),
    FrameRule(
        "gil-drop",
        "gil",
        r"(drop_gil|_?PyEval_HandlePending|eval_frame_handle_pending)$",
        "CPython ceval_gil.c",
        rank=STEP,
    ),
    FrameRule(
        "python-thread-lock",
        "mutex",
        LOCK_OF_PYTHON,
        "CPython _threadmodule.c: acquire() of a lock, called by Python code",
        rank=LOCK + 1,
    ),
    FrameRule(
        "python-collects",
        "native-compute",
        COLLECTS_GARBAGE,
        "CPython Modules/gcmodule.c, Python/gc.c",
        rank=LOCK,
    ),
    FrameRule(
        "python-thread-lock",
        "mutex",
        r"(PyThread_acquire_lock(_timed)?|acquire_timed|lock_PyThread_acquire_lock|rlock_acquire|PyMutex_LockTimed"
        r"|_PyMutex_LockTimed"
        r"|_PyParkingLot_Park)$",
        "CPython _threadmodule.c, lock.c",
        rank=LOCK,
    ),
    FrameRule("python-sleep", "python-code", r"(time_sleep|pysleep)$", "CPython timemodule.c", rank=LOCK),
    FrameRule(
        "python-select",
        "io",
        r"select_(epoll_poll|poll_poll|select)\w*|sock_(recv|send|accept|connect)\w*",
        "CPython",
        rank=LOCK,
    ),
)

_STANDARD_LIBRARY = (
    python_wait(
        THREADS_QUEUE, "ipc-queue", r"get|put|join", r"(^|/)queue\.py$", "pytorch/pytorch#87995", rank=PYTHON + 1
    ),
    python_wait(
        "python-mp-queue",
        "ipc-queue",
        r"get|put|_?poll|_?recv(_bytes)?|_?send(_bytes)?|wait|accept",
        r"((multiprocess(ing)?|billiard)/(queues|connection|managers|synchronize)|joblib/pool)\.py$",
        "multiprocessing, and its copies multiprocess and billiard",
        rank=PYTHON + 1,
    ),
    python_wait(
        "python-spawn-join",
        "condvar-idle",
        r"join|wait",
        r"torch/(multiprocessing/spawn|distributed/elastic/multiprocessing/api)\.py$",
        "the parent waits for the end of its processes",
        rank=PYTHON + 2,
    ),
    python_wait(
        "python-pool-result",
        "ipc-queue",
        r"get|wait|next|map|starmap|imap\w*|apply|join|_terminate_pool|_help_stuff_finish",
        r"((multiprocess(ing)?|billiard)/pool|joblib/(parallel|_parallel_backends)|loky/\w+"
        r"|torch/multiprocessing/pool)\.py$",
        "the caller of a pool of processes waits for its results",
        rank=PYTHON + 1,
    ),
    python_wait(
        "python-join",
        "condvar-idle",
        r"join|_wait_for_tstate_lock|_join_os_thread",
        r"(^|/)threading\.py$",
        "threading: waits for the end of a thread",
    ),
    python_wait("python-wait", "condvar-idle", r"wait(_for)?", r"(^|/)threading\.py$", "threading"),
    python_wait(
        "python-exit",
        "condvar-idle",
        r"_shutdown",
        r"(^|/)threading\.py$",
        "threading: the interpreter waits for the end of all threads that are not daemons before it exits",
    ),
    python_wait(
        "python-lock",
        "mutex",
        r"acquire|__enter__|_acquireLock|acquire_lock",
        r"(^|/)(threading|logging/__init__)\.py$",
        "threading, logging",
    ),
    python_wait(
        "file-lock",
        "io",
        r"_?(acquire|lock|lock_file|obtain)(_(read|write)_lock|_lock)?|__enter__|_fcntl_flock|wait|_try_acquire|_do_acquire|i_am_locking"
        r"|_poll_until_acquired",
        r"(^|/)(filelock(/_\w+){0,3}|(py)?lockfile/\w+|fasteners/\w+|portalocker/\w+|oslo_concurrency/\w+|zc/lockfile/\w+"
        r"|interprocess_lock|flufl/lock/\w+)\.py$",
        "filelock, fasteners, portalocker, oslo.concurrency, lockfile: locks that are files, tried again and again",
    ),
    FrameRule(
        "python-bootstrap",
        "unknown",
        r"(run|_bootstrap(_inner)?)$",
        "a thread whose function is no Python: what it does does not show",
        file=r"(^|/)threading\.py$",
        language="python",
        rank=LEAF,
        leaf=True,
    ),
    python_wait(
        "python-future",
        "condvar-idle",
        r"result|wait|as_completed",
        r"concurrent/futures/_base\.py$",
        "concurrent.futures",
    ),
    python_wait(
        "python-selector", "io", r"select|_poll", r"(^|/)selectors\.py$", "asyncio's and subprocess' wait for files"
    ),
    python_wait(
        "python-socket",
        "io",
        r"recv\w*|read\w*|accept|connect|send\w*|create_connection|makefile",
        r"(^|/)(socket|ssl|http/client|urllib3/\w+|requests/\w+)\.py$",
        "sockets",
    ),
    python_wait(
        "python-subprocess",
        "io",
        r"communicate|_communicate|wait|_wait|_try_wait|run|call|check_output|check_call",
        r"(^|/)subprocess\.py$",
        "subprocess",
        rank=PYTHON + 1,
    ),
    python_wait(
        "python-child",
        "io",
        r"poll|wait|join|_popen_wait",
        r"(multiprocess(ing)?|billiard)/(popen_\w+|process)\.py$",
        "waits for a child process",
        rank=PYTHON + 2,  # with multiprocessing.connection.wait
    ),
)

_TORCH = (
    *_collectives(),
    python_wait(
        "python-init-group",
        "nccl-init",
        r"init_process_group|new_group|_new_group_with_tag|_new_process_group_helper|split_group|init_device_mesh",
        rf"{_C10D}|torch/distributed/device_mesh\.py$",
        "torch.distributed",
        rank=PYTHON + 1,
        captures=(RANKS, NEW_GROUP),
    ),
    python_wait(
        "python-ddp",
        "nccl-group-launch",
        r"_verify_param_shape_across_processes|_sync_module_states|_sync_params_and_buffers|_sync_buffers"
        r"|_distributed_broadcast_coalesced",
        r"torch/(distributed/utils|nn/parallel/distributed)\.py$",
        "DistributedDataParallel compares and broadcasts parameters with the process group",
        rank=PYTHON - 1,
    ),
    python_wait(
        "python-store",
        "store-wait",
        r"_?store_based_barrier|rendezvous|_rendezvous|_\w*rendezvous_handler|_create_c10d_store|next_rendezvous"
        r"|synchronize|barrier|get_all",
        rf"{_C10D}|torch/distributed/(rendezvous|elastic/.*)\.py$",
        "torch.distributed",
        rank=PYTHON + 2,
    ),
    python_wait(
        "python-destroy-group",
        "nccl-destroy-abort",
        r"destroy_process_group|_shutdown_backend|_abort_process_group",
        _C10D,
        "torch.distributed",
        rank=PYTHON + 2,
    ),
    python_wait(
        "python-device-sync", "device-sync", r"synchronize", r"torch/cuda/__init__\.py$", "torch.cuda.synchronize"
    ),
    python_wait(
        "python-stream-sync", "stream-sync", r"synchronize", r"torch/cuda/streams\.py$", "torch.cuda.Stream.synchronize"
    ),
    python_wait("python-empty-cache", "device-free", r"empty_cache", r"torch/cuda/memory\.py$", "frees with cudaFree"),
    python_wait(
        "python-graph-replay", "kernel-launch", r"replay", r"torch/cuda/graphs\.py$", "sgl-project/sglang#7254"
    ),
    python_wait(
        "python-triton-launch",
        "kernel-launch",
        r"__call__",
        r"triton/backends/\w+/driver\.py$",
        "Triton CudaLauncher, HIPLauncher: the function that launches is compiled",
    ),
    python_wait(
        "python-graph-capture",
        "native-compute",
        r"capture_end|instantiate",
        r"torch/cuda/graphs\.py$",
        "records and builds a graph: long work of the CPU at start, for every batch size; sgl-project/sglang#4205",
        rank=PYTHON - 1,
    ),
    python_wait("python-cuda-init", "module-load", r"_lazy_init", r"torch/cuda/__init__\.py$", "first CUDA call"),
    python_wait(
        "python-backward",
        "condvar-idle",
        r"backward|_engine_run_backward",
        r"torch/autograd/(__init__|graph)\.py$",
        "the work is in the autograd threads; accelerate#3104",
        rank=LEAF + 1,
    ),
    python_wait(
        "python-loader",
        "ipc-queue",
        r"_try_get_data|_get_data|_next_data",
        r"torch/utils/data/dataloader\.py$",
        "waits for a loader process",
        rank=PYTHON + 2,
    ),
    python_wait(
        "python-compile",
        "native-compute",
        r"compile\w*|_compile\w*|make_ir|make_\w+bin|run_subprocess|call_fake_modules|codegen\w*",
        r"(triton/(compiler|backends)|torch/_(inductor|dynamo)/(?!compile_worker|eval_frame|external_utils)|nvcc"
        r"|cutlass|deep_gemm/jit)",
        "compiles a kernel",
        rank=PYTHON - 1,
    ),
)

_HELPERS = (
    python_wait("python-tqdm", "condvar-idle", r"run", r"tqdm/_monitor\.py$", "tqdm's monitor", helper="tqdm monitor"),
    python_wait(
        "python-compile-reader",
        "condvar-idle",
        r"_read_thread|_recv_msg",
        r"torch/_inductor/compile_worker/",
        "inductor",
        helper="compile workers",
    ),
    python_wait(
        "python-feeder",
        "condvar-idle",
        r"_feed|_pin_memory_loop|do_one_step",
        r"(multiprocessing/queues|data/_utils/pin_memory)\.py$",
        "queue feeder, pinning thread",
        helper="loader thread",
    ),
    python_wait(
        "python-watchdog",
        "condvar-idle",
        r"_?watchdog\w*|_watchdog_once|run_heartbeat\w*|_?heartbeat\w*|_?monitor\w*|pyspy_dump_schedulers",
        r"(watchdog|scheduler|monitor|heartbeat|common)\w*\.py$",
        "watchdogs of the engines; sgl-project/sglang#17941",
        helper="watchdog",
    ),
    python_wait(
        "python-wandb",
        "condvar-idle",
        r"\w+",
        r"(wandb|mlflow|tensorboard\w*|prometheus_client|sentry_sdk)/",
        "reporting",
        helper="reporting",
    ),
    python_wait(
        "python-ipykernel",
        "condvar-idle",
        r"run|_run_loop|run_forever",
        r"(ipykernel|zmq/sugar|jupyter_client)/",
        "notebook",
        helper="notebook",
    ),
)

TAKES_THE_GIL = (
    r"(PyCOND_\w+|_?PyMUTEX_\w+|take_gil|PyEval_(Restore|Acquire)\w+|PyGILState_Ensure|_PyThreadState_Attach)$"
)
"""CPython's own functions between its caller and the condition variable of the GIL."""

RULES = (*_NATIVE, *_HELPERS, *_TORCH, *_STANDARD_LIBRARY)

LEADER_FIRST = (
    r"main_process_first|local_main_process_first|_goes_first|torch_distributed_zero_first|main_local_process_first"
    r"|rank_zero_first|zero_first"
)
"""Python functions in which all ranks wait until the first one has worked alone (transformers, accelerate, yolov5)."""

INTERPRETER = r"(_PyEval_\w+|PyEval_(?!RestoreThread|Acquire)\w+|Py_\w+|_?PyObject_\w+|_?Py[A-Z]\w+)$"
"""C functions of the interpreter: a frame of these further out means that Python called."""
