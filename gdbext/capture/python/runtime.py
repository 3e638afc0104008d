"""Find the CPython interpreter inside a process: where `_PyRuntime` lies, which release it is, how it is laid out.

Reads files and memory and may take its time: it is done before the target is stopped.
"""

from __future__ import annotations

import functools
import os
import re
import struct
from dataclasses import dataclass
from typing import Callable, Iterable, List, Mapping, Optional, Tuple

from gdbext.capture.elf.layout import Segment
from gdbext.capture.elf.object_file import bias_among
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.memory import maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.knowledge.runtimes.cpython import (
    DEBUG_COOKIE,
    DEBUG_TABLE_NUMBERS,
    LAYOUTS,
    SELF_DESCRIBED,
    CodeLayout,
    FrameLayout,
    GilLayout,
    InterpreterLayout,
    SelfDescribed,
    StringLayout,
)
from gdbext.knowledge.runtimes.cpython_frames import INTERPRETER_FILES
from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing
from gdbext.safe_open import files, regular_files

Read = Callable[[int, int], Optional[bytes]]
"""(address, size) -> exactly that many bytes, or None when they cannot be read."""

Version = Tuple[int, int]

_INTERPRETER_FILE = re.compile("|".join(INTERPRETER_FILES))
_VERSION_IN_NAME = re.compile(r"python(\d)\.(\d+)")
_MOST_CANDIDATES = 4
_LARGEST_STATE = 4 << 20  # bytes; _PyRuntime with the state of the main interpreter has 0.7 MB in 3.13
_LARGEST_OBJECT = 4096
_OBJECTS = ("frame_", "code_", "str_", "bytes_")
_VERSION_IN_EXTENSION = re.compile(r"\.cpython-(3)(\d+)t?-[^/]*\.so$")


@dataclass(frozen=True)
class Interpreter:
    """A CPython interpreter in a process: the address of its `_PyRuntime` and the layout of its release."""

    version: Version
    runtime: int
    module: str  # path of the file that contains it
    layout: InterpreterLayout


def interpreter_of(pid: int) -> Maybe[Interpreter]:
    """The interpreter of a running process, or why there is none. Takes permission to read its memory, and no stop."""
    try:
        memory_map, program = maps.read_maps(pid), os.readlink(f"/proc/{pid}/exe")
    except OSError as error:
        return Missing(error.strerror or "unreadable")
    return find_interpreter(memory_map, ProcessMemory(pid).read, program, f"/proc/{pid}/root")


def find_interpreter(
    memory_map: Iterable[maps.Mapping], read: Read, executable: Optional[str] = None, root: str = ""
) -> Maybe[Interpreter]:
    """The interpreter of a process, or why there is none that can be read.

    `executable` is the path of its program (it may contain the interpreter whatever its name is); `root` is put
    before each path to open it, e.g. /proc/PID/root for a process in a container.
    """
    mappings = [mapping for mapping in memory_map if mapping.is_file]
    reasons = {False: Missing("not a Python process", Code.NOT_PYTHON)}  # by: the file does contain an interpreter
    for path in _candidates(mappings, executable):
        own = [mapping for mapping in mappings if mapping.file == path]
        if any(mapping.deleted for mapping in own):
            reasons[True] = Missing(f"{path} was replaced after the process started")
            continue
        symbols = _symbols_of(root + path)
        if isinstance(symbols, Missing):
            if _INTERPRETER_FILE.fullmatch(os.path.basename(path)):
                reasons[False] = symbols
            continue
        bias = bias_among(symbols.segments, symbols.fixed, own)
        if bias is None:
            reasons[True] = Missing(f"{path}: not mapped the way its file says")
            continue
        version = _version(path, symbols, bias, mappings, read)
        found = interpreter_at(symbols.runtime + bias, path, version, read)
        if isinstance(found, Interpreter):
            return found
        reasons[True] = found
    return reasons[max(reasons)]


def interpreter_at(runtime: int, module: str, version: Optional[Version], read: Read) -> Maybe[Interpreter]:
    """The interpreter whose `_PyRuntime` lies at `runtime`; what it says of itself comes before `version`."""
    start = read(runtime, 16)
    if start is None:
        return Missing(f"_PyRuntime of {module} cannot be read")
    described = start.startswith(DEBUG_COOKIE)
    version = _version_of_word(start[8:]) if described else version
    if version is None:
        return Missing(f"the release of the Python in {module} is unknown")
    name = f"Python {version[0]}.{version[1]}"
    if described and version in SELF_DESCRIBED:
        table = read(runtime, 8 * DEBUG_TABLE_NUMBERS) or bytes(8 * DEBUG_TABLE_NUMBERS)
        numbers = struct.unpack(f"<{DEBUG_TABLE_NUMBERS}Q", table)
        if numbers[2]:
            return Missing(f"free-threaded build of {name}: its frames are not read yet")
        if not _plausible(SELF_DESCRIBED[version], numbers):
            return Missing(f"the offsets in {name} of {module} are damaged")
        layout = _layout_of(SELF_DESCRIBED[version], numbers)
    elif version in LAYOUTS:
        layout = LAYOUTS[version]
    else:
        return Missing(f"{name} is not known")
    head = read(runtime + layout.interpreters, 8)
    if head is None or head == bytes(8):
        return Missing(f"{name} in {module} is not initialised, or was finalised")
    return Interpreter(version, runtime, module, layout)


def _candidates(mappings: List[maps.Mapping], executable: Optional[str]) -> List[str]:
    """Files that may contain the interpreter. A library comes first: a program linked to one contains none."""
    paths = dict.fromkeys(mapping.file for mapping in mappings)
    named = [path for path in paths if _INTERPRETER_FILE.fullmatch(os.path.basename(path))]
    if executable and executable in paths and executable not in named:
        named.append(executable)
    return sorted(named, key=lambda path: ".so" not in os.path.basename(path))[:_MOST_CANDIDATES]


# --- the file ---


@dataclass(frozen=True)
class _Symbols:
    runtime: int  # addresses as linked
    version: Optional[int]
    segments: Tuple[Segment, ...]
    fixed: bool  # linked to a fixed address


def _symbols_of(path: str) -> Maybe[_Symbols]:
    try:
        return _read_symbols(path, regular_files.identity_of(files.status(path)))
    except OSError as error:
        return Missing(f"{path}: {error.strerror}")


@functools.lru_cache(maxsize=64)
def _read_symbols(path: str, _identity: regular_files.Identity) -> Maybe[_Symbols]:
    try:
        with files.stream(path) as stream:
            elf = ElfSymbols(stream)
            found = elf.look_up(("_PyRuntime", "Py_Version"))
            # The section survives strip; CPython 3.10 and later on Linux.
            runtime = found.get("_PyRuntime") or elf.section_address(".PyRuntime")
    except OSError as error:
        return Missing(f"{path}: {error.strerror}")
    except (ValueError, struct.error) as error:
        return Missing(f"{path}: {error}")
    if runtime is None:
        return Missing(f"interpreter symbols not found in {path}")
    return _Symbols(runtime, found.get("Py_Version"), elf.segments, elf.fixed)


# --- the memory ---


def _version(path: str, symbols: _Symbols, bias: int, mappings: List[maps.Mapping], read: Read) -> Optional[Version]:
    """The release: `Py_Version` (3.11 and later), the file's own name, else extension modules that are loaded."""
    word = read(symbols.version + bias, 8) if symbols.version else None
    if word is not None:
        return _version_of_word(word)
    named = _VERSION_IN_NAME.search(os.path.basename(path))
    if named:
        return int(named[1]), int(named[2])
    loaded = {(int(m[1]), int(m[2])) for m in (_VERSION_IN_EXTENSION.search(got.file) for got in mappings) if m}
    return loaded.pop() if len(loaded) == 1 else None


def _version_of_word(word: bytes) -> Version:
    value = int.from_bytes(word, "little")
    return value >> 24 & 0xFF, value >> 16 & 0xFF


def _plausible(row: SelfDescribed, numbers: Tuple[int, ...]) -> bool:
    """Whether they can be offsets: who writes them decides how much is read of him."""
    return all(
        numbers[position] <= (_LARGEST_OBJECT if name.startswith(_OBJECTS) else _LARGEST_STATE)
        for name, position in row.fields.items()
    )


def _layout_of(row: SelfDescribed, numbers: Tuple[int, ...]) -> InterpreterLayout:
    """The layout that the interpreter itself tells."""
    at: Mapping[str, int] = {name: numbers[position] for name, position in row.fields.items()}
    return InterpreterLayout(
        version=row.version,
        source=row.source,
        interpreters=at["interpreters"],
        next_interpreter=at["next_interpreter"],
        threads=at["threads"],
        next_thread=at["next_thread"],
        pthread=at["pthread"],
        native_id=at["native_id"],
        frame=at["frame"],
        frame_through=None,
        frames=FrameLayout(
            previous=at["frame_previous"],
            code=at["frame_code"],
            instruction=at["frame_instruction"],
            boundary=at["frame_owner"],
            shim_owners=row.shim_owners,
            code_tag_mask=row.code_tag_mask,
            base_frame=row.base_frame,
        ),
        code=CodeLayout(
            filename=at["code_filename"],
            name=at["code_name"],
            first_line=at["code_first_line"],
            line_table=at["code_line_table"],
            table="locations",
            instructions=at["code_instructions"],
        ),
        strings=StringLayout(
            length=at["str_length"],
            state=at["str_state"],
            ascii_header=at["str_ascii_header"],
            wide_header=at["str_ascii_header"] + 16,  # utf8_length and utf8 follow (PyCompactUnicodeObject)
            bytes_length=at["bytes_length"],
            bytes_data=at["bytes_data"],
        ),
        gil=GilLayout(
            at=at["gil_pointer"],
            last_holder=at["gil_holder"] - at["gil"],
            locked=at["gil_locked"] - at["gil"],
            per_interpreter=True,
        ),
    )
