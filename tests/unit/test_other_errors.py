# ruff: noqa: E501 - lines of logs are as long as they are
"""Error lines of a text that no row knows: quoted beside an answer that is not sure, and never explained."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.cli.main import main
from gdbext.knowledge.log_lines.error_words import fault_in
from gdbext.model.codes import Given
from gdbext.parsers import parse_files
from gdbext.render.html.sections import answer_facts
from gdbext.render.style import Style
from gdbext.render.text.verdict.verdict import diagnosis_lines

CRASH = """\
[node1:29683:0:29730] cuda_ipc_cache.c:166  Error: dest:29690: failed to open ipc mem handle. addr:0x7f2c79b18000 len:80000 (Element already exists)
==== backtrace ====
    0  /usr/lib/libucs.so.0(ucs_fatal_error_message+0x60) [0x7f2d04d5b2c0]
    1  /usr/lib/libucs.so.0(+0x2f4e5) [0x7f2d04d5b4e5]
    2  /usr/lib/libuct_cuda.so.0(uct_cuda_ipc_cache_map_memhandle+0x3a1) [0x7f2d0410e3f1]
"""


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


@pytest.mark.parametrize(
    "line, severity",
    [
        ("2022/08/22 17:27:44 No devices found. Waiting indefinitely.", 1),
        ("Failed to connect to client mesh master: host-a:56419", 1),
        (
            "node1:16901:16967 [2] proxy.cc:1519 NCCL WARN [Proxy Service 2] Failed to execute operation Connect from rank 2",
            1,
        ),
        ("[1556919196.384605] [node1:37091:0]  ucp_rkey.c:250  UCX  ERROR Failed to unpack remote key", 0),
        ("my_engine.SlotError: slot 3 is taken twice", 0),
        # settings, remarks of debuggers, source code and what went well
        ("args: --log-error=1 --max-errors 3", None),
        ("INFO: 0 errors, 2 warnings", None),
        ("fetch failed, retrying in 5 s", None),
        ("warning: 56     ../sysdeps/unix/sysv/linux/x86_64/syscall_cancel.S: No such file or directory", None),
        ("56\t../sysdeps/unix/syscall-template.S: No such file or directory.", None),
        ("Cannot access memory at address 0x8", None),
        ('    raise ValueError("cannot be opened")', None),
        ("pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer", None),
        # what follows any failure
        ("terminate called after throwing an instance of 'std::runtime_error'", None),
        ("srun: error: node1: tasks 0-1: Exited with exit code 1", None),
        ("Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, ...", None),
    ],
)
def test_words_of_a_fault(line, severity):
    found = fault_in(line)
    assert (found.severity if found else None) == severity


def test_an_answer_without_a_cause_quotes_the_error_that_no_row_knows():
    found = answer(CRASH)
    assert found.verdict.confidence == "low"
    (quote,) = found.verdict.other_errors
    assert "Error: dest:29690: failed to open ipc mem handle" in quote
    assert ("Error line", quote) in answer_facts(found)
    shown = "\n".join(diagnosis_lines(found, Style(width=120)))
    assert '  errors   also in the text: "[node1:29683:0:29730] cuda_ipc_cache.c:166 Error:' in shown


def test_no_line_is_quoted_that_the_answer_itself_says_or_beside_a_sure_one():
    reset = "pair.cc:598] Connection closed by peer [10.0.0.2]:16786"
    again = answer(f"RuntimeError: [gloo/transport/tcp/{reset}\nRuntimeError: [gloo/transport/tcp/{reset}\n")
    assert "Connection closed by peer" in again.verdict.summary
    assert again.verdict.other_errors == ()
    shm = answer(
        "node1:1:9 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
        "Failed to write the trace\n"
    )
    assert (shm.verdict.cause, shm.verdict.confidence == "low") == ("shm-too-small", False)
    assert shm.verdict.other_errors == ()


def test_at_most_two_lines_the_most_severe_first_and_long_ones_from_the_fault_on():
    lines = [
        "could not open the pool of worker seven",
        "ERROR the queue of rank six is gone",
        "denied by the broker of host two",
    ]
    found = answer("\n".join([*lines, "x" * 200 + " and then the socket of node nine was refused at last", CRASH]))
    assert [one[:5] for one in found.verdict.other_errors] == ["ERROR", "[node"]
    far = answer(f"{'word ' * 40}Failed to join the mesh of node nine{' word' * 40}\n" + CRASH.split("\n", 1)[1])
    (quote,) = far.verdict.other_errors
    assert quote.startswith("…word") and "Failed to join the mesh" in quote and quote.endswith("…") and len(quote) < 140


def test_where_nothing_is_found_the_most_severe_line_is_quoted(tmp_path, capsys):
    log = tmp_path / "plugin.log"
    log.write_text("Starting to serve\n2022/08/22 17:27:44 No devices found. Waiting indefinitely.\n")
    assert main(["diagnose", str(log)]) == 4
    assert 'the text says: "2022/08/22 17:27:44 No devices found. Waiting indefinitely."' in capsys.readouterr().err


def test_what_could_not_be_read_of_a_running_process_is_no_line_of_a_text():
    found = answer(
        "Thread 1 (LWP 7):\n#0  0x00007f01 in poll () from /lib/libc.so.6\n#1  0x00007f02 in app_wait () from /app\n"
    )
    (process,) = found.snapshot.processes
    unread = replace(process.threads[0], problems=("the variables could not be read: access denied",))
    of_text = replace(process, threads=(unread,))
    assert judge(replace(found.snapshot, processes=(of_text,))).verdict.other_errors
    of_look = replace(of_text, source=Given.LIVE)
    assert judge(replace(found.snapshot, processes=(of_look,))).verdict.other_errors == ()


def test_a_long_line_without_a_blank_is_cut_as_well():
    (quote,) = answer(f"failed/to/open/{'x' * 250}\n" + CRASH.split("\n", 1)[1]).verdict.other_errors
    assert quote.endswith("…") and len(quote) <= 131
