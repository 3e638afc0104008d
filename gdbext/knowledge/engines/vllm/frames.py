"""vLLM: where workers and the engine core wait for the next step."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import python_wait
from gdbext.knowledge.frame_precedence import PYTHON
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    python_wait(
        "vllm-dequeue",
        "ipc-queue",
        r"acquire_read|dequeue",
        r"(shm_broadcast|shm_object_storage)\.py$",
        "workers wait here for the next step: normal",
        rank=PYTHON + 5,
        idle=True,
    ),
    python_wait(
        "vllm-enqueue",
        "ipc-queue",
        r"acquire_write|enqueue",
        r"shm_broadcast\.py$",
        "a reader does not take the block; vllm#27313",
        rank=PYTHON + 5,
    ),
    python_wait(
        "vllm-core-input",
        "ipc-queue",
        r"_process_input_queue|process_input_sockets|process_output_sockets",
        r"vllm/v1/engine/core\w*\.py$",
        "the engine core waits for requests: normal",
        rank=PYTHON + 5,
        idle=True,
    ),
)
