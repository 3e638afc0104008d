"""Reports of tools that watch memory and locks: where something was is told, and nobody is said to have died."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

TSAN = """WARNING: ThreadSanitizer: heap-use-after-free (pid=57253)
  Write of size 8 at 0x7b04010568e8 by main thread:
    #0 memset <null> (libtsan.so.0+0x32265)
    #1 kernels::Mean::eval() const <null> (libkernels.so+0x137178)
    #2 main <null> (record+0x84aa)

  Previous write of size 8 at 0x7b04010568e8 by main thread:
    #0 operator delete(void*) <null> (libtsan.so.0+0x740cd)
    #1 kernels::Mean::configure() <null> (libkernels.so+0x13a8fe)
"""
LOCKS = """WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=12006)
  Cycle in lock order graph: M1140390714182500064 (0x000000000000) => M34319 (0x7b88) => M1140390714182500064

  Mutex M34319 acquired here while holding mutex M1140390714182500064 in thread T146:
    0 pthread_mutex_lock <null> (replica+0x12573c6)
    1 std::lock_guard<std::mutex>::lock_guard(std::mutex&) /usr/include/c++/7.5/std_mutex.h:162:19 (replica+0x14e)
    2 Batching::onFlushTimer(Handle) /src/Batching.cpp:51:23 (replica+0x1dbf6c5)
"""
ASAN = """==584==ERROR: AddressSanitizer: heap-use-after-free on address 0x616 at pc 0x7f bp 0x7f sp 0x7f
WRITE of size 8 at 0x616 thread T6
    #0 0x7f1 in __interceptor_memcpy (/lib/libasan.so.6+0xb0)
    #1 0x7f2 in std::copy<int*>(int*, int*) /usr/include/c++/13/bits/stl_algobase.h:3
    #2 0x7f3 in fill(int*) /src/fill.cc:7:3
freed by thread T2 here:
    #0 0x7f1 in operator delete(void*) (/lib/libasan.so.6+0xb1)
    #1 0x7f4 in release() /src/fill.cc:70:3
previously allocated by thread T2 here:
    #0 0x7f1 in operator new(unsigned long) (/lib/libasan.so.6+0xb2)
    #1 0x7f4 in reserve() /src/fill.cc:60:3
"""
HWASAN = """==7==ERROR: HWAddressSanitizer: tag-mismatch on address 0xefdeffff0040 at pc 0xaaa
READ of size 4 at 0xefdeffff0040 tags: 74/32 (ptr/mem) in thread T0
    #0 0xaaa in use(int*) /src/use.cc:12:5

freed by thread T0 here:
    #0 0xaa1 in free /src/compiler-rt/lib/hwasan/hwasan_allocation_functions.cpp:99:3
    #1 0xaab in drop /src/main.cc:4:3
"""
MSAN = """==123==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x4a1 in decode(int*) /src/decode.cc:12:5

  Uninitialized value was created by a heap allocation
    #0 0x4a1 in malloc (/src/a.out+0x45)
    #1 0x4a2 in make /src/main.cc:3:3
"""
UBSAN = """src/a.cc:12:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'
    #0 0x4a1 in add(int) src/a.cc:12:5
"""
HELGRIND = """==17== Possible data race during write of size 4 at 0x309010 by thread #2
==17== Locks held: none
==17==    at 0x1087: work (race.c:10)
==17==    by 0x4C: mythread_wrapper (hg_intercepts.c:389)
==17==
==17== This conflicts with a previous write of size 4 by thread #1
==17== Locks held: none
==17==    at 0x1088: main (race.c:22)
"""
DRD = """==18== Conflicting store by thread 1 at 0x006006b4 size 4
==18==    at 0x40067A: main (race.c:22)
==18== Other segment start (thread 2)
==18==    at 0x40060: work (race.c:10)
"""
RACE = """41: WARNING: ThreadSanitizer: data race (pid=10083)
41:   Read of size 8 at 0x7f331cd99808 by thread T1:
41:     #0 std::vector<int*>::end() /usr/include/c++/13/bits/stl_vector.h:894 (libllama.so.0+0x44e708)
41:     #1 compute_forward /src/traits.cpp:13 (libggml-cpu.so.0+0x62e8c)
"""
TAIL = """=========         Host Frame: std::function<void ()>::operator()() const [0x11ec83] in llama-server
=========         Host Frame: server_queue::start_loop() [0x10ae80] in llama-server
=========         Host Frame: main in server.cpp:5022 [0xc9700] in llama-server
=========
"""
GDB = """#0  0x00007f01 in memset () from /lib/libc.so.6
#1  0x00007f02 in kernels::Mean::eval () from /opt/libkernels.so
#2  0x00007f03 in main () from /opt/app/app
"""


def of(text):
    return judge(parse_files([("a.txt", text.encode())]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TSAN, "in kernels::Mean::eval (libkernels.so); the memory was freed in kernels::Mean::configure"),
        (LOCKS, "Thread T146 took lock M34319 while it held M1140390714182500064, in Batching::onFlushTimer"),
        (ASAN, "in fill (fill.cc:7); the memory was freed in release (fill.cc:70)."),
        (HWASAN, "in use (use.cc:12); the memory was freed in drop (main.cc:4)."),
        (MSAN, "The error was found in decode (decode.cc:12)."),
        (UBSAN, "leaves undefined"),
        (HELGRIND, "in work (race.c:10); the other access was in main (race.c:22)."),
        (DRD, "in main (race.c:22); the other access was in work (race.c:10)."),
        (RACE, "(a data race)"),
    ],
)
def test_a_report_is_told_by_its_places(text, said):
    answer = of(text)
    assert said in answer.verdict.summary
    assert "died" not in answer.verdict.summary
    assert answer.verdict.confidence == "low"
    assert "Dump all threads" not in answer.verdict.remedies[0].action


def test_a_report_without_its_head_is_no_look_at_a_process():
    verdict = of(TAIL).verdict
    assert "its first lines, which name the error, are missing" in verdict.summary
    assert verdict.remedies[0].action.startswith("Save the whole report, from its first line on")
    assert "first lines, which name the error" not in of(GDB).verdict.summary


def test_a_stack_of_a_debugger_is_no_report():
    assert [thread.problems for process in of(GDB).snapshot.processes for thread in process.threads] == [()]
    assert "report" not in of(GDB).verdict.summary


def test_the_number_of_a_test_is_no_rank():
    (process,) = of(RACE).snapshot.processes
    assert (process.rank, process.pid) == (None, 10083)
    two_ranks = RACE + RACE.replace("41:", "42:").replace("10083", "10084")
    assert sorted(one.rank for one in of(two_ranks).snapshot.processes) == [41, 42]
    labelled = "".join(f"41: {line}\n" for line in GDB.splitlines())  # by srun --label
    assert [one.rank for one in of(labelled).snapshot.processes] == [41]


def test_a_race_does_not_explain_who_waits():
    lost = (
        "[rank0]:[E101 10:00:00] [PG 0 Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
    )
    assert of(lost + "WARNING: ThreadSanitizer: data race (pid=10083)\n").verdict.cause == of(lost).verdict.cause
