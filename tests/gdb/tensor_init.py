"""Runs inside gdb after gdbext/init.py: the answers of the tensor commands as data."""

from gdbext.commands.all_commands import IN_GDB
from gdbext.inside_gdb.session.one_session import session


def answers(path, *lines):
    """Run command lines as the console does; what they answer, or the error, as JSON lines."""
    import json

    from gdbext.commands.declaration import loaded
    from gdbext.commands.gdb_arguments import parse
    from gdbext.model.errors import GdbextError
    from gdbext.model.snapshot_files.codec import encode

    rows = {row.gdb: row for row in IN_GDB}
    with open(path, "w") as out:
        for line in lines:
            verb, _, rest = line.partition(" ")
            row = rows[f"llm-tensor {verb}"]
            try:
                answer = loaded(row.body)(session(), parse(row, rest))
                found = {"type": type(answer).__name__, **encode(answer)}
            except GdbextError as error:
                found = {"error": str(error)}
            out.write(json.dumps(found) + "\n")
