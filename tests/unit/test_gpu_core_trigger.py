"""GPU cores that are to come: variables by driver, who is armed, and a request to all ranks at one time."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.cli.gpu_cores.arm import driver_of, environment
from gdbext.commands.all_commands import IN_SHELL
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch import gpu_core_settings as settings
from gdbext.model.errors import GdbextError
from tests import prove_gpu
from tests.front_end import gdbext
from tests.inferiors.gpu_core import core_of
from tests.polling import DEADLINE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_driver(tmp_path):
    (tmp_path / "proc").mkdir()
    return ProcFS(str(tmp_path / "proc"))


def test_variables_of_each_driver(tmp_path, no_driver):
    folder = str(tmp_path / "cores")

    def names(driver, full=False):
        return environment(folder, driver, full, {}, no_driver, []).variables

    assert settings.LIGHTWEIGHT in names(535) and settings.FLAGS not in names(535)
    assert "skip_constbank" not in names(555)[settings.FLAGS]
    assert names(580)[settings.FLAGS].endswith("skip_constbank_memory") and settings.LIGHTWEIGHT not in names(580)
    assert settings.FLAGS not in names(580, full=True) and settings.LIGHTWEIGHT not in names(535, full=True)
    assert names(580)[settings.FILE] == f"{folder}/gpucore.%h.%p.%t.nvcudmp"
    for driver in range(500, 600, 5):
        rows = [row.name for row in settings.ARM if row.fits(driver)]
        assert len(rows) == len(set(rows)) and all(row.source for row in settings.ARM)


def test_what_is_set_already_stays_and_what_was_removed_is_told(tmp_path, no_driver):
    environ = {settings.LIGHTWEIGHT: "1", settings.FILE: str(tmp_path / "mine.%p"), settings.FLAGS: "skip_abort"}
    found = environment(str(tmp_path), 580, False, environ, no_driver, ["mpirun", "-n", "2"])
    assert found.variables[settings.FILE] == str(tmp_path / "mine.%p")
    notes = "\n".join(found.notes)
    assert "is already set and stays" in notes and "was removed in CUDA 13.0" in notes and "skip_abort can" in notes
    assert f"-x {settings.ON_DEMAND}" in notes


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", 535),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build", 580),
        ("something else 580.65", None),
    ],
)
def test_the_driver_of_this_host(tmp_path, text, driver):
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(text + "\n")
    assert driver_of(ProcFS(str(tmp_path))) == driver


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, no_driver):
    (tmp_path / "file").write_text("")
    with pytest.raises(GdbextError, match="cannot be written"):
        environment(str(tmp_path / "file" / "x"), 580, False, {}, no_driver, [])


def test_no_room_is_one_line(tmp_path, no_driver, monkeypatch):
    monkeypatch.setattr("gdbext.cli.gpu_cores.arm.LEAST_FREE", 1 << 60)
    with pytest.raises(GdbextError, match="too little for the cores"):
        environment(str(tmp_path), 580, False, {}, no_driver, [])


def test_without_a_command_the_variables_are_printed(tmp_path):
    done = gdbext("gpucore", "arm", "--dir", tmp_path, "--driver", "580")
    assert done.returncode == 0 and f"export {settings.ON_DEMAND}=1" in done.stdout
    answer = json.loads(gdbext("gpucore", "arm", "--dir", tmp_path, "--driver", "580", "--json").stdout)
    assert answer["variables"][settings.PIPE] == f"{tmp_path}/corepipe.cuda.%h.%p"


def test_nothing_but_the_command_asks_for_a_core():
    """Neither several hosts nor a watch: a dump may end the job."""
    options = {one.name for one in IN_SHELL["gpucore"].arguments}
    assert "--hosts" not in options and "--yes" in options
    users = [path for path in (ROOT / "gdbext").rglob("*.py") if "gpu_cores.trigger" in path.read_text("utf-8")]
    assert [path.name for path in users] == ["gpucore.py"]


class Ranks:
    """Programs that `gdbext gpucore arm` has started."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        (folder / "core").write_bytes(core_of(b"", [], images=False))

    def start(self, what="", rank=None, armed=True):
        number = len(self.started) if rank is None else rank
        environ = {**os.environ, "RANK": str(number), "WORLD_SIZE": "2", "LOCAL_RANK": str(number)}
        words = [sys.executable, "-m", "tests.inferiors.gpu_core_rank", str(self.folder / "core"), what]
        arm = [sys.executable, "-m", "gdbext", "gpucore", "-q", "arm", "--dir", str(self.folder / "out"), "--"]
        if not armed:
            environ.update({settings.PIPE: str(self.folder / "p.%p"), settings.FILE: str(self.folder / "f.%p")})
        process = subprocess.Popen([*(arm if armed else ()), *words], cwd=ROOT, env=environ, stdout=subprocess.PIPE)
        self.started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process.pid

    @property
    def pids(self):
        return [str(one.pid) for one in self.started]

    def end(self):
        for one in self.started:
            one.kill()
            one.wait()
            one.stdout.close()


@pytest.fixture
def ranks(tmp_path):
    ranks = Ranks(tmp_path)
    yield ranks
    ranks.end()


@pytest.mark.process
def test_all_ranks_are_asked_at_one_time_and_write(ranks):
    for _ in range(2):
        ranks.start()
    status = gdbext("gpucore", "status", *ranks.pids, "--json")
    answer = json.loads(status.stdout)
    assert status.returncode == 0, status.stdout
    assert [(one["on_exception"], one["on_demand"]) for one in answer["ranks"]] == [(True, True)] * 2
    assert all(one["free"] > 0 and one["pipe_open"] is not False for one in answer["ranks"])
    done = gdbext("gpucore", "trigger", *ranks.pids, "--yes", "--deadline", "60", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    rows = json.loads(done.stdout)["ranks"]
    assert [(one["state"], one["alive"]) for one in rows] == [("written", True)] * 2
    assert all(Path(one["file"]).read_bytes() == (ranks.folder / "core").read_bytes() for one in rows)
    assert "stop until their cores are written" in done.stderr
    assert all(one.poll() is None for one in ranks.started)  # nobody got a signal
    read = gdbext("gpucore", "read", *(one["file"] for one in rows))
    assert read.returncode == 0 and f"pid {ranks.pids[0]} on node7" in read.stdout


@pytest.mark.process
def test_status_asks_for_nothing(ranks):
    ranks.start()
    for _ in range(3):
        gdbext("gpucore", "status", *ranks.pids)
    assert list((ranks.folder / "out").glob("*.nvcudmp")) == []


@pytest.mark.process
def test_a_dump_needs_somebodys_word(ranks):
    ranks.start()
    done = gdbext("gpucore", "trigger", *ranks.pids)
    assert done.returncode == 2 and "--yes" in done.stderr
    assert list((ranks.folder / "out").glob("*.nvcudmp")) == []
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "gdbext", "gpucore", "trigger", *ranks.pids]
    asked = subprocess.Popen(words, cwd=ROOT, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    os.write(ours, b"n\n")
    out, err = asked.communicate(timeout=DEADLINE)
    os.close(ours)
    assert "now? [y/N]" in out and "nothing was asked for" in err
    assert list((ranks.folder / "out").glob("*.nvcudmp")) == []


@pytest.mark.process
def test_one_that_stops_in_the_middle_one_that_is_deaf_and_one_that_ends(ranks):
    ranks.start("half")
    ranks.start("ends")
    done = gdbext("gpucore", "trigger", *ranks.pids, "--yes", "--deadline", "6", "--json")
    states = [one["state"] for one in json.loads(done.stdout)["ranks"]]
    assert (done.returncode, states) == (3, ["not finished", "written"])
    ranks.end()
    ranks.started.clear()
    ranks.start("deaf")
    done = gdbext("gpucore", "trigger", *ranks.pids, "--yes", "--deadline", "1")
    assert done.returncode == 4 and "its pipe cannot be written" in done.stdout


@pytest.mark.process
def test_ranks_that_are_not_armed(ranks):
    ranks.start("deaf", armed=False)
    status = gdbext("gpucore", "status", *ranks.pids)
    assert status.returncode == 1 and "restart with" in status.stdout
    done = gdbext("gpucore", "trigger", *ranks.pids, "--yes")
    assert done.returncode == 4 and "gpucore arm" in done.stderr


@pytest.mark.process
def test_a_program_that_is_not_there(tmp_path):
    words = [
        sys.executable,
        "-m",
        "gdbext",
        "gpucore",
        "arm",
        "--dir",
        str(tmp_path),
        "--",
        "no-such-program",
        "--json",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 4 and "cannot run no-such-program" in done.stderr and done.stdout == ""


def test_the_proof_says_in_one_line_that_no_gpu_is_here(monkeypatch, capsys):
    monkeypatch.setattr("tests.prove_gpu.glob.glob", lambda pattern: [])
    monkeypatch.setattr(sys, "argv", ["prove-gpu"])
    assert prove_gpu.main() == prove_gpu.NO_GPU
    said = capsys.readouterr()
    assert json.loads(said.out) == {"gpu": False, "steps": []} and said.err.count("\n") == 1
    assert all(getattr(prove_gpu.Proof, name).__doc__ for name in prove_gpu.STEPS)
    page = (ROOT / "docs/gpu.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in prove_gpu.STEPS)
