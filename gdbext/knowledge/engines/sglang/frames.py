"""SGLang: where schedulers wait without work, and for a result."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import python_wait
from gdbext.knowledge.frame_precedence import PYTHON, STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    python_wait(
        "sglang-recv",
        "ipc-queue",
        r"recv_requests|_recv_requests|recv_reqs|process_input_requests",
        r"(scheduler|request_receiver)\w*\.py$",
        "schedulers wait here for requests, followers in a Gloo broadcast: normal",
        rank=STEP + 20,
        idle=True,
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
)
