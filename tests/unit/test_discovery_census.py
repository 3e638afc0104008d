"""Real processes with real titles, and the cost of a look at many."""

import os
import subprocess
import sys

import pytest
from discovery_tree import Tree

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs, rank_from_environ
from gdbext.discovery.ranks.selectors import Selector

TITLED = """
import setproctitle, sys
setproctitle.setproctitle(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start():
    """Start Python with a title; returns its pid once the title stands."""
    children = []

    def run(title):
        environ = {**os.environ, "WORLD_RANK": "9", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        child = subprocess.Popen([sys.executable, "-c", TITLED, title], env=environ, **pipes)
        children.append(child)
        assert child.stdout.readline() == b"ready\n"
        return child.pid

    yield run
    for child in children:
        child.communicate()


@pytest.mark.process
@pytest.mark.parametrize(
    "title, engine, rank",
    [
        ("rtp_llm_rank-1", "rtp-llm", 1),
        ("VLLM::Worker_TP1", "vllm", 1),
        ("VLLM::Worker_DP0_PP1_TP12_EP12", "vllm", 25),
        ("sglang::scheduler_TP1", "sglang", 1),
    ],
)
def test_title_set_by_setproctitle(start, title, engine, rank):
    pid = start(title)
    (job,) = find_jobs(ProcFS(), Selector(pids=(pid,)))
    (process,) = job.ranks
    assert (process.pid, process.engine, process.rank, process.title) == (pid, engine, rank, title)
    assert process.threads >= 1
    found = [(one.pid, one.rank) for job in find_jobs(ProcFS(), Selector(engine=engine)) for one in job.ranks]
    assert (pid, rank) in found


@pytest.mark.process
def test_environment_lost_by_the_title_completes_the_rank_later(start):
    pid = start("rtp_llm_rank-1")
    (job,) = find_jobs(ProcFS(), Selector(pids=(pid,)))
    assert not ProcFS().environ(pid)
    memory = {"WORLD_RANK": "9", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}
    assert rank_from_environ(job.ranks[0], memory).rank == 9


def test_many_processes_are_read_with_few_files(tmp_path, monkeypatch):
    """Maps and open files are read for candidates only."""
    tree = Tree(tmp_path)
    for pid in range(100, 400):
        tree.add(pid, 1, "/usr/sbin/daemon --flag")
    for rank in range(4):
        tree.torch_rank(20 + rank, 1, rank, 4)
    asked = []
    for name in ("mapped_files", "open_files", "exe"):
        original = getattr(ProcFS, name)

        def count(self, pid, original=original, name=name):
            asked.append((name, pid))
            return original(self, pid)

        monkeypatch.setattr(ProcFS, name, count)
    (job,) = find_jobs(ProcFS(str(tmp_path)), Selector())
    assert len(job.ranks) == 4
    assert {pid for _, pid in asked} == {20, 21, 22, 23}
    assert len(asked) == len(set(asked))
