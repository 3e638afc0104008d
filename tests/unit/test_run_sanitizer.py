"""`gdbext run --sanitizer`: options by release, launchers, what is missing, a stop that keeps reports, the verdict."""

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.cli.sanitizer import installed_tool, sanitize
from gdbext.cli.sanitizer.installed_tool import SanitizerTool, installed, tool_problems
from gdbext.cli.sanitizer.rank_commands import log_of, options_of, placed
from gdbext.knowledge.launch import sanitizer_options as rows
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from tests import front_end, sanitizer_mimic
from tests.fat_binaries import CUBIN, container, cubin, entry, library
from tests.gpu_reports import Fault, report
from tests.polling import DEADLINE

NEW = SanitizerTool(
    "/opt/compute-sanitizer", (2026, 4), frozenset(f"--{one}" for one in sanitizer_mimic.OF_2026.split())
)
OPEN_MPI = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"


@pytest.fixture
def program(tmp_path):
    """Makes a launcher that says its version."""

    def make(name, said):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_rows_have_sources():
    assert all(row.source for row in (*rows.OPTIONS, *rows.FILTERS, *rows.LAUNCHERS))
    for row in rows.LAUNCHERS:
        words = f"{row.flags} {row.pairs} {row.triples}".split()
        assert len(words) == len(set(words)), row.names
    assert [since for since, _, _ in rows.DRIVERS] == sorted((since for since, _, _ in rows.DRIVERS), reverse=True)


@pytest.mark.parametrize(
    ("command", "program_word", "rank"),
    [
        ("srun -n8 -N 2 --gpus-per-task=1 ./server -x", "./server", "SLURM_PROCID"),
        ("srun --ntasks 8 --export ALL numactl -N 0 ./server", "numactl", "SLURM_PROCID"),
        ("env A=1 srun -l ./server", "./server", "SLURM_PROCID"),
        ("torchrun --nproc-per-node 8 --no-python ./server", "./server", "RANK"),
        ("vllm serve model -tp 8", "vllm", ""),
        ("./server --ranks 8", "./server", ""),
    ],
)
def test_the_sanitizer_stands_before_the_program(command, program_word, rank):
    place = placed(command.split(), {})
    assert (place.program[0], place.rank) == (program_word, rank)
    assert [*place.before, *place.program] == command.split()


@pytest.mark.process
@pytest.mark.parametrize(
    ("said", "rank"),
    [
        (OPEN_MPI, "OMPI_COMM_WORLD_RANK"),
        ("HYDRA build details:\n    Version: 4.1.2", "PMI_RANK"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", "PMI_RANK"),
        ("mpirun (Open MPI) 5.0.3 with PRRTE", "OMPI_COMM_WORLD_RANK"),
    ],
)
def test_the_rank_of_each_mpi(program, said, rank):
    mpirun = program("mpirun", said)
    place = placed([mpirun, "-n", "8", "--mca", "btl", "tcp,self", "-x", "PATH", "./server"], {})
    assert (place.program, place.rank) == (("./server",), rank)
    assert log_of(place, "/d", {}) == f"/d/san.%q{{{rank}}}.log"


@pytest.mark.process
def test_an_mpi_that_is_not_known_is_no_guess(program):
    with pytest.raises(GdbextError, match=r"does not say which MPI it is; start each rank by gdbext"):
        placed([program("mpirun", "something"), "-n", "2", "./server"], {})


def test_torchrun_is_given_a_program_in_place_of_a_script():
    place = placed(
        ["/opt/bin/python3.11", "-m", "torch.distributed.run", "--nproc-per-node", "8", "train.py", "-x"], {}
    )
    assert place.before == (
        "/opt/bin/python3.11",
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "8",
        "--no-python",
    )
    assert place.program == ("/opt/bin/python3.11", "-u", "train.py", "-x")
    module = placed(["torchrun", "--standalone", "-m", "pkg.train"], {"PYTHON_EXEC": "/p/python"})
    assert (module.before, module.program) == (
        ("torchrun", "--standalone", "--no-python"),
        ("/p/python", "-u", "-m", "pkg.train"),
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("srun --new-option value ./server", "--new-option of srun is not known"),
        ("srun -n 8", "no program behind srun"),
        ("srun -n 1 ./a : -n 2 ./b", "starts several programs"),
    ],
)
def test_no_place_is_guessed(command, said):
    with pytest.raises(UsageError, match=f"{said}.*; start each rank by gdbext: mpirun -n 8 gdbext run --sanitizer --"):
        placed(command.split(), {})


def test_in_a_rank_the_log_has_its_number():
    place = placed(["./server"], {})
    rank = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"}
    assert (log_of(place, "/d", rank), log_of(place, "/d", {})) == ("/d/san.3.log", "/d/san.log")


def test_options_of_the_newest():
    words, lacking = options_of(NEW, "racecheck", "/d/san.log", "flash.*fwd", ["print-limit=0", "--leak-check=full"])
    given = dict(zip(words[::2], words[1::2]))
    assert lacking == []
    assert given == {
        "--tool": "racecheck",
        "--target-processes": "all",
        "--launch-timeout": "0",
        "--max-connections": "128",
        "--num-callers-host": "50",
        "--strip-paths": "no",
        "--error-exitcode": "86",
        "--log-file": "/d/san.log",
        "--kernel-name": "regex=flash.*fwd",
        "--print-limit": "0",
        "--leak-check": "full",
    }


@pytest.mark.parametrize(
    ("release", "option", "lacks"),
    [
        ("2020.3", ["--filter", "kernel_substring=flash"], ["--num-callers-host", "--strip-paths"]),
        ("2022.3", ["--kernel-regex", "kernel_substring=flash"], ["--strip-paths"]),
        ("2024.1", ["--kernel-name", "regex=flash"], ["--strip-paths"]),
        ("2026.4", ["--kernel-name", "regex=flash"], []),
    ],
)
@pytest.mark.process
def test_what_each_release_has(tmp_path, release, option, lacks):
    tool = installed(sanitizer_mimic.environment(sanitizer_mimic.installed(tmp_path / "bin", release)))
    assert (tool.named, tool.libraries) == (f"compute-sanitizer {release}", None)
    words, lacking = options_of(tool, "memcheck", "/d/san.log", "flash", [])
    assert words[-2:] == option
    assert [line.split("has no ")[1].split()[0] for line in lacking] == lacks
    assert not set(lacks) & set(words)


def test_what_a_release_cannot_is_refused():
    old = NEW._replace(release=(2022, 3), options=frozenset(f"--{one}" for one in sanitizer_mimic.OF_2022.split()))
    with pytest.raises(UsageError, match=r"2022\.3 takes part of a kernel's name, not an expression"):
        options_of(old, "memcheck", "l", "flash.*", [])
    with pytest.raises(UsageError, match=r"2022\.3 has no option --xyz; /opt/compute-sanitizer --help lists them"):
        options_of(old, "memcheck", "l", None, ["xyz=1"])
    with pytest.raises(UsageError, match="--log-file is for gdbext to choose"):
        options_of(old, "memcheck", "l", None, ["log-file=/x"])


def test_without_the_tool_its_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(installed_tool, "FOLDERS", ())
    monkeypatch.setattr(installed_tool, "IN_PACKAGES", ())
    with pytest.raises(
        NothingFound, match=r"no compute-sanitizer on this host; pip install 'nvidia-cuda-sanitizer-api>="
    ):
        installed({"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("TreeLauncherSubreaper", "has no TreeLauncherSubreaper that can be run"),
        ("libsanitizer-collection.so", "has no lib"),
    ],
)
def test_a_package_without_a_part_is_refused_before_it_starts_nothing(tmp_path, gone, said):
    folder = sanitizer_mimic.installed(tmp_path / "bin")
    assert installed_tool._libraries(str(folder / "compute-sanitizer")) is None  # a script knows where its parts are
    (folder / "compute-sanitizer").write_bytes(b"\x7fELF")
    assert installed_tool._libraries(str(folder / "compute-sanitizer")) is None
    (folder / gone).unlink()
    with pytest.raises(GdbextError, match=f"{said}.*so it starts nothing; pip install"):
        installed_tool._libraries(str(folder / "compute-sanitizer"))


def test_libraries_in_another_folder_are_told(tmp_path):
    for name in ("bin/elf", "lib/libsanitizer-collection.so", "lib/TreeLauncherSubreaper"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\x7fELF")
        (tmp_path / name).chmod(0o755)
    folder = installed_tool._libraries(str(tmp_path / "bin/elf"))
    assert folder == str(tmp_path / "lib")
    words, _ = options_of(NEW._replace(libraries=folder), "memcheck", "l", None, [])
    assert words[:2] == ["--injection-path", folder]


@pytest.mark.parametrize(
    ("release", "driver", "fits"),
    [
        ((2026, 4), "580.65.06", True),
        ((2026, 4), "550.54.15", False),
        ((2024, 1), "550.54.15", True),
        ((2022, 3), "470.82.01", True),
    ],
)
def test_a_driver_that_is_too_old_is_said(monkeypatch, release, driver, fits):
    said = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue"
    monkeypatch.setattr(installed_tool, "of_this_host", lambda: {"NVIDIA driver": said})
    problems = tool_problems(NEW._replace(release=release), {})
    assert any("the driver is" in one for one in problems) != fits


def test_other_tools_in_the_environment_are_said():
    said = tool_problems(NEW, {"CUDA_INJECTION64_PATH": "/x.so", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1"})
    assert any(one.startswith("CUDA_INJECTION64_PATH is set: another tool") for one in said)
    assert any("switches GPU core dumps off" in one for one in said)


@pytest.mark.parametrize(("sections", "said"), [((), "in /"), ((".debug_line", ".nv_debug_line_sass"), "")])
def test_a_program_without_lines_is_said(tmp_path, sections, said):
    path = library(tmp_path, container(entry(CUBIN, 80, cubin(tmp_path, *sections))))
    path.chmod(0o755)
    found = installed_tool.without_lines(str(path), {})
    assert found.startswith(said) and ("-lineinfo" in found) == bool(said)
    assert installed_tool.without_lines("python3", {"PATH": "/nosuch"}) == ""


def options(**more):
    given = {"quiet": True, "dry_run": False, "sanitizer": "memcheck", "kernel": None, "set": None, "dir": None}
    return argparse.Namespace(**{**given, "engine": None, **more})


def test_the_engine_is_started_without_what_does_not_go_with_it(tmp_path):
    (tmp_path / "libcuda.so.1").touch()
    environ = {"LD_LIBRARY_PATH": str(tmp_path)}
    asked = options(dry_run=True, dir=str(tmp_path / "d"))
    start = sanitize.prepare_run(asked, ["vllm", "serve", "m", "-tp", "8"], NEW, environ)
    assert start.words[0] == NEW.path
    assert start.words[-6:] == ["vllm", "serve", "m", "-tp", "8", "--enforce-eager"]
    assert start.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    assert any("reports do not say which rank" in one for one in start.said)
    assert not (tmp_path / "d").exists()
    sglang = sanitize.prepare_run(asked, ["python", "-m", "sglang.launch_server", "--tp", "2"], NEW, environ)
    assert sglang.words[-3:] == ["--disable-cuda-graph", "--watchdog-timeout", "86400"]


def test_without_a_driver_the_program_is_not_sent_into_a_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(sanitize, "has_driver", lambda environ: False)
    with pytest.raises(
        GdbextError, match=r"no libcuda\.so\.1 on this host: under the sanitizer the program would crash"
    ):
        sanitize.prepare_run(options(dir=str(tmp_path / "d")), ["./server"], NEW, {})
    assert sanitize.prepare_run(options(dir=str(tmp_path / "d")), ["srun", "./server"], NEW, {}).words[0] == "srun"


def test_a_program_that_is_not_there_is_said_before_the_sanitizer_starts(tmp_path):
    (tmp_path / "libcuda.so.1").touch()
    environ = {"LD_LIBRARY_PATH": str(tmp_path), "PATH": str(tmp_path)}
    with pytest.raises(NothingFound, match=r"cannot run serve: no such program here"):
        sanitize.prepare_run(options(dir=str(tmp_path / "d")), ["serve"], NEW, environ)
    assert not (tmp_path / "d").exists()


def test_without_a_command_the_example_is_of_the_sanitizer():
    done = front_end.gdbext("run", "--sanitizer")
    assert (done.returncode, "gdbext run --sanitizer -- mpirun" in done.stderr) == (2, True)


def test_reports_of_another_run_are_not_mixed_in(tmp_path):
    (tmp_path / "libcuda.so.1").touch()
    (tmp_path / "san.7.log").touch()
    with pytest.raises(UsageError, match="has reports of another run; choose another folder with --dir"):
        sanitize.prepare_run(options(dir=str(tmp_path)), ["srun", "-n2", "./server"], NEW, {})


@pytest.fixture(autouse=True)
def everybody_ends(request, tmp_path):
    """Ranks and sanitizers are in sessions of their own: those of a test that fails would be seen by the next ones."""
    yield
    if not request.node.get_closest_marker("process"):
        return
    ours = f"LD_LIBRARY_PATH={tmp_path / 'bin'}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if ours in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(int(pid), signal.SIGKILL)


def gdbext(tmp_path, *words, cwd=None, **variables):
    folder = sanitizer_mimic.installed(tmp_path / "bin")
    line = [sys.executable, "-m", "gdbext", "run", "--sanitizer", "--dir", str(tmp_path / "d"), *words]
    environ = sanitizer_mimic.environment(folder, PYTHONPATH=str(Path(__file__).parents[2]), **variables)
    return subprocess.Popen(
        line,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )


@pytest.mark.process
def test_a_program_without_an_error(tmp_path):
    out, said = (
        job := gdbext(tmp_path, "--", "sh", "-c", "echo works; echo $PYTORCH_NO_CUDA_MEMORY_CACHING")
    ).communicate()
    assert job.returncode == 0, said
    assert out.splitlines() == ["works", "1", "No error was reported: 1 report with a summary of 0 errors."]
    assert f"reports: {tmp_path}/d/san.log" in said
    assert "10 to 50 times as long" in said


@pytest.mark.process
def test_an_error_is_judged(tmp_path):
    (tmp_path / "report").write_text("\n".join(report(Fault(), "D")))
    out, said = (job := gdbext(tmp_path, "--", "true", MIMIC_REPORT=str(tmp_path / "report"))).communicate()
    assert job.returncode == 1, said
    assert "gpu-fault (high confidence)" in out
    assert "kernels.cu:41" in out


@pytest.mark.process
def test_a_program_that_never_called_cuda(tmp_path):
    out, _ = (job := gdbext(tmp_path, "--", "true", MIMIC_CUDA="0")).communicate()
    assert job.returncode == 3
    assert out.startswith("It cannot be told whether there are errors:")
    assert "The program never called CUDA" in out


@pytest.mark.process
def test_a_sanitizer_that_writes_nothing(tmp_path):
    out, _ = (
        job := gdbext(tmp_path, "--set", "num-callers-host=x", "--", "sh", "-c", f"rm -r {tmp_path}/d")
    ).communicate()
    assert (job.returncode, "There is no report in" in out) == (4, True)


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_the_program_and_keeps_the_reports(tmp_path, number):
    """The sanitizer itself must not get the signal: it would end at once, without its summary."""
    (tmp_path / "report").write_text("\n".join(report(Fault(), "D")))
    server = "trap 'echo tidy; exit 0' INT TERM; echo ready; while :; do read x <&3; done"
    os.mkfifo(tmp_path / "never")
    words = ["--", "bash", "-c", f"exec 3<>{tmp_path}/never; {server}"]
    job = gdbext(tmp_path, *words, MIMIC_REPORT=str(tmp_path / "report"))
    assert job.stdout.readline() == "ready\n"
    job.send_signal(number)
    out, said = job.communicate(timeout=DEADLINE)
    assert out.startswith("tidy\n")
    assert "the sanitizer then writes its reports" in said
    assert "the program was stopped" in said
    assert (job.returncode, "kernels.cu:41" in out) == (1, True)
    assert "ERROR SUMMARY: 1 errors" in (tmp_path / "d/san.log").read_text()


RANKS = {
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable],
}
RANK = """
import os, signal, sys, time
def tidy(*_):
    sys.exit(0)
signal.signal(signal.SIGINT, tidy)
os.write(1, b"ready\\n")
os.open("both", os.O_WRONLY if os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1" else os.O_RDONLY)
while sys.argv[1:] == ["stays"]:
    time.sleep(1)
"""
"""Opening the pipe waits for the other rank: without it a launcher may end a rank that has not begun. Who stays looks
up each second: a signal that comes right before pause(2) would wait for the next one."""


@pytest.mark.process
@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("launcher", RANKS)
def test_a_report_of_each_rank_behind_a_launcher(tmp_path, launcher, stays):
    """The launchers themselves, run to the end and stopped. Both end the other ranks when the first one's status is an
    error, so that the end of one report may be missing, and no more."""
    (tmp_path / "report").write_text("\n".join(report(Fault(), "D")))
    (tmp_path / "rank.py").write_text(RANK)
    os.mkfifo(tmp_path / "both")
    words = [*RANKS[launcher], "rank.py", *(["stays"] if stays else [])]
    job = gdbext(tmp_path, "--", *words, MIMIC_REPORT=str(tmp_path / "report"))
    ready = [job.stdout.readline() for _ in range(2)]
    assert ready == ["ready\n"] * 2, job.communicate(timeout=DEADLINE)
    if stays:
        job.send_signal(signal.SIGINT)
    out, said = job.communicate(timeout=DEADLINE)
    logs = sorted((tmp_path / "d").iterdir())
    assert [path.name for path in logs] == ["san.0.log", "san.1.log"], said
    assert (job.returncode, len(re.findall(r"[(,] ?\d+ python\S*(?: -u)? rank\.py stays", said))) == (1, 2 * stays), (
        said
    )
    assert any("ERROR SUMMARY: 1 errors" in path.read_text() for path in logs)
    assert "Invalid __global__ write" in out and "kernels.cu:41" in out


@pytest.mark.process
def test_a_dry_run_prints_the_command_alone(tmp_path):
    out, _ = (job := gdbext(tmp_path, "--dry-run", "--", "srun", "-n", "4", "./a b")).communicate()
    words = shlex.split(out)
    assert (job.returncode, words[:3], words[-1]) == (0, ["srun", "-n", "4"], "./a b")
    assert words[words.index("--log-file") + 1] == f"{tmp_path}/d/san.%q{{SLURM_PROCID}}.log"
    assert not (tmp_path / "d").exists()


@pytest.mark.process
def test_what_does_not_go_together(tmp_path):
    _, said = (job := gdbext(tmp_path, "--profile", "--", "true")).communicate()
    assert (job.returncode, "--sanitizer goes with no other purpose" in said) == (2, True)
