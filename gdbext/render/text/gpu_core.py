"""GPU cores as text: of each file what failed and which kernels were on the device."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable, List, Mapping, Sequence, Tuple

from gdbext.model.gpu_core import GpuCoreListing, GpuCoreState, GpuException, GpuOfCore, ResidentKernel
from gdbext.model.stack import Frame
from gdbext.model.text.ranges import counted, ranges_text
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, utc_text, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.verdict.origin import INVALID

MOST = 16  # exceptions and kernels of one device
_KERNELS = (
    Column("kernel", least=24, keep=9),
    Column("grid", right=True, keep=3),
    Column("state", keep=7),
    Column("grid size", keep=6),
    Column("block size", keep=5),
    Column("blocks", right=True, keep=6),
    Column("warps", right=True, keep=6),
    Column("SMs", least=6, keep=4),
    Column("thread", right=True, keep=4),
    Column("most warps at", least=16, keep=8),
)


def listing_lines(listing: GpuCoreListing, style: Style) -> List[str]:
    lines = joined(core_lines(core, style) for core in listing.cores)
    for line in listing.unread:
        lines += [style.paint(part, "doubt") for part in wrapped(clean(line, style), style, indent="  ")]
    return lines


def core_lines(core: GpuCoreState, style: Style) -> List[str]:
    """One file: whose, what failed, what ran."""
    lines = wrapped(clean(_head(core), style), style, indent="  ")
    for device in core.devices:
        lines += _device(core, device, style)
    if not core.exceptions and core.devices:
        lines.append("  no exception is in it: it was asked for, or the failing context is another one")
    if core.has_lines is False:
        lines += wrapped(
            "the kernels have no line information: build with -lineinfo (the code stays as fast)", style, "    ", "  "
        )
    for problem in core.problems:
        lines += [style.paint(part, "doubt") for part in wrapped(clean(problem, style), style, "    ", "  ")]
    return lines


def _head(core: GpuCoreState) -> str:
    owner_words = [
        f"rank {core.rank}" if core.rank is not None else "",
        f"pid {core.pid}" if core.pid is not None else "",
    ]
    said = [" ".join([*filter(None, owner_words), *([f"on {core.host}"] if core.host else [])])]
    said.append(f"driver {core.driver}" if core.driver else "driver not told (older than r565)")
    said.append(f"CUDA {core.cuda}" if core.cuda else "")
    if core.written_at is not None:
        said.append(f"written {utc_text(core.written_at) or INVALID}")
    return f"{os.path.basename(core.path)}: {', '.join(filter(None, said))}"


def _device(core: GpuCoreState, device: GpuOfCore, style: Style) -> List[str]:
    of = f" of {device.sm_count}" if device.sm_count else ""
    name = f" {device.name}" if device.name else ""
    lines = [clean(f"GPU {device.number}{name} ({device.architecture}): {device.busy_sms}{of} SMs busy", style)]
    mine = [one for one in core.exceptions if one.device == device.number]
    for one in mine[:MOST]:
        lines += _exception(one, style)
    lines += left_out(len(mine) - MOST, style, "more exceptions, all in --json", "  ")
    kernels = sorted(device.kernels, key=lambda one: -one.warps)
    rows = [_row(one, style) for one in kernels[:MOST]]
    lines += [f"  {line}" for line in table(_KERNELS, rows, replace(style, width=style.width - 2))]
    lines += left_out(len(kernels) - MOST, style, "more kernels, all in --json", "  ")
    if not kernels:
        lines.append("  no kernel is on it")
    return lines


def _exception(one: GpuException, style: Style) -> List[str]:
    how_known = (
        "the hardware names this instruction" if one.pc_told else "where the warp was found; it may have gone on"
    )
    where = place(one.frames) or (f"at {one.pc:#x}, in no code of the core" if one.pc else "at an unknown place")
    first = [f"block {one.block}" if one.block else "", f"thread {one.thread}" if one.thread else ""]
    first += [f"SM {one.sm}" if one.sm is not None else "", f"warp {one.warp}" if one.warp is not None else ""]
    counts = [counted(one.blocks, "block"), counted(one.warps, "warp"), counted(one.lanes, "thread")]
    kernel = f"kernel {one.kernel}" if one.kernel else "kernel unknown: its warps were gone"
    lines = [style.paint(f"  {one.name} ({one.number}): {one.means}", "bad")]
    for text in (
        f"{where} ({how_known})" if one.pc else where,
        f"{kernel}; first {', '.join(filter(None, first))}; {', '.join(counts)}",
        f"launched by host thread {one.host_tid}" if one.host_tid else "",
        f"next: {one.advice}" if one.advice else "",
    ):
        if text:
            lines += wrapped(clean(text, style), style, indent="      ", first="    ", most=4)
    return lines


def place(frames: Sequence[Frame]) -> str:
    """`in f at a.cu:3, in g at a.cu:9`: innermost first."""
    calls = [_call(one) for one in frames[:6]]
    words = ["in", *("inlined in" if one.inlined else "called by" for one in frames)]
    return ", ".join(f"{word} {call}" for word, call in zip(words, calls))


def _call(frame: Frame) -> str:
    at = f" at {frame.file}:{frame.line}" if frame.file and frame.line else ""
    return f"{frame.function or 'a function without a name'}{at}"


def _row(one: ResidentKernel, style: Style) -> Row:
    first = one.places[0] if one.places else None
    where = _short(first.frames[0]) if first is not None and first.frames else ""
    of = f" ({first.warps:,} of {one.warps:,})" if first is not None and where and first.warps < one.warps else ""
    return Row(
        (
            clean(one.name, style) or "(no name)",
            str(one.grid),
            one.status,
            _size(one.grid_size),
            _size(one.block_size),
            f"{one.blocks:,}" if one.blocks else "",
            f"{one.warps:,}" if one.warps else "",
            ranges_text(one.sms) if one.sms else "",
            str(one.host_tid) if one.host_tid else "",
            clean(where, style) + of if where else "",
        )
    )


def _short(frame: Frame) -> str:
    return f"{os.path.basename(frame.file)}:{frame.line}" if frame.file and frame.line else frame.function or ""


def _size(size: Tuple[int, ...]) -> str:
    return f"({','.join(map(str, size))})"


RENDERERS: Mapping[type, Callable[..., List[str]]] = {GpuCoreListing: listing_lines, GpuCoreState: core_lines}
