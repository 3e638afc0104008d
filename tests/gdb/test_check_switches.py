"""llm-check enable and disable in running processes, and llm-check on where there is little or nothing to watch."""

import re
import subprocess

import pytest

from tests.conftest import NEWEST, gdbs
from tests.gdb.gdbrun import INFERIORS, Target, build, gdb_batch
from tests.gdb.test_check import RUNTIME, Engine, engine

pytestmark = pytest.mark.gdb


def logger(*flags, strip=False):
    """The program with RTP-LLM's logger."""
    library = INFERIORS / "check_cuda.c"
    program = build("check_logger.cpp", *flags, str(library))
    if strip:
        subprocess.run(["strip", "-s", "-o", f"{program}-stripped", program], check=True)
    return f"{program}-stripped" if strip else program


def asked(running, line):
    running.send(line)
    return running.answer()


@pytest.mark.parametrize(
    ("gdb", "flags"),
    [(0, ("-O2", "-g")), (1, ("-O2", "-DOUT_OF_LINE=1")), (0, ("-O2", "-DOUT_OF_LINE=2")),
     (1, ("-O0", "-DOUT_OF_LINE=2"))],
)  # fmt: skip
def test_the_level_of_rtp_llms_logger_is_raised_and_put_back(gdb, flags):
    with Engine(logger(*flags)) as running:
        assert asked(running, "synchronize") == "done"
        on = gdb_batch(gdbs()[gdb], f"attach {running.pid}", "llm-check enable --json", "llm-check enable --json")
        first, second = (one["switches"][0] for one in on.documents)
        assert first["done"] and "was 4 and is 5 (DEBUG) now (read back)" in first["text"]
        assert second["done"] and "is on already" in second["text"]
        assert asked(running, "level") == "level 5"
        assert asked(running, "synchronize").startswith("caught [ERROR] CUDA runtime error: an illegal memory access")
        again = gdb_batch(NEWEST, f"attach {running.pid}", "llm-check enable --json")  # by somebody else, before
        assert not again.documents[0]["switches"][0]["done"]
        assert "the logger's level is 5" in again.documents[0]["switches"][0]["text"]
    with Engine(logger(*flags)) as running:
        assert asked(running, "synchronize") == "done"
        off = gdb_batch(gdbs()[gdb], f"attach {running.pid}", "llm-check enable", "llm-check disable --json")
        assert off.documents[0]["switches"][0]["done"]
        assert [asked(running, "level"), asked(running, "synchronize")] == ["level 4", "done"]


@pytest.mark.parametrize(
    ("flags", "strip", "before", "words"),
    [
        (("-O2",), False, True, "is not a separate function here"),
        (("-O2", "-g"), False, False, "the logger does not exist yet"),
        (("-O2", "-g"), True, True, "stripped"),
    ],
)
def test_a_logger_that_cannot_be_switched_says_why_and_stays(flags, strip, before, words):
    with Engine(logger(*flags, strip=strip)) as running:
        if before:
            assert asked(running, "synchronize") == "done"
        answer = gdb_batch(NEWEST, f"attach {running.pid}", "llm-check enable --json")
        (result,) = answer.documents[0]["switches"]
        assert not result["done"] and words in result["text"]
        assert [asked(running, "level"), asked(running, "synchronize")] == ["level 4", "done"]


def test_a_process_without_cuda_and_two_copies_of_the_runtime(tmp_path):
    with Target() as plain:
        answer = gdb_batch(gdbs()[0], f"attach {plain.pid}", "llm-check on", "llm-check enable", "llm-check off")
        assert "this process has no CUDA checks yet" in " ".join(answer.out.split())
        assert "Traceback" not in answer.text
        plain.assert_free()
    (runtime,) = RUNTIME.glob("libcudart.so.*")
    second = tmp_path / "libcudart.so.1x"  # another name for the loader, which would take it for the same otherwise
    second.write_bytes(runtime.read_bytes().replace(b"libcudart.so.12\0", b"libcudart.so.1x\0"))
    with Engine(engine("-O2"), LD_PRELOAD=str(second)) as running:
        order = f"shell echo forward > /proc/{running.pid}/fd/0"
        answer = gdb_batch(NEWEST, f"attach {running.pid}", "llm-check on", order, "continue",
                           "info sharedlibrary", "llm-check status --json")  # fmt: skip
        assert "cudaErrorInsufficientDriver (35)" in answer.out
        assert answer.documents[-1]["ranks"][0]["failures"] == 1
        assert len(set(re.findall(r"\S+libcudart\S+", answer.out))) == 2


def test_cuda_gdbs_own_stop_is_offered_where_it_exists(tmp_path):
    standin = tmp_path / "cuda.py"
    standin.write_text(
        "import gdb\n"
        "class Prefix(gdb.Command):\n"
        "    def __init__(self, name):\n"
        "        super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)\n"
        "class Failures(gdb.Parameter):\n"
        "    def __init__(self):\n"
        "        super().__init__('cuda api_failures', gdb.COMMAND_DATA, gdb.PARAM_ENUM, ['ignore', 'stop', 'hide'])\n"
        "        self.value = 'ignore'\n"
        "Prefix('set cuda'), Prefix('show cuda'), Failures()\n"
    )
    with Target() as plain:
        commands = (f"attach {plain.pid}", "llm-check on", "set cuda api_failures stop", "echo then\\n", "llm-check on")
        answer = gdb_batch(NEWEST, f"source {standin}", *commands)
        offered, _, stopping = answer.out.partition("then\n")
        assert "set cuda api_failures stop" in " ".join(offered.split())
        assert "api_failures" not in stopping and "no CUDA checks" in " ".join(stopping.split())
        assert "api_failures" not in gdb_batch(NEWEST, f"attach {plain.pid}", "llm-check on").out
