"""Runs inside gdb after gdbext/init.py: the tensor commands and printers, where they are not registered yet."""

import gdb  # noqa: TID251

from gdbext.commands import tensor
from gdbext.debugger import console
from gdbext.debugger.session import GdbSession
from gdbext.debugger.tensor_access import TensorAccess
from gdbext.printers import tensor as printers

if not hasattr(GdbSession, "tensors"):
    GdbSession.tensors = TensorAccess()
try:
    gdb.execute("help llm-tensor", to_string=True)
except gdb.error:
    session = next(one for one in console._registered if isinstance(one, GdbSession))
    console._registered.extend(console._Command(row, session) for row in tensor.COMMANDS)
printers.register()


def answers(path, *lines):
    """Run command lines as the console does; what they answer, or the error, as JSON lines."""
    import json

    from gdbext.commands.parsing import parse
    from gdbext.model.codec import encode
    from gdbext.model.errors import GdbextError

    session = next(one for one in console._registered if isinstance(one, GdbSession))
    rows = {row.name: row for row in tensor.COMMANDS}
    with open(path, "w") as out:
        for line in lines:
            verb, _, rest = line.partition(" ")
            row = rows[f"llm-tensor {verb}"]
            try:
                answer = row.body(session, parse(row, rest))
                found = {"type": type(answer).__name__, **encode(answer)}
            except GdbextError as error:
                found = {"error": str(error)}
            out.write(json.dumps(found) + "\n")
