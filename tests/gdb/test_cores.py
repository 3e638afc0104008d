"""Core files as input, in the shell and in gdb: the same verdict as the live look, crashes, Python, what is missing."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from gdbext.cli.main import main
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.gdb.gdbrun import gdb_batch
from tests.inferiors import gpu_cubins
from tests.inferiors.demo import DemoJob
from tests.inferiors.gpu_core import core_of

pytestmark = pytest.mark.gdb

CRASH = """
#include <stdlib.h>
#include <pthread.h>
static int *nowhere;
static void *stores(void *unused) { *nowhere = 1; return unused; }
int main(void) { pthread_t one; pthread_create(&one, 0, stores, 0); pthread_join(one, 0); return 0; }
"""
PYTHON = """
import os, threading, time
def served_by_a_thread():
    gate.wait()
gate = threading.Event()
threading.Thread(target=served_by_a_thread, daemon=True).start()
os.environ["RANK"], os.environ["WORLD_SIZE"] = "1", "2"  # set later: not in the block of the start
def waits_for_ever():
    print("ready", flush=True)
    gate.wait()
waits_for_ever()
"""


def diagnose(*arguments):
    """(exit status, document, stderr) of `gdbext diagnose`, in this process: each start of Python costs a second."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["diagnose", *map(str, arguments), "--json"])
    return status, json.loads(out.getvalue()) if out.getvalue() else None, err.getvalue()


def verdict_of(answer):
    verdict = answer["verdict"]
    shown = next(one for one in answer["processes"] if one["index"] == verdict["decisive"]["process"])
    ranks = [[answer["processes"][index]["rank"] for index in verdict[name]] for name in ("culprits", "victims")]
    waits = {one["rank"]: one["wait"]["kind"] for one in answer["processes"]}
    return verdict["cause"], ranks, shown["rank"], waits


@pytest.fixture(scope="module")
def hung(tmp_path_factory):
    """(the live look, cores of three ranks that hang), in a folder whose name takes some quoting."""
    folder = tmp_path_factory.mktemp("cores") / 'it\'s a "dump"'
    folder.mkdir()
    with DemoJob("pinned-alloc", wait="poll") as job:
        _, live, _ = diagnose(*job.pids.values())
        for rank, pid in job.pids.items():
            subprocess.run(["gcore", "-o", folder / f"rank{rank}", str(pid)], check=True, capture_output=True)
    return live, sorted(folder.iterdir())


def test_the_same_verdict_as_the_live_look(any_gdb, hung):
    live, cores = hung
    status, answer, err = diagnose(*cores, "--gdb", any_gdb)
    assert status == 1, err
    assert verdict_of(answer) == verdict_of(live)
    assert verdict_of(answer)[:3] == ("implicit-sync-vs-collective", [[1], [0, 2]], 1)
    assert [one["state"] for one in answer["processes"]] == ["ok"] * 3
    assert [one["host"] for one in answer["processes"]] == [None] * 3
    assert not any(one["problems"] for one in answer["processes"])


def test_gpu_cores_beside_host_cores(turn_gdb, hung, tmp_path):
    """Each goes to the host core of its process; device nodes have their kernel; a fault names its launcher."""
    live, cores = hung
    image, entries = gpu_cubins.relocated(gpu_cubins.cubin())
    scale, spin = entries[gpu_cubins.SCALE], entries[gpu_cubins.SPIN]
    given = []
    for process in live["processes"]:
        given.append(tmp_path / f"gpucore.node7.{process['pid']}.1732190000.nvcudmp")
        row = {"entry": spin, "grid": (24, 1, 1), "sms": range(24), "pc": spin + 48, "tid": process["pid"]}
        given[-1].write_bytes(core_of(image, [row], tid=process["pid"]))
    status, answer, err = diagnose(*cores, *given, "--gdb", turn_gdb)
    assert status == 1, err
    assert verdict_of(answer) == verdict_of(live)
    assert [len(one["kernels"]) for one in answer["processes"]] == [1, 1, 1]
    labels = [edge["to"]["label"] for edge in answer["verdict"]["chain"]]
    assert any("in ncclDevKernel_AllReduce_Sum_f32_RING_LL" in label for label in labels), labels
    waiting = answer["processes"][1]
    fault = {"entry": scale, "sms": [3], "pc": scale + 64, "fault": (14, scale + 64, 1), "tid": waiting["pid"]}
    given[1].write_bytes(core_of(image, [fault], tid=waiting["pid"]))
    status, answer, err = diagnose(*cores, *given, "--gdb", turn_gdb)
    assert (status, answer["verdict"]["cause"], answer["verdict"]["culprits"]) == (1, "gpu-fault", [1]), err
    assert f"launched by thread {waiting['pid']}" in answer["verdict"]["summary"]


def test_in_gdb(any_gdb, hung):
    live, cores = hung
    pattern = f"{cores[0].parent}/rank*".replace("'", "\\'").replace('"', '\\"').replace(" ", "\\ ")
    answer = gdb_batch(
        any_gdb,
        f"llm-attach-all --core {pattern} --json",
        "llm-nccl-diagnose --json",
        "llm-stacks",
        "llm-rank 1",
        "llm-rank apply --json all bt 20",
        "p $_llm_rank()",
        "llm-tensor p $sp --dtype int64 --shape 2,2 --json",
        "x/1gd $sp",
        "llm-detach-all --json",
        "info inferiors",
    )
    table, judged, everywhere, tensor, released = answer.documents
    assert [(row["process"]["rank"], row["state"], row["problem"]) for row in table["ranks"]] == [
        (rank, "core file", None) for rank in range(3)
    ]
    assert verdict_of(judged) == verdict_of(live)
    written = max(core.stat().st_mtime for core in cores)
    assert judged["read_from"] == {"files": [str(core) for core in cores], "taken_at": written, "hosts": []}
    assert ["cudaMallocHost" in one["text"] for one in everywhere["outputs"]] == [False, True, False]
    assert "$1 = 1\n" in answer.out
    date = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(written))
    assert f"Core files written {date}" in answer.out, "as the look from the shell says it"
    word = re.search(r"^0x[0-9a-f]+.*:\s+(-?\d+)$", answer.out, re.MULTILINE)[1]
    assert word in json.dumps(tensor) and '"int64"' in json.dumps(tensor)
    assert [row["state"] for row in released["ranks"]] == ["closed"] * 3
    assert "Traceback" not in answer.text and "core" not in answer.out.rpartition("Num")[2]


def test_the_other_cores_are_judged(hung, tmp_path):
    live, cores = hung
    names = {"core.cut": lambda data: data[: len(data) // 2], "core.empty": lambda data: b"", "core.arm": _of_arm}
    for name, change in names.items():
        (tmp_path / name).write_bytes(change(cores[0].read_bytes()))
    status, answer, _ = diagnose(*cores, *(tmp_path / name for name in names))
    assert (status, answer["verdict"]["hangs"]) == (1, True), "a hang is proven, whoever else could not be read"
    assert answer["read_from"]["taken_at"] == max(one.stat().st_mtime for one in (*cores, tmp_path / "core.cut"))
    assert verdict_of(answer)[:2] == verdict_of(live)[:2]
    problems = {name: [p for one in answer["processes"] for p in one["problems"] if name in p] for name in names}
    assert "aarch64" in problems["core.arm"][0] and "is empty" in problems["core.empty"][0]
    assert any("cut short" in p for one in answer["processes"] for p in one["problems"])
    nothing, answer, err = diagnose(tmp_path / "core.arm", tmp_path / "core.empty")
    assert (nothing, answer["exit"]) == (4, 4) and err.count("\n") == 1 and "aarch64" in err and "is empty" in err


def _of_arm(data):
    return data[:18] + b"\xb7\0" + data[20:4096]


def test_one_core_of_three_does_not_make_the_others_dead(hung):
    _, cores = hung
    status, answer, _ = diagnose(cores[0])
    assert answer["verdict"]["cause"] not in ("missing-rank",)
    assert any("1-2" in text for text in answer["verdict"]["missing"] + answer["problems"])
    assert status in (0, 1)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A program that crashes in its second thread, and its core by gdb: the kernel's way depends on the host."""
    folder = tmp_path_factory.mktemp("crash")
    (folder / "crash.c").write_text(CRASH)
    program, core = folder / "crash", folder / "core.crash"
    subprocess.run(["gcc", "-g", "-pthread", "-o", program, folder / "crash.c"], check=True)
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "run"]
    subprocess.run([*words, "-ex", f"generate-core-file {core}", program], capture_output=True, timeout=300)
    return program, core


def test_a_crash_is_a_finding(crashed):
    status, answer, _ = diagnose(crashed[1])
    assert status == 1
    (process,) = answer["processes"]
    assert process["wait"]["kind"] == "exited-or-crashed"
    thread = next(one for one in process["threads"] if one["id"] == process["wait"]["thread"])
    assert thread["id"] != str(process["pid"])  # the one that stored, not main that waits for it
    said = [one["text"] for one in answer["verdict"]["evidence"]]
    assert any("stores" in text for text in said)
    assert any(f"thread {thread['id']} terminated by SIGSEGV, Segmentation fault" in text for text in said)


def test_another_build_lies_there_and_the_right_one_is_given(crashed, tmp_path):
    program, core = crashed
    moved = tmp_path / "moved"
    shutil.move(program, moved)
    try:
        shutil.copy("/bin/true", program)
        status, answer, _ = diagnose(core)
        given = diagnose(core, "--exe", moved)
        table = gdb_batch("gdb", f"llm-attach-all --core {core} --json", "bt 3").documents[0]
    finally:
        shutil.move(moved, program)
    (problem,) = answer["processes"][0]["problems"]
    assert status == 3 and "is another build" in problem and "--sysroot DIR" in problem
    assert "stores" not in json.dumps(answer["verdict"])
    assert given[0] == 1 and given[1]["processes"][0]["problems"] == []
    assert "is another build" in table["ranks"][0]["problem"]


def test_python_frames_of_a_core(tmp_path):
    script = tmp_path / "serve.py"
    script.write_text(PYTHON)
    with subprocess.Popen(
        [sys.executable, str(script), "--hf-token", "hf_verysecret1234"], stdout=subprocess.PIPE
    ) as one:
        assert one.stdout.readline() == b"ready\n"
        subprocess.run(["gcore", "-o", tmp_path / "core", str(one.pid)], check=True, capture_output=True)
        one.kill()
    core = tmp_path / f"core.{one.pid}"
    saved = tmp_path / "saved.json"
    _, answer, err = diagnose(core, "--save", saved)
    process = answer["processes"][0]
    assert (process["rank"], process["problems"]) == (1, []), err
    (kept,) = load_snapshot(saved.read_text()).processes
    frames = [frame for thread in kept.threads for frame in thread.frames if frame.language == "python"]
    assert {"waits_for_ever", "served_by_a_thread"} <= {frame.function.rsplit(".", 1)[-1] for frame in frames}
    assert all(frame.file and frame.line for frame in frames)
    assert "hf_verysecret" not in saved.read_text()
    inside = gdb_batch("gdb", f"llm-attach-all --core {core}", "llm-stacks", "llm-stacks --json")
    assert "waits_for_ever" in inside.text
    assert os.path.basename(str(script)) in inside.text


def test_usage(hung):
    for words in (["--sysroot", "/"], ["--exe", "/bin/true"], [hung[1][0], "4711"], [hung[1][0], "--engine", "vllm"]):
        status, answer, err = diagnose(*words)
        assert (status, answer["exit"]) == (2, 2) and err.count("\n") == 1
    said = gdb_batch("gdb", f"llm-attach-all 4711 --core {hung[1][0].name}", "llm-attach-all --exe /bin/true").text
    assert "cannot be mixed" in said and "are for core files" in said
