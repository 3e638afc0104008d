"""Runs inside gdb: evaluates expressions in the caller of `stop_here` and writes what they are as JSON.

`python probe(QUESTIONS, ANSWERS)`: both are files of JSON lines; a question has an `expression` and may have `as`.
"""

import json
import os
import random
import sys
import time

import gdb  # noqa: TID251

sys.path[:0] = [os.environ["GDBEXT_TEST_ROOT"]]
sys.path += os.environ.get("GDBEXT_TEST_SITE", "").split(os.pathsep)

from gdbext.analysis.tensors.decoding.shown_values import read_values  # noqa: E402
from gdbext.commands.tensor_port import Description  # noqa: E402
from gdbext.inside_gdb.expressions.tensor_access import TensorAccess  # noqa: E402
from gdbext.model.errors import GdbextError  # noqa: E402
from gdbext.model.snapshot_files.codec import encode  # noqa: E402
from gdbext.model.tensor import TensorInfo  # noqa: E402

access = TensorAccess()


def described(expression, **said):
    """The encoded answer, and the values when there are any to read."""
    found = {}
    try:
        info = access.evaluate(expression, Description(**said))
        found["info"] = encode(info)
        found["type"] = type(info).__name__
        if isinstance(info, TensorInfo):
            values = read_values(info, access.read_of(info))
            found["elements"] = encode(values.elements)
    except GdbextError as error:
        found["error"] = str(error)
    return found


def probe(questions, answers):
    with open(questions) as file:
        rows = [json.loads(line) for line in file]
    with open(answers, "w") as out:
        for row in rows:
            said = {"type_name": row["as"]} if "as" in row else {}
            answer = {"expression": row["expression"], **described(row["expression"], **said)}
            out.write(json.dumps(answer, default=str) + "\n")  # complex numbers have no JSON
        listed = access.in_frame() if gdb.selected_frame().function() else None
        out.write(json.dumps({"expression": "", "list": encode(listed)}) + "\n")


def fuzz(rounds, seed, answers):
    """Scribble over each object that the program registered, evaluate, put the bytes back."""
    numbers = random.Random(seed)
    inferior = gdb.selected_inferior()
    table = gdb.parse_and_eval("objects")
    count = int(gdb.parse_and_eval("object_count"))
    done = slowest = 0
    gdb.execute("up", to_string=True) if gdb.selected_frame().name() == "stop_here" else None
    for index in range(count):
        expression = table[index]["expression"].string()
        address, size = int(table[index]["address"]), int(table[index]["size"])
        original = bytes(inferior.read_memory(address, size))
        for _ in range(rounds):
            inferior.write_memory(address, damaged(original, numbers))
            started = time.monotonic()
            described(expression)
            str(gdb.parse_and_eval(expression).format_string(max_elements=10)) if done % 50 == 0 else None
            slowest = max(slowest, time.monotonic() - started)
            done += 1
        inferior.write_memory(address, original)
    with open(answers, "w") as out:
        json.dump({"rounds": done, "objects": count, "slowest": slowest}, out)


def damaged(original, numbers):
    """All random, or a few random words, or small numbers where pointers stood."""
    kind = numbers.randrange(4)
    if kind == 0:
        return numbers.randbytes(len(original))
    data = bytearray(original)
    for _ in range(numbers.randrange(1, 4)):
        at = numbers.randrange(len(data))
        if kind == 1:
            data[at] = numbers.randrange(256)
            continue
        at -= at % 8
        words = (0, 1, (1 << 64) - 1, 1 << 63, 1 << 40, numbers.getrandbits(48), numbers.getrandbits(20))
        word = numbers.choice(words)
        data[at : at + 8] = word.to_bytes(8, "little")[: len(data) - at]
    return bytes(data)
