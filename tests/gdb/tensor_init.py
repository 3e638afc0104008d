"""Runs inside gdb after gdbext/init.py: the answers of the tensor commands as data."""

from gdbext.commands import tensor
from gdbext.debugger.base import console
from gdbext.debugger.ranks.session import GdbSession


def answers(path, *lines):
    """Run command lines as the console does; what they answer, or the error, as JSON lines."""
    import json

    from gdbext.commands.parsing import parse
    from gdbext.model.errors import GdbextError
    from gdbext.model.saved.codec import encode

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
