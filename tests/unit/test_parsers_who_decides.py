# ruff: noqa: E501 - lines of logs are as long as they are
"""Which process and thread of a text decides, where logs name few, dumps lost their head, or only a launcher shows."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


def test_the_only_process_of_a_log_decides_where_the_telling_line_names_nobody():
    log = "[2 - 7f0703e40000] {6}{gpu}: CUDA error reported on GPU 0: an illegal memory access was encountered\n"
    found = answer(log + "*** Caught a fatal signal (proc 2): SIGABRT(6)\n")
    assert (found.verdict.cause, found.verdict.decisive_process) == ("gpu-fault", 0)
    two = answer(log + "".join(f"*** Caught a fatal signal (proc {one}): SIGABRT(6)\n" for one in (2, 3)))
    told = two.snapshot.processes[two.verdict.decisive_process].said if two.verdict.decisive_process is not None else ()
    assert len(two.snapshot.processes) == 2 and (not told or "Caught" in told[0])


def test_of_two_lines_of_one_row_the_error_tells_more_than_the_remark():
    log = "n:80511:81734 [1] NCCL INFO Could not enable P2P between dev 1(=61000) and dev 0(=60000)\n"
    failed = "n:80510:81733 [0] transport/p2p.cc:276 NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported\n"
    found = answer(log + failed)
    assert found.snapshot.processes[found.verdict.decisive_process].pid == 80510
    assert answer(log).verdict.decisive_process == 0


def test_who_raised_an_exception_has_left_its_wait():
    line = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, OpType=BROADCAST) ran for 1800001 ms."
    assert (
        answer(f"RuntimeError: NCCL communicator was aborted on rank 2.  {line}\n").processes[0].wait.kind
        == "exited-or-crashed"
    )
    assert answer(f"{line}\n").processes[0].wait.kind == "unknown"
    known = answer("TimeoutError: RPC call to execute_model timed out.\n")
    assert known.processes[0].wait.kind == "ipc-queue"


def test_the_kernels_line_about_a_fault_does_not_tell_where_the_process_stands():
    found = answer("NVRM: Xid (PCI:0000:01:00): 43, pid=1529519, name=train, Ch 00000008\n")
    assert (found.verdict.cause, found.processes[0].wait.kind) == ("gpu-fault", "unknown")
    assert answer("CUDA error: an illegal memory access\n").processes[0].wait.kind == "cuda-error-throw"


def test_the_kernel_names_the_process_that_it_cannot_suspend():
    found = answer("amdgpu: GPU reset begin!\n[950.8] amdgpu: Failed to suspend process pid 14368\n")
    assert found.snapshot.processes[found.verdict.decisive_process].pid == 14368


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("n:7:8 [0] create_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument", "network-transport"),
        ("NET/OFI Request 0x7f14 completed with error. RC: 113. Error: 2 (UNDELIVERABLE). Completed length: 0", "network-transport"),
        ("n:7:8 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.7.4. RC: 0", "unknown"),
        ("n:7:8 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)", "unknown"),
    ],
)  # fmt: skip
def test_an_error_of_a_network_plugin(line, cause):
    assert answer(line + "\n").verdict.cause == cause


def test_a_long_line_keeps_what_names_the_cause():
    key = "all_reduce RendezvousKey{" + "global_devices=[0, 2], " * 12 + "op_id=1}"
    line = f"E0000 rendezvous.cc:116] [id=0] This thread has been waiting for `{key}` for 20 seconds and may be stuck."
    late = " Expected 2 threads to join the rendezvous, but not all of them arrived on time."
    found = answer(line + late + "\n")
    assert found.verdict.cause == "missing-rank" and "not all of them" in found.verdict.summary
    assert found.processes[0].wait.kind == "nccl-group-launch"
    assert answer(line + "\n").verdict.cause == "unknown"
