"""Sentences and advice fit what the pasted text shows: a text for each kind that once got those of another one."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.wording import closed, filled_in
from gdbext.commands.explain import explain
from gdbext.model.explanation import Explanation
from gdbext.parsers import parse_files

KERNEL = "stack:  dup_mmap → dup_mm → copy_process → kernel_clone → __do_sys_clone → do_syscall_64\n"
METAL = """\
* thread #1, queue = 'com.apple.main-thread', stop reason = signal SIGSTOP
  * frame #0: 0x00000001aa919084 Metal`pthread_cond_wait + 12
    frame #1: 0x00000001aa78b1b4 Metal`-[_MTLCommandBuffer waitUntilCompleted] + 84
    frame #2: 0x00000001032bf358 libtorch_python.dylib`torch::mps::MPSModule_deviceSynchronize(_object*, _object*) + 40
"""
ASSERT = """\
/src/IndexKernel.cu:92: operator(): block: [0,0,0], thread: [92,0,0] Assertion `index < sizes[i]` failed.
RuntimeError: CUDA error: device-side assert triggered
"""
DRIVER_LOCK = """\
#0  0x00007fd568542117 in __futex_abstimed_wait_common () from /lib/libc.so.6
#1  0x00007fd56854924f in pthread_rwlock_wrlock () from /lib/libc.so.6
#2  0x00007fd4e6597fd4 in ?? () from /usr/local/cuda/compat/libcuda.so.1
#3  0x00007fd4e620bc4e in ?? () from /usr/local/cuda/compat/libcuda.so.1
#4  0x00007fd51234a3bd in uct_cuda_ipc_iface_init_streams (iface=0x7fd2a40c7000) at cuda_ipc/cuda_ipc_iface.c:400
"""
LOCK_CHECK = """\
#0  0x00007f7d3369552c in __pthread_kill_implementation () from /usr/lib64/libc.so.6
#1  0x00007f7d33648686 in raise () from /usr/lib64/libc.so.6
#2  0x0000000011be4d3c in abort () from /usr/lib64/libc.so.6
#3  0x00007f7d33323e51 in absl::lts_20240722::DeadlockCheck(absl::lts_20240722::Mutex*) () from /opt/libabsl.so
#4  0x00007f7d3332422e in absl::lts_20240722::Mutex::Lock() () from /opt/libabsl.so
"""
ALLOCATOR = """\
#0  0x00b566d1 in SpinLock::SlowLock (this=0xb6542c) at ./src/base/linux_syscall_support.h:2269
#1  0x00b3bac4 in MallocBlock::ProcessFreeQueue (b=0xad31000, size=16408) at src/base/spinlock.h:74
#2  0x00b59c17 in operator delete[] (ptr=0xad31010) at src/debugallocation.cc:1290
#3  0x00b3b817 in MallocBlock::ProcessFreeQueue (b=0xabbaa80, size=56) at src/symbolize.h:53
"""
GO = """\
goroutine 9867 [semacquire, 12 minutes]:
sync.runtime_Semacquire(0x16e4b30c)
    /usr/local/go/src/pkg/runtime/sema.goc:199 +0x34
sync.(*RWMutex).RLock(0x16e4b300)
    /usr/local/go/src/pkg/sync/rwmutex.go:36 +0x84
"""
UNIQUE_ID = """\
[rank2]: frame #4: c10d::TCPStore::get(std::string const&) + 0x7a (0x7f2b5b56d849 in /lib/libtorch_cpu.so)
[rank2]: frame #5: c10d::ProcessGroupNCCL::broadcastUniqueNCCLID(ncclUniqueId*, bool, std::string const&, int) + 0xaf (0x7f65 in /lib/libtorch_cuda.so)
[rank2]: frame #6: c10d::ProcessGroupNCCL::getNCCLComm(std::string const&, c10::Device&, c10d::OpType) + 0xfbd (0x7f65 in /lib/libtorch_cuda.so)
"""  # noqa: E501
THROWN = """\
terminate called after throwing an instance of 'std::runtime_error'
  what():  no such tensor: kv_cache
#0  0x00007f31a90c4d7c in __pthread_kill_implementation () from /lib/libc.so.6
#1  0x00007f31a90759c6 in raise () from /lib/libc.so.6
#2  0x00007f31a905e8fa in abort () from /lib/libc.so.6
"""
TWO_THREADS = """\
Thread 1 (Thread 0x7f1 (LWP 11)):
#0  0x00007f0a in __lll_lock_wait () from /lib/libc.so.6
#1  0x00007f0b in pthread_mutex_lock (mutex=0x5500) from /lib/libc.so.6
#2  0x00005501 in Cache::evict (this=0x1) at cache.cc:20
Thread 2 (Thread 0x7f2 (LWP 12)):
#0  0x00007f0c in nanosleep () from /lib/libc.so.6
#1  0x00005502 in heartbeat () at main.cc:9
"""
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:821] [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=512012, OpType=ALLTOALL_BASE, Timeout(ms)=1800000) ran for 1803059 milliseconds\n"
)


def diagnosis(text):
    return judge(parse_files([("pasted.txt", text.encode())]))


def told(text):
    """The summary, and all advice in one text."""
    verdict = diagnosis(text).verdict
    return verdict.summary, " | ".join(remedy.action for remedy in verdict.remedies)


def test_no_debugger_attaches_to_a_stack_of_the_kernel():
    summary, advice = told(KERNEL)
    assert "kernel lock" in summary
    assert "/proc/PID/task/*/stack" in advice and "gdb -p" not in advice


def test_apples_gpu_has_no_ranks():
    diagnosed = diagnosis(METAL)
    text = " ".join([diagnosed.verdict.summary, *diagnosed.verdict.missing, *map(str, diagnosed.verdict.remedies)])
    assert "MTL_DEBUG_LAYER" in text and "rank" not in text and "collective" not in text


def test_an_assert_of_a_kernel_is_quoted_with_its_line():
    summary, advice = told(ASSERT)
    assert "index < sizes[i], at IndexKernel.cu:92" in summary
    assert "CUDA_LAUNCH_BLOCKING=1" in advice and "sanitizer" not in advice


def test_a_lock_is_of_the_library_that_waits_not_of_who_called_it():
    summary, _ = told(DRIVER_LOCK)
    assert "a lock in an unnamed function of libcuda.so.1, called from uct_cuda_ipc_iface_init_streams" in summary
    assert "usually that thread is in a CUDA call too" in summary


def test_a_check_of_lock_orders_is_named_and_has_a_report():
    summary, advice = told(LOCK_CHECK)
    assert "DeadlockCheck" in summary and "Mutex::Lock" not in summary
    assert "Potential Mutex deadlock" in advice and advice.count(" | ") == 0


def test_an_allocator_that_waits_for_itself_is_not_mended_by_the_program():
    _, advice = told(ALLOCATOR)
    assert "Update the allocator" in advice and "signal handler" not in advice


def test_a_command_that_may_not_work_names_another_one_behind_it():
    advice, _, _ = told(GO)[1].partition(" | ")
    assert "debug/pprof" in advice and advice.endswith(
        "(without net/http/pprof: kill -QUIT PID, which ends the process)"
    )


def test_the_exchange_of_an_id_is_no_collective():
    assert diagnosis(UNIQUE_ID).processes[0].wait.collective is None


def test_the_text_of_an_exception_is_quoted():
    assert '"no such tensor: kv_cache"' in told(THROWN)[0]


def test_who_has_dumped_all_threads_need_not_do_that():
    _, advice = told(TWO_THREADS)
    assert "x/3dw 0x5500" in advice and "Dump all threads" not in advice


def test_the_table_has_the_operation_that_a_watchdog_gave_up():
    assert diagnosis(WATCHDOG).processes[0].wait.collective == "alltoall_base"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("poll, called from decode (gpt.cc:66)", "It waits in poll, called from decode (gpt.cc:66), for data."),
        ("poll", "It waits in poll for data."),
    ],
)
def test_an_aside_in_the_middle_of_a_sentence_is_closed(place, sentence):
    assert filled_in("It waits in {where} for data.", {"where": place}) == sentence
    assert filled_in("It is in {where}.", {"where": place}) == f"It is in {place}."
    assert closed(closed(place)) == closed(place)


def explained(label):
    one = explain(label)
    assert isinstance(one, Explanation)
    return one


def test_the_usual_causes_of_a_wait_come_from_the_graph():
    assert {"missing-rank", "collective-mismatch", "multi-comm-ordering"} <= set(explained("nccl-group-launch").related)
    assert {"missing-rank", "collective-mismatch"} <= set(explained("stream-sync").related)
    assert "missing-rank" in explained("spinning").related
    assert explained("pinned-host-alloc").related[0] == "implicit-sync-vs-collective"


def test_conditions_begin_with_what_was_read():
    advice = [one.action for one in explained("module-load").remedies]
    assert any(
        one.startswith("If you pasted the stacks of one process only and the cause is unknown: ") for one in advice
    )


def test_who_sends_waits_for_room():
    place = "vllm/distributed/device_communicators/shm_broadcast.py"
    summary, _ = told(f'Thread 77 (active): "MainThread"\n    acquire_write ({place}:402)\n    enqueue ({place}:510)\n')
    assert "waits for room in a queue" in summary and "has not taken its messages" in summary


FETCHES = """Thread 0x7FA6E7057740 (idle): "MainThread"
    wait (threading.py:302)
    get (queue.py:170)
    {} (fairseq/data/iterators.py:648)
    train (fairseq_cli/train.py:274)
    distributed_main (fairseq/distributed/utils.py:326)
"""


def test_a_loader_s_queue_is_filled_by_a_thread_of_the_same_process():
    verdict = judge(parse_files([("dump.txt", FETCHES.format("__next__").encode())])).verdict
    assert verdict.cause == "missing-rank"
    assert verdict.remedies[0].action.startswith("Dump all threads of this process and its DataLoader workers")
