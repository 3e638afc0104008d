"""Arguments, variables and names of files of megabytes: the answers stay short, and cost what they should."""

import os
import resource
import subprocess
import sys
import tracemalloc

import pytest

from gdbext.capture.memory.maps import parse_maps

SLEEPS = "import sys; print('ready', flush=True); sys.stdin.read()"
PIECE = 130_000  # bytes of one argument: the kernel takes 128 KiB
PIECES = 20
SECRET = "hf_" + "s" * PIECE


def much():
    """The kernel takes a quarter of this for arguments and variables, 6 MB at most."""
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, 64 << 20))


@pytest.fixture(scope="module")
def rank():
    """Of 2.6 MB of arguments and as many of variables, with numbers, colours and control characters in them."""
    arguments = ["--rank=" + "9" * (PIECE - 7), "\x1b[31m\u202e" + "é" * (PIECE // 2 - 20)]
    arguments += ["x" * PIECE] * (PIECES - len(arguments))
    more = {f"NCCL_V{number}": "y" * (PIECE - 10) for number in range(PIECES - 2)}
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "HF_TOKEN": SECRET, "LOCAL_RANK": "9" * 9000, **more}
    argv = [sys.executable, "-c", SLEEPS, *arguments]
    with subprocess.Popen(argv, env=environment, preexec_fn=much, stdin=subprocess.PIPE, stdout=-1) as process:
        assert process.stdout.readline() == b"ready\n"
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            assert len(file.read()) > (PIECES - 1) * PIECE
        yield process.pid


@pytest.mark.process
@pytest.mark.parametrize("words", [["ranks"], ["ranks", "--json"], ["comms"], ["doctor"], ["diagnose", "--no-stop"]])
def test_arguments_and_variables_of_megabytes(rank, words):
    argv = [sys.executable, "-m", "gdbext", *words, str(rank)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1, 3, 4) and said
    assert len(said) < 20_000 and "ssss" not in said and "Traceback" not in said and "bug of" not in said
    assert not set(said) & set("\x1b\u202e")


def test_a_file_with_a_long_name_in_thousands_of_pieces():
    """30,000 of 4,000 bytes took 686 MiB: now each name is kept once, and the text is not."""
    path = "/" + "d" * 3999
    lines = [f"{at:x}000-{at + 1:x}000 r--p 00000000 fe:00 42 {path}" for at in range(1 << 20, (1 << 20) + 5000)]
    text = "\n".join([*lines, "damaged", "7fff0000-7fff1000 rw-p 00000000 00:00 0 [stack]", ""])
    tracemalloc.start()
    try:
        memory = parse_maps(text)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(memory) == 5001 and memory.find((1 << 20) + 7 << 12).path == path
    assert used < 4 << 20, f"{used >> 20} MiB for {len(text) >> 20} MiB of text"
