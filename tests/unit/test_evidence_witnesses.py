"""The other witnesses, and all of them under one deadline: what they say, and what hostile or broken ones cost."""

import json
import os
import pickle
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from gdbext.knowledge.errors.xid import XIDS, meaning_of
from gdbext.model import plain_pickle
from gdbext.model.missing import Missing
from gdbext.model.witness import Statement
from gdbext.witnesses import flight_recorder, kernel_log, nvml, shared_memory
from gdbext.witnesses.all_witnesses import ask_all
from gdbext.witnesses.question import Asked, Question, present_witness
from tests.polling import lasts

DUMPS = Path(__file__).parents[1] / "data" / "flight_recorder"


def question(*ranks, proc="/proc", seconds=5.0):
    return Question(tuple(ranks), time.monotonic() + seconds, str(proc))


def said(witness):
    return [(one.says, one.process) for one in witness.statements]


# --- all of them ---


def test_nothing_there_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(nvml, "find_library", lambda: None)
    begun = time.monotonic()
    witnesses = ask_all([Asked(0, os.getpid(), 0)], seconds=120.0)
    took = time.monotonic() - begun
    assert [one.name for one in witnesses] == ["RAS", "NVML", "flight recorder", "/dev/shm", "kernel log"]
    assert witnesses[1].reason == "no libnvidia-ml"
    assert took < 60, "50 ms on an idle machine; one that was waited for takes 120 s"


def test_one_that_hangs_or_breaks_costs_its_own_answer_only():
    def hang(asked):
        lasts(60)

    def broken(asked):
        raise KeyError("surprise")

    fine = present_witness("fine", "", (Statement("yes"),))
    found = ask_all([], seconds=2.0, witnesses=[("hang", hang), ("broken", broken), ("fine", lambda asked: fine)])
    assert [(one.name, one.state) for one in found] == [("hang", "failed"), ("broken", "failed"), ("fine", "present")]
    assert found[0].reason == "no answer within 2 s"
    assert found[1].reason == "KeyError: 'surprise'"


# --- flight recorder ---


def recorded(tmp_path, *files, ending="", environment=None):
    """Ranks whose dumps are these files of tests/data (or bytes), below a fake /proc."""
    ranks = []
    for number, content in enumerate(files):
        folder = tmp_path / str(100 + number) / "root" / "dumps"
        folder.mkdir(parents=True)
        data = (DUMPS / content).read_bytes() if isinstance(content, str) else content
        (folder / f"trace_{number}{ending}").write_bytes(data)
        variables = environment or {"TORCH_FR_DUMP_TEMP_FILE": "/dumps/trace_"}
        ranks.append(Asked(number, 100 + number, number, None, variables))
    return question(*ranks, proc=tmp_path)


def test_real_dumps_say_who_is_behind_and_in_what(tmp_path):
    witness = flight_recorder.ask(recorded(tmp_path, "rank_0", "rank_1"))
    assert witness.state == "present", witness
    assert said(witness) == [("behind", 1)]
    assert witness.statements[0].text == (
        "rank 1 enqueued collective 4 of process group 0 last, others collective 5; it is missing in gloo:all_reduce"
    )


def test_dumps_in_json_say_the_same(tmp_path):
    asked = recorded(
        tmp_path, "rank_0.json", "rank_1", environment={"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/dumps/trace_"}
    )
    assert said(flight_recorder.ask(asked)) == [("behind", 1)]


def test_equal_dumps_are_in_sync_and_old_ones_only_a_fact(tmp_path):
    asked = recorded(tmp_path, "rank_1", "rank_1")
    assert said(flight_recorder.ask(asked)) == [("in-sync", None)]
    long_ago = time.time() - 2 * flight_recorder.STALE
    os.utime(tmp_path / "100/root/dumps/trace_0", (long_ago, long_ago))
    assert said(flight_recorder.ask(asked)) == [("fact", None)]


def test_a_dump_from_before_the_process_is_another_jobs(tmp_path):
    asked = recorded(tmp_path, "rank_0")
    born = int((time.clock_gettime(time.CLOCK_BOOTTIME) + 3600) * os.sysconf("SC_CLK_TCK"))
    later = [Asked(0, 100, 0, None, asked.ranks[0].environment, start_time=born)]
    assert flight_recorder.ask(question(*later, proc=tmp_path)).reason == "no dump"


def test_another_operation_at_the_same_place_is_a_mismatch(tmp_path):
    document = plain_pickle.loads((DUMPS / "rank_1").read_bytes())
    document["entries"][-1]["profiling_name"] = "nccl:all_gather"
    odd = pickle.dumps(document, protocol=2)
    witness = flight_recorder.ask(recorded(tmp_path, "rank_1", odd, "rank_1"))
    assert said(witness) == [("mismatch", 1)]
    assert "made nccl:all_gather as collective 4" in witness.statements[0].text


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def deep_key(depth):
    """A tuple whose hash takes time exponential in its depth; written by hand, because making it takes as long."""
    return b"\x80\x02}K\x01" + b"2\x86" * depth + b"K\x01s."


HOSTILE = {
    "class": pickle.dumps(Evil(), protocol=2),
    "class in a dict": pickle.dumps({"entries": Evil()}, protocol=4),
    "tuple as key": b"\x80\x02}K\x01q\x00h\x00\x86K\x01s.",
    "duplicates": deep_key(60),
    "cut": (DUMPS / "rank_0").read_bytes()[:700],
    "long length": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "empty": b"",
    "long number": b"\x80\x02\x8b\x00\x00\x00\x10.",
    "not a dump": pickle.dumps([1, 2, 3], protocol=2),
    "other document": b'{"entries": 3}',
    "deep json": b'{"entries":' + b"[" * 200_000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_dumps_are_one_reason_and_run_nothing(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    witness = flight_recorder.ask(recorded(tmp_path, data, "rank_1"))
    assert "rank 0" in witness.statements[0].text
    assert not (tmp_path / "evil").exists()
    alone = flight_recorder.ask(recorded(tmp_path / "alone", data))
    assert alone.state == "failed"


def test_a_pipe_or_a_link_in_the_place_of_a_dump_is_none(tmp_path):
    asked = recorded(tmp_path, "rank_0")
    path = tmp_path / "100/root/dumps/trace_0"
    path.unlink()
    os.mkfifo(path)
    assert flight_recorder.ask(asked).reason == "no dump"
    path.unlink()
    path.symlink_to(DUMPS / "rank_0")
    assert flight_recorder.ask(asked).reason == "no dump"


def test_a_name_without_a_folder_is_looked_for_where_the_rank_works(tmp_path):
    (tmp_path / "100" / "cwd").mkdir(parents=True)
    shutil.copy(DUMPS / "rank_0", tmp_path / "100/cwd/trace_0")
    asked = question(Asked(0, 100, 0, None, {"TORCH_FR_DUMP_TEMP_FILE": "trace_"}), proc=tmp_path)
    assert flight_recorder.ask(asked).state == "present"


@pytest.mark.parametrize("value", [{"a": [1, -2, 2**40, 1.5, None, True, "é"], 3: (), "t": (1, (2, 3, 4, 5))}, [], {}])
@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_pickles_are_read_as_python_reads_them(value, protocol):
    assert plain_pickle.loads(pickle.dumps(value, protocol=protocol)) == value


# --- kernel log ---

LOG = [
    (50.0, "NVRM: Xid (PCI:0000:3b:00): 79, pid=77, name=python, GPU has fallen off the bus."),
    (150.0, "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000010, intr 00000000. MMU Fault"),
    (151.0, "NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
    (152.0, "NVRM: Xid (PCI:0000:5e:00): 63, pid=1, Row Remapper: New row marked for remapping"),
    (153.0, "NVRM: Xid (0000:03:00): 99999, something new"),
    (154.0, "usb 1-1: new device"),
]


def test_xid_lines_of_the_jobs_time_are_laid_to_their_rank():
    found = list(kernel_log.xid_statements(LOG, 100.0, question(Asked(0, 4711, 3))))
    assert [(one.says, one.process) for one in found] == [
        ("gpu-fault", 0),
        ("gpu-error", None),
        ("fact", None),
        ("fact", None),
    ]
    assert found[0].text.startswith("Xid 31 on GPU 0000:3b:00 (rank 3, python3): GPU memory page fault")
    assert "no process named" in found[1].text


def test_the_log_is_read_as_the_kernel_writes_it(tmp_path):
    """A file instead of the device: one read gives it all, and the first record of it counts."""
    path = tmp_path / "kmsg"
    path.write_text(f"4,1234,150000000,-;{LOG[1][1]}\n SUBSYSTEM=pci\n")
    assert kernel_log.read_kernel_log(str(path)) == [(150.0, LOG[1][1])]


@pytest.mark.process
def test_without_the_device_and_the_program_it_is_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = kernel_log.read_kernel_log(str(tmp_path / "none"))
    assert isinstance(found, Missing)
    assert "no such file" in found.reason


def test_every_xid_has_a_meaning_and_a_source():
    assert all(row.meaning and row.source for row in XIDS.values())
    assert not meaning_of(424242).ends_work


# --- shared memory ---


def test_room_in_shared_memory(tmp_path, monkeypatch):
    (tmp_path / "7/root/dev/shm").mkdir(parents=True)
    left = tmp_path / "7/root/dev/shm/nccl-AbCdEf"
    left.write_bytes(b"x" * 8192)
    os.utime(left, (1, 1))
    asked = question(Asked(0, 7, 0, start_time=10), Asked(1, 8, 1), proc=tmp_path)
    witness = shared_memory.ask(asked)
    assert witness.state == "present"
    assert "1 file of NCCL, older than the job" in witness.statements[1].text

    class Roomy:
        f_blocks, f_frsize, f_bavail = 1 << 20, 4096, 1 << 19

    monkeypatch.setattr(os, "statvfs", lambda path: Roomy)
    assert said(shared_memory.ask(asked))[0] == ("shm-room", None)

    class Full:
        f_blocks, f_frsize, f_bavail = 16384, 4096, 100

    monkeypatch.setattr(os, "statvfs", lambda path: Full)
    full = shared_memory.ask(asked)
    assert said(full)[0] == ("shm-full", 0)
    assert full.statements[0].text == "0 MiB of 64 MiB free: no room for another NCCL connection"
    assert shared_memory.ask(question(Asked(0, 9, 0), proc=tmp_path)).state == "absent"


# --- NVML ---

STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int number(const char *name, int other) { const char *text = getenv(name); return text ? atoi(text) : other; }
int nvmlInit_v2(void) { if (number("HANG", 0)) for (;;) pause(); return number("INIT", 0); }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "575.57.08"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **to) {
  *to = (void *)(long)(index + 1);
  return index == 1 ? number("SECOND", 0) : 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *use) {
  use[0] = device == (void *)1 ? number("USE", 0) : 0, use[1] = 1; return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *to) { *to = 75000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *to) { *to = 700000; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *to) {
  to[0] = 1ull << 37, to[1] = 0, to[2] = 1ull << 36; return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *to) {
  *to = kind == 1 && counter == 0 ? number("ECC", 0) : 0; return 0;
}
struct process { unsigned pid; unsigned long long used; unsigned a, b; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *to) {
  *count = device == (void *)1 ? 1 : 0; to[0].pid = number("RANK_PID", 1); return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A stand-in for libnvidia-ml.so.1 that takes its values from the environment; some functions it has not."""
    folder = tmp_path_factory.mktemp("nvml")
    source = folder / "nvml.c"
    source.write_text(STAND_IN)
    argv = [shutil.which("gcc") or "cc", "-shared", "-fPIC", "-o", str(folder / nvml.LIBRARY), str(source)]
    subprocess.run(argv, check=True)
    return folder


@pytest.fixture
def gpus(library, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("RANK_PID", "4711")

    def ask(seconds=60.0, **values):
        for name, value in values.items():
            monkeypatch.setenv(name, str(value))
        return nvml.ask(question(Asked(0, 4711, 5), Asked(1, 4712, 6, "cuda:0 (GPU 1)"), seconds=seconds))

    return ask


@pytest.mark.process
def test_a_gpu_that_spins_at_idle_power_is_seen(gpus):
    witness = gpus(USE=100, ECC=2)
    assert (witness.state, witness.reason) == ("present", "2 GPUs, driver 575.57.08")
    assert said(witness) == [("spins", 0), ("gpu-error", 0), ("fact", 1), ("gpu-error", 1)]
    assert witness.statements[0].text == (
        "GPU 0 (rank 5): 100 to 100 % busy, 75 W of 700 W, memory 1 % busy, 64.0 GiB used"
    )


@pytest.mark.process
def test_a_lost_gpu_is_a_fault_of_its_rank(gpus):
    assert said(gpus(SECOND=15)) == [("fact", 0), ("gpu-fault", 1)]


@pytest.mark.process
def test_a_driver_that_hangs_is_killed(gpus):
    begun = time.monotonic()
    witness = gpus(seconds=0.5, HANG=1)
    assert witness.state == "failed"
    assert time.monotonic() - begun < 30


@pytest.mark.process
def test_no_driver_and_no_library_are_absent(gpus, tmp_path, monkeypatch):
    assert gpus(INIT=9).reason == "no driver (NVML status 9)"
    (tmp_path / nvml.LIBRARY).write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert "cannot be loaded" in gpus().reason


@pytest.mark.parametrize(
    ("use", "power", "moved", "expected"),
    [
        ([100, 100, 99], [70_000] * 3, [0] * 3, True),
        ([100, 100, 40], [70_000] * 3, [0] * 3, False),
        ([100, 100, 100], [70_000, 70_000, 600_000], [0] * 3, False),
        ([100, 100, 100], [70_000] * 3, [0, 60, 0], False),
        ([100, 100], [70_000] * 2, [0] * 2, False),
        ([100, 100, 100], [], [0] * 3, False),
    ],
)
def test_the_signature_of_a_kernel_that_waits(use, power, moved, expected):
    assert nvml.is_spinning(use, moved, power, 700_000) is expected


@pytest.mark.process
def test_the_child_prints_json_for_any_library(tmp_path):
    done = subprocess.run(
        [os.sys.executable, "-I", "-S", nvml._PROGRAM, "/no/such/file"], capture_output=True, text=True
    )
    assert "cannot be loaded" in json.loads(done.stdout)["error"]
