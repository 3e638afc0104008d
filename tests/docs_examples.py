"""The examples of README and docs: found in their code blocks, run, and compared with what they show.

    python -m tests.docs_examples      # writes today's output into the pages, and the picture; then read the difference

An example is a line with a prompt, `$ ` or `(gdb) `, and the lines below it up to the next prompt. There a line `...`
stands for any lines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, Sequence, Tuple
from unittest import mock

from gdbext.analysis.verdict.judge import judge
from gdbext.cli.main import main
from gdbext.model.command_typed import Typed
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.render import Style, render
from tests.docs_picture import picture
from tests.docs_scenes import ROOT
from tests.traces.making import Plan
from tests.traces.making import write as write_traces

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
WIDTH = 100
PICTURE = ROOT / "docs" / "answer.svg"
SCENES = "tests/data/docs"

STAND_INS: Mapping[str, str] = {
    "gdbext diagnose": "",
    "gdbext stacks": f"gdbext stacks -q {SCENES}/hang.json",
    "gdbext comms": f"gdbext comms -q {SCENES}/counts.json",
    "gdbext locks": f"gdbext locks -q {SCENES}/gil.json",
    "gdbext trace diagnose traces/": "gdbext trace diagnose -q traces/",
    "gdbext dump ls dump": "gdbext dump ls dump/",
}
"""Examples on processes of this host, and what runs in their place: the same command on a snapshot of docs_scenes,
or ("") the answer on that snapshot as a look at its processes would print it."""


def write_dump(folder: Path) -> None:
    """A dump of MindSpore of three ranks; rank 2 has not written the second tensor."""
    for rank in range(3):
        below = folder / f"rank_{rank}" / "net" / "0" / "1"
        below.mkdir(parents=True)
        for name in ("MatMul.op1.0.0.17.output.0", "Add.op2.0.0.18.output.0")[: 1 if rank == 2 else 2]:
            (below / f"{name}.DefaultFormat.npy").write_bytes(b"\0" * 100)


MADE: Mapping[str, Callable[[Path], object]] = {
    "traces/": lambda folder: write_traces(Plan(late="data", who=2), folder),
    "dump/": write_dump,
}
"""Folders that examples read, made anew in a folder of the test."""

GDB: Mapping[str, Tuple[str, Tuple[str, ...]]] = {
    "demo": ("streams.md", ("llm-stream list --ranks 0-1",)),
    "python": ("tensors.md", ("llm-tensor list --python",)),
    "turbomind": ("tensors.md", ("llm-tensor p plain [1:, ::2]", "llm-tensor stats turned")),
    "check": ("checks.md", ("continue",)),
}
"""Scenes of tests/docs_gdb.py: the page, and the commands with output that are typed there."""

LIVE = ["diagnose"]

TAKEN = ("Snapshot taken ", "  taken    ")
"""Begins the line by which an answer says how old its snapshot is: the commands on running processes print none."""

NOT_RUN: Mapping[Tuple[str, str], str] = {
    ("README.md", "gdbext diagnose -q --brief core."): "host and GPU cores: gdb/test_docs_gpu_fault.py makes them",
    ("breakpoints.md", "gdbext pdb"): "needs a terminal and Python ranks: gdb/test_tmux_pdb.py",
    ("breakpoints.md", "gdbext ranks"): "a server of two ranks: gdb/test_rtp_llm_server.py plays this page",
    ("breakpoints.md", "gdbext attach"): "the same server",
    ("breakpoints.md", "print inputs"): "the same server",
    ("breakpoints.md", "backtrace 3"): "the same server",
    ("breakpoints.md", "next"): "the same server",
    ("breakpoints.md", "llm-continue"): "where ranks are when they are attached is chance: gdb/test_break.py",
    ("json.md", "gdbext diagnose -q --json"): "piped into jq: unit/test_docs_json.py",
    ("profile.md", "gdbext profile run"): "a server that records: unit/test_profile_server.py plays one",
    ("tensors.md", "llm-tensor list"): "a build without debug information: gdb/test_tensor_release.py plays one",
    ("watch.md", "gdbext watch"): "takes as long as the job stands still: gdb/test_watch.py",
    ("streams.md", "llm-stream p"): "needs TensorRT-LLM's stream object: gdb/test_streams.py",
    ("streams.md", "p "): "needs torch's pools: gdb/test_streams.py",
    ("streams.md", "llm-stream list"): "calls into a driver: gdb/test_stream_states.py",
    ("tensors.md", "llm-tensor p device"): "values on a GPU, by calls: gdb/test_tensor_device.py",
    (
        "tensors.md",
        "llm-tensor p $rdi",
    ): "the numbers of a ggml model: gdb/test_tensor_ggml.py compares them with gguf's",
}
"""(page, start of the command) of examples whose output is not compared, and why; the test that plays the like."""


@dataclass(frozen=True)
class Example:
    """One command of a page, and what the page shows below it. `first` and `last` count the lines of the output."""

    page: Path
    first: int
    last: int
    indent: str
    prompt: str
    command: str
    output: Tuple[str, ...]
    before: Tuple[str, ...]  # the code block just before that of the command: an excerpt of what the command reads

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.first}"


def blocks(lines: Sequence[str]) -> Iterator[Tuple[int, int, str]]:
    """(first line, line after the last, indentation) of each code block, fenced or indented."""
    number = 0
    while number < len(lines):
        start = number
        if lines[number].startswith("```"):
            number = lines.index("```", number + 1)
            yield start + 1, number, ""
        elif lines[number].startswith("    ") and not lines[number - 1].strip():
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
                number += 1
            yield start, number - (not lines[number - 1]), "    "
        number += 1


def examples(page: Path) -> List[Example]:
    lines = page.read_text().splitlines()
    found: List[Example] = []
    before: Tuple[int, Tuple[str, ...]] = (0, ())
    for first, after, indent in blocks(lines):
        texts = [line[len(indent) :] for line in lines[first:after]]
        prompts = [number for number, text in enumerate(texts) if text.startswith(("$ ", "(gdb) "))]
        near = first - before[0] <= 3
        for number, following in zip(prompts, [*prompts[1:], len(texts)]):
            prompt, _, words = texts[number].partition(" ")
            command = re.sub(r"\s\s+#.*| # .*", "", words).strip()
            shown = texts[number + 1 : following]
            while shown and not shown[-1].strip():
                shown.pop()
            start = first + number + 1
            excerpt = before[1] if near and number == 0 else ()
            found.append(Example(page, start, start + len(shown), indent, prompt, command, tuple(shown), excerpt))
        before = (after, () if prompts else tuple(texts))
    return found


def all_examples() -> List[Example]:
    return [example for page in PAGES for example in examples(page)]


def shell_words(example: Example) -> List[str]:
    """What is run for an example of the shell; empty if it needs what is not here."""
    words = shlex.split(STAND_INS.get(example.command, example.command)) or ["gdbext", *LIVE]
    if example.prompt != "$" or words[0] != "gdbext" or "|" in words:
        return []
    given = [word for word in words[1:] if "/" in word]
    known = bool(given) or words[1:] == LIVE or words[1] in ("explain", "error")
    return words[1:] if known and all(one in MADE or (ROOT / one).exists() for one in given) else []


def printed(example: Example) -> List[str]:
    """Lines that an example of the shell prints, errors included; without how long ago the snapshot was taken."""
    words, here = shell_words(example), os.getcwd()
    if words == LIVE:
        return diagnosed()
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    columns = mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)})
    with tempfile.TemporaryDirectory() as folder:
        made = [word for word in words if word in MADE]
        for word in made:
            MADE[word](Path(folder, word))
        os.chdir(folder if made else ROOT)
        try:
            with columns, contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(terminal):
                main(words)
        finally:
            os.chdir(here)
    lines = terminal.buffer.getvalue().decode().rstrip().splitlines()
    if example.command in STAND_INS:
        lines = [line for line in lines if not line.startswith(TAKEN)]
    return [re.sub(r"(UTC), .* ago, ", r"\1, ", line.rstrip()) for line in lines]


def shows(shown: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether `shown`, in which `...` stands for any lines, is what was printed."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines)) is not None


def as_it_is(lines: Sequence[str]) -> List[str]:
    return list(lines)


def today(example: Example, lines: Sequence[str], alike: Callable[[Sequence[str]], List[str]] = as_it_is) -> List[str]:
    """What the page should show: all that is printed, or as many paragraphs of it as now where lines are left out."""
    shown = list(example.output)
    shown = list(example.output)
    if shown != ["..."] and shows(alike(shown), alike(lines)):
        return shown
    if "..." not in shown:
        return list(lines)
    empty = [number for number, line in enumerate([*lines, ""]) if not line]
    return [*lines[: empty[min(shown.count(""), len(empty) - 1)]], "..."]


def gdb_scene(example: Example) -> str:
    """Name of the scene of gdb/test_docs_gdb.py in which an example is typed."""
    return next(
        (name for name, (page, commands) in GDB.items() if example.page.name == page and example.command in commands),
        "",
    )


def excerpt_is_of(excerpt: Sequence[str], path: Path) -> bool:
    """Whether the lines, cut where they end in `...`, stand in a file in this order."""
    rest = iter(path.read_text(errors="replace").splitlines())
    wanted = (re.sub(r"\.\.\.$", "", line).rstrip() for line in excerpt if line.strip() not in ("", "..."))
    return all(any(line.startswith(one) for line in rest) for one in wanted)


def diagnosed(color: bool = False) -> List[str]:
    """What `gdbext diagnose` prints of the hang while it runs."""
    snapshot = load_snapshot((ROOT / SCENES / "hang.json").read_text())
    typed = Typed(command="gdbext diagnose", stacks="gdbext stacks")
    return render(judge(snapshot), Style(width=WIDTH, color=color, typed=typed))


def answer_picture() -> str:
    """The picture of the README: the table and the last lines of its first command's answer."""
    lines = diagnosed(color=True)
    empty = [number for number, line in enumerate(lines) if not line]
    return picture("gdbext diagnose", [*lines[: empty[0] + 1], "...", *lines[empty[-1] :]], WIDTH)


def write() -> None:
    """Each page with what is printed today."""
    for page in PAGES:
        lines = page.read_text().splitlines()
        for example in reversed(examples(page)):
            if example.output and shell_words(example):
                new = today(example, printed(example))
                lines[example.first : example.last] = [(example.indent + line).rstrip() for line in new]
        page.write_text("\n".join(lines) + "\n")
    PICTURE.write_text(answer_picture())


if __name__ == "__main__":
    write()
