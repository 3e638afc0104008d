"""Rows that several engines share, and those of engines and frameworks that have no folder in knowledge/engines."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import COLLECTIVE_NAMES, collectives, step
from gdbext.knowledge.frame_precedence import LOCK, PYTHON, SILENT, STEP
from gdbext.knowledge.row_kinds import FrameRule


def _python_collectives() -> Tuple[FrameRule, ...]:
    """Communicators of vLLM and SGLang in Python; deeper torch frames are more exact, so these speak softly."""
    return tuple(
        FrameRule(
            f"engine-{collective}",
            "nccl-group-launch",
            rf"({names})$",
            "vLLM and SGLang parallel_state.py, device_communicators",
            file=r"(vllm|sglang|rtp_llm|deepspeed|megatron)/.*(parallel_state|communic\w*|pynccl\w*|custom_all_reduce\w*|comm/\w+|collective_torch"
            r"|tensor_parallel/\w+)\.py$|device_communicators/",
            language="python",
            rank=PYTHON - 1,
            collective=collective,
        )
        for names, collective in COLLECTIVE_NAMES
    )


BEGUN_IN_REALM = r"Realm::(?:Event::(?:external_)?wait\w*|Thread::wait_for_condition<)"
"""A task of Legion that waits for an event of Realm; its thread then sleeps in the scheduler, as idle ones do."""
XRT_SERVERS = r"xla::XrtComputationClient::(?!\w*(?:Releaser|Loop|Thread))\w+$"
"""torch_xla before 2.0: asks the XRT servers of its TPU and waits for their answers."""

_WAITS = (
    step(
        "legion-event",
        "condvar-idle",
        BEGUN_IN_REALM,
        "Legion runtime/realm/event_impl.cc, threads.inl",
    ),
    step(
        "xrt-servers",
        "condvar-idle",
        XRT_SERVERS,
        "pytorch/xla third_party/xla_client/xrt_computation_client.cc",
    ),
    step(
        "triton-idle",
        "condvar-idle",
        r"triton::core::\w+::(\w*BatcherThread|WaitForNext|BackendThread)\w*",
        "Triton backends wait for requests",
        idle=True,
        leaf=True,
    ),
    step(
        "triton-stub",
        "ipc-queue",
        r"triton::backend::python::(MessageQueue<.*>::(Pop|Push)|Stub::(PopMessage|RunCommand))$",
        "triton-inference-server/python_backend src/message_queue.h: the server and its Python process exchange work",
    ),
    step(
        "interprocess-queue",
        "ipc-queue",
        r"boost::interprocess::message_queue_t<.*>::(do_receive|do_send|(timed_)?(receive|send))\b",
        "boost interprocess/ipc/message_queue.hpp",
    ),
    step(
        "horovod-events",
        "event-sync",
        r"horovod::common::GPUContext::(impl::)?WaitForEvents",
        "horovod#2601: polls events and yields",
    ),
    step(
        "ft-stream",
        "stream-sync",
        r"(fastertransformer|rtp_llm|turbomind)::ftNcclStreamSynchronize",
        "spins on cudaStreamQuery",
    ),
    step(
        "sync-check",
        "device-sync",
        r"(fastertransformer|turbomind|rtp_llm|tensorrt_llm::common)::syncAndCheck\w*",
        "debug level DEBUG",
    ),
    step(
        "xla-stream",
        "stream-sync",
        r"(xla|stream_executor)::(\w+::|\(anonymous namespace\)::)*(BlockHostUntilDone\w*|SynchronizeStream)",
        "openxla/xla#15144",
    ),
    step(
        "xla-device",
        "device-sync",
        r"stream_executor::(\w+::|\(anonymous namespace\)::)*(SynchronizeContext|SynchronizeAllActivity)$",
        "openxla xla/stream_executor",
    ),
    step(
        "xla-event",
        "event-sync",
        r"stream_executor::(\w+::)*\w*Event::(Synchronize|PollForStatus)$",
        "openxla xla/stream_executor/event.h",
    ),
    step(
        "xla-copy",
        "memcpy-sync",
        r"stream_executor::(\w+::)*(SynchronousMem\w+|Memcpy|MemcpyD2H|MemcpyH2D)$",
        "openxla xla/stream_executor/stream_executor.h",
    ),
    step(
        "xla-load",
        "module-load",
        r"stream_executor::(\w+::|\(anonymous namespace\)::)*(LoadModule\w*|LoadKernel|GetModuleFunction|LoadPtx"
        r"|LoadCubin|LoadHsaco)$",
        "openxla xla/stream_executor/cuda/cuda_executor.cc",
    ),
    step(
        "xla-launch",
        "kernel-launch",
        r"stream_executor::(\w+::|\(anonymous namespace\)::)*Launch(Kernel|Cuda|Rocm)\w*$",
        "openxla xla/stream_executor/cuda/cuda_stream.cc",
    ),
    FrameRule(
        "xla-coordination",
        "store-wait",
        r"(xla|tsl|tensorflow)::(\(anonymous namespace\)::)?(DistributedRuntimeCoordinationServiceClient::\w+"
        r"|CoordinationServiceAgent\w*::(GetKeyValue\w*|WaitAtBarrier\w*|Connect|Shutdown\w*|WaitForAllTasks))$",
        "openxla xla/pjrt/distributed/client.cc, xla/tsl/distributed_runtime/coordination: jax.distributed",
        rank=STEP + 2,
    ),
    step(
        "torch-xla-wait",
        "stream-sync",
        r"torch_xla::XLAGraphExecutor::(WaitDeviceOps|SyncLiveTensorsGraph|SyncTensorsGraph\w*)$",
        "pytorch/xla torch_xla/csrc/xla_graph_executor.cpp",
    ),
    step(
        "tensorflow-ring",
        "nccl-group-launch",
        r"tensorflow::(Ring(Alg|Reducer|Gatherer)|Permuter|HierarchicalTreeBroadcaster|AllToAll)::(Run|RunAsyncParts|Dispatch\w*)$",
        "TensorFlow core/common_runtime: collectives over the CPU",
    ),
    step(
        "tensorflow-ring-setup",
        "nccl-init",
        r"tensorflow::(CollectiveParamResolver(Local|Distributed)|NcclManager::(GetCommunicator|SignalMultiNodeReady))\b",
        "TensorFlow core/common_runtime/collective_param_resolver_local.cc",
    ),
    FrameRule(
        "xla-rendezvous",
        "nccl-init",
        r"xla::(\w+::)*(Rendezvous\w*|(Acquire|Initialize)(Nccl|Gpu)Clique|AwaitAndLogIfStuck)",
        "XLA cliques meet on the CPU: xla/service/rendezvous.cc",
        rank=LOCK,
    ),
    FrameRule(
        "tensorflow-idle",
        "condvar-idle",
        r"(tensorflow|tsl)::\w*(::\w+)*::(WorkerLoop|Schedule)",
        "pools",
        helper="thread pool",
        leaf=True,
    ),
    FrameRule(
        "mxnet-var",
        "condvar-idle",
        r"mxnet::engine::ThreadedEngine\w*::(WaitFor\w+)",
        "the worker that computes is another thread; mxnet#8695",
        rank=LOCK,
    ),
    FrameRule(
        "paddle-stream",
        "stream-sync",
        r"(paddle|phi)::(\w+::)*Gpu(StreamSync|StreamWaitEvent|MemcpySync)",
        "Paddle gpu_info.h",
        rank=LOCK,
    ),
    FrameRule("paddle-device", "device-sync", r"(paddle|phi)::(\w+::)*GpuDeviceSync", "Paddle gpu_info.h", rank=LOCK),
    FrameRule(
        "nvshmem",
        "nccl-group-launch",
        r"(nvshmem\w+|nvshmemi_\w+|deep_ep::\w+::\w+)",
        "NVSHMEM and DeepEP; vllm#46509",
        rank=LOCK,
    ),
)

_STEPS = (
    FrameRule(
        "engine-step",
        "native-compute",
        r"(\w+(<.*>)?::)+(forward|decode|step|generate|run|infer)$",
        "engines' loops over tokens: a step that changes between two looks is progress",
        rank=SILENT,
        captures=("step", "step_", "ite"),
    ),
)

RULES = (
    *_WAITS,
    *collectives("xla", r"xla::gpu::", "openxla/xla#15144"),
    *collectives(
        "xla-cpu",
        r"(xla::cpu::(\w+::|\(anonymous namespace\)::)*(\w+Communicator::)?|__xla_cpu_runtime_)",
        "openxla xla/backends/cpu/collectives, xla/service/cpu/cpu_runtime.cc",
    ),
    *collectives("horovod", r"horovod::common::", "Horovod operations"),
    *_python_collectives(),
    *_STEPS,
)
