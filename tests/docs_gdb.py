"""The jobs on which the docs' examples inside gdb are typed.

python -m tests.docs_gdb       # writes today's output into the pages; then read the difference
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from typing import Callable, Dict, Iterator, List, Mapping, Sequence

from tests.docs_examples import GDB, PAGES, examples, gdb_scene, today
from tests.gdb.gdbrun import INFERIORS, gdb_batch
from tests.inferiors.demo import DemoJob
from tests.inferiors.tensor_build import program

MARK = "@@@"


@contextlib.contextmanager
def demo() -> Iterator[Sequence[str]]:
    """Three ranks of the demo engine, attached."""
    with DemoJob("pinned-alloc", ranks=3, wait="poll") as job:
        yield ["llm-attach-all " + " ".join(str(pid) for _, pid in sorted(job.pids.items()))]


@contextlib.contextmanager
def python() -> Iterator[Sequence[str]]:
    """A Python process with tensors in its frames."""
    command = [sys.executable, str(INFERIORS / "torch_frames.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        running.stdout.readline()
        yield ["set auto-solib-add off", f"attach {running.pid}"]
        running.kill()


@contextlib.contextmanager
def turbomind() -> Iterator[Sequence[str]]:
    """TurboMind's tensors in a program that stands where they are in the frame above."""
    with tempfile.TemporaryDirectory() as folder:
        path = program("tensor_turbomind.cc", "-g", "-O0", "-DERA=2")
        yield [f"file {path}", "break stop_here", f"run {folder}/truth > /dev/null", "up"]


@contextlib.contextmanager
def check() -> Iterator[Sequence[str]]:
    """An engine on the real CUDA runtime of a machine without a driver."""
    from tests.gdb.test_check import Engine, engine

    with Engine(engine("-O2")) as running:
        order = f"shell printf 'forward\\n' > /proc/{running.pid}/fd/0"
        yield [f"llm-attach-all {running.pid}", "llm-check on", order]


SCENES: Mapping[str, Callable[[], contextlib.AbstractContextManager[Sequence[str]]]] = {
    "demo": demo,
    "python": python,
    "turbomind": turbomind,
    "check": check,
}


def printed(name: str, gdb: str) -> Dict[str, List[str]]:
    """What each command of a scene prints."""
    commands = GDB[name][1]
    with SCENES[name]() as before:
        marked = [word for command in commands for word in (f"echo \\n{MARK}\\n", command)]
        end = "kill" if name == "turbomind" else "detach"
        answer = gdb_batch(gdb, "set width 120", *before, *marked, f"echo \\n{MARK}\\n", end)
    said = re.sub(r"check_engine-\w\w", "engine", answer.out.replace(f"{INFERIORS}/", "/srv/engine/"))
    parts = said.split(f"\n{MARK}\n")
    assert len(parts) == len(commands) + 2, answer.text
    return {command: part.strip("\n").splitlines() for command, part in zip(commands, parts[1:])}


def alike(lines: Sequence[str]) -> List[str]:
    """Lines without what differs from run to run: addresses, pids, widths of columns that they make."""
    texts = (re.sub(r"0x[0-9a-f]+", "0x", line.rstrip()) for line in lines)
    # A pid may have any number of digits: in a fresh container it has one to three.
    texts = (re.sub(r"(?i)\b(lwp|pid|process) \d+\b", r"\1 PID", text) for text in texts)
    texts = (re.sub(r"\s+", " ", re.sub(r"\b\d{4,}\b", "PID", text)) for text in texts)
    return [re.sub(r"-+", "-", text) for text in texts]


def write(gdb: str) -> None:
    for name in GDB:
        answers = printed(name, gdb)
        for page in PAGES:
            lines = page.read_text().splitlines()
            for example in reversed(examples(page)):
                if gdb_scene(example) == name:
                    new = today(example, answers[example.command], alike)
                    lines[example.first : example.last] = [(example.indent + line).rstrip() for line in new]
            page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(*(sys.argv[1:] or ["gdb"]))
