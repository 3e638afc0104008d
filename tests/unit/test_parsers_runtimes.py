"""Stacks of runtimes of other languages, and of tools that are no debuggers."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


@pytest.mark.parametrize(
    ("text", "threads", "kind"),
    [
        (
            "SIGSEGV: segmentation violation\nPC=0x7f2a3c m=12 sigcode=1 addr=0x8\n\n"
            "goroutine 7 gp=0xc000184e00 m=12 [syscall]:\n"
            "runtime.cgocall(0x5581e5e0b9a0, 0xc00008bba0)\n\t/usr/local/go/src/runtime/cgocall.go:167 +0x4b fp=0xc0\n"
            "github.com/ollama/ollama/llama._Cfunc_llama_decode(0x7f2a1c, {0x1, 0x7f})\n\t_cgo_gotypes.go:545 +0x4a\n"
            "created by main.serve in goroutine 1\n\t/src/main.go:12 +0x1d\n\n"
            "goroutine 1 gp=0xc000002380 m=nil [chan receive]:\nruntime.gopark(0xc0?)\n\t/go/proc.go:424 +0xce\n",
            {"7": ["runtime.cgocall", "llama_decode"], "1": ["runtime.gopark"]},
            "exited-or-crashed",
        ),
        (
            '"main" #1 prio=5 os_prio=0 tid=0x00007f1 nid=0x1c waiting on condition [0x00007f]\n'
            "   java.lang.Thread.State: WAITING (parking)\n\tat sun.misc.Unsafe.park(Native Method)\n"
            "\tat ml.dmlc.xgboost4j.java.RabitTracker.waitFor(RabitTracker.java:300)\n",
            {"28": ["sun.misc.Unsafe.park", "ml.dmlc.xgboost4j.java.RabitTracker.waitFor"]},
            "condvar-idle",
        ),
        (
            "~~~~~~~~~~~~~~~~ Stack of MainThread (140012345678) ~~~~~~~~~~~~~~~~\n"
            '  File "/x/test_dist.py", line 86, in test_barrier\n    run()\n'
            '  File "/x/torch/distributed/distributed_c10d.py", line 3145, in barrier\n    work.wait()\n'
            "++++++++++++++++ Timeout ++++++++++++++++\n",
            {"140012345678": ["barrier", "test_barrier"]},
            "nccl-group-launch",
        ),
        (
            "[4711] signal (11.1): Segmentation fault\nin expression starting at /root/train.jl:12\n"
            "ncclGroupEnd at /root/lib/libnccl.so (unknown line)\ngroupEnd at /root/NCCL/src/group.jl:17 [inlined]\n",
            {"1": ["ncclGroupEnd", "groupEnd"]},
            "exited-or-crashed",
        ),
        (
            "Fatal error in PMPI_Allreduce: Other MPI error, error stack:\n"
            "PMPI_Allreduce(450).....................: MPI_Allreduce(sbuf=0x7f, count=1) failed\n"
            "MPIDI_CH3I_Progress(196)................: fail failed\n",
            {"1": ["MPIDI_CH3I_Progress", "PMPI_Allreduce"]},
            "exited-or-crashed",
        ),
        (
            "Current thread's C stack trace (most recent call first):\n"
            '  Binary file "/usr/bin/python3", at _Py_DumpStack+0x48 [0x5555558d4a5c]\n'
            '  Binary file "/lib/libc.so.6", at +0x29d90 [0x7ffff7c29d90]\n',
            {"1": ["_Py_DumpStack", None]},
            "exited-or-crashed",
        ),
        (
            "[node7:mpi_rank_3][error_sighandler] Caught error: Segmentation fault (signal 11)\n"
            "[node7:mpi_rank_3][print_backtrace]   0: /opt/lib/libmpi.so.12(print_backtrace+0x1c) [0x2b5]\n"
            "[node7:mpi_rank_3][print_backtrace]   1: ./train(main+0x59) [0x405e8]\n",
            {"1": ["print_backtrace", "main"]},
            "exited-or-crashed",
        ),
        (
            "1: c10d::ProcessGroupNCCL::WorkNCCL::synchronize()\n2: torch::autograd::Engine::execute\n",
            {"1": ["c10d::ProcessGroupNCCL::WorkNCCL::synchronize", "torch::autograd::Engine::execute"]},
            "nccl-group-launch",
        ),
        (
            "[2024-05-01 10:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
            '  File "/sgl/scheduler.py", line 2000, in run_scheduler_process\n    loop()\n'
            '  File "/sgl/model_runner.py", line 700, in forward\n    sync()\n'
            "RuntimeError: CUDA error: an illegal memory access was encountered\n",
            {"1": ["forward", "run_scheduler_process"]},
            "cuda-error-throw",
        ),
    ],
    ids=[
        "go",
        "java",
        "pytest-timeout",
        "julia",
        "mpich",
        "python-3.14",
        "mvapich",
        "numbered",
        "sglang",
    ],
)
def test_a_stack(text, threads, kind):
    found = answer(text)
    (process,) = found.snapshot.processes
    assert {one.id: [frame.function for frame in one.frames] for one in process.threads} == threads
    assert found.processes[0].wait.kind == kind


def test_a_helper_that_dies_is_the_finding():
    text = (
        "*** SIGSEGV (@0x8) received by PID 4711 (TID 0x7f56d5b0800b) from PID 8; stack trace: ***\n"
        "    @     0x7f56d5ccb420 (unknown)\n    @     0x7f56d5ccb999 ncclProxyProgress\n"
    )
    found = answer(text)
    assert (found.snapshot.processes[0].pid, found.verdict.decisive_process) == (4711, 0)
    assert "died" in found.verdict.summary


GLOG = "*** SIGSEGV (@0x8) received by PID 4711 (TID 0x7f56d5b0800b) from PID 8; stack trace: ***\n"
SIGNAL = "[node1:00956] *** Process received signal ***\n[node1:00956] Signal: Segmentation fault (11)\n"
OPEN_MPI = "[node1:00956] [ 0] /lib/libc.so.6(+0x45330)[0x7d1d09933330]\n[node1:00956] [ 1] ./a.out(f+0x1)[0x55d0]\n"


@pytest.mark.parametrize(
    ("text", "id", "count"),
    [
        ("PC: @                0x0 (unknown)\n" + GLOG + "    @     0x7f56d5ccb420 f()\n", "0x7f56d5b0800b", 1),
        (
            "".join(
                f"678: W0623 09:24:37.66153{number} 13798 init.cc:240] {line}\n"
                for number, line in enumerate([*GLOG.splitlines(), "    @     0x7f56d5ccb420 f()", "    @   0x7f5 g()"])
            ),
            "0x7f56d5b0800b",
            2,
        ),
        ("".join(f"2026-01-31 20:27:50 {line}\n" for line in (SIGNAL + OPEN_MPI).splitlines()), "1", 2),
        (
            '##### ProcessID=82627, ThreadID=4617211392 #####\nFile: "a.py", line 1, in <module>\n'
            'File: "a.py", line 9, in run\n  step()\n',
            "4617211392",
            2,
        ),
    ],
    ids=["glog", "glog in a log", "Open MPI with a clock", "a recipe"],
)
def test_the_thread_that_a_head_names(text, id, count):
    (process,) = answer(text).snapshot.processes
    (thread,) = process.threads
    assert (thread.id, len(thread.frames)) == (id, count)


def test_a_traceback_in_a_box_has_its_exception_and_waits_for_no_work():
    lines = (
        "Traceback (most recent call last):",
        '  File "vllm/distributed/device_communicators/shm_broadcast.py", line 674, in acquire_read',
        "    wait()",
        "TimeoutError",
    )
    found = answer("  Stack trace:\n" + "".join(f"  {line}    \n" for line in lines) + "Bye\n")
    assert found.snapshot.processes[0].threads[0].problems == ("TimeoutError",)
    assert found.verdict.cause == "unknown" and not found.processes[0].idle


def test_of_a_traceback_only_the_heading_is_there():
    stack = "Fatal Python error: Segmentation fault\n\nThread 0x00001484 (most recent call first):\n"
    stack += '  File "a.py", line 3 in barrier\n\n'
    found = answer(stack + "Traceback (most recent call last):\n")
    assert [thread.id for thread in found.snapshot.processes[0].threads] == ["0x00001484"]
    assert found.processes[0].wait.kind == "exited-or-crashed"


def test_a_thread_and_its_outermost_frame_on_one_line():
    """A recipe by sys._current_frames() that joins what it should have printed line by line."""
    thread = '# Thread: {}  File "/lib/threading.py", line 882, in _bootstrap\n    self.run()\n\n'
    thread += '  File "serve.py", line 9, in {}\n    x()\n\n'
    found = answer(thread.format(1562637408, "poll") + thread.format(1936454752, "pull")).snapshot.processes[0].threads
    assert [(one.id, [frame.function for frame in one.frames][-2:]) for one in found] == [
        ("1562637408", ["poll", "_bootstrap"]),
        ("1936454752", ["pull", "_bootstrap"]),
    ]


def test_a_worker_of_ray_that_has_lost_its_name():
    text = "*** SIGSEGV received at time=1706692238 on cpu 68 ***\nPC: @     0x7f0df1bddaab  (unknown)  join\n"
    text += (
        "()     @     0x7f0df0a15725         32  asio::join()\n()     @     0x7f0df036ccee        128  Tracker::Run()\n"
    )
    threads = answer(text).snapshot.processes[0].threads
    assert [[frame.function for frame in one.frames] for one in threads] == [["asio::join", "Tracker::Run"]]
