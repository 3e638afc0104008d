"""Looks at hangs as a page shows them: the classic one, a circle of locks, a rank that is late. Pictures of docs, tests
in a browser."""

from dataclasses import replace

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.commands.page import page_of
from gdbext.model.activity import Activity
from gdbext.model.communicator import Communicator
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.locks import LockWait
from gdbext.model.stack import ThreadStack
from gdbext.model.witness import Statement, Witness
from tests.unit.stacks import frame

TAKEN = 1_792_454_400.0
CUDA, CUDART, NCCL = (
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/opt/engine/libcudart.so.12",
    "/opt/engine/libnccl.so.2.27.7",
)
DRIVER = ("clock_gettime@libc.so.6", *[f"??@{CUDA}"] * 6, f"??@{CUDART}")
CPP = (
    "serve::TransformerLayer<__nv_bfloat16>::forward@/opt/engine/libengine.so /src/engine/layers/transformer.cc:418",
    "serve::Model<__nv_bfloat16>::decode@/opt/engine/libengine.so /src/engine/model.cc:209",
    "_PyEval_EvalFrameDefault@/usr/bin/python3.12",
)
PYTHON = (
    "execute_model@/srv/serve/worker/model_runner.py:1482",
    "step@/srv/serve/worker/worker.py:311",
    "run_busy_loop@/srv/serve/engine/core.py:774",
    "<module>@/srv/serve/main.py:58",
)
OUTER = (*CPP, *PYTHON, "main@/usr/bin/python3.12")
GROW = "serve::HostBuffer::grow@/opt/engine/libengine.so /src/engine/memory/host_buffer.cc:88"
REDUCE = "serve::Communicator::allReduce@/opt/engine/libengine.so /src/engine/comm/communicator.cc:151"
WAITS, WAITS_A_WHILE = "pthread_cond_wait@libc.so.6", "pthread_cond_timedwait@libc.so.6"
ENTRY = ("start_thread@libc.so.6", "clone3@libc.so.6")
HELPERS = (
    ("cuda-EvtHandlr", ("poll@libc.so.6", *[f"??@{CUDA}"] * 3, *ENTRY)),
    ("NCCL Progress 0", (WAITS, f"ncclProxyGetPostedOps@{NCCL}", f"ncclProxyProgress@{NCCL}", *ENTRY)),
    ("pt_nccl_watchdg", (WAITS_A_WHILE, "c10d::ProcessGroupNCCL::watchdogHandler@libtorch_cuda.so", *ENTRY)),
    *[("pool", ("pthread_cond_wait@libc.so.6", "c10::TaskThreadPool::main_loop@libc10.so", *ENTRY))] * 12,
    *[("gomp", ("futex_wait@libc.so.6", "gomp_thread_start@/usr/lib/libgomp.so.1", *ENTRY))] * 8,
    ("grpc", ("epoll_wait@libc.so.6", "serve::rpc::Server::loop@/opt/libengine.so /src/rpc/server.cc:77", *ENTRY)),
)  # fmt: skip
LOCKS = ("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6")


def thread(lwp, calls, name=None, **fields):
    frames = tuple(one if not isinstance(one, str) else frame(one) for one in calls)
    return ThreadStack(str(lwp), frames, lwp=lwp, name=name, state=fields.pop("state", "S"), **fields)


def rank(number, *threads, host="node17", **fields):
    pid = 41_000 + 100 * number
    helpers = tuple(thread(pid + 20 + at, calls, name) for at, (name, calls) in enumerate(HELPERS))
    return RankSnapshot(
        **{
            "index": number,
            "threads": (*threads, *helpers),
            "pid": pid,
            "rank": number,
            "host": host,
            "engine": "vllm",
            "title": f"VLLM::Worker_TP{number % 4}_PP{number // 4}",
            "device": f"cuda:{number % 4}",
            "alive": None,
            "pause_ms": 3.4 + number / 10,
            "python": "3.12",
            "libraries": (CUDA, CUDART, NCCL, "/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"),
            "after": "waits",
            "labels": {"tp": number % 4, "pp": number // 4},
            **fields,
        }
    )


def ended(number, *waiting, count=812, host=None):
    """A rank in an all_reduce of the communicator of all."""
    captures = {"count": 8192, "comm": 0x7F00 + number, "comm->commHash": 0x9A4C3B77E0}
    call = frame(f"ncclAllReduce@{NCCL} collectives.cc:112", **captures)
    one = Communicator(
        0x7F00 + number, "comm of ncclAllReduce", "DWARF of libnccl.so.2", hash=0x9A4C3B77E0,
        rank=number, n_ranks=8, init_state="ncclSuccess", async_error="ncclSuccess", counts={"all_reduce": count},
    )  # fmt: skip
    lwp = 41_000 + 100 * number
    stack = thread(lwp, (*waiting, call, REDUCE, *OUTER), "VLLM::Worker", cpu=0.97, state="R")
    return rank(number, stack, communicators=(one,), host=host or ("node17" if number < 4 else "node18"))


def job(*ranks, **fields):
    return JobSnapshot(
        **{
            "processes": ranks,
            "taken_at": TAKEN,
            "engine": "vllm",
            "world_size": len(ranks),
            "tool": "gdbext",
            "command": "gdbext diagnose",
            "witnesses": (
                Witness("NCCL RAS", "absent", "port 28028 closed"),
                Witness("NVML", "present", "4 GPUs", (Statement("GPU 2: 100 % busy, 142 W", "fact", 2),)),
                Witness("/dev/shm", "present", "23.5 GiB of 23.5 GiB free"),
                Witness("kernel log", "present", "no Xid"),
            ),
            **fields,
        }
    )


def classic():
    """Rank 2 allocates page-locked memory while its peers are in an all_reduce."""
    reducing = ("sched_yield@libc.so.6", f"waitWorkFifoAvailable@{NCCL}")
    ranks = [ended(number, *reducing) for number in range(8)]
    late = thread(41_200, (*DRIVER, f"cudaMallocHost@{CUDART}", GROW, *OUTER), "VLLM::Worker", cpu=0.99, state="R")
    counts = replace(ranks[2].communicators[0], counts={"all_reduce": 811})
    ranks[2] = replace(ranks[2], threads=(late, *ranks[2].threads[1:]), communicators=(counts,))
    return job(*ranks)


def locks():
    """Two threads of rank 1 wait for each other, through the GIL and a mutex of the engine's cache."""
    wants = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "PyEval_RestoreThread@python3")
    hook = "serve::BlockCache::evicted@/opt/engine/libengine.so /src/engine/cache/block_cache.cc:233"
    lookup = "serve::BlockCache::find@/opt/engine/libengine.so /src/engine/cache/block_cache.cc:97"
    main = thread(41_100, (*LOCKS, lookup, *PYTHON, "main@/usr/bin/python3.12"), "VLLM::Worker", gil=True, still=1)
    other = thread(41_101, (*wants, hook, *ENTRY), "cache-evict", still=1)
    waits = (
        LockWait(41_100, "mutex", 0x55D0C0FFEE40, 41_101, name="serve::cache_mutex", still=True),
        LockWait(41_101, "gil", 0x55D0C0FFEF00, 41_100, still=True),
    )
    reducing = ("sched_yield@libc.so.6", f"waitWorkFifoAvailable@{NCCL}")
    peers = [ended(number, *reducing) for number in (0, 2, 3)]
    return job(peers[0], rank(1, main, other, locks=waits), *peers[1:], apart=1.2)


def slow():
    """Rank 3 reads weights, look after look; the others wait in a barrier over Gloo."""
    gloo = (
        "__futex_abstimed_wait_common64@libc.so.6", "std::condition_variable::wait@libstdc++.so.6",
        "c10d::Work::wait@libtorch_cpu.so", "barrier@/opt/venv/torch/distributed/distributed_c10d.py:4551",
        "load_model@/srv/serve/worker/model_runner.py:910", *PYTHON[2:],
    )  # fmt: skip
    inner = thread(
        9,
        ("epoll_wait@libc.so.6", "gloo::transport::tcp::UnboundBuffer::waitRecv@libtorch_cpu.so",
         "c10d::barrier@libtorch_cpu.so", *ENTRY),
        "pt_gloo_runloop",
    )  # fmt: skip
    loading = (
        "read@libc.so.6",
        "safe_open@/opt/venv/safetensors/__init__.py:88",
        "weights_iterator@/srv/serve/weights.py:241",
    )
    tail = ("load_model@/srv/serve/worker/model_runner.py:871", *PYTHON[2:])
    busy = Activity(1.2, major_faults=9000, read_bytes=700 << 20, own_bytes=700 << 20)

    def look(at, *top):
        waiting = [
            rank(number, thread(41_000 + 100 * number, gloo, "VLLM::Worker", still=0), inner) for number in range(3)
        ]
        late = rank(3, thread(41_300, (*top, *tail), "VLLM::Worker", cpu=0.41, state="D"), activity=busy)
        return job(*waiting, late, taken_at=TAKEN + at, apart=1.2)

    earlier = (look(-8, *loading), look(-4, "mmap@libc.so.6", *loading[1:]))
    return replace(look(0, *loading), earlier=earlier)


def page(snapshot, subject="diagnose"):
    diagnosis = judge(snapshot)
    return page_of(replace(diagnosis, tree=merge(snapshot, diagnosis.processes)), subject)
