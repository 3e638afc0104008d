"""Rooms and names: who looks for a thing finds its file by the names alone."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import gdbext

ROOT = Path(gdbext.__file__).parent
MOST = 15
LARGER = {
    "model": "one file a noun, nothing to choose between",
    "commands.declared": "one file a noun: its rows alone",
    "commands": "one file a command of gdb, and what they share",
    "cli": "one file a command of the shell, and what they share",
    "render.text": "one file a noun of an answer",
    "traces": "one file a step from the bytes of a profile to the verdict and the merged file",
    "rankpdb": "loaded into a rank as it is: one folder without sub-rooms",
}
"""Rooms with more modules than a reader takes in at once, and why."""

TWICE = {
    "the noun of an answer or of a command, once in each layer (model, commands, cli, render, pretty_printers)": """
        backtrace build_report chain check check_report checkup comms completion considered_hypotheses demo
        diagnose diff difference doctor dump dumps error explain explanation gdbinit gpu_core gpu_core_arming
        gpu_errors gpucore launch locks man page profiling rank_breakpoints ranks run schema stream tensor
        trace verdict vscode watch
    """,
    "a library, once in each table that has rows of it": "nccl",
    "the same part of each engine (knowledge/engines)": "profile frames layouts checks timeouts streams builds",
    "the same part of each machine": "registers",
    "rows in knowledge, and who reads them": "slow witnesses",
    "the same question, answered for copies and for what gdb holds": "communicators",
}
"""Names that several modules have, and why that misleads nobody."""


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            yield path.relative_to(ROOT).parent.as_posix().replace("/", "."), path.stem


def test_no_room_has_more_modules_than_one_takes_in():
    rooms = defaultdict(list)
    for room, name in modules():
        rooms[room].append(name)
    crowded = {room for room, names in rooms.items() if len(names) > MOST}
    assert crowded == set(LARGER)


def test_a_name_that_stands_twice_has_a_reason():
    places = defaultdict(list)
    for room, name in modules():
        places[name].append(room)
    found = {name for name, rooms in places.items() if len(rooms) > 1}
    allowed = [name for names in TWICE.values() for name in names.split()]
    assert sorted(found - set(allowed)) == [], "give it a name of its own, or a reason here"
    assert sorted(set(allowed) - found) == [], "these stand once only"
    assert len(allowed) == len(set(allowed))


def test_every_room_says_what_it_holds():
    for path in ROOT.rglob("*.py"):
        room = path.parent
        text = (room / "__init__.py").read_text("utf-8")
        assert text.startswith('"""'), room


def test_contributing_has_the_house():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text("utf-8")
    lines = text.partition("## The house\n\n```\n")[2].partition("\n```")[0].splitlines()
    assert lines == [tree_line(path.parent) for path in sorted(ROOT.rglob("__init__.py")) if path.parent != ROOT]


def tree_line(room):
    """The room and the first sentence of what it says of itself."""
    said = (ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or "").split("\n\n")[0]
    sentence, point, _ = said.replace("\n", " ").strip().partition(". ")
    name = "  " * (len(room.relative_to(ROOT).parts) - 1) + room.name + "/"
    return f"{name:<22} {sentence}{'.' if point else ''}"


def test_rooms_import_one_way():
    """Which sub-rooms are below and which above, a reader sees by the imports."""
    imports = defaultdict(lambda: defaultdict(set))  # of a room: which sub-room imports which
    for path in ROOT.rglob("*.py"):
        here = path.relative_to(ROOT).parent.parts
        for module, names in IMPORT.findall(path.read_text("utf-8")):
            for there in imported_rooms(tuple(module.split(".")), re.findall(r"(\w+)(?: as \w+)?", names)):
                shared = next((n for n, (a, b) in enumerate(zip(here, there)) if a != b), None)
                if shared is not None:
                    imports[".".join(here[:shared])][here[shared]].add(there[shared])
    assert len(imports) > 5
    assert not {room for room, below in imports.items() if has_circle(below)}


IMPORT = re.compile(r"^from gdbext\.([\w.]+) import (\([^)]*\)|[^(\n]+)", re.MULTILINE)


def imported_rooms(module, names):
    """The room of each module that the statement imports from."""
    for name in names:
        inner = ROOT.joinpath(*module, name)
        is_module = inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()
        yield module if is_module or ROOT.joinpath(*module, "__init__.py").exists() else module[:-1]


def has_circle(below):
    """Whether a walk along the imports comes back to where it began."""
    reached = {room: set(rooms) for room, rooms in below.items()}
    for _ in below:
        for rooms in reached.values():
            rooms |= {further for room in rooms for further in reached.get(room, ())}
    return any(room in rooms for room, rooms in reached.items())
