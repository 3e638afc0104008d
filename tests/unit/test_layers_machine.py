"""What depends on the machine, and how ELF files are laid out, stands in one place each: held by the source."""

import ast
import re

import pytest

from gdbext.capture.machine import ARCHITECTURES
from tests.unit.product_sources import ROOT, sources

MACHINE = ROOT / "capture/machine"
X86 = re.compile(
    r"\b(?:[re](?:[abcd]x|[sd]i|[sb]p|ip|flags)|r(?:8|9|1[0-5])[dwb]?|orig_[re]ax|[defg]s_base|[xyz]mm\d+)\b"
    r"|\b(?:x86|amd)[-_]?64\b",
    re.IGNORECASE,
)
ARM = re.compile(r"x(?:[12]?\d|30)|[vqdw](?:[12]?\d|3[01])|pstate|tpidr\w*|aarch64|arm64")
NAMES = {
    "commands/declared/tensor.py": "an example for the user's machine, in a help text",
    "knowledge/causes/remedies/no_cause_found.py": "a command for the user's machine, which says for which",
    "knowledge/engines/llama_cpp/layouts.py": "the source of its offsets: where they were measured",
    "knowledge/runtimes/glibc_locks.py": "the source of its offsets: glibc's headers",
    "knowledge/std_offsets.py": "where its offsets were measured",
    "knowledge/row_kinds.py": "where the offsets of the rows hold",
    "knowledge/runtimes/system_calls.py": "the model's numbers, which are those of one machine",
}
"""Files that may name a machine, or a register of one, and why."""
PIECES = {
    "analysis/tensors/read_blocks.py": "a step in looking for where memory ends; analysis may not ask the machine",
    "safe_open/slow_mounts_child.py": "reads the ends of a file, to have waited for them",
    "capture/machine/__init__.py": "the smallest page of all",
    "inside_gdb/release_builds/release_objects.py": "glibc folds the links of free lists by 12 bits on every machine",
}
"""Files in which something that is called a page has 4,096 bytes, and why."""
ELF = {"parsers/text_lines.py": "tells what is no text by its first bytes; parsers may not ask capture"}
"""Files that may know how an ELF file begins, and why."""
ELF_MARKS = (r"\x7fELF", "16sHHIQQQ", "IIQQQQ", "IBBHQQ", "QQq", "iiihxxQQ", "bbbbxxxxQ")


def outside():
    """(name, text, syntax tree) of every file outside of the folders of architectures."""
    every = ((name, source.text, source.tree) for name, source in sources().items())
    return [one for one in every if not re.match(r"capture/machine/\w+/", one[0])]


def imports(tree):
    return [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_only_its_own_folder_names_a_register_or_a_machine():
    found = {}
    for name, text, tree in outside():
        words = {match[0] for match in X86.finditer(text)}
        texts = {getattr(node, "value", None) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        words.update(one for one in texts if isinstance(one, str) and ARM.fullmatch(one))
        if words and not name.startswith("capture/machine/"):  # which lists the folders
            found[name] = words
    assert found.keys() == NAMES.keys(), {name: found[name] for name in found.keys() - NAMES.keys()}


def test_only_the_interface_asks_an_architecture():
    folders = tuple(f"gdbext.capture.machine.{row.name}" for row in ARCHITECTURES)
    asking = {name for name, _, tree in outside() if any(one.startswith(folders) for one in imports(tree))}
    assert asking == {f"capture/machine/{one}.py" for one in ("__init__", "code", "disassembly")}


@pytest.mark.parametrize("row", ARCHITECTURES, ids=lambda row: row.name)
def test_a_machine_is_one_folder_of_its_name(row):
    """Which knows no other one, and nothing of ours but the interface and rows."""
    files = sorted((MACHINE / row.name).glob("*.py"))
    assert (MACHINE / row.name / "registers.py") in files
    shared = ("gdbext.capture.machine.interface", "gdbext.knowledge", "gdbext.model")
    for path in files:
        ours = [one for one in imports(ast.parse(path.read_text("utf-8"))) if one.startswith("gdbext")]
        assert all(one.startswith((f"gdbext.capture.machine.{row.name}", *shared)) for one in ours), (path, ours)


def test_register_sets_are_read_by_the_rows_of_the_machine():
    found = []
    for name, _, tree in outside():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Attribute)):
                subject = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                index = getattr(node.slice, "value", node.slice)  # Python 3.8 wraps it
                if subject == "registers" and isinstance(getattr(index, "value", index), int):
                    found.append(f"{name}:{node.lineno}")
    assert not found


def test_no_page_has_so_many_bytes_by_assumption():
    size = re.compile(r"^_?(?:\w+_)?PAGE = (?:4096|0x1000|1 << 12)$|~0x[Ff]{3}\b|& -4096\b|>> 12\b(?! &)", re.M)
    assert {name for name, text, _ in outside() if size.search(text)} == PIECES.keys()


def test_only_capture_elf_knows_the_structs_of_elf_files():
    found = {name for name, text, _ in outside() if any(one in text for one in ELF_MARKS)}
    assert {name for name in found if not name.startswith("capture/elf/")} == ELF.keys()
