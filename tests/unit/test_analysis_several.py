"""Two jobs in one question: told apart by what proves it, judged by themselves, and doubted where nothing tells."""

from dataclasses import replace

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.verdict.several_jobs import jobs_of, repeated_ranks
from gdbext.parsers import parse_files
from tests.unit.stacks import job, rank, stack

WAITS = stack("cudaStreamSynchronize@libcudart.so.12", "step@engine x.cc:1")
PINS = stack("cudaMallocHost@libcudart.so.12", "grow@engine x.cc:9")


def dump(pid, title, *frames):
    lines = "\n".join(f"    {frame}" for frame in frames)
    return f'Process {pid}: {title}\nThread {pid} (idle): "MainThread"\n{lines}\n'


REDUCE, BARRIER = (
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "barrier (torch/distributed/distributed_c10d.py:4501)",
)
READS = "readinto (socket.py:705)"


def judged(text):
    return judge(parse_files([("mixed.txt", text.encode())]))


def test_two_programs_in_one_log():
    text = dump(10, "python a.py --rank 0", REDUCE) + dump(20, "python b.py --rank 0", BARRIER)
    text += dump(11, "python a.py --rank 1", REDUCE) + dump(21, "python b.py --rank 1", READS)
    answer = judged(text)
    assert jobs_of(answer.snapshot) == ((0, 2), (1, 3))
    verdict = answer.verdict
    assert (verdict.cause, verdict.culprits, verdict.victims) == ("missing-rank", (3,), (1,))
    assert (verdict.decisive_process, verdict.evidence[0].process) == (3, 3)
    assert "2 jobs" in verdict.summary and "of a.py (pid 10,11): unknown" in verdict.summary


def test_one_job_after_the_other():
    text = "".join(
        dump(pid, f"serve --rank {number}", frame)
        for pid, number, frame in ((10, 0, REDUCE), (11, 1, REDUCE), (20, 0, BARRIER), (21, 1, BARRIER))
    )
    answer = judged(text)
    assert jobs_of(answer.snapshot) == ((0, 1), (2, 3))
    assert answer.verdict.cause == "unknown"  # not the mismatch that both together would be


def test_pids_of_two_launches():
    ranks = [
        replace(one, index=index, pid=index + 40, environment={"SLURM_JOB_ID": "1", "SLURM_STEP_ID": step})
        for index, (one, step) in enumerate(
            ((rank(0, WAITS), "0"), (rank(1, PINS), "0"), (rank(2, WAITS), "1"), (rank(3, WAITS), "1"))
        )
    ]
    answer = judge(job(*ranks))
    assert jobs_of(answer.snapshot) == ((0, 1), (2, 3))
    assert (answer.verdict.cause, answer.verdict.culprits, answer.verdict.victims) == (
        "implicit-sync-vs-collective",
        (1,),
        (0,),
    )


def test_a_front_end_goes_with_its_workers():
    text = dump(9, "serve", READS) + "".join(
        dump(pid, f"serve --rank {number}", REDUCE) for pid, number in ((10, 0), (11, 1), (20, 0), (21, 1))
    )
    assert jobs_of(judged(text).snapshot) == ((0, 1, 2), (3, 4))


def test_what_cannot_be_told_apart_is_said_and_doubted():
    ranks = [
        replace(one, index=index, pid=index + 40)
        for index, one in enumerate((rank(0, WAITS), rank(0, WAITS), rank(1, PINS)))
    ]
    mixed, alone = judge(job(*ranks)).verdict, judge(job(ranks[0], replace(ranks[2], index=1))).verdict
    assert alone.cause == mixed.cause == "implicit-sync-vs-collective"
    assert (alone.confidence, mixed.confidence) == ("medium", "low")
    assert any("rank 0 occurs more than once" in line for line in mixed.missing)


def test_one_job_is_one_job():
    four = [replace(rank(number, WAITS), pid=number + 40, title=f"python s{number}.py") for number in range(4)]
    snapshot = judge(job(*four)).snapshot
    assert jobs_of(snapshot) == ((0, 1, 2, 3),)
    assert repeated_ranks(snapshot.processes) == []
    some = [replace(four[0], environment={"MASTER_PORT": "1"}), *four[1:]]
    assert jobs_of(judge(job(*some)).snapshot) == ((0, 1, 2, 3),)


def test_a_process_that_is_printed_twice_counts_once():
    text = dump(10, "python a.py --rank 0", REDUCE) + dump(10, "python a.py --rank 0", BARRIER)
    answer = judged(text)
    assert [one.wait.collective for one in answer.processes] == ["barrier"]
    assert any("rank 0 is printed more than once" in line for line in answer.snapshot.problems)
