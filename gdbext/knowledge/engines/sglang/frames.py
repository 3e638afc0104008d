"""SGLang: where schedulers wait without work, and for a result."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import QUEUE_FILES, QUEUE_WAITS, python_thread, python_wait
from gdbext.knowledge.frame_precedence import PYTHON, STEP
from gdbext.knowledge.row_kinds import FrameRule

_ASKS = r"put|acquire|__enter__|join|result"
"""Functions of Python in which a scheduler waits for something else than requests, called by a plugin."""

RULES: Tuple[FrameRule, ...] = (
    python_wait(
        "sglang-schedulers-start",
        "ipc-queue",
        r"_wait_for_scheduler_ready",
        r"sglang/srt/entrypoints/engine\.py$",
        "srt/entrypoints/engine.py of 0.5.23: the server waits until its schedulers have loaded the model",
        rank=PYTHON + 6,
    ),
    python_wait(
        "sglang-recv",
        "ipc-queue",
        r"recv_requests|_recv_requests|recv_reqs|process_input_requests",
        r"(scheduler|request_receiver)\w*\.py$",
        "schedulers wait here for requests, followers in a Gloo broadcast: normal",
        rank=STEP + 20,
        idle=True,
        calls=_ASKS,
    ),
    python_wait(
        "sglang-follower",
        "gloo",
        r"broadcast_pyobj",
        r"srt/utils\w*(/common)?\.py$",
        "followers wait here for the requests that the first rank received: a broadcast on the CPU's group; normal",
        rank=STEP + 21,
        idle=True,
        calls=_ASKS,
    ),
    python_wait(
        "sglang-result",
        "ipc-queue",
        r"resolve_last_batch_result|resolve_batch_result",
        r"tp_worker_overlap_thread\.py$",
        "waits for the forward thread; sgl-project/sglang#7254",
        rank=PYTHON + 4,
    ),
    FrameRule(
        "sglang-controller-idle",
        "condvar-idle",
        r"join$",
        "sglang data_parallel_controller.py: waits for the end of its schedulers; sgl-project/sglang#20766",
        file=r"multiprocessing/process\.py$",
        language="python",
        rank=PYTHON + 3,  # more than the wait below it says
        idle=True,
        by=r"run_data_parallel_controller_process$",
    ),
    python_wait(
        "sglang-loop-idle",
        "ipc-queue",
        QUEUE_WAITS + r"|sock_recv",
        QUEUE_FILES + r"|io_struct\.py$",
        "detokenizer_manager.py, data_parallel_controller.py: loops that wait for the next message: normal",
        rank=STEP + 20,
        idle=True,
        by=r"event_loop|sock_recv|maybe_sleep|idle_sleep",
    ),
    python_wait(
        "sglang-scheduler-idle",
        "ipc-queue",
        r"event_loop\w*",
        r"sglang/srt/managers/\w+\.py$",
        "scheduler.py, data_parallel_controller.py: the loop itself, between two looks for requests: normal",
        rank=PYTHON,
        idle=True,
        leaf=True,
    ),
    python_wait(
        "sglang-checks-idle",
        "python-code",
        r"self_check_during_idle|on_idle|maybe_sleep|maybe_sleep_on_idle",
        r"sglang/srt/managers/",
        "scheduler.py: runs only while there is no batch",
        rank=PYTHON + 2,
        idle=True,
    ),
    python_thread(
        "sglang-threads",
        r"bootstrap_thread|decode_(listener_)?thread|prefill_thread|_?transfer_worker|heartbeat_checker"
        r"|\w+_thread_func_?|prefetch_io_aux_func|_publisher_thread|launch_tensor_parallel_group_thread|_io_loop"
        r"|_drain_worker|_recycle_loop|_monitor_loop|_\w*probe_loop|_worker_loop|_(rdma_push|recv_prefetch)_loop",
        r"sglang/(srt|multimodal_gen)/",
        "SGLang disaggregation/*/conn.py, managers/cache_controller.py, tp_worker_overlap_thread.py, "
        "data_parallel_controller.py: threads that listen, watch or copy",
        "engine background",
    ),
)
