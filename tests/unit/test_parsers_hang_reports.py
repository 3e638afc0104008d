# ruff: noqa: E501 - lines of logs are as long as they are
"""Ways in which hangs are reported: the kernel's older reports, notebooks, launchers' labels, resolved addresses."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def read(text):
    return parse_files([("paste.txt", text.encode())])


def only(text):
    """(rank, thread id, names of frames, kind) of the only thread."""
    (process,) = read(text).processes
    (thread,) = process.threads
    kind = judge(read(text)).processes[0].threads[0].kind
    return process.rank, thread.id, [frame.function for frame in thread.frames], kind


FRAMES = "{0}Call Trace:\n{0} [<ffffffff81090dfe>] ? prepare_to_wait_exclusive+0x4e/0x80\n{0} [<ffffffffa01c453c>] cv_wait_common+0x9c/0x1a0 [spl]\n{0} [<ffffffff811a54dd>] vfs_fsync+0x1d/0x20\n"


@pytest.mark.parametrize("clock", ["", "[ 1326.467155] ", "[Wed Sep  6 02:30:18 2018] "])
@pytest.mark.parametrize(
    "head",
    [
        "nfsd          D 0000000000000006     0  7576      2 0x00000080",
        "nfsd        D    0   7576    460 0x0000022c",
        "task:nfsd            state:D stack:    0 pid: 7576 ppid:  2 flags:0x00000002",
    ],
)
def test_a_task_that_the_kernel_calls_blocked(head, clock):
    text = f"{clock}INFO: task nfsd:7576 blocked for more than 120 seconds.\n{clock}{head}\n" + FRAMES.format(clock)
    assert only(text) == (None, "7576", ["cv_wait_common", "vfs_fsync"], "io")


def test_each_task_of_the_kernels_log_has_its_number_and_name():
    log = (
        "[ 492.684992]  ret_from_fork_asm+0x1b/0x30\n"
        "[ 492.685007] INFO: task kworker/12:4:2320 blocked for more than 122 seconds.\n"
        "[ 492.685078] task:kworker/12:4    state:D stack:0     pid:2320  tgid:2320  ppid:2      flags:0x00004000\n"
        "[ 492.685583]  schedule+0x33/0x110\n"
        "[ 492.685611]  dma_fence_default_wait+0x1e1/0x220\n"
        "[ 493.000000] task:smi    state:D stack:0     pid:2400  tgid:2400  ppid:2      flags:0x00004000\n"
        "[ 493.000000]  down_read+0x33/0x110\n"
        "[ 613.000000] INFO: task kworker/12:4:2320 blocked for more than 245 seconds.\n"
        "[ 613.000000]  schedule+0x33/0x110\n"
    )
    found = [(one.pid, one.title, [thread.id for thread in one.threads]) for one in read(log).processes]
    assert found == [(2320, "kworker/12:4", ["2320"]), (2400, "smi", ["2400"])]


@pytest.mark.parametrize("command", ["$ sudo cat /proc/{}/stack", "==> /proc/{}/stack <==", "/proc/{}/stack:"])
def test_files_of_stacks_in_the_kernel_are_of_the_processes_in_their_names(command):
    text = "".join(
        f"{command.format(pid)}\n[<0>] down+0x41/0x50\n[<0>] do_exit+0x3/0x50\n" for pid in (71, "72/task/75")
    )
    found = [(one.pid, [thread.id for thread in one.threads]) for one in read(text).processes]
    assert found == [(71, ["1"]), (72, ["75"])]


def test_a_task_of_the_kernels_log_may_be_a_thread_that_a_debugger_shows():
    gdb = 'Thread 1 (Thread 0x7f01 (LWP 7576) "nfsd"):\n#0  0x00007f01 in ioctl () from /lib/libc.so.6\n'
    log = "INFO: task nfsd:7576 blocked for more than 120 seconds.\n" + FRAMES.format("")
    (process,) = read(gdb + log).processes
    assert (process.pid, [thread.id for thread in process.threads]) == (None, ["1", "7576"])


def test_frames_of_the_kernel_without_addresses():
    text = (
        "[ 3021.768009] worker          D    0   464    460 0x0000022c\n"
        "[ 3021.773418] Call trace:\n"
        "[ 3021.789762]  dma_fence_default_wait+0x1a0/0x1d8\n"
        "[ 3021.798530]  lima_vm_bo_del+0x1b8/0x1d0 [lima]\n"
    )
    assert only(text) == (None, "464", ["dma_fence_default_wait", "lima_vm_bo_del"], "device-sync")


@pytest.mark.parametrize(
    "frames",
    [
        "~/work/run.py in main(self)\n     97     x\n---> 98     step()\n\n/opt/lib/threading.py in wait(self, timeout)\n--> 312     waiter.acquire()\n",
        "File ~/work/run.py:98, in main(self)\n     97     x\n---> 98     step()\n\nFile /opt/lib/threading.py:312, in wait(self, timeout)\n--> 312     waiter.acquire()\n",
    ],
)
def test_a_notebook_that_was_interrupted_shows_where_it_stood(frames):
    text = "KeyboardInterrupt                         Traceback (most recent call last)\n" + frames
    assert only(text)[2:] == (["acquire", "wait", "main"], "condvar-idle")


CUT = """KeyboardInterrupt                         Traceback (most recent call last)
<timed exec> in <module>()

~/lib/dask/base.py in compute(self, **kwargs)
     97             Extra
---> 99         {line}
    100         raise ValueError(result)
"""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("(result,) = compute(self)", "was in a call from compute (dask/base.py:99) when Ctrl-C"),
        ("results = get(dsk, keys, **kwargs)", "The traceback is cut behind a call of get(): the frames further in"),
        ("results = [get(one) for one in keys]", "The traceback is cut behind that line: the frames further in"),
        (
            "results = get(dsk)\n\nKeyboardInterrupt: ",
            "when Ctrl-C or a signal handler interrupted it (KeyboardInterrupt)",
        ),
        ("waiter.acquire()", "when Ctrl-C or a signal handler interrupted it (KeyboardInterrupt)"),  # nothing is inside
    ],
)
def test_a_notebook_whose_last_line_is_missing_has_lost_the_frames_further_in(line, says):
    verdict = judge(read(CUT.format(line=line))).verdict
    assert says in verdict.summary
    is_cut = "is cut behind" in verdict.summary
    assert verdict.remedies[0].action.startswith("Read the rest of the traceback") == is_cut
    assert ("is cut" in says or "in a call from" in says) == is_cut


def test_the_console_of_an_editors_debugger():
    text = '>~"#0  0x00007f05b911acb5 in epoll_wait () from /usr/lib/libc.so.6\\n"\n>~"#1  0x00007f05ba596909 in ofi_epoll_wait (ep=14) at ofi_epoll.h:172\\n"\n'
    assert only(text) == (None, "1", ["epoll_wait", "ofi_epoll_wait"], "mpi")


def test_labels_of_mpirun_are_no_numbers_of_frames():
    text = (
        "[2] pending requests\n[2] of pool 0\n"
        "[2] /opt/lib/libmpi.so.0(MPL_backtrace_show+0x39) [0x7f641d260f09]\n"
        "[2] /opt/lib/libmpi.so.0(MPI_Barrier+0x30a) [0x7f641ceeea5a]\n"
        "[2] ./app(+0x126d) [0x56039857f26d]\n"
    )
    rank, _, frames, kind = only(text)
    assert (rank, frames[:2], kind) == (2, ["MPL_backtrace_show", "MPI_Barrier"], "mpi")


def test_numbers_of_frames_are_no_labels():
    text = "".join(f"[{n}] /opt/lib/libx.so(f{n}+0x39) [0x7f641d260f0{n}]\n" for n in range(3))
    assert only(text)[:3] == (None, "1", ["f0", "f1", "f2"])


def test_addresses_that_gdb_has_resolved():
    text = "0x560ed is in je_malloc_mutex_lock_slow (include/atomic.h:69).\n0x4aca0 is in extent_split_impl (src/extent.c:205).\n"
    assert only(text)[2:] == (["je_malloc_mutex_lock_slow", "extent_split_impl"], "mutex")


def test_the_launcher_of_paddle_names_the_rank_that_died():
    text = "LAUNCH ERROR Container failed !!!\nContainer rank 3 status failed cmd ['python', 'train.py'] code -6 log log/x.log\n"
    (process,) = read(text).processes
    (judged,) = judge(read(text)).processes
    assert (process.rank, judged.wait.kind) == (3, "exited-or-crashed")


@pytest.mark.parametrize("clock", ["", "[  +0.000049] ", "[12345.678901] ", "Nov 19 11:03:26.198647 node1 kernel: "])
def test_a_task_of_the_kernel_behind_any_clock(clock):
    lines = (
        "task:nv_open_q       state:D stack:0     pid:1014  tgid:1014  ppid:2      flags:0x00004000",
        "Call Trace:",
        " schedule+0x33/0x110",
        " rwsem_down_write_slowpath+0x27e/0x550",
        " os_acquire_rwlock_write+0x3c/0x70 [nvidia]",
    )
    snapshot = read("".join(f"{clock}{line}\n" for line in lines))
    (process,) = snapshot.processes
    assert [thread.id for thread in process.threads] == ["1014"]
    assert judge(snapshot).processes[0].wait.kind == "mutex"


@pytest.mark.parametrize(
    "place", ["torch/multiprocessing/spawn.py", "torch/distributed/elastic/multiprocessing/api.py"]
)
def test_a_parent_waits_for_the_end_of_its_processes_not_for_a_queue(place):
    lines = (
        '  File "/srv/train.py", line 9, in main',
        f'  File "/x/lib/python3.8/{place}", line 99, in wait',
        '  File "/x/lib/python3.8/multiprocessing/connection.py", line 931, in wait',
        '  File "/x/lib/python3.8/selectors.py", line 415, in select',
    )
    found = judge(read("\n".join(("^CTraceback (most recent call last):", *lines, ""))))
    assert found.processes[0].wait.kind == "condvar-idle"


TOP = """\
GIL: 49.00%, Active: 100.00%, Threads: 5

  %Own   %Total  OwnTime  TotalTime  Function (filename)
 54.00%  54.00%    5.03s     5.03s   sched_yield (vllm/distributed/utils.py)
 14.00% 100.00%    1.09s     8.95s   acquire_read (vllm/distributed/device_communicators/shm_broadcast.py)
  0.00% 100.00%   0.000s     8.95s   worker_busy_loop (vllm/v1/executor/multiproc_executor.py)
"""


def test_the_table_of_pyspy_top_has_functions_without_their_numbers():
    _, _, names, _ = only(TOP)
    assert names == ["sched_yield", "acquire_read", "worker_busy_loop"]
    found = judge(read(TOP)).verdict
    assert found.cause == "not-a-hang" and "acquire_read (shm_broadcast.py) is where idle workers wait" in found.summary


def test_a_message_of_the_kv_pipe_is_no_rendezvous():
    key = "[pynccl_pipe.py:265] wait timeout after 300000ms, keys: {}"
    late = judge(read(key.format("/send_to/1/40\n"))).verdict
    assert late.cause == "unknown" and "a message that another process sends through torch's store" in late.summary
    assert judge(read(key.format("/default_pg/0//cuda//0\n"))).verdict.cause == "init-rendezvous"
