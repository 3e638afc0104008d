"""Runs inside gdb: what `llm-tensor list` finds in every frame at every stop of `stop_here`, as lines of JSON.

`python frames(ANSWERS)` writes a line per stop: by function, the tensors and the problems. The file that the program
writes to must be its argument.
"""

import json
import os
import sys

import gdb  # noqa: TID251

sys.path[:0] = [os.environ["GDBEXT_TEST_ROOT"]]
sys.path += os.environ.get("GDBEXT_TEST_SITE", "").split(os.pathsep)

from gdbext.inside_gdb.base import memory  # noqa: E402
from gdbext.inside_gdb.expressions.tensor_access import TensorAccess  # noqa: E402
from gdbext.model.errors import GdbextError  # noqa: E402
from gdbext.model.missing import Missing  # noqa: E402


def frames(answers):
    access = TensorAccess()
    with open(answers, "w") as out:
        while gdb.selected_inferior().pid:
            memory.clear_cache()
            out.write(json.dumps(dict(_frames(access))) + "\n")
            gdb.execute("continue", to_string=True)


def _frames(access):
    frame = gdb.newest_frame()
    while frame is not None:
        frame.select()
        try:
            found = access.in_frame()
        except GdbextError as error:
            yield frame.name(), {"error": str(error)}
        else:
            rows = [_row(one) for one in found.tensors]
            yield frame.name(), {"place": found.place, "tensors": rows, "problems": found.problems}
        frame = frame.older()


def _row(info):
    """What the program says too."""
    return {
        "name": info.name,
        "dtype": str(info.dtype),
        "shape": None if isinstance(info.shape, Missing) else list(info.shape),
        "where": str(info.where).split()[0],
        "address": None if isinstance(info.address, Missing) else info.address,
        "kind": info.kind,
        "notes": info.notes,
    }
