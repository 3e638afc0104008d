"""What witnesses and counters do to a verdict: prove, support, contradict, and tell slow from stuck."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.causes.slow import SLOW_WORK
from gdbext.knowledge.causes.witnesses import CONTRADICTS, SAYS
from gdbext.knowledge.labels import CAUSES
from gdbext.model.activity import Activity, Child
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.witness import Statement, Witness

IN_COLLECTIVE = (
    Frame("poll", "/lib/libc.so.6"),
    Frame("ncclAllReduce", "/opt/libnccl.so.2"),
    Frame("forward", "/opt/engine"),
)
IN_SYNC_CALL = (
    Frame("poll", "/lib/libc.so.6"),
    Frame("cudaStreamSynchronize", "/opt/libcudart.so.12"),
    Frame("step", "/opt/engine"),
)


def python(function, file):
    return Frame(function, file=file, line=1, language="python")


IN_READ = (Frame("read", "/lib/libc.so.6"), python("read_all", "/app/data.py"), python("main", "/app/main.py"))
LOADING = (
    Frame("read", "/lib/libc.so.6"),
    python("load_file", "/opt/safetensors/torch.py"),
    python("load_model", "/opt/vllm/v1/worker/gpu_worker.py"),
)
SAVING = (
    Frame("write", "/lib/libc.so.6"),
    python("_save", "/opt/torch/serialization.py"),
    python("main", "/app/main.py"),
)
COMPUTING = (Frame("at::native::mm", "/opt/libtorch_cpu.so"), python("main", "/app/main.py"))
COMPILING = (
    Frame("wait4", "/lib/libc.so.6"),
    python("wait", "/usr/lib/python3.12/subprocess.py"),
    python("make_cubin", "/opt/triton/backends/nvidia/compiler.py"),
)


def job(*stacks, witnesses=(), activity=None, **thread):
    """Ranks with one thread each; `activity` and `thread` are of rank 1. Two copies: nobody's frames changed."""
    ranks = []
    for number, frames in enumerate(stacks):
        more = thread if number == 1 else {}
        stack = ThreadStack(
            "1", frames, **{"lwp": 10 + number, "state": "S", "cpu": 0.0, "still": 0, "switches": 0, **more}
        )
        ranks.append(
            RankSnapshot(
                number,
                (stack,),
                pid=10 + number,
                rank=number,
                world_size=len(stacks),
                alive=True,
                activity=activity if number == 1 else None,
            )
        )
    return JobSnapshot(tuple(ranks), 1.0, world_size=len(stacks), apart=2.0, witnesses=tuple(witnesses))


def witness(name, *statements):
    return Witness(name, "present", "", tuple(Statement(*one) for one in statements))


def verdict(snapshot):
    return judge(snapshot).verdict


MISSING = (IN_COLLECTIVE, IN_READ, IN_COLLECTIVE)
EQUAL = (IN_SYNC_CALL,) * 3


def test_an_xid_of_a_rank_decides():
    fault = witness("kernel log", ("Xid 79 on GPU 0000:3b:00 (rank 1): fallen off the bus", "gpu-fault", 1))
    found = verdict(job(*EQUAL, witnesses=[fault]))
    assert (found.cause, found.confidence, found.culprits, found.victims) == ("gpu-fault", "high", (1,), (0, 2))
    assert any(one.text.startswith("kernel log: Xid 79") and one.process == 1 for one in found.evidence)


def test_an_xid_of_nobody_known_is_evidence_only():
    fault = witness("kernel log", ("Xid 79 on GPU 0000:3b:00 (no process named)", "gpu-error"))
    with_it, without = verdict(job(*MISSING, witnesses=[fault])), verdict(job(*MISSING))
    assert (with_it.cause, with_it.confidence) == (without.cause, without.confidence)
    assert len(with_it.evidence) == len(without.evidence) + 1


def test_ras_that_says_in_sync_lowers_the_confidence_of_a_missing_rank():
    ras = witness("RAS", ("all ranks have launched the same operations", "in-sync"))
    without, with_it = verdict(job(*MISSING)), verdict(job(*MISSING, witnesses=[ras]))
    assert (without.cause, without.confidence) == ("missing-rank", "high")
    assert (with_it.cause, with_it.confidence) == ("missing-rank", "medium")
    assert "this contradicts it: RAS: all ranks have launched the same operations." in with_it.summary


def test_ras_that_says_behind_is_cited_and_lowers_nothing():
    ras = witness("RAS", ("rank 1 has launched 41 AllReduce, others 42", "behind", 1))
    found = verdict(job(*MISSING, witnesses=[ras]))
    assert (found.cause, found.confidence) == ("missing-rank", "high")
    assert any("41 AllReduce" in one.text for one in found.evidence)


def test_counters_name_the_rank_that_stacks_do_not_tell_apart():
    ras = witness("RAS", ("rank 1 has launched 41 AllReduce, others 42", "behind", 1))
    found = verdict(job(*EQUAL, witnesses=[ras]))
    assert (found.cause, found.confidence, found.culprits) == ("missing-rank", "medium", (1,))
    moving = job(*EQUAL, witnesses=[ras])
    moved = tuple(replace(one, threads=(replace(one.threads[0], switches=3),)) for one in moving.processes)
    assert verdict(replace(moving, processes=moved)).culprits == (), (
        "off by one for a moment is how a healthy job looks"
    )


def test_the_flight_recorder_names_a_mismatch():
    recorder = witness("flight recorder", ("rank 1 made all_gather as collective 4, others all_reduce", "mismatch", 1))
    found = verdict(job(*EQUAL, witnesses=[recorder]))
    assert (found.cause, found.culprits) == ("collective-mismatch", (1,))


def test_room_in_shm_speaks_against_a_full_one():
    dying = (Frame("<signal handler called>"), Frame("memset", "/opt/libnccl.so.2"), Frame("ncclShmOpen"))
    room = witness("/dev/shm", ("23 GiB of 23 GiB free", "shm-room", None))
    alone, doubted = verdict(job(IN_COLLECTIVE, dying)), verdict(job(IN_COLLECTIVE, dying, witnesses=[room]))
    assert (alone.cause, alone.confidence) == ("shm-too-small", "medium")
    assert (doubted.cause, doubted.confidence) == ("shm-too-small", "low")
    assert "this contradicts it: /dev/shm: 23 GiB of 23 GiB free." in doubted.summary
    assert "--shm-size" in alone.remedies[0].action
    assert "--shm-size" not in " ".join(one.action for one in doubted.remedies)
    assert "memory.max" in doubted.remedies[0].action
    assert not any("free" in one.text for one in verdict(job(*EQUAL, witnesses=[room])).evidence)


def test_a_full_shm_explains_a_set_up_that_does_not_end():
    setting_up = (
        Frame("poll", "/lib/libc.so.6"),
        Frame("ncclCommInitRank", "/opt/libnccl.so.2"),
        Frame("init", "/opt/engine"),
    )
    full = witness("/dev/shm", ("0 MiB of 64 MiB free", "shm-full", 0))
    found = verdict(job(setting_up, setting_up, witnesses=[full]))
    assert (found.cause, found.confidence) == ("shm-too-small", "medium")
    assert verdict(job(*MISSING, witnesses=[full])).cause == "missing-rank", "elsewhere it is no explanation"


def test_a_thread_that_spins_is_cited():
    found = verdict(job(IN_COLLECTIVE, IN_READ, IN_COLLECTIVE, cpu=0.97, still=1))
    assert any("97% of a core" in one.text for one in found.evidence)


WORK = {
    "compiler": (COMPILING, Activity(2.0, 0, 0, None, (Child("ptxas", 99, 0.8),)), "ptxas used 80% of a core"),
    "python compiler": (COMPILING, Activity(2.0, 0, 0, None, (Child("python3", 99, 0.5),)), "python3 used 50%"),
    "loading": (LOADING, Activity(2.0, 0, 300 << 20), "read 300 MiB in 2.0 s"),
    "saving": (SAVING, Activity(2.0, 0, 0, written_bytes=300 << 20), "wrote 300 MiB in 2.0 s"),
    "swapping": (IN_READ, Activity(2.0, 900, 0, 3 << 30), "900 major page faults in 2.0 s, 3,072 MiB are swapped out"),
}


@pytest.mark.parametrize(("frames", "activity", "proof"), WORK.values(), ids=WORK)
def test_work_that_the_kernel_counted_is_slow_not_stuck(frames, activity, proof):
    found = verdict(job(IN_COLLECTIVE, frames, IN_COLLECTIVE, activity=activity))
    assert (found.cause, found.confidence, found.culprits, found.victims) == ("not-a-hang", "medium", (), (0, 2))
    assert proof in found.summary
    assert found.evidence[0].process == 1


WRITES = Activity(2.0, 0, 0, written_bytes=300 << 20)
RUNS = {"cpu": 0.4, "switches": 90, "still": 1}
LOOPS = (python("loop", "/app/main.py"), python("main", "/app/main.py"))
JOINS = (Frame("pthread_join", "/lib/libc.so.6"), Frame("engine::save", "/opt/engine"))


@pytest.mark.parametrize(
    ("frames", "activity", "thread", "proof"),
    [
        (IN_READ, WRITES, RUNS, "300 MiB in 2.0 s moved"),
        (JOINS, WRITES, {}, "300 MiB in 2.0 s moved"),
        (LOOPS, replace(WRITES, own_bytes=200 << 20), {**RUNS, "state": "R"}, "200 MiB in 2.0 s moved"),
        (COMPUTING, Activity(2.0), {**RUNS, "state": "R"}, "its thread used 40% of a core"),
    ],
    ids=["its own call", "threads that it waits for", "code of its own", "a numerics library"],
)
def test_a_rank_whose_counters_rise_works(frames, activity, thread, proof):
    found = verdict(job(IN_COLLECTIVE, frames, IN_COLLECTIVE, activity=activity, **thread))
    assert (found.cause, found.culprits) == ("not-a-hang", ()), found.summary
    assert proof in found.summary
    assert not any("did not run" in one.text and one.process == 1 for one in found.evidence)


def test_what_other_threads_write_is_no_work_of_one_that_runs_in_place():
    found = verdict(job(IN_COLLECTIVE, LOOPS, IN_COLLECTIVE, activity=WRITES, **RUNS))
    assert found.cause == "unknown" and found.decided_by


NO_WORK = {
    "compiler asleep": (COMPILING, Activity(2.0, 0, 0, None, ())),
    "some other child": (IN_READ, Activity(2.0, 0, 0, None, (Child("python3", 99, 0.9),))),
    "nothing read": (LOADING, Activity(2.0, 0, 4096)),
    "reads, but not weights": (IN_READ, Activity(2.0, 0, 300 << 20)),
    "few faults": (IN_READ, Activity(2.0, 20, 0)),
    "nothing counted": (LOADING, None),
}


@pytest.mark.parametrize(("frames", "activity"), NO_WORK.values(), ids=NO_WORK)
def test_without_proof_a_rank_elsewhere_stays_missing(frames, activity):
    found = verdict(job(IN_COLLECTIVE, frames, IN_COLLECTIVE, activity=activity))
    assert (found.cause, found.culprits) == ("missing-rank", (1,))


@pytest.mark.parametrize(
    ("frames", "activity", "confidence"),
    [
        (LOADING, None, "medium"),
        (COMPILING, None, "medium"),
        (LOADING, Activity(2.0, 0, 0), "high"),
        (IN_READ, None, "high"),
    ],
    ids=["loads, not counted", "compiles, not counted", "loads, and does not go on", "no slow work"],
)
def test_a_rank_in_slow_work_that_nobody_counted_is_not_surely_missing(frames, activity, confidence):
    found = verdict(job(IN_COLLECTIVE, frames, IN_COLLECTIVE, activity=activity))
    assert (found.cause, found.confidence) == ("missing-rank", confidence)
    assert ("may only be slow" in found.summary) == (confidence == "medium")


def test_a_rank_that_spins_in_the_driver_while_it_captures_proves_nothing():
    capturing = (
        Frame(None, "/usr/lib/libcuda.so.1"),
        Frame("cudaGraphLaunch", "/opt/libcudart.so.12"),
        python("replay", "/opt/torch/cuda/graphs.py"),
        python("capture_model", "/opt/vllm/v1/worker/gpu_model_runner.py"),
    )
    found = verdict(job(capturing, capturing, activity=Activity(2.0, 0, 0), state="R", cpu=1.0, still=1))
    assert "slow, not stuck" not in found.summary


def test_a_rank_that_cannot_be_stopped_while_it_swaps():
    """State D: no stack of it, but the kernel counts its faults; without them nothing is claimed."""
    seen = job(IN_COLLECTIVE, IN_READ, IN_COLLECTIVE, activity=WORK["swapping"][1])
    unread = replace(seen.processes[1], threads=(), state="lost")
    found = verdict(replace(seen, processes=(seen.processes[0], unread, seen.processes[2])))
    assert (found.cause, found.confidence) == ("not-a-hang", "low")
    assert found.evidence[0].process == 1
    silent = replace(unread, activity=None)
    assert verdict(replace(seen, processes=(seen.processes[0], silent, seen.processes[2]))).cause != "not-a-hang"


def test_work_proves_nothing_while_another_rank_was_not_read():
    seen = job(IN_COLLECTIVE, COMPILING, IN_COLLECTIVE, activity=WORK["compiler"][1])
    unread = replace(seen.processes[2], threads=(), state="lost")
    assert "slow, not stuck" not in verdict(replace(seen, processes=(*seen.processes[:2], unread))).summary


def test_a_dead_rank_outweighs_work():
    snapshot = job(IN_COLLECTIVE, COMPILING, IN_COLLECTIVE, activity=WORK["compiler"][1])
    found = verdict(replace(snapshot, absent=(3,), world_size=4))
    assert found.cause == "missing-rank"


def test_witnesses_and_activity_survive_a_saved_snapshot():
    snapshot = job(*MISSING, witnesses=[witness("RAS", ("x", "behind", 1))], activity=WORK["compiler"][1])
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot


def test_rows_hold_together():
    assert set(CONTRADICTS) <= set(CAUSES)
    assert {says for row in CONTRADICTS.values() for says in row} <= set(SAYS)
    assert all(row.source and row.doing and set(row.proof) <= {"cpu", "read", "write", "child"} for row in SLOW_WORK)
    assert len({row.id for row in SLOW_WORK}) == len(SLOW_WORK)
