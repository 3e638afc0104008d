"""What fields of a saved snapshot must be together: later code follows their numbers without asking."""

from __future__ import annotations

from gdbext.model.job import JobSnapshot
from gdbext.model.snapshot_files.data_errors import Unfit


def check(snapshot: JobSnapshot) -> None:
    """Raises `Unfit` for the first contradiction."""
    for number, process in enumerate(snapshot.processes):
        if process.index != number:
            raise Unfit(f"is {process.index}, not {number}").within("index").within(f"processes[{number}]")
    count = len(snapshot.processes)
    for number, witness in enumerate(snapshot.witnesses):
        for place, statement in enumerate(witness.statements):
            if statement.process is not None and statement.process >= count:
                problem = Unfit(f"is {statement.process}, and there are {count} processes").within("process")
                raise problem.within(f"statements[{place}]").within(f"witnesses[{number}]")
    for number, look in enumerate(snapshot.earlier):
        try:
            check(look)
            if look.earlier:
                raise Unfit("is not empty, but an earlier look has none before it").within("earlier")
        except Unfit as problem:
            raise problem.within(f"earlier[{number}]") from None
