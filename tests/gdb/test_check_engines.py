"""llm-check on each engine's way to check, spelled as in the engines: the right error, file and line of every one."""

import contextlib
import hashlib
import json
import os
import re
import subprocess

import pytest

from tests.conftest import NEWEST, gdbs
from tests.gdb.gdbrun import INFERIORS, gdb_batch

pytestmark = pytest.mark.gdb
SOURCE = INFERIORS / "check_mimics.cpp"
LINES = {mark: number for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
         for mark in re.findall(r"// LINE (\w+)", text)}  # fmt: skip
PARTS = ("check_mimics.cpp", "check_c10_cuda.cpp", "check_cuda.c", "check_cuda.h")


THROWN = {  # order: engine, library, number, file, line
    "ft": ("fastertransformer", "cudaError_t", 700, "check_mimics.cpp", LINES["ft"]),
    "again": ("fastertransformer", "cudaError_t", 700, "check_mimics.cpp", LINES["again"]),
    "cublas": ("fastertransformer", "cublasStatus_t", 13, "check_mimics.cpp", LINES["cublas"]),
    "tm_old": ("turbomind", "cudaError_t", 716, "check_mimics.cpp", LINES["tm_old"]),
    "rtp_value": ("rtp-llm", "cudaError_t", 700, "check_mimics.cpp", LINES["rtp_value"]),
    "rtp_sync": ("rtp-llm", "cudaError_t", 719, "check_mimics.cpp", LINES["rtp_sync"]),
    "rtp_nccl": ("rtp-llm", "ncclResult_t", 6, "check_mimics.cpp", LINES["rtp_nccl"]),
    "rtp_assert": ("", None, None, "check_mimics.cpp", LINES["rtp_assert"]),
    "trt": ("tensorrt-llm", "cudaError_t", 700, "check_mimics.cpp", LINES["trt"]),
    "torch": ("torch", "cudaError_t", 719, "check_mimics.cpp", LINES["torch"]),
    "std": ("torch", "cudaError_t", 700, "check_mimics.cpp", LINES["std"]),
    "memory": ("torch", "cudaError_t", 2, "check_mimics.cpp", LINES["memory"]),
    "c10d": ("torch", "ncclResult_t", 6, "check_mimics.cpp", LINES["c10d"]),
    "sglang": ("sglang", "cudaError_t", 700, "check_mimics.cpp", LINES["sglang"]),
    "ku": ("", "cudaError_t", 716, "check_mimics.cpp", LINES["ku"]),
}
ENDING = {  # order: its reports; a row is of (kind, what, library, number, mark of the line)
    "tm_middle": [("signal", "SIGABRT", "cudaError_t", 700, "tm_middle")],
    "tm_new": [("check", "turbomind::ReportCudaError", "cudaError_t", 716, "tm_new"),
               ("signal", "SIGABRT", "cudaError_t", 716, "tm_new")],
    "tm_driver": [("check", "turbomind::ReportCuDrvError", "CUresult", 2, "tm_driver"),
                  ("signal", "SIGABRT", "CUresult", 2, "tm_driver")],
    "ggml": [("check", "ggml_cuda_error", "cudaError_t", 719, "ggml"),
             ("signal", "SIGABRT", "cudaError_t", 719, "ggml")],
    "rtp_final": [("signal", "SIGABRT", "cudaError_t", 719, "rtp_final")],
    "vllm_exit": [("check", "a check that ends the process", "cudaError_t", 700, "vllm_exit")],
}  # fmt: skip


def compiled(name, *flags, strip=False):
    """A program of the mimics; libc10_cuda.so and the stand-in for CUDA lie beside it."""
    content = b"".join((INFERIORS / part).read_bytes() for part in PARTS) + repr((name, flags, strip)).encode()
    folder = INFERIORS / "build" / f"mimics-{hashlib.sha256(content).hexdigest()[:12]}"
    if not folder.exists():
        made = folder.with_suffix(f".{os.getpid()}")
        made.mkdir(parents=True)
        links = ["-Wl,-rpath,$ORIGIN", f"-L{made}"]
        library, torch = made / "libcheckcuda.so", made / "libc10_cuda.so"
        stripped = [["strip", "-s", made / name, torch]] if strip else []
        for words in (
            ["gcc", "-O2", "-fPIC", "-shared", "-o", library, INFERIORS / "check_cuda.c"],
            ["g++", "-O2", "-fPIC", "-shared", *links, "-o", torch, INFERIORS / "check_c10_cuda.cpp", "-lcheckcuda"],
            ["g++", "-Wall", "-Wno-terminate", "-pthread", *flags, *links, "-o", made / name, SOURCE,
             "-lc10_cuda", "-lcheckcuda"],
            *stripped,
        ):  # fmt: skip
            subprocess.run(words, check=True)
        with contextlib.suppress(OSError):  # another worker was faster
            made.rename(folder)
    return str(folder / name)


def run(gdb, program, orders, folder, *commands):
    """gdb starts the program, which obeys the orders; the reports, and what gdb said."""
    log, todo = folder / "log.jsonl", folder / "orders"
    log.unlink(missing_ok=True)
    todo.write_text("".join(f"{order}\n" for order in orders))
    start = f"run < {todo} > {folder / 'said'}"
    answer = gdb_batch(gdb, f"file {program}", f"llm-check on --log {log}", start, *commands)
    return [json.loads(line) for line in log.read_text().splitlines()], answer


def told(report):
    error = report["failure"]["error"] or {"library": None, "number": None}
    file = report["failure"]["file"] and os.path.basename(report["failure"]["file"])
    return error["library"], error["number"], file, report["failure"]["line"]


@pytest.mark.parametrize(
    ("gdb", "flags", "strip"),
    [(0, ("-O0", "-g"), False), (1, ("-O2",), True)],
    ids=["distribution -O0 -g", "newest -O2 stripped"],
)
def test_every_way_to_throw_gives_error_file_and_line(gdb, flags, strip, tmp_path):
    reports, answer = run(gdbs()[gdb], compiled("mimics", *flags, strip=strip), THROWN, tmp_path)
    wanted = {order: row[1:] for order, row in THROWN.items()}
    if strip:
        wanted["memory"] = (*wanted["memory"][:2], None, None)  # this message alone names no place
    assert dict(zip(THROWN, map(told, reports))) == wanted, answer.text
    assert len(reports) == len(THROWN)
    said = (tmp_path / "said").read_text()
    assert said.count("caught ") == len(THROWN)  # every one was let go on
    for report in reports:
        if report["failure"]["error"] and report["failure"]["error"]["sticky"]:
            assert "launched earlier" in report["timing"]
    if strip:
        return
    by_order = dict(zip(THROWN, reports))
    assert f"the one before it in the source is check_mimics.cpp:{LINES['passed']}" in by_order["ft"]["timing"]
    assert "is unknown" in by_order["torch"]["timing"]
    (note,) = by_order["again"]["notes"]  # another thread of the process, after the same sticky error
    assert f"check_mimics.cpp:{LINES['ft']} by thread 1" in note and by_order["ft"]["notes"] == []
    assert by_order["sglang"]["frames"][by_order["sglang"]["engine_frame"]]["function"] == "sglang::launch"
    for order in ("ft", "tm_old", "rtp_sync", "torch"):
        assert by_order[order]["frames"][by_order[order]["engine_frame"]]["line"] == LINES[order]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The reports of each order that ends the process: one gdb starts the program again for each."""
    folder = tmp_path_factory.mktemp("ended")
    log, commands, orders = folder / "log.jsonl", [], [*ENDING, "destructor", "other"]
    for order in orders:
        (folder / order).write_text(f"{order}\n")
        commands += [f"shell echo '{{}}' >> {log}", f"run < {folder / order} > /dev/null", "kill"]
    program = compiled("aborting", "-DABORTING", "-O2", "-g")
    answer = gdb_batch(NEWEST, f"file {program}", f"llm-check on --log {log}", *commands)
    parts = log.read_text().split("{}\n")[1:]
    assert len(parts) == len(orders), answer.text
    return {order: [json.loads(line) for line in part.splitlines()] for order, part in zip(orders, parts)}


@pytest.mark.parametrize("order", ENDING)
def test_checks_that_end_the_process(order, ended):
    reports = [(one["failure"], told(one)) for one in ended[order]]
    seen = [(failure["kind"], failure["what"], *place[:2], failure["line"]) for failure, place in reports]
    assert seen == [(*row[:4], LINES[row[4]]) for row in ENDING[order]]


def test_a_check_that_throws_from_a_destructor_says_so(ended):
    check, end = ended["destructor"]
    assert told(check) == told(end) == ("cudaError_t", 700, "layer.cc", 8)
    assert "in the destructor Layer::~Layer" in check["notes"][0] and end["failure"]["what"] == "SIGABRT"


def test_an_uncaught_exception_that_is_no_failed_check_is_told(ended):
    (end,) = ended["other"]
    assert end["failure"]["message"] == "no such key" and end["failure"]["error"] is None
    assert end["failure"]["raised"] == "throwing std::logic_error, which was not caught"


def test_an_uncaught_exception_is_told_live_and_from_the_core(tmp_path):
    program, core = compiled("aborting", "-DABORTING", "-O2", strip=True), tmp_path / "core"
    reports, _ = run(gdbs()[0], program, ["uncaught"], tmp_path, f"gcore {core}")
    dead = gdb_batch(NEWEST, f"file {program}", f"core-file {core}", "llm-check report --json", "llm-check report",
                     "llm-check on", "llm-check enable")  # fmt: skip
    for report in (reports[-1], dead.documents[0]):
        assert told(report) == ("cudaError_t", 716, "a.cpp", 3)
        assert report["failure"]["raised"] == "throwing std::logic_error, which was not caught"
    assert "got SIGABRT: cudaErrorMisalignedAddress (716)" in dead.out
    assert "A core file does not run" in dead.out and "a core file cannot be written to" in dead.text
