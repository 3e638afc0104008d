"""The real-input cases: torchrun with gloo, mpirun with the demo engine, titles set by setproctitle."""

import json
import os
import subprocess
import sys

import pytest

from gdbext.model.snapshot_files.codec import load_snapshot
from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.inferiors.torch_job import TorchJob, state_of

pytestmark = pytest.mark.gdb


def diagnose(*arguments, gdb):
    """(exit status, JSON document, stderr) of `gdbext diagnose`."""
    long_enough = ("--max-pause", "20")  # a busy machine takes longer to copy the ranks than a server would allow
    done = gdbext("diagnose", "--json", "--gdb", gdb, *long_enough, *arguments)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def hung():
    with TorchJob(4) as job:
        yield job


@pytest.fixture(scope="module", params=["distribution", "newest"])
def look(request, hung, tmp_path_factory):
    """(exit status, the answer, errors, the saved snapshot): each gdb looks once."""
    saved = tmp_path_factory.mktemp("look") / "snapshot.json"
    gdb = gdbs()[request.param == "newest"]
    return *diagnose(*hung.pids, "--save", saved, gdb=gdb), saved


@pytest.mark.torch
class TestTorch:
    def test_rank_1_is_missing(self, look):
        status, answer, errors, _ = look
        verdict = answer["verdict"]
        ranks = {process["index"]: process["rank"] for process in answer["processes"]}
        assert verdict["cause"] == "missing-rank", verdict
        assert [ranks[i] for i in verdict["culprits"]] == [1]
        assert sorted(ranks[i] for i in verdict["victims"]) == [0, 2, 3]
        assert status == 1, errors
        assert "torch_rank.py" in json.dumps(verdict)

    def test_the_python_line_of_each_rank_is_shown(self, look):
        *_, saved = look
        assert saved.stat().st_mode & 0o777 == 0o600
        for process in load_snapshot(saved.read_bytes()).processes:
            main = next(thread for thread in process.threads if thread.lwp == process.pid)
            lines = [(frame.function, frame.line) for frame in main.frames if frame.language == "python"]
            wanted = "wait_for_weights" if process.rank == 1 else "forward"
            assert [line for name, line in lines if name and name.endswith(wanted) and line > 0], lines

    def test_every_rank_runs_on(self, look, hung):
        for rank, pid in enumerate(hung.pids):
            assert state_of(pid)[1] == 0
            assert hung.goes_on(rank)

    def test_without_selector_the_one_job_is_found(self, hung, turn_gdb):
        _, answer, _ = diagnose("--parent", hung.launcher.pid, gdb=turn_gdb)
        assert [process["pid"] for process in answer["processes"]] == hung.pids
        assert [process["rank"] for process in answer["processes"]] == [0, 1, 2, 3]


@pytest.mark.torch
def test_the_healthy_twin_gives_no_finding():
    with TorchJob(2, mode="healthy") as job:
        status, answer, errors = diagnose(*job.pids, gdb=gdbs()[-1])
        assert answer["verdict"]["cause"] == "not-a-hang", answer["verdict"]
        assert status == 0, errors
        assert all(job.goes_on(rank) for rank in range(2))


TITLES = [("rtp-llm", "rtp_llm_rank-1"), ("vllm", "VLLM::Worker_TP1"), ("sglang", "sglang::scheduler_TP1")]
TITLED = (
    "import sys, setproctitle; setproctitle.setproctitle(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
)


@pytest.mark.parametrize(("engine", "title"), TITLES)
def test_a_rank_known_by_its_title_only(engine, title, turn_gdb):
    """The environment is wiped by the title; the rank comes from the title, or from the memory of the process."""
    environment = {**os.environ, "WORLD_RANK": "1", "WORLD_SIZE": "2"}
    with subprocess.Popen(
        [sys.executable, "-c", TITLED, title], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        try:
            _, answer, _ = diagnose(process.pid, gdb=turn_gdb)
        finally:
            process.kill()
        (only,) = answer["processes"]
        assert (only["engine"], only["title"], only["rank"]) == (engine, title, 1)


def test_the_engine_core_is_read_beside_its_ranks_and_named(turn_gdb):
    """A server may hang in its scheduler while all its ranks wait for work."""
    program = (
        "import subprocess, sys, setproctitle; title, *below = sys.argv[1:]; setproctitle.setproctitle(title)\n"
        f"ranks = [subprocess.Popen([sys.executable, '-c', {TITLED!r}, one], stdin=subprocess.PIPE,"
        " stdout=subprocess.PIPE) for one in below]\n"
        "[one.stdout.readline() for one in ranks]; print('ready', flush=True); sys.stdin.read()"
    )
    titles = ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *titles], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as core:
        assert core.stdout.readline() == b"ready\n"
        _, answer, errors = diagnose(core.pid, "--once", gdb=turn_gdb)
        core.stdin.close()
    found = [(one["title"], one["rank"], one["role"]) for one in answer["processes"]]
    assert found == [(titles[1], 0, "rank"), (titles[2], 1, "rank"), (titles[0], None, "engine core")]
    assert set(answer["pause_ms"]["per_rank"]) == {"0", "1", "engine core"}, errors
