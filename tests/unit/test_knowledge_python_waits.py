# ruff: noqa: E501 - stacks are as long as they are
"""Python functions that wait in C, and loops that wait for work: what a stack without native frames shows of them."""

import pytest

from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.model.stack import Frame
from tests.unit.stacks import stack

THREAD = ("run@threading.py:953", "_bootstrap_inner@threading.py:1016", "_bootstrap@threading.py:973")
MAIN = ("<module>@app.py:9",)


def judged(text, outer):
    frames = [
        Frame(name, file=file, line=100, language="python")
        for name, file in (one.split(" ", 1) for one in text.split(" < "))
    ]
    return judge_thread(stack(*frames, *outer))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("__enter__ multiprocessing/synchronize.py < main a.py", "mutex"),
        ("acquire <frozen importlib._bootstrap> < __enter__ <frozen importlib._bootstrap> < f a.py", "mutex"),
        ("_path_stat <frozen importlib._bootstrap_external> < f a.py", "io"),
        ("create_module <frozen importlib._bootstrap_external> < f a.py", "native-compute"),
        ("_execute_child subprocess.py < __init__ subprocess.py < f a.py", "io"),
        ("_python_exit concurrent/futures/thread.py", "condvar-idle"),
        ("do_handshake ssl.py < _create ssl.py < f a.py", "io"),
        ("handle logging/__init__.py < callHandlers logging/__init__.py < f a.py", "mutex"),
        ("flush logging/__init__.py < emit logging/__init__.py < handle logging/__init__.py < f a.py", "io"),
        ("run asyncio/runners.py < run uvloop/__init__.py < main a.py", "io"),
        ("wait torch/distributed/distributed_c10d.py < f a.py", "nccl-group-launch"),
        ("_wait_batch_p2p torch/distributed/pipelining/schedules.py < f a.py", "nccl-group-launch"),
        ("wait_for_unshard torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py < f a.py", "nccl-group-launch"),
        ("recv_tensor_dict vllm/distributed/parallel_state.py < execute_model vllm/v1/worker/gpu_worker.py", "nccl-group-launch"),
        ("_pp_commit_comm_work sglang/srt/managers/scheduler_pp_mixin.py < f a.py", "nccl-group-launch"),
        ("all_reduce torch/distributed/distributed_c10d.py < poll_and_all_reduce sglang/srt/disaggregation/utils.py < f a.py", "gloo"),
        ("finish_grad_sync megatron/core/distributed/param_and_grad_buffer.py < f a.py", "nccl-group-launch"),
        ("wait_for_everyone accelerate/state.py < f a.py", "nccl-group-launch"),
        ("_invoke_run torch/distributed/elastic/agent/server/api.py < run a.py", "condvar-idle"),
        ("_delay torch/distributed/elastic/rendezvous/utils.py < f a.py", "store-wait"),
        ("sync_global_processes orbax/checkpoint/_src/multihost/multihost.py < f a.py", "store-wait"),
        ("wait_until_finished orbax/checkpoint/checkpoint_manager.py < f a.py", "condvar-idle"),
        ("quick_execute tensorflow/python/eager/execute.py < f a.py", "condvar-idle"),
        ("_numpy tensorflow/python/framework/ops.py < f a.py", "memcpy-sync"),
        ("init horovod/common/basics.py < f a.py", "store-wait"),
        ("synchronize deepspeed/accelerator/cuda_accelerator.py < f a.py", "device-sync"),
        ("Waitall mpi4py/MPI.src/Request.pyx < f a.py", "mpi"),
        ("recv ray/experimental/channel/nccl_group.py < f a.py", "nccl-group-launch"),
        ("_do_init_communicator ray/experimental/channel/torch_tensor_nccl_channel.py < f a.py", "nccl-init"),
        ("_poll_recv lmdeploy/pytorch/engine/mp_engine/zmq_rpc.py < f a.py", "ipc-queue"),
        ("_http_backoff_base huggingface_hub/utils/_http.py < f a.py", "io"),
        ("result concurrent/futures/_base.py < step_with_batch_queue vllm/v1/engine/core.py", "ipc-queue"),
        ("get_output vllm/v1/worker/gpu_model_runner.py < f a.py", "event-sync"),
        ("recv zmq/sugar/socket.py < wait_until_ready vllm/distributed/device_communicators/shm_broadcast.py < f a.py", "ipc-queue"),
        ("tp_broadcast tensorrt_llm/_torch/distributed/communicator.py < f a.py", "mpi"),
        ("poll tensorrt_llm/executor/ipc.py < _start_executor_workers tensorrt_llm/executor/proxy.py", "ipc-queue"),
    ],
)  # fmt: skip
def test_a_function_that_waits(text, kind):
    found = judged(text, MAIN)
    assert (found.kind, found.helper, found.idle) == (kind, None, False)


@pytest.mark.parametrize(
    "text",
    [
        "wait threading.py < serve_forever multiprocessing/managers.py",
        "recv_bytes multiprocessing/connection.py < serve_client multiprocessing/managers.py",
        "wait threading.py < wait grpc/_common.py < wait_for_termination grpc/_server.py < serve a.py",
        "sleep gunicorn/arbiter.py < run gunicorn/arbiter.py",
        "read_response redis/connection.py < parse_response redis/client.py < BasicKeyCommands.blmove redis/commands/core.py < f a.py",
        "parse_response redis/client.py < bzpopmin redis/commands/core.py < f a.py",
        "can_read redis/connection.py < parse_response redis/client.py < PubSub.get_message redis/client.py < f a.py",
        "poll pika/adapters/select_connection.py < start_consuming pika/adapters/blocking_connection.py < f a.py",
        "ForkSafeFlag.wait huey/consumer.py < Worker.sleep huey/consumer.py < Worker.loop huey/consumer.py",
        "ForkSafeFlag.wait huey/consumer.py < Consumer.loop huey/consumer.py < Consumer.run huey/consumer.py",
        "get multiprocessing/queues.py < async_loop megatron/core/dist_checkpointing/strategies/async_utils.py",
        "_recv_msg torch/_inductor/compile_worker/subproc_pool.py < main torch/_inductor/compile_worker/subproc_pool.py",
        "join tensorflow/python/training/server_lib.py < main a.py",
        "recv mpi4py/futures/_core.py < server_execute mpi4py/futures/_core.py",
        "read ray/experimental/channel/common.py < _read ray/dag/compiled_dag_node.py < exec_operation ray/dag/compiled_dag_node.py",
        "poll zmq/sugar/socket.py < run_engine_loop vllm/engine/multiprocessing/engine.py",
        "poll zmq/sugar/poll.py < process_input_socket vllm/v1/engine/coordinator.py",
        "recv_pyobj zmq/sugar/socket.py < event_loop sglang/srt/managers/detokenizer_manager.py",
        "event_loop_overlap sglang/srt/managers/scheduler.py < run_scheduler_process sglang/srt/managers/scheduler.py",
        "self_check_during_idle sglang/srt/managers/scheduler.py < event_loop_overlap sglang/srt/managers/scheduler.py",
        "wait threading.py < get queue.py < _get_from_request_queue tensorrt_llm/_torch/pyexecutor/executor_request_queue.py",
        "recv zmq/sugar/socket.py < get tensorrt_llm/executor/ipc.py < worker_main tensorrt_llm/executor/worker.py",
    ],
)
def test_a_process_without_work_is_idle(text):
    assert judged(text, MAIN).idle


@pytest.mark.parametrize(
    "text",
    [
        "parse_response redis/client.py < BasicKeyCommands.get redis/commands/core.py < f a.py",
        "wait threading.py < f a.py < _execute huey/api.py < execute huey/api.py < Worker.loop huey/consumer.py",
        "acquire a.py < g a.py < handle_message redis/client.py < get_message redis/client.py < f a.py",
    ],
)
def test_who_asks_a_broker_or_handles_its_message_is_not_idle(text):
    assert not judged(text, MAIN).idle


@pytest.mark.parametrize(
    "text",
    [
        "wait threading.py < get queue.py < async_output_busy_loop vllm/v1/executor/multiproc_executor.py",
        "select selectors.py < wait multiprocessing/connection.py < monitor_workers vllm/v1/executor/multiproc_executor.py",
        "poll zmq/sugar/poll.py < process_outputs_socket vllm/v1/engine/core_client.py",
        "get multiprocessing/queues.py < run vllm/executor/multiproc_worker_utils.py",
        "recv_multipart zmq/sugar/socket.py < bootstrap_thread sglang/srt/disaggregation/mooncake/conn.py",
        "wait threading.py < get queue.py < prefetch_thread_func sglang/srt/managers/cache_controller.py",
        "launch_tensor_parallel_group_thread sglang/srt/managers/data_parallel_controller.py",
        "recv zmq/sugar/socket.py < get tensorrt_llm/executor/ipc.py < dispatch_result_task tensorrt_llm/executor/proxy.py",
        "tail_logfile torch/distributed/elastic/multiprocessing/tail_log.py",
        "client_execute mpi4py/futures/_core.py < _manager_comm mpi4py/futures/_core.py",
        "wait_teardown ray/dag/compiled_dag_node.py < run ray/dag/compiled_dag_node.py",
        "recv multiprocessing/connection.py < pong uvicorn/supervisors/multiprocess.py < always_pong uvicorn/supervisors/multiprocess.py",
        "run zmq/utils/garbage.py",
        "heart_beat_controller lmdeploy/serve/proxy/proxy.py",
        "_run_eviction_loop ray/llm/prefix_tree.py",
    ],
)  # fmt: skip
def test_a_thread_that_serves_others_is_no_finding(text):
    assert judged(text, THREAD).helper


@pytest.mark.parametrize(
    "text",
    [
        "all_reduce torch/distributed/distributed_c10d.py < transfer_worker sglang/srt/disaggregation/mooncake/conn.py",
        "synchronize torch/cuda/__init__.py < _copy_loop vllm/v1/simple_kv_offload/copy_backend.py",
        "acquire filelock/_api.py < _monitor_loop lib/x.py",
        "_poll_until_acquired filelock/_core/_acquire.py < cached lib/x.py",
        "step a.py < _heartbeat_loop lib/x.py",
        "wait threading.py < get queue.py < worker a.py",
    ],
)
def test_a_thread_that_does_more_than_wait_for_work_is_at_work(text):
    assert judged(text, THREAD).helper is None


@pytest.mark.parametrize(
    "text",
    [
        "all_gather torch/distributed/distributed_c10d.py < forward a.py < event_loop_overlap sglang/srt/managers/scheduler.py",
        "forward a.py < run asyncio/runners.py < run uvloop/__init__.py",
        "task a.py < server_execute mpi4py/futures/_core.py",
        "step a.py < run_engine_loop vllm/engine/multiprocessing/engine.py",
    ],
)
def test_a_loop_that_has_called_something_is_not_idle(text):
    assert not judged(text, MAIN).idle


@pytest.mark.parametrize("file", ["filelock.py", "filelock/_api.py", "filelock/_core/_acquire.py"])
def test_a_lock_file_that_is_tried_again_has_one_rule_in_every_version_of_its_library(file):
    assert judged(f"_poll_until_acquired {file} < cached lib/x.py", MAIN).rule == "file-lock"


UVLOOP = ("epoll_pwait@libc.so.6", "uv__io_poll@loop.so", "uv_run@loop.so")
RUNS = ("__pyx_f_6uvloop_4loop_4Loop__run@loop.so", "__pyx_pw_6uvloop_4loop_4Loop_25run_forever@loop.so",
        "Runner.run@asyncio/runners.py:118", "run@uvloop/__init__.py:92", *MAIN)  # fmt: skip
CALLBACK = ("poll@libc.so.6", "fetch@app.py:4", "__pyx_f_6uvloop_4loop_6Handle__run@loop.so",
            "__pyx_f_6uvloop_4loop_4Loop__on_idle@loop.so", "uv_run@loop.so")  # fmt: skip


@pytest.mark.parametrize(("inner", "idle"), [(UVLOOP, True), (CALLBACK, False)], ids=["rests", "in a callback"])
def test_the_native_frames_of_uvloop_are_those_of_an_event_loop(inner, idle):
    found = judge_thread(stack(*inner, *RUNS))
    assert (found.idle, found.helper) == (idle, None)
