"""The demo engine hangs as its table says, seen by a plain gdb, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inferiors.demo import DemoJob, state_of
from tests.inferiors.demo_build import build, libraries
from tests.inferiors.scenarios import BY_NAME, SCENARIOS
from tests.polling import wait_until

pytestmark = pytest.mark.gdb

ROOT = Path(__file__).parents[2]
HUNG = [scenario for scenario in SCENARIOS if not scenario.healthy]
FRAME = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?(?P<function>.+?) \(.*?(?:from .*/(?P<library>\S+))?$")


def gdb_says(pid, *commands, gdb="gdb"):
    """Standard output of a batch gdb attached to the process."""
    argv = [gdb, "-nx", "-nh", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set width 0", "-p", str(pid)]
    for command in commands:
        argv += ["-ex", command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def frames(text):
    """(function, library or None) of each frame."""
    return [(match["function"], match["library"]) for match in map(FRAME.match, text.splitlines()) if match]


def printed(text):
    """What gdb's `print` commands gave."""
    return re.findall(r"^\$\d+ = (.*)$", text, re.MULTILINE)


def main_stack(pid, gdb="gdb"):
    """Frames of the thread that runs the model, from the innermost."""
    return frames(gdb_says(pid, "thread 1", "bt", gdb=gdb))


def functions(stack):
    return " ".join(function for function, _ in stack)


def gone(pid):
    return state_of(pid)[0] in (None, "Z", "X")


@pytest.mark.parametrize("scenario", HUNG, ids=lambda scenario: scenario.name)
def test_hang_stands_still_at_its_frame_and_runs_on_untraced(scenario):
    with DemoJob(scenario.name) as job:
        present = {0, 1, 2} - ({job.culprit} if scenario.absent or scenario.dies else set())
        assert set(job.pids) == present
        steps = {rank: job.steps(rank) for rank in present}
        if scenario.frame:
            assert scenario.frame in functions(main_stack(job.pids[job.culprit]))
        for rank, pid in job.pids.items():
            assert job.alive_progress(pid)
            assert state_of(pid)[1] == 0
            assert job.steps(rank) == steps[rank]


@pytest.mark.parametrize("name", ["healthy-slow", "healthy-busy"])
def test_healthy_job_goes_on_after_gdb(name):
    with DemoJob(name) as job:
        assert "ParallelGpt<float>::decode" in functions(main_stack(job.pids[1]))
        for rank in job.pids:
            assert job.steps_progress(rank)


def test_idle_job_waits_for_requests():
    with DemoJob("healthy-idle") as job:
        assert "RequestSource::wait_for_request" in functions(main_stack(job.pids[0]))
        assert "rtp_llm::CpuTpBroadcaster::broadcast" in functions(main_stack(job.pids[2]))


def test_stacks_have_the_published_shape(turn_gdb):
    with DemoJob("pinned-alloc") as job:
        culprit, victim = main_stack(job.pids[1], turn_gdb), main_stack(job.pids[0], turn_gdb)
    first = culprit.index(("cudaMallocHost", "libcudart.so.12"))
    assert culprit[first - 2 : first] == [("??", "libcudart.so.12")] * 2
    nameless = [frame for frame in culprit[: first - 2] if frame[0] == "??"]
    assert nameless == [("??", "libcuda.so.1")] * len(nameless)
    assert len(nameless) >= 4
    outer = [function for function, _ in culprit[first + 1 :]]
    assert "fastertransformer::ParallelGpt<float>::decode" in outer
    assert outer.index("fastertransformer::ParallelGpt<float>::decode") < outer.index(
        "fastertransformer::ParallelGpt<float>::forward"
    )
    assert ("cudaStreamSynchronize", "libcudart.so.12") in victim
    # The driver shows no function of its own name, in any rank.
    assert not [frame for frame in culprit + victim if frame[1] == "libcuda.so.1" and frame[0] != "??"]


def test_cublas_hides_its_runtime():
    with DemoJob("cublas-first-use") as job:
        stack = main_stack(job.pids[1])
    assert ("cublasGemmStridedBatchedEx", "libcublas.so.12") in stack
    assert ("??", "libcublas.so.12") in stack
    assert not [function for function, _ in stack if function.startswith("cuda")]


def test_helper_threads_are_there():
    with DemoJob("pinned-alloc") as job:
        text = gdb_says(job.pids[0], "thread apply all bt")
    for name in ("cuda-EvtHandlr", "cuda00001400006", "ft-pool-0", "http-listener", "logger"):
        assert f'"{name}"' in text
    assert text.count("in ncclProxyService (") == text.count("in ncclProxyProgress (") == 2


def test_nccl_tells_its_collective_by_names_and_arguments(any_gdb):
    with DemoJob("collective-mismatch-launch") as job:
        pid = job.pids[0]
        stack = functions(main_stack(pid, any_gdb))
        commands = ["thread 1", "frame function ncclAllReduce", "print count", "print datatype", "print comm->nRanks"]
        commands += ["frame function ncclEnqueueCheck", "print info->opName"]
        commands += ["print info->comm->seqNumber[ncclFuncAllReduce]"]
        answers = printed(gdb_says(pid, *commands, gdb=any_gdb))
        look = ["thread 1", "frame function ncclLaunchKernel", "print comm->commHash", "print comm->rank"]
        communicators = [printed(gdb_says(job.pids[rank], *look)) for rank in range(3)]
    path = ["cudaLaunchKernelExC", "ncclLaunchKernel", "doLaunches", "groupLaunch", "ncclGroupEndInternal"]
    path += ["ncclEnqueueCheck", "ncclAllReduce", "fastertransformer::ftNcclAllReduceSum<float>"]
    assert " ".join(path) in stack
    assert answers[:3] == ["4096", "ncclFloat32", "3"]
    assert answers[3].endswith('"AllReduce"')
    assert answers[4] == "4"
    # The same communicator everywhere, and each rank knows its own number.
    assert len({commhash for commhash, _ in communicators}) == 1
    assert [rank for _, rank in communicators] == ["0", "1", "2"]


def test_bootstrap_waits_for_the_absent_rank():
    with DemoJob("init-absent-rank", ranks=4, culprit=2) as job:
        root, other = gdb_says(job.pids[0], "thread apply all bt"), functions(main_stack(job.pids[3]))
    path = ["ncclSocketAccept", "bootstrapInit", "ncclCommInitRankFunc", "asyncJobLaunch"]
    assert " ".join([*path, "ncclCommInitRankDev", "ncclCommInitRank"]) in other
    assert "bootstrapRoot (" in root


def test_sigbus_is_in_a_shared_segment_of_nccl():
    with DemoJob("sigbus") as job:
        pid = job.pids[1]
        # Outwards from the handler: the frame of the signal, then the one that touched the memory.
        text = gdb_says(pid, "thread 1", "bt")
        stack = [function for function, _ in frames(text)]
        assert "<signal handler called>" in text
        assert stack.index("fastertransformer::crashHandler") < stack.index("ncclShmOpen")
        assert "/dev/shm/nccl-" in Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.parametrize(
    ("options", "frame"),
    [
        ({"sync": "event"}, "cudaEventSynchronize"),
        ({"sync": "device"}, "cudaDeviceSynchronize"),
        ({"sync": "memcpy"}, "cudaMemcpy"),
        ({"wait": "query"}, "fastertransformer::ftNcclStreamSynchronize"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_ranks_wait_in_the_call_asked_for(options, frame):
    with DemoJob("missing-rank-io", **options) as job:
        assert frame in functions(main_stack(job.pids[0]))


def thread_state(pid):
    """State letter and voluntary switches of the main thread."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines())
    return fields["State"].split()[0], int(fields["voluntary_ctxt_switches"])


def cpu_time(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


@pytest.mark.parametrize("wait", ["spin", "yield"])
def test_spinning_rank_uses_cpu_time_and_never_sleeps(wait):
    with DemoJob("pinned-alloc", wait=wait) as job:
        for pid in job.pids.values():
            _, switches = thread_state(pid)
            before = cpu_time(pid)
            wait_until(lambda pid=pid, before=before: cpu_time(pid) > before + 1_000_000)
            assert thread_state(pid) == ("R", switches)


def test_blocking_wait_sleeps():
    with DemoJob("pinned-alloc", wait="poll") as job:
        pid = job.pids[0]
        _, switches = thread_state(pid)
        wait_until(lambda: thread_state(pid)[1] > switches + 5)
        assert "poll" in functions(main_stack(pid)[:2])


def test_eager_loading_is_a_remedy_for_the_lazy_load():
    with DemoJob("lazy-module-load", environment={"CUDA_MODULE_LOADING": "EAGER"}) as job:
        assert all(job.steps_progress(rank) for rank in job.pids)


def test_stripped_build_has_exported_names_only():
    with DemoJob("init-absent-rank", stripped=True) as job:
        stack = main_stack(job.pids[0])
    assert ("ncclCommInitRank", "libnccl.so.2") in stack
    assert ("??", "libnccl.so.2") in stack
    assert "fastertransformer" not in functions(stack)


@pytest.mark.mpi
def test_under_mpirun_the_ranks_are_mpiruns():
    with DemoJob("pinned-alloc", launcher="mpirun") as job:
        assert sorted(job.pids) == [0, 1, 2]
        for rank, pid in job.pids.items():
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            assert f"OMPI_COMM_WORLD_RANK={rank}".encode() in environment
        assert "cudaMallocHost" in functions(main_stack(job.pids[1]))
        pids = list(job.pids.values())
    assert all(gone(pid) for pid in pids)


@pytest.mark.mpi
def test_engine_needs_no_launcher_of_ours(tmp_path, monkeypatch):
    """By hand: `mpirun engine --hang NAME`; the ranks find each other by mpirun's job, and say where they are."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where mpirun keeps its session
    argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", str(build() / "engine")]
    process = subprocess.Popen([*argv, "--hang", "device-free"], stderr=subprocess.PIPE, text=True)
    try:
        waiting = set()
        for line in process.stderr:
            event, rank, _ = line.split()
            if event == "waiting":
                waiting.add(int(rank))
            if waiting == {0, 1, 2}:
                break
        assert waiting == {0, 1, 2}
        assert not list(Path("/dev/shm").glob("demo-engine-*"))
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def start_cli(*arguments):
    argv = [sys.executable, "-m", "tests.inferiors.demo", *arguments]
    return subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_command_line_says_the_pids_and_ends_with_its_input():
    with start_cli("--hang", "missing-rank-crash", "--ranks", "4", "--culprit", "3") as process:
        answer = json.loads(process.stdout.readline())
        assert sorted(answer["pids"]) == ["0", "1", "2"]
        assert answer["expected"] == {"cause": "missing-rank", "culprits": [3], "victims": [0, 1, 2]}
        assert not any(gone(pid) for pid in answer["pids"].values())
    assert process.returncode == 0
    assert all(gone(pid) for pid in answer["pids"].values())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_launcher_is_ended(how, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with start_cli("--hang", "pinned-alloc") as process:
        pids = json.loads(process.stdout.readline())["pids"].values()
        process.send_signal(how)
        process.wait()
        wait_until(lambda: all(gone(pid) for pid in pids))
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_and_a_traced_rank_are_ended_too():
    """By one that listens: a gdb at its prompt does not, and keeps the kernel from telling the parent."""
    holds = (
        "import os, sys; from gdbext.capture.stop import ptrace; pid = int(sys.argv[1]); "
        "assert ptrace._seize(ptrace._SEIZE, pid, None, None) == 0; print(flush=True); os.waitpid(pid, 0x40000000)"
    )
    with DemoJob("missing-rank-io") as job:
        pids = dict(job.pids)
        os.kill(pids[0], signal.SIGSTOP)
        tracer = subprocess.Popen([sys.executable, "-c", holds, str(pids[1])], cwd=ROOT, stdout=subprocess.PIPE)
        tracer.stdout.readline()
        assert state_of(pids[1])[1] == tracer.pid
    assert all(gone(pid) for pid in pids.values())
    tracer.communicate()
    assert tracer.returncode == 0


def test_lists_agree():
    done = subprocess.run([build() / "engine", "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BY_NAME)
    argv = [sys.executable, "-m", "tests.inferiors.demo", "--list"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BY_NAME)


def test_driver_exports_only_what_is_asked_of_it():
    found = libraries()
    assert set(found) == {"libcuda.so.1", "libcudart.so.12", "libcublas.so.12", "libnccl.so.2", "libdemojob.so"}
    argv = ["nm", "-D", "--defined-only", found["libcuda.so.1"]]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in done.stdout.splitlines()]
    ours = {"standin_streams_in_use", "standin_stream_is"}  # what tests count leftovers by, and break streams with
    asked = {"cuCtxGetCurrent", "cuDriverGetVersion", "cuGetProcAddress_v2", "cuThreadExchangeStreamCaptureMode"}
    asked |= {f"cuStream{what}" for what in ("Create", "Destroy_v2", "IsCapturing", "Query")}
    asked |= {f"cuStreamGet{what}" for what in ("Flags", "Priority", "Id", "Device")}
    assert set(names) - ours == asked | {"cuEventQuery", "cuMemcpyDtoHAsync_v2"}
