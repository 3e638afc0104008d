"""Several processes, ranks and files; logs around stacks; input that is none."""

import gzip
import random

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files, text_lines
from tests.unit.test_parsers_formats import FRAMES, STACKS, calls, read, text


def test_headings_separate_processes():
    snapshot = text(f"rank3\n{FRAMES}\n===== other rank, helpers =====\n{FRAMES}\n### node 1\n{FRAMES}")
    assert [(one.rank, one.host, len(one.threads)) for one in snapshot.processes] == [
        (3, None, 1),
        (None, None, 1),
        (None, "node 1", 1),
    ]


def test_commands_pids_and_repeated_ids_separate_processes():
    snapshot = read("several-processes.txt")
    assert [(one.pid, calls(one.threads[-1])) for one in snapshot.processes] == [
        (100, ["cuCtxSynchronize"]),
        (200, ["cudaFree"]),
        (None, ["cudaMalloc"]),
    ]


def test_inferiors_are_processes():
    snapshot = text(FRAMES.replace("Thread 2 ", "Thread 2.1 ") + "\n" + FRAMES.replace("Thread 2 ", "Thread 1.1 "))
    assert [[thread.id for thread in one.threads] for one in snapshot.processes] == [["2.1"], ["1.1"]]


def test_a_thread_that_is_printed_again_counts_once():
    (process,) = text(FRAMES + "\n" + FRAMES.replace("#2 ", "#2  0x1 in last ()\n#3 ")).processes
    (thread,) = process.threads
    assert calls(thread)[2] == "last" and "more than once" in thread.problems[0]


def test_lines_of_ranks_that_are_interleaved():
    snapshot = read("mpirun-tagged.txt")
    assert [(one.rank, calls(one.threads[0])) for one in snapshot.processes] == [
        (0, ["poll", "MPI_Barrier"]),
        (1, ["epoll_wait", "MPI_Allreduce"]),
    ]
    assert snapshot.processes[1].threads[0].frames[1].module == "/usr/lib/libmpi.so.40"


def test_torchrun_log():
    snapshot = read("torchrun.log")
    first, second, third = snapshot.processes
    assert [one.rank for one in snapshot.processes] == [0, 1, 2]
    assert calls(first.threads[0]) == ["barrier", "main", "<module>"]
    assert calls(second.threads[0]) == ["all_reduce", "main", "<module>"]
    # The exception, and how many frames of the one that followed from it are left out.
    assert first.threads[0].problems[0].startswith("torch.distributed.DistBackendError")
    assert first.threads[0].problems[-1] == "left out: 1 frame of exceptions that followed from the first"
    assert first.said[0].startswith("ncclRemoteError")
    assert "Watchdog caught collective operation timeout" in third.said[0]
    assert calls(third.threads[0])[-2:] == ["c10d::ProcessGroupNCCL::ncclCommWatchdog", None]
    assert "NCCL WARN" in snapshot.said[0]  # of a process that shows no stack


def test_prefixes_of_loggers():
    snapshot = read("loggers.log")
    first, second = snapshot.processes
    assert (first.pid, calls(first.threads[0])) == (501, ["run", "execute"])
    assert "CUDA error" in first.threads[0].problems[0]
    assert calls(second.threads[0]) == ["execute"]


def test_titles_tell_rank_and_engine():
    (process,) = text(
        'Process 309: sglang::scheduler_TP6\nThread 309 (idle): "MainThread"\n    get (queue.py:1)\n'
    ).processes
    assert (process.pid, process.rank, process.engine) == (309, 6, "sglang")


def test_what_a_process_has_once_tells_processes_apart():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyboardInterrupt\n'
    main = 'Thread {} (idle): "MainThread"\n    get (queue.py:1)\nThread {} (idle): "other"\n    get (queue.py:1)\n'
    fatal = 'Current thread 0x{} (most recent call first):\n  File "a.py", line 1 in f\n'
    for content in (trace + trace, main.format(7, 8) + main.format(17, 18), fatal.format("a1") + fatal.format("b2")):
        assert len(text(content).processes) == 2
    (process,) = text(trace + "Exception in thread Thread-1 (work):\n" + trace).processes
    assert [thread.name for thread in process.threads] == [None, "Thread-1 (work)"]


def test_rank_in_the_message_of_an_exception():
    (process,) = text(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId: store->get('0') got error\n"
    ).processes
    assert process.rank == 1 and "store->get(" in process.threads[0].problems[0]


def test_file_names_tell_ranks():
    data = FRAMES.encode()
    snapshot = parse_files([("out/stack.rank7.txt", data), ("out/stack.rank8.txt", data), ("other", data)])
    assert [(one.index, one.rank) for one in snapshot.processes] == [(0, 7), (1, 8), (2, None)]


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "x: empty"),
        (b" \n\t\n", "x: empty"),
        (
            b"\x7fELF\x02\x01\x01" + bytes(100),
            "x: not text but an ELF file; open a core file in gdb and type llm-nccl-diagnose there",
        ),
        (gzip.compress(b"#0 main ()", mtime=0), "x: not text but compressed by gzip; unpack it first"),
        (bytes(range(256)) * 3 + bytes(400), "x: binary data, not text"),
    ],
)
def test_what_is_no_text_is_said_in_one_line(data, problem):
    snapshot = parse_files([("x", data)])
    assert (snapshot.processes, snapshot.problems) == ((), (problem,))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1"])
def test_encodings(encoding):
    (process,) = parse_files([("x", FRAMES.encode(encoding))]).processes
    assert calls(process.threads[0])[1] == "ncclAllReduce"


def test_wrong_encoding_hurts_nothing():
    (process,) = parse_files([("x", b"Gr\xfc\xdfe \xff\xfe\n" + FRAMES.encode())]).processes
    assert len(process.threads[0].frames) == 3


def test_of_huge_texts_head_and_tail_are_read():
    whole = text_lines.head_and_tail(
        "x", FRAMES.encode() + b"\n" + b"x" * 99 * 1000 + b"\n" + FRAMES.encode(), limit=2000
    )
    assert len(whole.data) <= 2001 and whole.data.startswith(b"Thread 2") and whole.data.endswith(b".so\n")
    assert "were not read" in whole.problems[0]


def test_a_bottomless_recursion_keeps_the_innermost_frames():
    frames = "".join(f"#{number}  0x{number:016x} in f{number} ()\n" for number in range(3000))
    (process,) = text(frames).processes
    (thread,) = process.threads
    assert (len(thread.frames), thread.frames[0].function) == (1024, "f0") and "innermost 1024" in thread.truncated
    lines = "".join(f'  File "a.py", line {number}, in f{number}\n' for number in range(1, 3000))
    (process,) = text("Traceback (most recent call last):\n" + lines).processes
    (thread,) = process.threads
    assert (len(thread.frames), thread.frames[0].function) == (1024, "f2999") and "innermost 1024" in thread.truncated


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        ")",
        "<",
        "#1 ",
        "#0 f (",
        '"',
        '\\"',
        "'",
        " ",
        "\t",
        "a:",
        "@ ",
        "=",
        "[",
        "rank ",
        "0x1 ",
        "Thread 1 ",
        "at a:1 ",
        ": ",
        "> ",
    ],
)
@pytest.mark.parametrize(
    "start", ["", "#0  0x00007f0000000001 in f (", "Thread 1 (active): ", '  File "', "   @ ", "[1,"]
)
def test_hostile_lines_are_read_in_linear_time(piece, start):
    # Nothing is measured: with quadratic expressions these lines would take minutes.
    longest = (start + piece * text_lines.LONGEST_LINE)[: text_lines.LONGEST_LINE]
    assert len(text(f"{longest}\n{FRAMES}").processes) >= 1


def test_cuts_and_splices_end_without_an_exception():
    chance = random.Random(20240229)
    texts = [path.read_bytes() for path in sorted(STACKS.iterdir())]
    for _ in range(150):
        pieces = []
        for _ in range(chance.randint(1, 4)):
            data = chance.choice(texts)
            at = chance.randrange(len(data))
            pieces.append(data[at : at + chance.randrange(1500)])
        glue = chance.choice([b"", b"\n", b"\r", b" ", b"(", b"\xff", b"\x00"])
        snapshot = parse_files([("x", glue.join(pieces))])
        for index, process in enumerate(snapshot.processes):
            ids = [thread.id for thread in process.threads]
            assert process.index == index and len(set(ids)) == len(ids)


CUT = 'Traceback (most recent call last):\n  File "/srv/train.py", line 9, in main\n    thread.join()\n'


@pytest.mark.parametrize(
    "text",
    [
        f"^C{CUT}",
        f"^C^C{CUT}",
        f"^C\n{CUT}",
        f"^CProcess Process-3:\n{CUT}",
        f"^CProcess SpawnProcess-3:\nProcess SpawnProcess-2:\n{CUT}",
        f"{CUT}KeyboardInterrupt\n{CUT}",
    ],
)
def test_whoever_is_interrupted_was_alive(text):
    """Ctrl-C shows where a process waited; the exception itself is often cut off."""
    found = judge(parse_files([("paste.txt", text.encode())]))
    assert {one.wait.kind for one in found.processes} <= {"python-code", "condvar-idle"}, found.processes
    assert "died" not in found.verdict.summary


def test_an_exception_of_its_own_counts_beside_a_ctrl_c():
    found = judge(parse_files([("paste.txt", f"{CUT}RuntimeError: no\n^C\n".encode())]))
    assert [one.wait.kind for one in found.processes] == ["exited-or-crashed"]
    cut = judge(parse_files([("paste.txt", CUT.encode())]))
    assert [one.wait.kind for one in cut.processes] == ["exited-or-crashed"]


def test_a_process_without_a_number_is_named_by_its_place_in_the_text_or_by_its_file():
    stack = (
        b"Thread 1 (LWP 10):\n#0  0x7f in pthread_mutex_lock () from /lib/libpthread.so\n#1  0x55 in run () at a.cc:3\n"
    )
    assert [one.label for one in parse_files([("a.txt", stack)]).processes] == ["the process"]
    several = parse_files([("dumps/a.txt", stack), ("dumps/b\x1b[2J.txt", stack)]).processes
    assert [one.label for one in several] == ["file a.txt", "process 2"]  # no name controls a terminal
