"""The line that says who was asked."""

import json

from gdbext.model.command_typed import FULL, Typed
from gdbext.model.job import JobSnapshot
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.model.witness import Statement, Witness
from gdbext.render import render
from gdbext.render.json.document import document
from gdbext.render.style import Style
from gdbext.render.text.verdict.witnesses import witness_lines

RAS = Witness("RAS", "absent", "port 28028 closed")
SHM = Witness("/dev/shm", "present", "64 MiB of 64 MiB free", (Statement("64 MiB of 64 MiB free"),))
EVIL = Witness("RAS", "failed", "\x1b[2J\x07evil\u202e answer " * 40)


def test_each_witness_is_said_with_its_reason():
    assert witness_lines((RAS, SHM), Style(width=120)) == [
        "Other sources, read before the stop: RAS absent (port 28028 closed), /dev/shm present (64 MiB of 64 MiB free)."
    ]
    assert witness_lines((), Style()) == []


def test_it_is_dim_and_stands_with_all_that_is_known():
    diagnosis = Diagnosis(JobSnapshot((), witnesses=(RAS,)), (), Verdict("unknown", "low", "Nothing."))
    lines = render(diagnosis, Style(width=100, color=True, typed=Typed(FULL)))
    assert (
        lines[lines.index("") + 1]
        == "\x1b[2mOther sources, read before the stop: RAS absent (port 28028 closed).\x1b[0m"
    )
    assert not any("RAS" in line for line in render(diagnosis, Style()))


def test_what_a_port_answered_cannot_take_over_the_terminal():
    lines = witness_lines((EVIL,), Style(width=80))
    assert len(lines) == 2
    assert not any(character in "".join(lines) for character in "\x1b\x07\u202e")


def test_the_document_has_every_statement():
    diagnosis = Diagnosis(JobSnapshot((), witnesses=(SHM,)), (), Verdict("unknown", "low", "Nothing."))
    assert document(diagnosis)["witnesses"] == [
        {
            "name": "/dev/shm",
            "state": "present",
            "reason": "64 MiB of 64 MiB free",
            "statements": [{"text": "64 MiB of 64 MiB free", "says": "fact", "process": None}],
        }
    ]
    assert json.dumps(document(diagnosis))
