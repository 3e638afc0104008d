"""A GPU core to plain data: which kernels were on the device, where their warps are, what failed. By us alone, without
cuda-gdb.

A warp's place is looked up in the relocated code that the driver wrote into the core. Without code in it (or without
line information in the code) kernels have no name (or places no line), and the state says so.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from gdbext.capture.gpu_cores.gpu_core_code import CoreCode
from gdbext.capture.gpu_cores.gpu_core_file import CoreSection, GpuCoreFile, open_core
from gdbext.capture.gpu_cores.gpu_core_name import host_and_pid
from gdbext.knowledge.runtimes import gpu_core_format as form
from gdbext.model.errors import GdbextError
from gdbext.model.gpu_core import GpuCoreState, GpuException, GpuOfCore, ResidentKernel, WarpPlace
from gdbext.model.stack import Frame

MOST_PLACES = 8  # of one kernel
_MOST_WARPS = 1 << 17  # 1,024 SMs of 128 warps
_DEEPEST = 64

Row = Dict[str, Optional[int]]


def read_state(path: str) -> GpuCoreState:
    """What the file says. Raises `GdbextError` with one line for what is no GPU core, or cannot be read."""
    with open_core(path) as stream:
        try:
            return _Reading(path, GpuCoreFile(stream)).state()
        except ValueError as error:
            raise GdbextError(f"{path}: {error}") from None
        except (MemoryError, OSError) as error:
            raise GdbextError(f"{path}: {getattr(error, 'strerror', None) or 'too large to read'}") from None


class _Hit(NamedTuple):
    """An exception of one warp, or of an SM whose warps are gone."""

    number: int
    pc: Optional[int]
    from_hardware: bool
    lanes: int
    first: Row  # the first thread that has it
    section: Optional[CoreSection]  # the table that thread is in
    row: int


class _Grid:
    """What is counted of a grid while the SMs are gone through."""

    def __init__(self) -> None:
        self.sms: Set[int] = set()
        self.blocks = self.warps = 0
        self.pcs: Counter[int] = Counter()


class _Reading:
    def __init__(self, path: str, core: GpuCoreFile) -> None:
        self._path, self._core = path, core
        self._code = CoreCode(core)
        self._exceptions: Dict[Tuple[object, ...], GpuException] = {}
        self._warps = 0
        self._problems: List[str] = []

    def state(self) -> GpuCoreState:
        core = self._core
        tables = core.of(form.DEVICES)
        if not tables:
            why = core.problems[0] if core.problems else "it has no table of devices"
            raise ValueError(f"nothing to read: {why}")
        devices = [self._device(tables[0], number, row) for number, row in enumerate(core.rows(tables[0]))]
        meta = next((row for one in core.of(form.METADATA) for row in core.rows(one)), {})
        contexts = [row for one in core.of(form.CONTEXTS) for row in core.rows(one)]
        tids = {kernel.host_tid for one in devices for kernel in one.kernels} | {row["tid"] for row in contexts}
        host, pid = host_and_pid(os.path.basename(self._path))
        return GpuCoreState(
            path=self._path,
            size=core.length,
            devices=tuple(devices),
            exceptions=tuple(sorted(self._exceptions.values(), key=lambda one: -one.lanes)),
            pid=pid,
            host=host,
            host_tids=tuple(sorted(tid for tid in tids if tid)),
            driver=_version(meta.get("driver"), meta.get("driver_minor"), 2),
            cuda=_version(meta.get("cuda"), meta.get("cuda_minor"), 1),
            written_at=float(meta["written"] or 0) or None if meta else None,
            flags=tuple(name for bit, name in form.FLAGS.items() if (meta.get("flags") or 0) & bit),
            has_lines=self._code.has_lines,
            problems=(*core.problems, *self._code.problems, *self._problems),
        )

    def _device(self, table: CoreSection, number: int, row: Row) -> GpuOfCore:
        core = self._core
        grids = list(core.rows(core.below(form.GRIDS, table, number)))
        known = {one["grid"]: one for one in grids}
        seen: Dict[Optional[int], _Grid] = {}
        busy: Set[int] = set()
        device = row["number"] if row["number"] is not None else number
        sms = core.below(form.SMS, table, number)
        for index, sm in enumerate(core.rows(sms)):
            before = self._warps
            hits = self._sm(sms, index, sm, device, known, seen)
            if self._warps > before:
                busy.add(sm["sm"] or 0)
            if not hits and sm["exception"]:
                self._note(device, None, None, sm, None, _gone(sm))
        kernels = [self._kernel(device, one, seen.get(one["grid"], _Grid())) for one in grids]
        pci = f"{row['pci_bus'] or 0:02x}:{row['pci_device'] or 0:02x}" if row["pci_bus"] else ""
        own = core.text(row["sm_type"])
        return GpuOfCore(
            number=device,
            name=core.text(row["name"]),
            architecture=own if own.startswith("sm_") else f"sm_{row['sm_major']}{row['sm_minor']}",
            pci=pci,
            sm_count=row["sms"] or 0,
            busy_sms=len(busy),
            kernels=tuple(kernels),
        )

    def _sm(
        self,
        sms: Optional[CoreSection],
        index: int,
        sm: Row,
        device: int,
        known: Dict[Optional[int], Row],
        seen: Dict[Optional[int], _Grid],
    ) -> bool:
        """Count what is on one SM; whether some warp of it has an exception."""
        core, found = self._core, False
        blocks = core.below(form.BLOCKS, sms, index)
        for number, block in enumerate(core.rows(blocks)):
            counted = seen.setdefault(block["grid"], _Grid())
            counted.sms.add(sm["sm"] or 0)
            counted.blocks += 1
            warps = core.below(form.WARPS, blocks, number)
            for at, warp in enumerate(core.rows(warps)):
                self._warps += 1
                if self._warps > _MOST_WARPS:
                    raise ValueError("it has more warps than any device")
                counted.warps += 1
                pc, hit = self._warp(core.below(form.LANES, warps, at), warp, sm)
                if pc is not None:
                    counted.pcs[pc] += 1
                if hit is not None:
                    found = True
                    self._note(device, known.get(block["grid"]), block, sm, warp, hit)
        return found

    def _warp(self, lanes: Optional[CoreSection], warp: Row, sm: Row) -> Tuple[Optional[int], Optional[_Hit]]:
        """Where a warp is (where most of its threads are that run), and its exception."""
        valid, active = warp["valid"] or 0, warp["active"] or 0
        pcs: Counter[int] = Counter()
        failed: List[Tuple[int, Row]] = []
        for index, lane in enumerate(self._core.rows(lanes)):
            bit = 1 << ((lane["lane"] or 0) & 31)
            if not valid & bit:
                continue
            pcs[lane["pc"] or 0] += 3 if active & bit else 1
            if lane["exception"]:
                failed.append((index, lane))
        pc = pcs.most_common(1)[0][0] if pcs else None
        error_pc = warp["error_pc"] if warp["has_error_pc"] else None
        if failed:
            index, first = failed[0]
            at = error_pc if error_pc is not None else first["pc"]
            return pc, _Hit(first["exception"] or 0, at, error_pc is not None, len(failed), first, lanes, index)
        if error_pc is not None and sm["exception"]:
            return pc, _Hit(sm["exception"], error_pc, True, bin(active).count("1"), {}, None, 0)
        return pc, None

    def _note(
        self, device: int, grid: Optional[Row], block: Optional[Row], sm: Row, warp: Optional[Row], hit: _Hit
    ) -> None:
        """Add an exception to the equal ones."""
        key = (device, grid["grid"] if grid else None, hit.number, hit.pc)
        had = self._exceptions.get(key)
        place = block and (block["x"], block["y"], block["z"])
        if had is not None:
            new = place is not None and _coordinates(place) != had.block
            self._exceptions[key] = replace(
                had, blocks=had.blocks + new, warps=had.warps + (warp is not None), lanes=had.lanes + hit.lanes
            )
            return
        row = form.exception_row(hit.number)
        first = hit.first
        frames = self._code.frames(hit.pc) if hit.pc else ()
        frames = (*frames, *self._callers(hit))
        kernel = self._code.kernel(grid["entry"], grid["module"]) if grid else self._code.kernel_around(hit.pc)
        self._exceptions[key] = GpuException(
            device=device,
            number=hit.number,
            name=row.name,
            means=row.means,
            advice=row.advice,
            kernel=kernel[0],
            grid=_signed(grid["grid"]) if grid else None,
            sm=sm["sm"],
            warp=warp["warp"] if warp else None,
            block=_coordinates(place) if place else "",
            thread=_coordinates((first["x"], first["y"], first["z"])) if first else "",
            blocks=1 if place else 0,
            warps=1 if warp else 0,
            lanes=hit.lanes,
            lane_mask=warp["active"] if warp else None,
            pc=hit.pc,
            pc_told=hit.from_hardware,
            frames=frames[:_DEEPEST],
            host_tid=grid["host_tid"] or None if grid else None,
        )

    def _callers(self, hit: _Hit) -> Iterator[Frame]:
        """The device functions that called: from the table of calls of the thread."""
        calls = self._core.below(form.BACKTRACE, hit.section, hit.row)
        rows = sorted(self._core.rows(calls), key=lambda row: row["level"] or 0)[:_DEEPEST]
        for row in rows:
            if row["pc"]:  # the instruction behind the call
                yield from self._code.frames(row["pc"] - 1)

    def _kernel(self, device: int, grid: Row, seen: _Grid) -> ResidentKernel:
        name, symbol = self._code.kernel(grid["entry"], grid["module"])
        cluster = _size(grid, "cluster")
        return ResidentKernel(
            device=device,
            grid=_signed(grid["grid"]),
            name=name,
            symbol=symbol,
            status=form.GRID_STATES.get(grid["status"] or 0, f"state {grid['status']}"),
            grid_size=_size(grid, "grid"),
            block_size=_size(grid, "block"),
            host_tid=grid["host_tid"] or None,
            parent=_signed(grid["parent"]) or None,
            cluster_size=cluster if any(cluster) else (),
            sms=tuple(sorted(seen.sms)),
            blocks=seen.blocks,
            warps=seen.warps,
            places=tuple(self._places(seen.pcs)),
        )

    def _places(self, pcs: Counter[int]) -> Iterator[WarpPlace]:
        """The same line at several instructions is one place."""
        places: Dict[Tuple[object, ...], WarpPlace] = {}
        for pc, warps in pcs.most_common(64 * MOST_PLACES):
            frames = self._code.frames(pc)
            key = tuple((one.function, one.file, one.line) for one in frames) or (pc,)
            had = places.get(key)
            places[key] = WarpPlace(warps, frames, pc) if had is None else replace(had, warps=had.warps + warps)
        yield from sorted(places.values(), key=lambda one: -one.warps)[:MOST_PLACES]


def _gone(sm: Row) -> _Hit:
    """An exception of which the SM alone still knows."""
    pc = sm["error_pc"] if sm["has_error_pc"] else None
    return _Hit(sm["exception"] or 0, pc, pc is not None, 0, {}, None, 0)


def _coordinates(place: Any) -> str:
    return f"({','.join(str(one) for one in place)})"


def _size(grid: Row, what: str) -> Tuple[int, int, int]:
    return (grid[f"{what}_x"] or 0, grid[f"{what}_y"] or 0, grid[f"{what}_z"] or 0)


def _signed(number: Optional[int]) -> int:
    """Grids that the device launched have negative numbers."""
    number = number or 0
    return number - (1 << 64) if number >> 63 else number


def _version(major: Optional[int], minor: Optional[int], digits: int) -> Optional[str]:
    return f"{major}.{minor or 0:0{digits}}" if major else None
