# ruff: noqa: E501 - lines of logs are as long as they are
"""Excerpts that lack the line which tells what they are: each law beside a twin for which it does not hold."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

DEQUEUE = """  File "/opt/vllm/executor.py", line 91, in result
    return super().result()
{raises}  File "/opt/vllm/distributed/device_communicators/shm_broadcast.py", line 779, in dequeue
    with self.acquire_read(timeout, indefinite) as buf:
"""
STEP = """  File "/opt/app/train.py", line 20, in main
    trainer.fit()
  File "/opt/app/trainer.py", line 114, in fit
    self.step(batch)
"""
JOB = """^CTraceback (most recent call last):
  File "train.py", line 10, in <module>
    main()
  File "{file}", line 99, in {function}
    ready = connection.wait(sentinels)
KeyboardInterrupt
Process SpawnProcess-1:
Traceback (most recent call last):
  File "train.py", line 3, in run
    dist.barrier()
  File "/opt/torch/distributed/distributed_c10d.py", line 2709, in barrier
    work.wait()
KeyboardInterrupt
"""
SENDS = """#0  0x00007f2d1f5c1011 in opal_progress () from /opt/ompi/lib/libopen-pal.so.40
#1  0x00007f2d2f5c1031 in PMPI_Send () from /opt/ompi/lib/libmpi.so.40
#2  0x0000000000401193 in main ()

"""
RECEIVES = """#0  0x00007f{place}1f5c1013 in opal_progress () from /opt/ompi/lib/libopen-pal.so.40
#1  0x00007f{place}2f5c2031 in PMPI_Recv () from /opt/ompi/lib/libmpi.so.40
#2  0x0000000000401199 in main ()
"""
CELLS = """+----------+---------+----------------------------------------------------------------+
| tokens   | 1       | READY                                                          |
| model    | 1       | UNAVAILABLE: Internal: [TensorRT-LLM][ERROR] CUDA runtime error in cudaMallocHost(&p, n): operation no |
|          |         | t supported (/app/tensorrt_llm/cpp/tensorrt_llm/runtime/bufferManager.cpp:170)           |
|          |         | 1       0x7f981281e045 /opt/tritonserver/backends/tensorrtllm/libtriton_tensorrtllm.so(+0x36045) [0x7f981281e045]   |
|          |         | 2       0x7f981281f045 /opt/tritonserver/backends/tensorrtllm/libtriton_tensorrtllm.so(+0x37045) [0x7f981281f045]   |
"""
TORCH = """frame #15: engine::worker_TP0() [0x59e4a6]
frame #16: _PyEval_EvalFrameDefault + 0x5102 (0x54ece2 in engine::worker_TP0)
frame #17: engine::worker_TP0() [0x65c44b]
frame #18: PyRun_StringFlags + 0x63 (0x653403 in engine::worker_TP0)
"""
VALGRIND = """==34== Thread 1:
==34== Invalid write of size 8
==34==    at 0x4088CC4: fill (table.c:872)
==34==    by 0x42397F7: rehash (in /opt/lib/libtable.so.1)
==34==    by 0x1000: main (run.c:12)
==34==  Address 0x14ba3580 is 0 bytes inside a block of size 16 free'd
==34==    at 0x4088CC5: free (vg_replace_malloc.c:872)
==34==    by 0x4239D73: drop (table.c:16)
"""
GO = """goroutine 1 [semacquire, 12 minutes]:
sync.runtime_Semacquire(0xc0001a0?)
\t/go/src/runtime/sema.go:62 +0x25
sync.(*WaitGroup).Wait(0x0?)
\t/go/src/sync/waitgroup.go:116 +0x48
main.main()
\t/src/main.go:40 +0x1a

goroutine 18 [{state}, 12 minutes]:
{call}
main.(*Server).schedule(0xc000180)
\t/src/sched.go:88 +0x5
"""
RAS = """Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  {status}

#0-0 (cf264af53edbe986) {status}
  {line}
  Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.4
"""
NUMBERED = """#0  __syscall_cancel_arch () at ../sysdeps/unix/sysv/linux/x86_64/syscall_cancel.S:56
#1  0x0000761ba94a067c in __internal_syscall_cancel (a1=1, a2=2, a6=0, nr={number}) at ./nptl/cancellation.c:49
#2  0x0000761ba94a0680 in __syscall_cancel (a1=1, a2=2, a6=0, nr={number}) at ./nptl/cancellation.c:75
"""


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


def wait_of(text):
    (process,) = answer(text).processes
    return process.wait.kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (STEP, "exited-or-crashed"),  # nothing but an exception is printed so
        ("Traceback (most recent call first):\n" + STEP, "python-code"),  # gdb's py-bt
        (STEP + "KeyboardInterrupt\n", "python-code"),
        (STEP.replace("in main", "in <module>"), "python-code"),  # traceback.print_stack() begins where the thread does
        (DEQUEUE.format(raises=""), "ipc-queue"),  # an interrupt may have made it
        (DEQUEUE.format(raises="    raise self._exception\n"), "exited-or-crashed"),
        (DEQUEUE.format(raises="    raise self._exception\n") + "KeyboardInterrupt\n", "ipc-queue"),
    ],
)
def test_a_traceback_that_lacks_its_head_and_its_exception(text, kind):
    assert wait_of(text) == kind


@pytest.mark.parametrize(("level", "kind"), [("ERROR", "exited-or-crashed"), ("INFO", "ipc-queue")])
def test_what_a_logger_calls_an_error_is_no_look_at_a_living_thread(level, kind):
    text = "".join(f"{level} 10-27 13:45:16 [core.py:710] {line}\n" for line in DEQUEUE.format(raises="").splitlines())
    assert wait_of(text) == kind


HANGS = """Stack of MainThread:
  File "/opt/app/main.py", line 10, in {begins}
    main()
  File "/opt/app/engine.py", line 91, in step
    message = self.queue.get()
  File "/usr/lib/python3.11/queue.py", line 171, in get
    self.not_empty.wait()
"""


@pytest.mark.parametrize(("begins", "kind"), [("<module>", "ipc-queue"), ("run_engine", "exited-or-crashed")])
def test_a_whole_stack_that_a_watchdog_logs_as_an_error_is_of_a_living_thread(begins, kind):
    lines = HANGS.format(begins=begins).splitlines()
    assert wait_of("".join(f"ERROR 10-27 13:45:16 [watchdog.py:71] {line}\n" for line in lines)) == kind


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ("raise the limit with NCCL_TIMEOUT", "ipc-queue"),
        ("raise Empty", "exited-or-crashed"),
        ("    raise self.errors[0]", "exited-or-crashed"),
        ("    raise Empty() from None", "exited-or-crashed"),
    ],
)
def test_a_sentence_that_begins_as_a_raise_does_is_none(after, kind):
    stack = HANGS.format(begins="<module>").partition("\n")[2].replace("    self.not_empty.wait()\n", "")
    assert wait_of(f"{stack}{after}\n") == kind


def test_source_lines_that_have_lost_their_indentation_are_source_lines():
    frames = 'File "/opt/ray/worker.py", line 919, in get_objects\n{}'
    after = (
        'ray.exceptions.RayTaskError(ActorDiedError): ray::main_task() (pid=129027)\nFile "/opt/app.py", line 9, in f\n'
    )
    found = answer(frames.format("raise value.as_instanceof_cause()\n") + after).processes[0]
    assert [one.kind for one in found.threads] == ["exited-or-crashed", "exited-or-crashed"]
    assert wait_of(frames.format("x, y = self.queue.get()\n")) == "ipc-queue"


def test_who_has_started_the_ranks_is_not_missing_among_them():
    spawned = answer(JOB.format(file="/opt/torch/multiprocessing/spawn.py", function="join"))
    assert (spawned.verdict.cause, spawned.verdict.culprits) == ("unknown", ())
    elsewhere = answer(JOB.format(file="/opt/app/train.py", function="log"))
    assert elsewhere.verdict.cause == "missing-rank"
    alone = answer(
        JOB.format(file="/opt/torch/multiprocessing/spawn.py", function="join").partition("Process Spawn")[0]
    )
    assert alone.verdict.decisive_process == 0


def test_one_library_at_two_places_is_of_two_processes():
    found = answer(SENDS + RECEIVES.format(place="9a"))
    assert [len(one.threads) for one in found.snapshot.processes] == [1, 1]
    assert "If these are two ranks, the calls match" in found.verdict.summary
    assert len(answer(SENDS + RECEIVES.format(place="2d")).snapshot.processes) == 1
    headed = "Thread 2 (LWP 8):\n" + SENDS + "Thread 1 (LWP 7):\n" + RECEIVES.format(place="9a")
    assert len(answer(headed).snapshot.processes) == 1  # the heads say so
    far = RECEIVES.format(place="2d").replace("2d2f5c2031 in PMPI_Recv", "9a2f5c2031 in PMPI_Send")
    assert len(answer(SENDS + far).snapshot.processes) == 1  # a large library has two functions of one name
    many = "".join(RECEIVES.format(place=f"{at:02x}") + "\n" for at in range(80))
    assert len(answer(many).snapshot.processes) == 1  # no job prints so many


def test_the_last_cell_of_a_table_goes_on_in_the_next_line():
    found = answer(CELLS)
    assert (found.verdict.cause, found.verdict.confidence) == ("other", "medium")
    assert "operation not supported" in found.verdict.summary
    assert [frame.module for frame in found.snapshot.processes[0].threads[0].frames] == [
        "/opt/tritonserver/backends/tensorrtllm/libtriton_tensorrtllm.so"
    ] * 2
    assert wait_of("".join(CELLS.splitlines(keepends=True)[-2:])) == "exited-or-crashed"


def test_frames_of_torch_without_a_function_continue_its_stack():
    (process,) = answer(TORCH).snapshot.processes
    (thread,) = process.threads
    assert [frame.function for frame in thread.frames] == [None, "_PyEval_EvalFrameDefault", None, "PyRun_StringFlags"]
    assert wait_of(TORCH) == "exited-or-crashed"


def test_a_report_of_valgrind_is_one_stack_and_what_was_freed_before_is_aside():
    (process,) = answer(VALGRIND).snapshot.processes
    (thread,) = process.threads
    assert (process.source, [frame.function for frame in thread.frames]) == (
        "text:valgrind",
        ["fill", "rehash", "main"],
    )
    assert wait_of(VALGRIND) == "exited-or-crashed"
    told = answer(VALGRIND).verdict
    # valgrind lets it go on
    assert told.summary.endswith(
        " The error was found in fill (table.c:872); the memory was freed in drop (table.c:16)."
    )
    assert "Read the checker's whole report" in told.remedies[0].action  # it need not be run under valgrind
    assert wait_of(VALGRIND[VALGRIND.index("==34==    at") :]) == "native-compute"
    order = '==7== Thread #1: lock order "0x50A7880 before 0x64022F8" violated\n'  # as valgrind 3.12 quotes it
    assert answer(order).verdict.cause == "lock-order-deadlock"


@pytest.mark.parametrize(
    ("state", "call", "thread"),
    [
        ("sync.Mutex.Lock", "sync.(*Mutex).lockSlow(0xc000180)\n\t/go/src/sync/mutex.go:171 +0x15d", "18"),
        (
            "syscall",
            "runtime.cgocall(0x4026b0)\n\t/go/cgocall.go:157 +0x4b\nx._Cfunc_decode(0x7f)\n\t_cgo.go:1 +0x4",
            "18",
        ),
        ("select", "runtime.selectgo(0xc000180)\n\t/go/src/runtime/select.go:327 +0x5", "1"),
    ],
)
def test_a_goroutine_that_waits_for_the_others_decides_where_they_wait_for_work(state, call, thread):
    found = answer(GO.format(state=state, call=call))
    assert found.verdict.decisive_thread == thread


@pytest.mark.parametrize(
    ("status", "line", "cause"),
    [
        ("MISMATCH", "Communicator ranks have different AllReduce operation counts", "unknown"),
        ("INCOMPLETE", "Missing communicator data from 1 rank", "missing-rank"),
        ("DEAD", "1 job process is considered dead (unreachable via the RAS network)", "missing-rank"),
    ],
)
def test_reports_of_ras(status, line, cause):
    found = answer(RAS.format(status=status, line=line)).verdict
    assert (found.cause, found.confidence, found.culprits) == (cause, "low", ())


@pytest.mark.parametrize(("number", "kind"), [(61, "io"), (232, "io"), (230, "condvar-idle"), (9999, "condvar-idle")])
def test_a_system_call_by_its_number(number, kind):
    assert wait_of(NUMBERED.format(number=number)) == kind


@pytest.mark.parametrize(("call", "kind"), [("__memcpy_avx_unaligned", "native-compute"), ("poll", "condvar-idle")])
def test_a_thread_of_a_pool_that_copies_is_at_work(call, kind):
    assert (
        wait_of(f"#0  {call} ()\n#1  mooncake::MemcpyWorkerPool::workerThread () from /opt/store.so\n#2  clone3\n")
        == kind
    )


@pytest.mark.parametrize(
    "text",
    [
        "C++ Traceback (most recent call last):\n0   paddle::imperative::BasicEngine::Execute()\n1   paddle::framework::TensorCopySync(paddle::framework::Tensor*)\n",
        "  [bt] (4) /opt/lib/libxgboost.so(+0x3ddbd0) [0x7f7341225bd0]\n  [bt] (5) /opt/lib/libxgboost.so(XGBoosterUpdateOneIter+0x8a) [0x7f734105f35a]\n",
        "#5 c10::Error::Error(c10::SourceLocation, std::string) from ??:0\n#6 at::cuda::CUDAEvent::record(at::cuda::CUDAStream const&) from ??:0\n",
        "   5: core::result::unwrap_failed\n             at /rustc/1/library/core/src/result.rs:1651:5\n   6: tokio::runtime::scheduler::multi_thread::worker::run\n",
    ],
    ids=["paddle", "dmlc", "torch", "rust"],
)
def test_stacks_that_only_an_error_prints(text):
    assert wait_of(text) == "exited-or-crashed"


FAULT = "AMD-Vi: Event logged [IO_PAGE_FAULT device=03:00.0 domain=0x0001 address=0xfef00000 flags=0x0000]\n"


def test_an_iommu_fault_of_some_device_does_not_hide_what_a_rank_says():
    assert answer(FAULT).verdict.cause == "p2p-or-topology"
    assert (
        answer(FAULT + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n").verdict.cause == "other"
    )


@pytest.mark.parametrize(("after", "cause"), [("", "other"), (", trying next port 8001", "unknown")])
def test_a_port_in_use_is_no_end_where_another_one_is_tried(after, cause):
    assert answer(f"Port 8000: Address already in use{after}\n").verdict.cause == cause


@pytest.mark.parametrize(("receivers", "fit"), [(1, True), (2, False)])
def test_one_sender_and_one_receiver_fit_each_other(receivers, fit):
    found = answer(SENDS + "".join(RECEIVES.format(place=f"9{at}") + "\n" for at in range(receivers)))
    assert ("the calls match" in found.verdict.summary) is fit
