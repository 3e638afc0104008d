# ruff: noqa: E501 - lines of logs are as long as they are
"""Texts of processes that died, each beside a twin that did not: a row holds only where a line or frame proves it."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

UCX = """ 7  /opt/lib/./libuct.so.0(+0x1c081) [0x73e290e71081]
 8  /opt/lib/./libuct.so.0(uct_mm_iface_t_new+0xb8) [0x73e290e715f8]
 9  /opt/lib/libucp.so.0(ucp_worker_create+0x896) [0x73e290ee0a16]
10  /opt/app/libapp.so(start+0x7b) [0x73e290ffbd8b]
"""
GDB_UCX = """#0  0x00007f01 in uct_mm_iface_progress () from /opt/lib/libuct.so.0
#1  0x00007f02 in ucp_worker_progress () from /opt/lib/libucp.so.0
#2  0x00007f03 in main () from /opt/app/app
"""
IDLE = """Thread 0x00007fd765cac700 (most recent call first):
  File "/usr/lib/python3.10/threading.py", line 320 in wait
  File "/usr/lib/python3.10/multiprocessing/queues.py", line 231 in _feed
  File "/usr/lib/python3.10/threading.py", line 953 in run
"""
LOCK = """#0  0x00007f10 in __pthread_rwlock_wrlock_full64 () from /lib/libc.so.6
#1  0x00007f11 in ___pthread_rwlock_wrlock () from /lib/libc.so.6
#2  0x00007f12 in ?? () from {library}
#3  0x00007f13 in uct_cuda_ipc_iface_init_streams () from /opt/lib/libuct_cuda.so.0
"""
FOLLOWER = """  File "torch/distributed/distributed_c10d.py", line 3151 in broadcast
  File "sglang/srt/{file}", line 2256 in {function}
  File "sglang/srt/managers/scheduler.py", line 93 in {caller}
"""
C10 = """frame #9: c10::TensorImpl::~TensorImpl() + 0x9 (0x7fa29d939e49 in /opt/lib/libc10.so)
frame #10: torch::utils::tensor_ctor(int) + 0x5f (0x7fa25ef1ed3f in /opt/lib/libtorch_python.so)
frame #11: _start + 0x21 (0x244b071 in /usr/bin/python3.11)

"""
CURRENT = """Current thread 0x00007fa30a8e0000 (most recent call first):
  File "/opt/pipeline.py", line 47 in create_tensor
"""


def of(text):
    return judge(parse_files([("a.txt", text.encode())]))


def wait_of(text):
    return [one.wait.kind for one in of(text).processes]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (UCX, "exited-or-crashed"),  # UCX's handler numbers what backtrace_symbols() gives
        (GDB_UCX, "mpi"),
        ("Fatal Python error: Segmentation fault\n\n" + IDLE, "exited-or-crashed"),  # the thread that died is cut off
        ("Fatal Python error: Bus error\n\n" + IDLE, "sigbus"),
        (IDLE, "condvar-idle"),
        (LOCK.format(library="/usr/lib/libcuda.so.1"), "mutex"),
        (LOCK.format(library="/opt/lib/libother.so"), "mpi"),
        (FOLLOWER.format(file="utils/common.py", function="broadcast_pyobj", caller="recv_requests"), "gloo"),
        (FOLLOWER.format(file="managers/mixin.py", function="send_all", caller="recv_requests"), "ipc-queue"),
    ],
)
def test_what_the_process_of_a_text_waits_in(text, kind):
    assert wait_of(text) == [kind]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("Xid 31 GPC1 GPCCLIENT_T1_9  @ 0xede3_7fa00000  FAULT_PDE ACCESS_TYPE_VIRT_READ", "gpu-fault"),
        ("Xid 31 is a page fault; none was seen", None),
        ("Faiss assertion 'err == cudaSuccess' failed in char* faiss::gpu::StackDeviceMemory::Stack::getAlloc(size_t)"
         " at utils/StackDeviceMemory.cpp:71", "other"),
        ("Faiss assertion 'err == cudaSuccess' failed in void faiss::gpu::runL2(int) at L2.cu:71", None),
        ("Faiss assertion 'd % 4 == 0' failed in void faiss::gpu::run(int) at PQ.cu:71", "other"),
        ("[1556919196.384583] [node-a:37091:0]  cuda_ipc_md.c:62  UCX  ERROR cuCtxGetDevice(&d) is failed."
         " ret:invalid device context", "other"),
        ("[1701464172.315044] [node-a:58152:0]  cuda_ipc_iface.c:531  UCX  ERROR cuCtxGetCurrent(&c)() failed:"
         " initialization error", None),
        ("node1:2343:2381 [7] NCCL INFO init.cc:1236 -> 1", "unknown"),
        ("node1:2343:2381 [7] NCCL INFO init.cc:1236 -> 7", None),
    ],
)  # fmt: skip
def test_a_line_that_tells_of_a_death_and_one_that_does_not(line, cause):
    said = of(line + "\n")
    assert said.verdict.cause == (cause or "unknown")
    assert said.verdict.confidence != "high"
    assert any(one.text.endswith(line[-30:]) for one in said.verdict.evidence) == bool(cause)


@pytest.mark.parametrize(
    ("signal", "cause"), [("Aborted", "other"), ("Segmentation fault", "other"), ("Terminated", "unknown")]
)
def test_a_loader_that_a_fault_ended(signal, cause):
    text = 'Traceback (most recent call last):\n  File "/opt/loader.py", line 66, in handler\n    _error_if_any()\n'
    assert (
        of(text + f"RuntimeError: DataLoader worker (pid 353) is killed by signal: {signal}. \n").verdict.cause == cause
    )


def test_the_thread_that_a_fatal_error_names_decides():
    named = of(C10 + "Fatal Python error: Aborted\n\n" + CURRENT)
    assert named.processes[0].wait.thread == "0x00007fa30a8e0000"
    assert of(C10 + CURRENT).processes[0].wait.thread == "1"


def test_a_search_in_the_logs_of_a_job_shows_whose_lines_they_are():
    lines = ("[node094:17969] *** Process received signal ***", "[node094:17969] Signal: Segmentation fault (11)",
             "[node094:17969] [ 0] /lib/libcuda.so.1(+0x1018df)[0x2acda19448df]",
             "mpirun noticed that process rank 286 with PID 17969 on node node094 exited on signal 11.")  # fmt: skip
    said = of("".join(f"job_320.out:{line}\n" for line in lines))
    assert [(one.pid, one.rank) for one in said.snapshot.processes] == [(17969, 286)]
    assert said.verdict.cause != "missing-rank"


GLOG = """*** SIGSEGV (@{0}) received by PID 4711 (TID 0x7f56d5b0800b) from PID 8; stack trace: ***
    @     0x7f56d5ccb420 app::Broadcast()
    @     0x7f56d5ccb999 app::Executor::Run()
"""
LLDB = """* thread #1, stop reason = EXC_BAD_ACCESS (code=1, address={0})
  * frame #0: 0x0000000100003f00 app`make_task + 16
"""


@pytest.mark.parametrize("text", [GLOG, LLDB])
def test_the_address_of_a_fault_is_told_and_a_null_pointer_is_called_one(text):
    assert "on an access to address 0x8 (a null pointer)." in of(text.format("0x8")).verdict.summary
    assert "on an access to address 0x7f56d5000000." in of(text.format("0x7f56d5000000")).verdict.summary
    assert "address" not in of(text.replace("SIGSEGV (@{0})", "SIGSEGV").replace("address={0}", "")).verdict.summary


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("==8282== Invalid free() / delete / delete[] / realloc()", "Read the checker's whole report"),
        ("double free or corruption (!prev)", "Run the program under valgrind"),
        (
            "terminate called after throwing an instance of 'std::runtime_error'\n"
            "  what():  [FT][ERROR] CUDA runtime error: operation not supported /w/src/utils/allocator.h:160",
            "Look up the call at that line of the source; `gdbext error cudaErrorNotSupported` lists the usual causes",
        ),
    ],
)
def test_advice_does_not_ask_for_what_the_text_has(line, advice):
    assert of(line + "\n").verdict.remedies[0].action.startswith(advice)


def test_an_exception_about_another_process_is_told_as_one():
    frames = '(APIServer pid=1) Traceback (most recent call last):\n(APIServer pid=1)   File "/v1/core_client.py", line 5, in get\n(APIServer pid=1)     raise exc\n'
    found = of(
        frames + "(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
    )
    assert found.verdict.summary.startswith("Pid 1 failed in get (core_client.py:5).")
    assert "tells of the end of another process" in found.verdict.summary
    assert found.verdict.remedies[0].action.startswith("Find the first error of the engine or worker process")
    own = of(frames + "(APIServer pid=1) ValueError: no such model\n").verdict
    assert "died in get" in own.summary and "another process, the engine" not in own.summary


def test_tritons_line_of_a_signal_names_it():
    stack = "Signal (11) received.\n 0# 0x00007F20869027F2 in /usr/lib64/libm.so.6\n 1# pow in /usr/lib64/libm.so.6\n"
    assert "died of SIGSEGV" in of(stack).verdict.summary


ASSERTED = """#0  0x00007f01 in raise () from /lib/libc.so.6
#1  0x00007f02 in abort () from /lib/libc.so.6
#2  0x00007f03 in __assert_fail_base (fmt=0x7f "%s", assertion=0x7f44 "n == len", file=0x7f45 "/src/log.cc", line=129, function=<optimized out>) at assert.c:92
"""
OUTER = """#3  0x00007f04 in __GI___assert_fail (assertion=0x7f44 "n == len", file=0x7f45 "/src/log.cc", line=129, function=0x7f46 "bool ns::Log::write(int) const") at assert.c:101
"""
RTN = """#2  0x00007f03 in __assert_rtn (func=0x7f "put", file=0x7f45 "/src/log.c", line=12, failedexpr=0x7f44 "p != \\"x\\"")
"""
CALLER = "#4  0x00007f05 in flush (this=0x55) at /src/flush.cc:7\n"


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        (ASSERTED, "the failed assertion `n == len` in log.cc:129."),
        (ASSERTED + OUTER, "the failed assertion `n == len` in ns::Log::write (log.cc:129)."),
        (ASSERTED + OUTER + CALLER, "the failed assertion `n == len` in flush (log.cc:129)."),
        (ASSERTED[: ASSERTED.index("#2")] + RTN, 'the failed assertion `p != "x"` in put (log.c:12).'),
        (ASSERTED.replace('assertion=0x7f44 "n == len", ', ""), "a failed assertion in __assert_fail_base"),
    ],
)
def test_the_arguments_of_assert_name_what_failed(stack, told):
    verdict = judge(parse_files([("bt.txt", stack.encode())])).verdict
    assert (verdict.cause, verdict.confidence) == ("other", "low")
    assert told in verdict.summary
