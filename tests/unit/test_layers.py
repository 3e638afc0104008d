"""The dependency rule (CONTRIBUTING.md), held by the syntax tree and by the interpreter."""

import ast
import importlib.util
import pkgutil
import subprocess
import sys

import pytest

from tests.unit.product_sources import ROOT
from tests.unit.product_sources import sources as parsed

KNOW = {"model", "knowledge"}
READ = KNOW | {"scrubbing", "discovery", "capture", "parsers", "witnesses", "analysis", "snapshot_builder"}
MAY_IMPORT = {
    "model": {"model"},
    "scrubbing": {"model", "scrubbing"},
    "knowledge": KNOW,
    "discovery": KNOW | {"scrubbing", "discovery"},
    "capture": KNOW | {"capture"},
    "parsers": KNOW | {"snapshot_builder", "parsers"},
    "witnesses": KNOW | {"witnesses"},
    "analysis": KNOW | {"analysis"},
    "traces": KNOW | {"traces"},
    "render": {"model", "render"},
    "commands": READ | {"snapshot_builder", "commands"},
    "inside_gdb": READ | {"snapshot_builder", "commands", "render", "inside_gdb"},
    "pretty_printers": KNOW | {"analysis", "render", "pretty_printers", "inside_gdb"},
    "snapshot_builder": KNOW | {"discovery", "capture", "analysis", "snapshot_builder"},
    "collect": READ | {"snapshot_builder", "collect"},
    "cli": READ | {"traces", "snapshot_builder", "collect", "commands", "render", "rankpdb", "cli"},
    "rankpdb": {"rankpdb"},
}
MAY_IMPORT_GDB = {"inside_gdb", "pretty_printers", "init"}
PRINTERS_MAY_USE = {
    *(
        "gdbext.inside_gdb.base.values",
        "gdbext.inside_gdb.base.memory",
        "gdbext.inside_gdb.base.compat",
        "gdbext.inside_gdb.expressions.tensor_access",
    ),
    *("gdbext.inside_gdb.tensors.target_object", "gdbext.inside_gdb.tensors.object_by_dwarf"),
    *("gdbext.inside_gdb.streams.stream_objects", "gdbext.inside_gdb.streams.stream_pools"),
}


def sources():
    return sorted(ROOT.rglob("*.py"))


def room_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path):
    """(module, is at top level) of every import in a file."""
    tree = parsed()[path.relative_to(ROOT).as_posix()].tree
    top = set(map(id, tree.body))
    for node in tree.body:
        # `if TYPE_CHECKING:` and `try: import x` at module level count as top level.
        if isinstance(node, (ast.If, ast.Try)):
            top.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module, id(node) in top


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_what_its_room_may(path):
    room = room_of(path)
    for module, top in imports(path):
        if module == "gdb" or module.startswith("gdb."):
            assert room in MAY_IMPORT_GDB, f"{path} imports gdb"
        if not module.startswith("gdbext."):
            continue
        target = module.split(".")[1]
        if room in MAY_IMPORT and target in MAY_IMPORT:
            assert target in MAY_IMPORT[room], f"{room} may not import {module}"
            # A function-level import would hide a cycle.
            assert top, f"{path} imports {module} inside a function"
        if room == "pretty_printers" and target == "inside_gdb":
            assert module in PRINTERS_MAY_USE


def pure_modules():
    for info in pkgutil.walk_packages([str(ROOT)], "gdbext."):
        room = info.name.split(".")[1]
        if room not in MAY_IMPORT_GDB and room != "__main__":
            yield info.name


@pytest.mark.process
def test_pure_modules_load_where_gdb_cannot_be_imported():
    assert importlib.util.find_spec("gdb") is None or "site-packages" in str(importlib.util.find_spec("gdb").origin)
    names = sorted(pure_modules())
    assert len(names) > 20
    script = f"import sys; sys.modules['gdb'] = None\nfor name in {names!r}: __import__(name)\nprint('loaded')"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert done.stdout == "loaded\n", done.stderr


def test_no_room_is_called_utils():
    assert not [path for path in sources() if "util" in path.name]
