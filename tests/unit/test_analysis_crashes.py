"""Pasted crashes: the check that failed is message and place, the engine's frame is the one that was checked."""

from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files
from gdbext.parsers.cleaning import with_plus

CRASHES = Path(__file__).parents[1] / "data" / "crashes"
ILLEGAL = '"an illegal memory access was encountered" (cudaErrorIllegalAddress, 700)'
FFN = "/opt/ft/src/fastertransformer/layers/FfnLayer.cc:214"
EXPECTED = {  # name: cause, confidence, who, what the summary says, the engine's frame
    "open-mpi-demangled": ("gpu-fault", "high", "pid 946", (f"{FFN}: {ILLEGAL}",),
                           "fastertransformer::FfnLayer<__half>::forward"),
    "open-mpi-mangled": ("gpu-fault", "high", "pid 946", (f"{FFN}: {ILLEGAL}",),
                         "fastertransformer::ParallelGpt<…>::forward"),
    "two-ranks": ("gpu-fault", "medium", "rank 1 and pid 8770", ("utils/allocator.h:160: " + ILLEGAL,),
                  "fastertransformer::Allocator<(fastertransformer::AllocatorType)0>::malloc"),
    "tagged-ranks": ("gpu-fault", "high", "rank 2", ("DecoderSelfAttentionLayer.cc:641: \"misaligned address\"",),
                     "fastertransformer::DecoderSelfAttentionLayer<…>::forward"),
    "tensorrt-llm-exception": ("gpu-fault", "high", "pid 40213", ("runtime/cudaEvent.h:66: " + ILLEGAL,),
                               "tensorrt_llm::batch_manager::TrtGptModelInflightBatching::decoderSync"),
    "triton-server": ("gpu-fault", "low", "the process", ("utils/memory_utils.cu:96: " + ILLEGAL,),
                      "fastertransformer::ParallelGpt<__half>::forward"),
    "torch-watchdog": ("gpu-fault", "high", "thread 1 of rank 3", (ILLEGAL[1:],),
                       "c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal"),
    "glog-check": ("gpu-fault", "high", "pid 685", ("attention_layer.cc:297", "cudaErrorIllegalAddress, 700"),
                   "engine::AttentionLayer::Forward"),
    "turbomind-log": ("gpu-fault", "medium", "", ("turbomind/core/stream.h:27: " + ILLEGAL,), None),
    "turbomind-check": ("other", "medium", "the process",
                        ('unified_decoder.cc:112: "Check failed: hidden.dtype() == residual.dtype() (half vs. float)',),
                        "turbomind::UnifiedDecoder::Forward"),
    "no-config": ("other", "medium", "pid 1", ("ParallelGptTritonModel.cc:182: \"Can't load /models/gpt",),
                  "ParallelGptTritonModel<…>::ParallelGptTritonModel"),
    "out-of-memory": ("other", "medium", "pid 946",
                      ('memory_utils.cu:32: "out of memory" (cudaErrorMemoryAllocation, 2)', "The checked call itself"),
                      "fastertransformer::deviceMalloc<…>"),
}  # fmt: skip


def read(name, change=lambda text: text):
    text = change((CRASHES / f"{name}.txt").read_text())
    return judge(parse_files([(f"{name}.txt", text.encode())]))


def engine_frame(answer):
    process = next((one for one in answer.snapshot.processes if one.threads), None)
    if process is None:
        return None
    judged = answer.processes[process.index]
    position = next(at for at, one in enumerate(process.threads) if one.id == (judged.wait.thread or "1"))
    number = judged.threads[position].engine_frame
    number = judged.threads[position].frame if number is None else number
    return process.threads[position].frames[number].function


@pytest.mark.parametrize("name", EXPECTED)
def test_the_check_that_failed_is_message_and_place(name):
    cause, confidence, who, said, frame = EXPECTED[name]
    answer = read(name)
    verdict = answer.verdict
    assert (verdict.cause, verdict.confidence) == (cause, confidence), verdict.summary
    assert verdict.summary.lower().startswith(f"{who} ended on a failed check" if who else "a check failed at")
    assert all(one in verdict.summary for one in said), verdict.summary
    assert engine_frame(answer) == frame
    quoted = [one.text for one in verdict.evidence if one.text.startswith("the failed check says: ")]
    assert len(quoted) == 1 and "what()" not in quoted[0]
    assert not any("could not be understood" in problem for problem in answer.snapshot.problems)


def test_every_crash_is_expected_to_say_something():
    assert {path.stem for path in CRASHES.glob("*.txt")} == set(EXPECTED)


def plus_to_blank(text):
    """What a form does to a text."""
    return text.replace("+", " ")


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"turbomind-check"}))
def test_a_blank_for_each_plus_changes_nothing(name):
    def calls(answer):
        return [[(frame.function, frame.module) for frame in thread.frames]
                for process in answer.snapshot.processes for thread in process.threads]  # fmt: skip

    plain, lost = read(name), read(name, plus_to_blank)
    assert calls(lost) == calls(plain) and lost.verdict.summary == plain.verdict.summary


@pytest.mark.parametrize(
    ("line", "restored"),
    [
        ("/lib/libx.so(ft::f(char const*, int) 0x481)[0x7f01]", "/lib/libx.so(ft::f(char const*, int)+0x481)[0x7f01]"),
        ("/usr/lib/libstdc  .so.6( 0x9e911) [0x7f01]", "/usr/lib/libstdc++.so.6(+0x9e911) [0x7f01]"),
        ("/lib/libstdc.so.6(0x9e911)[0x7f01]", "/lib/libstdc++.so.6(+0x9e911)[0x7f01]"),
        ("/lib/libc.so.6(abort0x12b) [0x7f01]", "/lib/libc.so.6(abort+0x12b) [0x7f01]"),
        ("frame #1: <unknown function>   0x145c0 (0x7f01 in /opt/libtorch.so)",
         "frame #1: <unknown function> + 0x145c0 (0x7f01 in /opt/libtorch.so)"),
        ("3       0x7f01 ns::f(int)   1903", "3       0x7f01 ns::f(int) + 1903"),
        ("#3  0x00007f01 in poll () from /lib/libc.so.6", "#3  0x00007f01 in poll () from /lib/libc.so.6"),
        ("0x7f01 and   three blanks", "0x7f01 and   three blanks"),
    ],
)  # fmt: skip
def test_where_a_plus_was(line, restored):
    assert with_plus(line) == restored


def test_lines_of_nobody_are_not_of_the_first_of_several_processes():
    snapshot = read("two-ranks").snapshot
    assert [one.pid for one in snapshot.processes] == [8771, 8770]
    assert not any("CUDA" in line for one in snapshot.processes for line in one.said)
    assert any("CUDA runtime error" in line for line in snapshot.said)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "[FT][ERROR] CUDA runtime error: out of memory /w/a.cc:3",
            "other",
        ),  # a failed allocation, and nothing else is known
        (
            "RuntimeError: [FT][ERROR] CUDA runtime error: an illegal memory access was encountered /w/a.cc:3",
            "gpu-fault",
        ),
        ("[TM][FATAL][1122.10:43:33.428604][stream.cc:16] CUDA error: unspecified launch failure", "gpu-fault"),
        ("NCCL WARN Call to connect returned Connection refused", "init-rendezvous"),
        (
            "Timed out initializing process group in store based barrier on rank 3, for key: store_based_barrier_key:1 "
            "(world_size=4, num_workers_joined=3, timeout=0:30:00 error=None)",
            "init-rendezvous",
        ),
        (
            "MPIDI_OFI_handle_cq_error(591)..: OFI poll failed (default nic=en8: Input/output error)",
            "network-transport",
        ),
        (
            "NVRM: nvCheckOkFailedNoLog: Check failed: x [NV_ERR_FABRIC_STATE_OUT_OF_SYNC] (0x87) returned from status",
            "p2p-or-topology",
        ),
        ("/w/nvshmem/src/host/mem/mem_heap.cpp:1573: non-zero status: 7 Mapping mem size 2 to MC group 3", "unknown"),
        ("/w/nvshmem/src/host/init/init.cu:982: non-zero status: 7 nvshmem setup", "network-transport"),
        ("Abort(808576911): Fatal error in internal_Finalize: Other MPI error, error stack:", "unknown"),
    ],
)
def test_a_line_without_a_stack(said, cause):
    assert judge(parse_files([("log.txt", f"[INFO] ready\n{said}\n".encode())])).verdict.cause == cause


@pytest.mark.parametrize(("status", "advice"), [(4, "NCCL_NET_GDR_LEVEL=LOC"), (12, "the cable"), (5, "the cable")])
def test_advice_for_a_transfer_that_failed_is_that_for_its_status(status, advice):
    said = f"n1:27:29 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<49189> with status={status} opcode=0\n"
    assert advice in judge(parse_files([("log.txt", said.encode())])).verdict.remedies[0].action


@pytest.mark.parametrize(
    "line", ["key: k:1 (world_size=4, worker_count=3,", "key: k:1 (world_size=4, num_workers_joined=3,"]
)
def test_torchs_store_counts_who_has_joined_under_either_name(line):
    said = f"Timed out initializing process group in store based barrier on rank 2, for {line} timeout=0:30:00)\n"
    assert (
        "3 of 4 members have joined, among them rank 2"
        in judge(parse_files([("log.txt", said.encode())])).verdict.summary
    )


def test_the_guard_of_a_static_variable_is_a_lock_with_its_namespace_too():
    frames = (
        b"#0  0x1 in syscall () from /lib64/libc.so.6\n"
        b"#1  0x2 in __cxxabiv1::__cxa_guard_acquire (g=0x7) at guard.cc:307\n"
        b"#2  0x3 in at::globalContext () at Context.cpp:41\n"
    )
    (process,) = judge(parse_files([("gdb.txt", frames)])).processes
    assert process.wait.kind == "mutex"


REAL = Path(__file__).parents[1] / "data" / "real"


@pytest.mark.parametrize(
    ("name", "says", "advice"),
    [
        (
            "batch-3/vllm44780-unknown-file-cumemcpybatch",
            "Process 2 died of SIGSEGV in cuMemcpy",
            "the log",
        ),
        ("batch-11/amdgpu150-kernel", "so kill -9 changes nothing; it is still in do_exit", "dmesg -T"),
        ("batch-14/rpilinux2482-kernel", "waits for I/O in wait_on_page_bit", "dmesg -T"),
        ("batch-13/zfs174-kernel", "waits for I/O in cv_wait_common", "dmesg -T"),
        ("batch-13/halogen34-kernel", "is in a call into the GPU driver", "the kernel log"),
        ("batch-15/gperftools1094-gdb", "Self-deadlock: ", "in a signal handler"),
        ("batch-13/zygote16-gdb", "waits for a lock in acquire (threading.py:123)", "Dump all threads"),
        ("batch-11/xgb7032-gdb", "waits to acquire a Python lock", "the Python stacks"),
        ("batch-15/googlecloud4992-gdb", "waits for the GIL in", "thread that holds the GIL"),
        ("batch-1/ray15990-gdb-check-fail-abort", "aborted on a failed assertion", "just before the crash"),
        (
            "batch-4/ucx4016-efence-rcache-frozen",
            "failed with SIGSEGV in __strlen_power8 (libc.so.6)",
            "just before the crash",
        ),
        (
            "batch-12/ort7024-gdb",
            "died of SIGSEGV in an unnamed function of libcuda.so.1, called from cuEventRecord",
            "just before the crash",
        ),
        ("batch-14/pt75512-traceback", "usually because its process ended", "the other ranks' logs"),
        (
            "batch-14/pt61670-log",
            "So this process cannot continue: it is in barrier (distributed_c10d.py:2617).",
            "the other ranks' logs",
        ),
        (
            "batch-9/qwentrt60-ucx",
            "died of SIGSEGV in a function of TensorRT without a name",
            "the log lines just before",
        ),
        (
            "batch-13/nvdocker1648-xid",
            "Xid 119 on GPU 0000:61:00 (the GPU system processor (GSP) did",
            "reset the GPU",
        ),
        ("batch-15/ompi5302-gdb", "usually the thread already holds the lock", "where this thread first took"),
        ("batch-9/ompi1156-gdb", "has not reached it", "Dump each suspect twice"),
        ("../field/vllm-item-and-idle-worker", "Rank 1 is idle.", "Take two dumps, 30 s apart"),
        (
            "batch-4/profam286-watchdog-c10-frames",
            "A watchdog gave up waiting",
            "Put the logs of all ranks",
        ),
        ("batch-6/rocr96-gdb", "waits for a semaphore in clCreate", "all threads of the process"),
        ("batch-14/ucx6000-ucx", "did not acknowledge it", "RoCE: rdma link"),
        ("batch-1/megatron878-dataloader-bus-error", "(pid 56811)", "df -h /dev/shm"),
        ("batch-11/tf13716-gdb", "A single dump cannot show", "is stuck or idle"),
        ("batch-15/ompi6258-lldb", "thread 2 is in MPI_Send", "Take two dumps, 30 s apart"),
        ("batch-10/clmvsnet14-watchdog", "completed work item 715 and enqueued items up to 747", "the first error"),
        ("batch-19/openssl19066-rand-gdb", "Thread 279 waits for a lock in ossl_rand_drbg_new", "all threads"),
        ("batch-21/ucx1502-imb-gdb", "for the kernel driver of the network", "/proc/PID/task/*/stack"),
        ("batch-21/fairseq708-ctrlc", "was waiting for a child process to end", "pgrep -P PARENT_PID"),
        ("batch-17/moreexec176-pybt", "waits for another thread to end", "all threads"),
        ("batch-17/modh2234-pstack", "sleeps for a fixed time in apr_sleep", "all threads"),
        ("batch-18/zahash70-threaddump", "Two threads wait for each other", "static initializers"),
        ("batch-15/vllmbackport62-log", "tells of the end of another process", "engine or worker process"),
        ("batch-26/vllm10502-log", "ends in result (_base.py:458)", "read the exception on the line after"),
        ("batch-17/manticore436-gdb", "Thread 5 waits for I/O", "all threads"),  # no pid 436 by the file's name
        ("batch-21/img2dataset402-ctrlc", "was waiting for a lock in __enter__", "take two dumps, 30 s apart"),
        (
            "batch-20/nccl1410-init-log",
            "returned its error to the program: ncclUnhandledCudaError",
            "the first `FILE:LINE -> NUMBER`",
        ),
        ("batch-19/horovod100-stall-log", "the other ranks have not", "not listed as ready"),
        (
            "batch-19/wanwrapper388-tokenizers-log",
            "only a warning: after a fork the tokenizers library has switched off its own threads",
            "TOKENIZERS_PARALLELISM",
        ),
        ("batch-20/legion1688-hip-lldb", "only this one frame of the stack", "lldb -p PID"),
        ("batch-24/paimegatron612-nccl", "The log of rank 0 reports", "On RoCE compare both ends' GIDs"),
        ("batch-18/cmexecutors8-gdb", "Threads wait for each other's locks.", "Print all stacks"),
        ("batch-15/mlbench26-traceback", "Python ignored that exception, which was raised in join", "error elsewhere"),
        ("batch-23/torchxpuops3378-abort-trace", "gave up on a child process in", "of the child process: dump"),
        ("batch-12/mmdet6534-elastic", "was waiting for its child processes, in run", "dump each child process"),
        ("batch-11/opencv17124-gdb", "waits for the other threads of its pool, in GOMP_par", "all threads"),
        ("batch-14/vllm1160-raylog", "Ray killed a process of the job because its host", "`ray logs raylet.out"),
        ("batch-23/alpacalora338-finetune-log", "exit with code -7 (SIGBUS)", "all ranks and hosts"),
        ("batch-6/pytorch148976-elastic", "and found that they differ", "first collective that differs"),
        (
            "batch-10/nccl2380-openmpi",
            "died of SIGSEGV in an unnamed function of libnccl.so.2",
            "just before the crash",
        ),
        ("batch-14/openblas1456-gdb", "waits for a child process to end, in __libc_wait", "Dump each child process"),
        ("batch-3/ft592-operation-not-supported", "(cudaErrorNotSupported, 801)", "gdbext error cudaErrorNotSupported"),
        ("batch-9/trtllm1826-trt", "MPI error '6'\". The error was reported in", "catch throw"),
        ("batch-22/mooncake702-tcp-fault", "does not show the thread that crashed", "the log lines just before"),
        ("batch-15/ollamaintel22-threaddump", "The only thread whose stack was read", "above the first goroutine"),
        ("batch-25/dcgmexporter412-go", "in native code called from runtime.cgocall", "the log lines just before"),
        (
            "batch-8/icefall1084-ctrlc",
            "were taken when Ctrl-C or a signal handler interrupted the processes",
            "take two dumps",
        ),
        ("batch-22/nccl636-sharp-ucx", "died of SIGSEGV in ucp_mem_type_pack (dt.c:80)", "the log lines just before"),
        ("batch-20/xla16430-mpi-abort", 'BadStatusOrAccess "Bad StatusOr access', "catch throw"),
        (
            "batch-22/easyconfigs15344-put-ucx",
            "invalid permissions for mapped object at address",
            "the log lines just before",
        ),
        ("batch-21/pytorch52142-parallel-kernel", "The IOMMU blocked memory accesses", "lspci -s"),
    ],
)
def test_what_is_said_fits_what_to_do(name, says, advice):
    path = REAL / f"{name}.txt"
    verdict = judge(parse_files([(path.name, path.read_bytes())])).verdict
    assert says in verdict.summary
    assert advice in verdict.remedies[0].action


LOCK_IN_THE_DRIVER = """Thread 1 (Thread 0x7f00 (LWP 9) "python3"):
#0  futex_wait (private=0, expected=2, futex_word=0x5581) at ../sysdeps/nptl/futex-internal.h:146
#1  __GI___lll_lock_wait (futex=0x5581, private=0) at ./nptl/lowlevellock.c:49
#2  0x00007ff in ?? () from /lib/x86_64-linux-gnu/libcuda.so.1
#3  0x00007ff in cuModuleLoadDataEx () from /lib/x86_64-linux-gnu/libcuda.so.1
#4  0x00007ee in loadBinary () at /tmp/main.c:61
"""


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("__GI___lll_lock_wait", "waits for a lock inside the CUDA driver, in cuModuleLoadDataEx"),
        ("__GI___poll", "is in cuModuleLoadDataEx"),
    ],
)
def test_a_lock_below_the_driver_is_a_wait_for_a_lock(inner, says):
    text = LOCK_IN_THE_DRIVER.replace("__GI___lll_lock_wait", inner)
    verdict = judge(parse_files([("a.txt", text.encode())])).verdict
    assert verdict.cause == "unknown" and says in verdict.summary


@pytest.mark.parametrize(
    ("line", "culprits"),
    [
        ("NVRM: Xid (PCI:0000:61:00): 119, pid=7, name=nvidia-smi, Timeout waiting for RPC from GSP!", ()),
        ("NVRM: Xid (PCI:0000:61:00): 31, pid=7, name=python, Ch 00000008, MMU Fault", (0,)),
    ],
)
def test_an_error_of_the_gpu_accuses_the_gpu_and_not_who_used_it(line, culprits):
    verdict = judge(parse_files([("dmesg.txt", f"[ 812.1] {line}\n".encode())])).verdict
    assert verdict.cause == "gpu-fault" and "on GPU 0000:61:00 (" in verdict.summary
    assert tuple(verdict.culprits) == culprits


def pasted(text):
    return judge(parse_files([("paste.txt", text.encode())]))


STOPPED_IN_ABORT = """\
Thread 1 "serve" hit Breakpoint 2, __GI_abort () at ./stdlib/abort.c:49
#0  __GI_abort () at ./stdlib/abort.c:49
#1  0x00007fe2bbba7277 in std::terminate() () from /lib/x86_64-linux-gnu/libstdc++.so.6
#2  0x00007fe2bbba74d8 in __cxa_throw () from /lib/x86_64-linux-gnu/libstdc++.so.6
#3  0x00007fe2fdda86e4 in thrust::cuda_cub::throw_on_error (status={status}, msg=0x7 "sync") at util.h:225
"""


@pytest.mark.parametrize(
    ("status", "cause", "says"),
    [
        ("cudaErrorIllegalAddress", "gpu-fault", "cudaErrorIllegalAddress (700, an argument on the stack): "),
        ("cudaErrorMemoryAllocation", "other", "cudaErrorMemoryAllocation (2, an argument on the stack): "),
        ("1234", "gpu-fault", "The stack does not show the error"),
    ],
)
def test_the_error_of_a_check_is_an_argument_on_its_stack(status, cause, says):
    """A debugger that stops in abort() looks at a process that ends."""
    verdict = pasted(STOPPED_IN_ABORT.format(status=status)).verdict
    assert verdict.cause == cause and says in verdict.summary
    assert verdict.confidence == ("low" if status == "1234" else "medium")


CALLED_NULL = """\
#0  {inner}
#1  0x00007f7a700f8a5f in poll_fragment (hdr=0x7f7a6a1bf049) at component.c:603
#2  0x00007f7a828fb1cc in opal_progress () at runtime/opal_progress.c:228
#3  0x00007f7a8d816ebd in PMPI_Wait () from libmpi.so
"""


def test_a_call_of_address_0_ends_a_process():
    verdict = pasted(CALLED_NULL.format(inner="0x0000000000000000 in ?? ()")).verdict
    assert verdict.cause == "other" and "died of SIGSEGV in a call of address 0, called from poll" in verdict.summary
    assert "died" not in pasted(CALLED_NULL.format(inner="0x00007f7a00001234 in ?? ()")).verdict.summary
