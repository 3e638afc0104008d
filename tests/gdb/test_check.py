"""llm-check on real gdb, with the real CUDA runtime of PyPI: without a GPU every call of it fails for real."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nvidia.cuda_runtime
import pytest

from gdbext.capture.elf.throw_sites import throw_sites
from tests.conftest import NEWEST
from tests.gdb.gdbrun import DEADLINE, INFERIORS, INIT, build, gdb_batch
from tests.gpu_reports import Fault, log, report

pytestmark = pytest.mark.gdb
RUNTIME = Path(next(iter(nvidia.cuda_runtime.__path__))) / "lib"
SOURCE = INFERIORS / "check_engine.cpp"
LINES = {mark: number for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
         for mark in re.findall(r"// LINE (\w+)", text)}  # fmt: skip
ILLEGAL = "an illegal memory access was encountered"


def engine(*flags, strip=False):
    """The engine, built with these flags against the real runtime."""
    program = build("check_engine.cpp", "-g", f"-Wl,-rpath,{RUNTIME}", f"-L{RUNTIME}", "-Wl,--no-as-needed", *flags,
                    "-l:libcudart.so.12")  # fmt: skip
    if not strip:
        return program
    stripped = f"{program}-stripped"
    if not os.path.exists(stripped):
        subprocess.run(["strip", "-s", "-o", f"{stripped}.{os.getpid()}", program], check=True)
        os.replace(f"{stripped}.{os.getpid()}", stripped)
    return stripped


class Engine:
    """A running engine that obeys line by line."""

    def __init__(self, program, **environment):
        self.process = subprocess.Popen(
            program if isinstance(program, list) else [program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
        )  # fmt: skip
        self.pid = self.process.pid

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *details):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, *lines):
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def answer(self):
        """The next line that says something."""
        return next(line.strip() for line in iter(self.process.stdout.readline, "") if line.strip())


def watch(gdb, running, orders, *commands, on="llm-check on"):
    """gdb attaches and watches; then the engine gets its orders and runs on."""
    words = "".join(f"{order}\\n" for order in orders)
    order = f"shell printf '{words}' > /proc/{running.pid}/fd/0"
    return gdb_batch(gdb, f"attach {running.pid}", on, order, "continue", *commands)


def reports(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-fno-plt"), ("-O2", "-no-pie", "-static-libstdc++")])
def test_every_throw_of_a_program_is_found(flags):
    program = engine(*flags)
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True
    )
    calls = re.findall(r"^ *([0-9a-f]+):\s+call .*<__cxa_throw", listing.stdout, re.MULTILINE)
    assert {site.address for site in throw_sites(program)} == {int(one, 16) for one in calls} != set()


def test_a_failing_check_of_the_real_runtime_stops_with_its_report(any_gdb):
    with Engine(engine("-O2")) as running:
        answer = watch(any_gdb, running, ["mine", "error", "forward"], "llm-check status --json")
        said = " ".join(answer.out.split())
        assert f"a check failed at check_engine.cpp:{LINES['forward']}: cudaErrorInsufficientDriver (35)" in said
        assert "fastertransformer::check<int> throws std::runtime_error" in said
        assert "in fastertransformer::FfnLayer::forward" in said and "The checked call itself failed" in said
        assert "hidden" in said or "input: fp32 [4] on cpu" in said
        assert "0x7f00" in said and f"{LINES['forward']} check_cuda_error(cudaMalloc" in said
        (status,) = (one for one in answer.documents if "ranks" in one)
        assert status["ranks"][0]["failures"] == 1 and status["ranks"][0]["passed"] == 1
        assert running.answer() == "caught std::exception"


@pytest.mark.parametrize(("flags", "strip"), [(("-O0",), False), (("-O2",), True), (("-O3", "-fno-plt"), True)])
def test_reports_of_each_build_name_error_and_place(flags, strip, tmp_path):
    log = tmp_path / "failures.jsonl"
    with Engine(engine(*flags, strip=strip), FT_DEBUG_LEVEL="DEBUG") as running:
        trt = f"message [TensorRT-LLM][ERROR] CUDA runtime error in f(): {ILLEGAL} (/a.cpp:3)"
        cublas = "message cublas failed: CUBLAS_STATUS_EXECUTION_FAILED"
        orders = ["forward", "synchronize", trt, cublas, "error", "barrier"]
        answer = watch(NEWEST, running, orders, on=f"llm-check on --log {log}")
        found = [(one["failure"]["error"]["number"], one["failure"]["line"]) for one in reports(log)]
        assert found[:3] == [(35, LINES["forward"]), (35, LINES["synchronize"]), (700, 3)]
        assert found[3][0] == 13
        # A macro that ends the process: its text function has no symbol once the program is stripped.
        assert [number for number, _ in found[4:]] == ([] if strip else [6])
        assert "the report is in" in answer.err
    assert oct(log.stat().st_mode)[-3:] == "600"


def test_other_exceptions_go_on_and_a_storm_of_them_is_let_alone():
    with Engine(engine("-O2")) as running:
        answer = watch(NEWEST, running, ["mine", "errors 100000", "forward"], "llm-check status")
        assert "cudaErrorInsufficientDriver" in answer.out
        said = " ".join(answer.out.split())
        assert re.search(r"throw_error.* threw 101 exceptions in [\d.]+ s, and no failed check", said)
        assert [running.answer() for _ in range(2)] == ["caught std::exception", "done errors"]


def test_two_ranks_are_told_apart():
    program = engine("-O2")
    with Engine(program) as one, Engine(program) as two:
        order = f"shell echo forward > /proc/{two.pid}/fd/0"
        answer = gdb_batch(
            NEWEST, f"attach {one.pid}", "add-inferior -no-connection", "inferior 2", f"attach {two.pid}",
            "set schedule-multiple on", "llm-check on", order, "continue", "llm-check status --json",
        )  # fmt: skip
        assert f"Process {two.pid}: a check failed" in answer.out
        (status,) = answer.documents
        assert {rank["pid"]: rank["failures"] for rank in status["ranks"]} == {one.pid: 0, two.pid: 1}
        assert two.answer().startswith("caught [FT]")
        one.send("mine")
        assert one.answer() == "caught std::exception"


def test_the_engines_own_check_is_switched_on_and_off_while_it_runs(any_gdb):
    with Engine(engine("-O2")) as running:
        running.send("synchronize")
        assert running.answer() == "done synchronize"
        on = gdb_batch(any_gdb, f"attach {running.pid}", "llm-check enable --json")
        (switched,) = on.documents
        assert switched["switches"][0]["done"] is True
        running.send("synchronize")
        assert f"check_engine.cpp:{LINES['synchronize']}" in running.answer()
    with Engine(engine("-O2")) as running:
        running.send("synchronize")
        assert running.answer() == "done synchronize"
        off = gdb_batch(any_gdb, f"attach {running.pid}", "llm-check enable", "llm-check disable --json")
        assert off.documents[0]["switches"][0]["done"] is True
        running.send("synchronize")
        assert running.answer() == "done synchronize"


def test_a_stripped_engine_cannot_be_switched_and_says_so():
    with Engine(engine("-O2", strip=True)) as running:
        answer = gdb_batch(NEWEST, f"attach {running.pid}", "llm-check enable --json", "llm-check disable --json")
        assert [one["switches"][0]["done"] for one in answer.documents] == [False, False]
        assert "stripped" in answer.documents[0]["switches"][0]["text"]


def test_a_crash_is_reported_live_and_from_its_core(tmp_path):
    core = tmp_path / "core"
    with Engine(engine("-O2")) as running:
        live = watch(NEWEST, running, ["null 8"], "llm-check report --json", f"gcore {core}")
        assert "got SIGSEGV" in live.out and "A null pointer" in live.out
        dead = gdb_batch(NEWEST, f"file {engine('-O2')}", f"core-file {core}", "llm-check report --json")
        for said in (live.documents[-1], dead.documents[-1]):
            assert said["failure"]["what"] == "SIGSEGV"
            assert said["frames"][said["engine_frame"]]["function"] == "obey"


def test_a_full_dev_shm_is_named_as_the_reason_of_a_bus_error():
    program = engine("-O2")
    script = (
        "mount -t tmpfs -o size=1m tmpfs /dev/shm && echo 'pages /dev/shm/nccl-Ab12Cd' > /dev/shm/orders && exec "
        f"{NEWEST} -nx -nh -q -batch -iex 'set debuginfod enabled off' -ex 'source {INIT}' -ex 'llm-check on' "
        f"-ex 'run < /dev/shm/orders' -ex 'llm-check report --json' {program}"
    )
    try:
        done = subprocess.run(
            ["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, timeout=DEADLINE
        )
    except FileNotFoundError:
        pytest.fail("unshare is not installed")
    if "Operation not permitted" in done.stderr and "got SIGBUS" not in done.stdout:
        pytest.skip("no mount namespace of our own in this container")
    said = " ".join(done.stdout.split())
    assert "got SIGBUS" in said and "lies in /dev/shm/nccl-Ab12Cd" in said and "it is full" in said
    assert "--shm-size" in said and "write_pages" in said


def test_a_failing_torch_check_names_the_python_line():
    source = INFERIORS / "check_torch.py"
    line = next(number for number, text in enumerate(source.read_text().splitlines(), 1) if "LINE attention" in text)
    with Engine([sys.executable, str(source)]) as running:
        answer = watch(NEWEST, running, ["now"])
        said = " ".join(answer.out.split())
        assert f"in attention check_torch.py:{line}" in said and "mat1 and mat2 shapes" in said
        assert "c10::detail::torchCheckFail" in said
        assert running.answer().startswith("caught mat1")


def test_nothing_to_report_and_wrong_words_are_one_line():
    wrong = {
        "llm-check": "llm-check: missing subcommand; one of on, off, ",
        "llm-check report": "no process",
        "llm-check on --engine nosuch": "no engine nosuch",
        "llm-check on --action jump": "stop or log",
        "llm-check on --log /nosuch/folder/log": "cannot write",
        "llm-check report /nosuch/san.log": "cannot read /nosuch/san.log",
        "llm-check status": "Nothing is watched",
        "llm-check enable": "no rank is attached",
        "llm-error nosuch": "unknown error 'nosuch'",
    }
    answer = gdb_batch(NEWEST, *wrong)
    assert "Traceback" not in answer.text
    for words in wrong.values():
        assert words in answer.text


def test_reports_of_a_sanitizer_are_judged_alone_or_added(tmp_path):
    for rank in range(2):
        (tmp_path / f"san.{rank}.log").write_text(log([report(Fault(), "D")], 1))
    alone = gdb_batch(NEWEST, f"llm-check report {tmp_path}/san.*.log --json").documents[0]
    assert (alone["verdict"]["cause"], alone["gpu_errors"][0]["count"]) == ("gpu-fault", 2)
    (tmp_path / "orders").write_text("null 8\n")
    ask = f"llm-check report {tmp_path}/san.0.log --json"
    program = f"file {engine('-O2')}"
    answer = gdb_batch(NEWEST, program, "break main", f"run < {tmp_path}/orders", ask, "delete", "continue", ask)
    no_failure, crash = answer.documents
    assert no_failure["gpu_errors"][0]["count"] == 1
    assert crash["failure"]["what"] == "SIGSEGV"
    assert any("the sanitizer reports: Invalid __global__ write" in text for text in crash["failure"]["details"])


def test_list_names_every_check():
    answer = gdb_batch(NEWEST, "llm-check list --json")
    assert {"torch", "vllm"} - {row["engine"] for row in answer.documents[0]["checks"]} == {"vllm"}
