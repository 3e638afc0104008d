"""GPU cores beside stacks: whose each is, which kernel sits on whose GPU, and what the verdict makes of it."""

import json
import struct
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.resident_kernels import collective_of
from gdbext.capture.cores.core_kind import looks_like_gpu_core
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.render import PLAIN, render
from gdbext.snapshot_builder.gpu_cores import read_all, with_gpu_cores
from tests.front_end import gdbext
from tests.inferiors import gpu_cubins
from tests.inferiors.gpu_core import TYPES, core_of

pytestmark = pytest.mark.process  # ptxas makes the cubins
STACKS = str(Path(__file__).parents[1] / "data/field/io-rank-others-allreduce.txt")  # pids 41 to 44


@pytest.fixture(scope="module")
def code():
    image, entries = gpu_cubins.relocated(gpu_cubins.cubin())
    return image, entries[gpu_cubins.SCALE], entries[gpu_cubins.SPIN]


@pytest.fixture
def core(tmp_path, code):
    """Writes a GPU core of a pid: of a hang in NCCL's kernel, of an idle device, or of an exception."""

    def core(pid, kind="hang", host="node7", tid=0):
        image, scale, spin = code
        kernels = {
            "hang": [{"entry": spin, "grid": (24, 1, 1), "sms": range(24), "warps": 2, "pc": spin + 48, "tid": tid}],
            "busy": [{"entry": scale, "grid": (9, 1, 1), "sms": range(9), "pc": scale + 48, "tid": tid}],
            "idle": [],
            "fault": [{"entry": scale, "sms": [3], "pc": scale + 64, "fault": (14, scale + 64, 3), "tid": tid}],
        }[kind]
        name = f"gpucore.{host}.{pid}.1732190000.nvcudmp" if pid else f"{kind}{tid}.nvcudmp"
        path = tmp_path / name
        path.write_bytes(core_of(image, kernels, tid=tid))
        return str(path)

    return core


def rank(index, pid, *tids, host=None, function="cudaStreamSynchronize"):
    calls = (Frame(function, "/usr/lib/libcudart.so.12"), Frame("engine::forward", "/opt/engine", file="e.cpp", line=9))
    threads = tuple(ThreadStack(id=str(tid), lwp=tid, frames=calls) for tid in tids)
    return RankSnapshot(index=index, threads=threads, pid=pid, rank=index, host=host)


def joined(processes, paths):
    return with_gpu_cores(JobSnapshot(processes=tuple(processes)), read_all(paths, lambda text: None))


def test_a_hang_of_stacks_says_which_kernel_is_on_which_gpu(core):
    cores = [core(41, tid=41), core(42, tid=42), core(43, tid=43), core(44, "idle", tid=44)]
    done = gdbext("diagnose", "-q", "--json", STACKS, *cores)
    answer = json.loads(done.stdout)
    verdict = answer["verdict"]
    assert (done.returncode, verdict["cause"], verdict["culprits"]) == (1, "missing-rank", [3])
    assert [len(one["kernels"]) for one in answer["processes"]] == [1, 1, 1, 0]
    assert answer["processes"][0]["kernels"][0]["name"] == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    said = "\n".join(one["text"] for one in verdict["evidence"])
    assert "the GPU of rank 3 is in no kernel" in said
    (witness,) = (one for one in answer["witnesses"] if one["name"] == "GPU cores")
    texts = [one["text"] for one in witness["statements"]]
    assert texts[0].startswith(
        "the GPUs of ranks 0-2 are in ncclDevKernel_AllReduce_Sum_f32_RING_LL (24 blocks on 24 SMs"
    )
    assert "engine.cu:60" in texts[0]


def test_ranks_that_all_synchronise_are_told_apart_by_their_gpus(core):
    processes = [rank(number, 100 + number, 100 + number) for number in range(4)]
    paths = [core(100, tid=100), core(101, tid=101), core(102, "idle", tid=102), core(103, tid=103)]
    diagnosis = judge(joined(processes, paths))
    says = {one.process for one in diagnosis.snapshot.witnesses[0].statements if one.says == "behind"}
    assert says == {2}
    assert (diagnosis.verdict.cause, diagnosis.verdict.culprits) == ("unknown", ())  # one moment proves no standstill
    text = " ".join("\n".join(render(diagnosis, PLAIN)).split())
    assert "launched by a thread that is now in engine::forward (e.cpp:9)" in text
    assert (
        "the GPUs of ranks 0-1,3 are in ncclDevKernel_AllReduce" in text and "the GPU of rank 2 is in no kernel" in text
    )


def test_cores_of_different_moments_accuse_nobody(core, tmp_path):
    processes = [rank(number, 100 + number, 100 + number) for number in range(2)]
    late = tmp_path / "gpucore.node7.101.1.nvcudmp"
    Path(core(101, "idle", tid=101)).rename(late)
    data = late.read_bytes()
    late.write_bytes(data.replace((1_732_190_000).to_bytes(4, "little"), (1_732_199_000).to_bytes(4, "little")))
    snapshot = joined(processes, [core(100, tid=100), str(late)])
    assert [one.says for one in snapshot.witnesses[0].statements] == ["spins", "kernel"]


def test_a_core_whose_grids_cannot_be_read_does_not_say_that_there_are_none(core):
    path = Path(core(7, "busy", tid=7))
    data = bytearray(path.read_bytes())
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    for place in range(at, at + size * count, size):
        if struct.unpack_from("<I", data, place + 4)[0] == TYPES["gridtbl"]:
            struct.pack_into("<Q", data, place + 56, 8)
    path.write_bytes(data)
    snapshot = joined([rank(0, 7, 7)], [str(path)])
    assert snapshot.processes[0].kernels is None and snapshot.witnesses[0].statements == ()
    assert "rows of 8 bytes" in snapshot.processes[0].problems[0]


def test_a_device_node_gets_its_kernel(core):
    frames = (
        Frame("cudaStreamSynchronize", "/usr/lib/libcudart.so.12"),
        Frame("engine::forward", "/opt/engine", file="e.cpp", line=9),
    )
    stuck = [
        RankSnapshot(index=at, threads=(ThreadStack(id="1", lwp=50 + at, frames=frames),), pid=50 + at, rank=at)
        for at in range(3)
    ]
    alloc = (Frame("cudaMallocHost", "/usr/lib/libcudart.so.12"), frames[1])
    stuck.append(RankSnapshot(index=3, threads=(ThreadStack(id="1", lwp=53, frames=alloc),), pid=53, rank=3))
    diagnosis = judge(joined(stuck, [core(50 + at, tid=50 + at) for at in range(3)] + [core(53, "busy", tid=53)]))
    verdict = diagnosis.verdict
    labels = [edge.target.label for edge in verdict.chain]
    assert labels[0] == "GPU of rank 0, in ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert labels[-1] == "GPU of rank 3, in engine::scale<…>"  # what it allocates behind is no collective
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("missing-rank", "medium", (3,))


def test_gpu_cores_alone_claim_no_cause(core):
    done = gdbext("diagnose", "-q", "--json", core(41, tid=41), core(44, "idle", tid=44))
    verdict = json.loads(done.stdout)["verdict"]
    assert (done.returncode, verdict["cause"], verdict["hangs"]) == (3, "unknown", None)
    assert "hold no exception" in verdict["summary"] and verdict["decided_by"] == "gdbext diagnose core.* *.nvcudmp"


def test_a_fault_is_judged_with_the_thread_that_launched_it(core):
    processes = [rank(0, 7, 7, 71), rank(1, 8, 8, 81)]
    diagnosis = judge(joined(processes, [core(7, "fault", tid=71)]))
    verdict = diagnosis.verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("gpu-fault", "high", (0,))
    assert "The GPU core reports for rank 0: WARP_ILLEGAL_ADDRESS" in verdict.summary
    assert "launched by thread 71, now in engine::forward (e.cpp:9)" in verdict.summary
    (finding,) = diagnosis.gpu_errors
    assert finding.error.places[0].line == 52 or finding.error.places[0].line == 41
    assert finding.count == 2


def test_a_rank_whose_gpu_has_failed_is_not_only_late(core):
    """By its stack it has not come to the collective of the others; its GPU tells why."""
    waits = rank(1, 8, 81, function="ncclGroupEnd")
    for one in (rank(0, 7, 71), rank(0, 7, 71, function="cudaMallocHost")):
        verdict = judge(joined([one, waits], [core(7, "fault", tid=71), core(8, "hang", tid=81)])).verdict
        assert (verdict.cause, verdict.confidence, verdict.culprits) == ("gpu-fault", "high", (0,))
        assert all(other.confidence != "high" for other in verdict.alternatives)


@pytest.mark.parametrize(("pid", "tid", "owner"), [(7, 71, 0), (0, 81, 1), (8, 0, 1), (9, 71, None), (0, 5, None)])
def test_whose_a_core_is(core, pid, tid, owner):
    processes = [rank(0, 7, 7, 71), rank(1, 8, 8, 81)]
    snapshot = joined(processes, [core(pid, "busy", tid=tid)])
    having = [one.index for one in snapshot.processes if one.kernels]
    assert having == [2 if owner is None else owner] and not snapshot.problems


def test_two_ranks_with_one_pid_are_told_apart_by_host_or_by_threads(core):
    here = [rank(0, 7, 7, host="a"), rank(1, 7, 7, host="b")]
    snapshot = joined(here, [core(7, "busy", host="b.example.org", tid=7), core(7, "fault", host="a", tid=7)])
    assert [len(one.gpu_errors) for one in snapshot.processes] == [1, 0] and not snapshot.problems
    cores = [rank(0, 7, 7, 71), rank(1, 7, 7, 81)]  # core files do not know their host
    assert [bool(one.kernels) for one in joined(cores, [core(7, "busy", tid=81)]).processes] == [False, True]
    unclear = joined(cores, [core(7, "busy", tid=7)])
    assert [bool(one.kernels) for one in unclear.processes] == [False, False, True]
    assert "may be of rank 0 or rank 1" in unclear.problems[0]


def test_a_file_that_cannot_be_read_is_a_line_and_not_a_dead_rank(core, tmp_path):
    bad = tmp_path / "core_1_n_2.nvcudmp"
    bad.write_bytes(b"\x7fELF")
    done = gdbext("diagnose", "-q", core(5, "fault"), str(bad))
    assert done.returncode == 1 and "not a GPU core" in done.stderr
    alone = gdbext("diagnose", "-q", str(bad))
    assert alone.returncode == 4 and alone.stderr.count("\n") == 1


def test_kernels_and_errors_survive_a_saved_snapshot(core, tmp_path):
    saved = tmp_path / "s.json"
    first = gdbext("diagnose", "-q", "--json", "--save", str(saved), core(5, "fault", tid=5), core(6, tid=6))
    again = gdbext("diagnose", "-q", "--json", str(saved))
    one, two = json.loads(first.stdout), json.loads(again.stdout)
    assert one["processes"] == two["processes"] and one["gpu_errors"] == two["gpu_errors"]


def test_the_kind_of_a_file(core, tmp_path):
    other = tmp_path / "core.7"
    other.write_bytes(b"\x7fELF\x02\x01" + bytes(58))
    assert looks_like_gpu_core(core(7)) and not looks_like_gpu_core(str(other))
    assert not looks_like_gpu_core(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-reduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "all-gather"),
        ("vllm::cross_device_reduce_1stage<…>", "all-reduce"),
        ("engine::scale<…>", None),
    ],
)
def test_kernels_that_wait_for_peers(kernel, kind):
    assert collective_of(kernel) == kind
