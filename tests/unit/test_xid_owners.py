"""Xid lines of a kernel's log beside reports, stacks and NCCL's lines of the same run: whose they are."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files
from tests.gpu_reports import Fault, log, report

XID = "[ 1000.5] NVRM: Xid (PCI:0000:5e:00): 31, pid={}, name=python, Ch 00000010, MMU Fault\n"
STACKS = """\
Process 4711: python server.py
Thread 4711 (idle): "MainThread"
    forward (engine.py:12)

Process 4712: python server.py
Thread 4712 (idle): "MainThread"
    forward (engine.py:10)
"""
NCCL = "node1:{pid}:99 [1] NCCL INFO comm 0x55 rank {rank} nranks {ranks} cudaDev 1 nvmlDev 1 busId {bus} - COMPLETE\n"


def read(**texts):
    return parse_files([(name, text.encode()) for name, text in texts.items()])


def told(job):
    """By pid; a process that only NCCL's lines tell of stands beside the one with stacks."""
    shown = [one for one in job.processes if one.threads or one.said]
    return {one.pid: [line for line in one.said if "Xid" in line] for one in shown}


def test_by_the_pid():
    job = read(dmesg=XID.format(4712), stacks=STACKS)
    assert {pid: len(lines) for pid, lines in told(job).items()} == {4711: 0, 4712: 1}
    assert [one.index for one in job.processes] == [0, 1]


@pytest.mark.parametrize("pid", ["'<unknown>'", "99999"])
def test_by_the_bus_id_that_nccl_printed(pid):
    lines = NCCL.format(pid=4711, rank=0, ranks=2, bus="3d000") + NCCL.format(pid=4712, rank=1, ranks=2, bus="5e000")
    job = read(dmesg=XID.format(pid), stacks=STACKS, server=lines)
    assert [line.count("Xid 31") + line.count("): 31") for line in told(job)[4712]] == [1]
    assert told(job)[4711] == []


def test_a_gpu_of_two_processes_or_hosts_is_nobodys():
    for other in (
        NCCL.format(pid=4711, rank=0, ranks=2, bus="5e000"),
        NCCL.format(pid=5, rank=0, ranks=2, bus="5e000").replace("node1", "node2"),
    ):
        job = read(
            dmesg=XID.format("'<unknown>'"),
            stacks=STACKS,
            server=NCCL.format(pid=4712, rank=1, ranks=2, bus="5e000") + other,
        )
        assert [pid for pid, lines in told(job).items() if lines and pid in (4711, 4712)] == []


def test_reports_are_joined_by_the_pid_of_a_rank():
    lines = NCCL.format(pid=71, rank=0, ranks=2, bus="5e000") + NCCL.format(pid=72, rank=1, ranks=2, bus="3d000")
    texts = {f"san.{rank}.log": log([report(Fault(), "D")], 1) for rank in range(2)}
    job = read(dmesg=XID.format("'<unknown>'"), server=lines, **texts)
    assert {one.rank: sum("Xid" in line for line in one.said) for one in job.processes} == {0: 1, 1: 0}
    verdict = judge(job).verdict
    assert (verdict.cause, verdict.confidence) == ("gpu-fault", "high")
    said = [one.text for one in verdict.evidence if "Xid" in one.text]
    assert said[0].startswith("the kernel log has Xid 31 on GPU 0000:5e:00 for rank 0: GPU memory page fault")
