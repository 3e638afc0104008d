"""Cuts and splices of pasted stacks: whatever the text, an answer comes back, soon, and without an exception.

A campaign: GDBEXT_FUZZ_ROUNDS=20000 [GDBEXT_FUZZ_SEED=n] [GDBEXT_FUZZ_TEXTS=folder of more texts] pytest this file.
"""

import os
import random
import time
from pathlib import Path

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.labels import CAUSES, WAIT_KINDS
from gdbext.parsers import parse_files
from gdbext.render import Style, render
from gdbext.render.json.document import document

DATA = Path(__file__).parents[1] / "data"
ROUNDS = int(os.environ.get("GDBEXT_FUZZ_ROUNDS", "140"))
SEED = int(os.environ.get("GDBEXT_FUZZ_SEED", "1"))
LONGEST = 60_000  # bytes of one made text
SOON = 10.0  # seconds of CPU; a round takes milliseconds
PREFIXES = (b"> ", b"[rank3]: ", b"worker-1  | ", b"(pid=77) ", b"--Type <RET> for more--", b"\x1b[31m", b"\t", b"  ")
ODD = (
    *(b"#0  ", b"#99999999999999999999 0x", b"Thread 1 (", b"(((((", b"<<<<", b"\xff\xfe", b"\x00", b'"', b"::~"),
    *(b"_ZN9", b"Traceback (most recent call last):\n", b"[rank", b"WorkNCCL(SeqNum=", b"\xe2\x80\xae", b"]]]]"),
)


def texts():
    folders = [DATA / "field", DATA / "stacks", *filter(None, [os.environ.get("GDBEXT_FUZZ_TEXTS")])]
    files = [path for folder in folders for path in sorted(Path(folder).glob("*")) if path.is_file()]
    return [path.read_bytes()[:LONGEST] for path in files if path.suffix not in (".py", ".md")]


def damaged(chance, bases):
    """One text made of pieces of others."""
    made = chance.choice(bases)
    for _ in range(chance.randint(1, 6)):
        lines = made.splitlines(keepends=True) or [b""]
        at, to = sorted(chance.randint(0, len(made)) for _ in range(2))
        first, last = sorted(chance.randint(0, len(lines)) for _ in range(2))
        way = chance.randint(0, 9)
        if way == 0:
            made = made[:at] + made[to:]
        elif way == 1:
            other = chance.choice(bases)
            start = chance.randint(0, len(other))
            made = made[:at] + other[start : start + 4000] + made[at:]
        elif way == 2:
            made = b"".join(lines[:first] + lines[first:last] * chance.randint(2, 5) + lines[last:])
        elif way == 3:
            chance.shuffle(lines)
            made = b"".join(lines)
        elif way == 4:
            prefix = chance.choice(PREFIXES)
            made = b"".join(prefix + line for line in lines)
        elif way == 5:
            made = made[:at] + chance.choice(ODD) * chance.choice((1, 3, 400)) + made[at:]
        elif way == 6:
            made = made[:at] + bytes(chance.randrange(256) for _ in range(20)) + made[at:]
        elif way == 7:
            width = chance.randint(8, 90)
            made = b"\n".join(line[place : place + width] for line in lines for place in range(0, len(line), width))
        elif way == 8:
            made = made.replace(chance.choice((b" ", b"\n", b"0x", b"(", b")")), chance.choice((b"", b"\n", b"  ")))
        else:
            made = b"".join(lines[first:last]) + b"".join(lines[:first])
    return made[:LONGEST]


def answer(data):
    """The whole way from text to lines."""
    diagnosis = judge(parse_files([("fuzz.txt", data)]))
    tree = merge(diagnosis.snapshot, diagnosis.processes)
    lines = render(type(diagnosis)(diagnosis.snapshot, diagnosis.processes, diagnosis.verdict, tree), Style(width=120))
    document(diagnosis)
    return diagnosis, lines


def test_cuts_and_splices():
    bases = texts()
    assert len(bases) > 60
    for number in range(ROUNDS):
        chance = random.Random(SEED * 1_000_003 + number)
        data = damaged(chance, bases)
        begin = time.process_time()
        try:
            diagnosis, lines = answer(data)
        except Exception as problem:
            raise AssertionError(f"round {number} of seed {SEED}: {type(problem).__name__}: {problem}") from problem
        assert time.process_time() - begin < SOON, f"round {number} of seed {SEED}: {len(data)} bytes"
        assert diagnosis.verdict.cause in CAUSES
        assert all(one.wait.kind in WAIT_KINDS for one in diagnosis.processes)
        assert not any("\x1b" in line or "\x00" in line for line in lines)
