"""The looks of several hosts as one: who is where, what is absent, pids that two hosts have."""

from gdbext.analysis.verdict.judge import judge
from gdbext.model.codes import ReadState
from gdbext.model.host import HostLook
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.locks import Peer
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.witness import Statement, Witness
from gdbext.render.json.document import document
from gdbext.snapshot_builder.several_hosts import merge_hosts


def rank(index, number, function, pid=7, **fields):
    frames = (Frame(function=function), Frame(function="main"))
    return RankSnapshot(
        index=index,
        threads=(ThreadStack(id="1", lwp=pid, name="main", state="S", frames=frames),),
        pid=pid,
        rank=number,
        world_size=4,
        alive=True,
        pause_ms=1.0,
        **fields,
    )


def look(*processes, **fields):
    return JobSnapshot(processes=processes, taken_at=1000.0, world_size=4, engine="vllm", **fields)


TWO = (HostLook(name="a", read=True, offset=10.0, error=0.1), HostLook(name="b", read=True, offset=0.0, error=0.1))


def test_ranks_of_all_hosts_are_one_series():
    witness = Witness(name="NVML", state="present", statements=(Statement("idle", process=1),))
    looks = {
        "a": look(rank(0, 0, "ncclAllReduce"), rank(1, 1, "ncclAllReduce", 8), witnesses=(witness,), absent=(2, 3)),
        "b": look(rank(0, 2, "ncclAllReduce"), witnesses=(witness,), problems=("its clock runs",)),
    }
    one = merge_hosts(TWO, looks)
    assert [(process.index, process.rank, process.host) for process in one.processes] == [
        (0, 0, "a"),
        (1, 1, "a"),
        (2, 2, "b"),
    ]
    assert one.absent == (3,) and one.taken_at == 1000.0 and one.engine == "vllm"
    assert [found.statements[0].process for found in one.witnesses] == [1, 3]
    assert [found.name for found in one.witnesses] == ["NVML on a", "NVML on b"]
    assert "b: its clock runs" in one.problems
    assert load_snapshot(dump_snapshot(one.__class__(**{**one.__dict__, "witnesses": ()}))).hosts == one.hosts


def test_a_host_that_was_not_read_lowers_what_was_read_and_no_rank_of_it_is_absent():
    hosts = (TWO[0], HostLook(name="b", read=False, reason="no shell answered"))
    one = merge_hosts(hosts, {"a": look(rank(0, 0, "ncclAllReduce"), rank(1, 1, "ncclAllReduce", 8))})
    assert one.read == "part" and one.absent == ()
    assert one.problems == ("b was not read: no shell answered",)
    assert [(process.rank, process.state) for process in one.processes[2:]] == [
        (2, ReadState.LOST),
        (3, ReadState.LOST),
    ]
    verdict = judge(one).verdict
    assert not verdict.absent and "no process" not in verdict.summary and verdict.confidence != "high", verdict.summary
    assert document(judge(one))["hosts"][1] == {
        **dict.fromkeys(("offset", "error", "gdb")),
        **{"name": "b", "read": False, "reason": "no shell answered"},
    }


def test_pids_of_two_hosts_are_two_processes():
    """Rank 0 waits for a pipe whose other end pid 8 has: that of its own host, not rank 3's."""
    peer = Peer(thread=7, file="pipe:[1]", processes=(8,), states=("S",), names=("tokenizer",))
    looks = {
        "a": look(rank(0, 0, "read", 7, peers=(peer,))),
        "b": look(rank(0, 3, "ncclAllReduce", 8)),
    }
    chain = judge(merge_hosts(TWO, looks)).verdict.chain
    labels = " ".join(edge.target.label for edge in chain)
    assert "rank 3" not in labels, labels


def test_all_that_is_left_when_no_rank_of_a_host_could_be_read():
    lost = rank(0, 2, "poll", state=ReadState.LOST, problems=("ended",))
    assert merge_hosts(TWO, {"a": look(rank(0, 0, "poll")), "b": look(lost)}).read == "part"
