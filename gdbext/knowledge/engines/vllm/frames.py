"""vLLM: where workers and the engine core wait for the next step."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import QUEUE_FILES, QUEUE_WAITS, python_thread, python_wait
from gdbext.knowledge.frame_precedence import PYTHON
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    python_wait(
        "vllm-batch-result",
        "ipc-queue",
        r"result",
        r"concurrent/futures/_base\.py$",
        "v1/engine/core.py: the engine core waits for the oldest batch that its workers have",
        rank=PYTHON + 2,
        by=r"step_with_batch_queue",
    ),
    python_wait(
        "vllm-output-copied",
        "event-sync",
        r"get_output|_to_list|synchronize_input_prep|update_async_output_token_ids",
        r"vllm/v1/worker/gpu_(model_runner|input_batch)\.py$",
        "v1/worker/gpu_model_runner.py: waits for the event behind a copy to the host",
        rank=PYTHON - 1,
        leaf=True,
    ),
    python_wait(
        "vllm-queue-setup",
        "ipc-queue",
        r"wait_until_ready",
        r"shm_broadcast\.py$",
        "shm_broadcast.py: writer and readers of a queue wait for each other while it is set up",
        rank=PYTHON + 6,
    ),
    python_wait(
        "vllm-workers-start",
        "ipc-queue",
        r"wait_for_ready|wait_for_response_handle_ready",
        r"vllm/v1/executor/multiproc_executor\.py$",
        "v1/executor/multiproc_executor.py: the engine core waits until its workers have loaded the model",
        rank=PYTHON + 6,
    ),
    python_wait(
        "vllm-core-starts",
        "ipc-queue",
        r"wait_for_engine_startup",
        r"vllm/v1/(engine/)?utils\.py$",
        "v1/engine/utils.py: the front end waits until the engine cores have started",
        rank=PYTHON + 6,
    ),
    python_wait(
        "vllm-handshake",
        "ipc-queue",
        r"startup_handshake",
        r"vllm/v1/engine/core\.py$",
        "v1/engine/core.py: the engine core waits for the front end's settings",
        rank=PYTHON + 6,
    ),
    python_wait(
        "vllm-supervisor",
        "ipc-queue",
        r"wait_for_completion_or_failure",
        r"vllm/v1/utils\.py$",
        "v1/utils.py: the process that has started several API servers waits for the end of one",
        rank=PYTHON + 6,
        idle=True,
    ),
    python_wait(
        "vllm-loop-idle",
        "ipc-queue",
        QUEUE_WAITS,
        QUEUE_FILES,
        "v1/engine/coordinator.py, engine/multiprocessing/engine.py, executor/multiproc_worker_utils.py: the loops of "
        "the coordinator, and of the engine and the workers of v0, without work",
        rank=PYTHON + 5,
        idle=True,
        by=r"process_input_socket|run_engine_loop|_run_worker_process|wait_for_new_input",
    ),
    python_thread(
        "vllm-threads",
        r"async_output_busy_loop|monitor_workers|death_pipe_monitor|monitor_death_pipe|monitor_engine_\w+"
        r"|monitor_subprocess|process_outputs_socket|_publisher_thread|_check_loop|_report_(continuous_)?usage\w*"
        r"|_nixl_handshake_listener|_\w*(handshake|sender|receiver)_listener|_async_wait|_write_worker_loop"
        r"|_tier_poll_loop|_(store|load|copy|push_writer)_loop|_(save|load|lookup)_worker|_dispatch_pushes"
        r"|_\w+_worker_loop",
        r"vllm/(v1|distributed|usage|utils)/",
        "vLLM v1/executor/multiproc_executor.py, v1/engine/core_client.py, distributed/kv_transfer, kv_events.py: "
        "threads that listen, watch or copy",
        "engine background",
    ),
    python_thread(
        "vllm-v0-threads",
        r"run",
        r"vllm/executor/multiproc_worker_utils\.py$",
        "vLLM v0: threads that take results of workers, and watch them",
        "engine background",
    ),
    python_wait(
        "vllm-worker-answer",
        "ipc-queue",
        r"dequeue",
        r"shm_broadcast\.py$",
        "v1/executor/multiproc_executor.py: the engine core waits for what its workers answer",
        rank=PYTHON + 6,
        idle=True,
        by=r"get_response",
    ),
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
