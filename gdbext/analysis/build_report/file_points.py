"""What is in an object file and what is not, in words, each with the way to get it."""

from __future__ import annotations

from typing import Iterator

from gdbext.model.build_report import BuiltFile, DebugCheck, DeviceCode
from gdbext.model.checkup import Point

_SYMBOLS = {
    "all": ("ok", "all functions have names"),
    "functions": ("ok", "functions have names (.gnu_debugdata), variables have none"),
    "exported": ("warning", "stripped: only what other files may call has a name, other frames show ??"),
    "none": ("warning", "stripped: its frames show ??"),
    "unknown": ("warning", "unknown"),
}
_FRAME_POINTERS = {
    "yes": ("ok", "kept: perf and gdbext's looks without a stop follow its frames"),
    "some": ("ok", "kept by a part of its functions"),
    "no": ("warning", "not kept: stacks are read by unwind entries alone, perf needs --call-graph dwarf"),
}
_FRAME_POINTER_ADVICE = "compile with -fno-omit-frame-pointer"


def points_of(file: BuiltFile, debuginfod: bool) -> Iterator[Point]:
    """`debuginfod`: servers are set, so debug information may be had from them."""
    if file.problem and file.symbols == "unknown":
        yield Point("file", "warning", file.problem)
        return
    state, text = _SYMBOLS[file.symbols]
    yield Point("names", state, text, "" if state == "ok" else "leave out strip, -s and --strip-all")
    yield _debug(file, debuginfod)
    if file.debug in ("inside", "apart", "cached", "objects"):
        yield _optimised(file)
    if file.frame_pointers in _FRAME_POINTERS:
        state, text = _FRAME_POINTERS[file.frame_pointers]
        yield Point("frames", state, text, "" if state == "ok" else _FRAME_POINTER_ADVICE)
    else:
        yield Point("frames", "ok", "unknown: too few functions, no unwind table, or another machine's code")
    if file.device_code is not None:
        yield from _device(file.device_code)
    for check in file.checks:
        yield _check(check)
    if file.problem:
        yield Point("file", "warning", file.problem)


def _debug(file: BuiltFile, debuginfod: bool) -> Point:
    if file.debug in ("inside", "apart", "cached"):
        by = f", by {file.debug_file}" if file.debug_file else ""
        if file.lines_only:
            return Point(
                "lines", "warning", f"frames have files and lines, and no arguments (-g1){by}", "compile with -g"
            )
        return Point("lines", "ok", f"frames have files, lines and arguments{by}")
    if file.debug == "objects":
        return Point(
            "lines", "ok", "frames have lines; arguments are in .dwo files beside the objects: keep them, or use dwp"
        )
    remedy = "compile with -g, which changes no code"
    if file.build_id:
        place = f"/usr/lib/debug/.build-id/{file.build_id[:2]}/{file.build_id[2:]}.debug"
        asked = f"debuginfod-find debuginfo {file.build_id}" if debuginfod else f"its debug file, if kept, to {place}"
        remedy = f"{asked}; else {remedy}"
    return Point("lines", "warning", "no debug information: frames have no file, line or arguments", remedy)


def _optimised(file: BuiltFile) -> Point:
    by = ", ".join(file.compilers[:4]) + (f" and {len(file.compilers) - 4} more" if len(file.compilers) > 4 else "")
    if not file.optimised and file.debug == "objects":
        return Point("optimised", "ok", "unknown: that stands in the .dwo files")
    if not file.optimised:
        return Point("optimised", "ok", f"unknown: {by or 'its compiler'} does not write down its options")
    levels = ", ".join(file.optimised)
    if file.inlined:
        effect = "small functions are inlined, and some arguments are optimised out"
    else:
        effect = "nothing is inlined or optimised out, and host code is slow"
    return Point("optimised", "ok", f"{levels} ({by}): {effect}")


def _device(code: DeviceCode) -> Iterator[Point]:
    kinds = [", ".join(code.sass)] if code.sass else []
    kinds += [f"PTX of {', '.join(code.ptx)}"] if code.ptx else []
    if kinds:
        yield Point("GPU code", "ok", "; ".join(kinds))
    yield _lines(code)
    if code.with_debug:
        yield Point(
            "GPU debug", "ok", f"{code.with_debug} of {code.cubins} cubins have -G: variables too, and no optimisation"
        )
    if code.problem:
        yield Point("GPU code", "warning", code.problem)


def _lines(code: DeviceCode) -> Point:
    remedy = "compile with nvcc -lineinfo (NVCC_APPEND_FLAGS=-lineinfo), which changes no code"
    packed = f", {code.packed} of {code.cubins} cubins are compressed" if code.packed else ""
    looked = "" if code.looked_into == code.cubins else f"; {code.looked_into} of {code.cubins} were looked into"
    if code.lines == "yes":
        option = "-G" if code.with_debug == code.cubins else "-lineinfo"
        return Point("GPU lines", "ok", f"a fault in a kernel gets its file and line ({option}{packed})")
    if code.lines == "some":
        said = f"{code.with_lines} of {code.cubins} cubins have -lineinfo{looked}{packed}"
        return Point("GPU lines", "warning", said, remedy)
    if code.lines == "no":
        return Point("GPU lines", "warning", f"a fault in a kernel gets no line: no -lineinfo{packed}", remedy)
    if code.lines == "none":
        return Point("GPU lines", "ok", "unknown: the driver compiles the PTX when it is loaded")
    if code.looked_into:
        said = f"none of the {code.looked_into} cubins that were looked into, of {code.cubins}, has -lineinfo{packed}"
        return Point("GPU lines", "warning", said, remedy)
    return Point("GPU lines", "warning", f"unknown: no cubin could be looked into{packed}", remedy)


def _check(check: DebugCheck) -> Point:
    note = f"; {check.note}" if check.note else ""
    if check.on:
        return Point("check", "ok", f"{check.function} is on ({check.variable})")
    if check.on is None:
        return Point("check", "ok", f"{check.function} is compiled in; {check.variable} at start switches it on{note}")
    return Point(
        "check",
        "warning",
        f"{check.function} is compiled in, and off",
        f"{check.variable} at start (each check waits for its kernel){note}",
    )
