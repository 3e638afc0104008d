"""The code in a GPU core: which kernel and which line an address of the device is."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from gdbext.capture.bounded_reader import in_time
from gdbext.capture.gpu_code.cubin import Cubin, readable
from gdbext.capture.gpu_cores.gpu_core_file import CoreSection, GpuCoreFile
from gdbext.knowledge.runtimes import gpu_core_format as form
from gdbext.model.stack import Frame

_MOST_SEARCHED = 512  # images that are opened for an address that is in no kernel's own
_MOST_BYTES = 256 << 20  # of one image
_SECONDS = 20.0  # for the code around one address


class CoreCode:
    """Relocated images, each read when something in it is asked for."""

    def __init__(self, core: GpuCoreFile) -> None:
        self._core = core
        self._images = list(core.of(form.RELOCATED_IMAGE))
        self._opened: Dict[int, Optional[Cubin]] = {}
        self._frames: Dict[int, Tuple[Frame, ...]] = {}
        self._by_module = dict(self._modules())
        self._lines: List[bool] = []
        self.problems: List[str] = []
        if not self._images:
            self.problems.append("the GPU core has no relocated code: kernels have no names, and places no lines")

    @property
    def has_lines(self) -> Optional[bool]:
        """Of the images that were needed."""
        return any(self._lines) if self._lines else None

    def kernel(self, entry: Optional[int], module: Optional[int]) -> Tuple[str, str]:
        """A kernel's name, for people and as the linker knows it, by the address that it begins at."""
        for cubin in self._candidates(module):
            found = cubin.kernel_named(entry) if entry else None
            if found is not None:
                return readable(found.name), found.name
        return "", ""

    def kernel_around(self, pc: Optional[int]) -> Tuple[str, str]:
        """The kernel that an address lies in."""
        for cubin in self._candidates(None):
            at = cubin.locate(pc) if pc else None
            found = None if at is None else cubin.kernel_of(at[0]) or cubin.function_at(*at)
            if found is not None:
                return readable(found.name), found.name
        return "", ""

    def frames(self, pc: int) -> Tuple[Frame, ...]:
        """The calls at an address, innermost first; () where no code of the core lies."""
        if pc not in self._frames:
            self._frames[pc] = self._looked_up(pc)
        return self._frames[pc]

    def _looked_up(self, pc: int) -> Tuple[Frame, ...]:
        for cubin in self._candidates(None):
            at = cubin.locate(pc)
            if at is not None:
                found = in_time(_SECONDS, lambda one=cubin, place=at: one.frames_at(*place))  # type: ignore[misc]
                if found is None:
                    self._problem("the line information of a kernel takes too long to read")
                return tuple(found or ())
        return ()

    def _candidates(self, module: Optional[int]) -> Iterator[Cubin]:
        """The module's own image first, then those that are open, then the others."""
        own = self._by_module.get(module or 0)
        first = [own] if own is not None else []
        known = [one for one in self._images if one.number in self._opened and one not in first]
        others = [one for one in self._images if one not in known and one not in first]
        for one in [*first, *known, *others[:_MOST_SEARCHED]]:
            cubin = self._cubin(one)
            if cubin is not None:
                yield cubin

    def _cubin(self, section: CoreSection) -> Optional[Cubin]:
        if section.number not in self._opened:
            self._opened[section.number] = None
            try:
                if section.size > _MOST_BYTES:
                    raise ValueError(f"it has {section.size >> 20} MiB")
                cubin = Cubin(self._core.content(section))
                self._opened[section.number] = cubin
                self._lines.append(cubin.has_lines)
            except ValueError as error:
                self._problem(f"code of a module cannot be read: {error}")
        return self._opened[section.number]

    def _problem(self, text: str) -> None:
        if text not in self.problems and len(self.problems) < 8:
            self.problems.append(text)

    def _modules(self) -> Iterator[Tuple[int, CoreSection]]:
        """Images by the handle of their module."""
        for table in self._core.of(form.MODULES):
            for number, row in enumerate(self._core.rows(table)):
                image = self._core.below(form.RELOCATED_IMAGE, table, number)
                if image is not None:
                    yield row["module"] or 0, image
