"""The compute-sanitizer of this host: where it is, which release, which options it has, what it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from gdbext.capture.gpu_code.has_lines import device_code_of
from gdbext.capture.proc_texts import text_of
from gdbext.capture.symbols.library_versions import of_this_host
from gdbext.discovery.proc import programs
from gdbext.knowledge.launch.sanitizer_options import (
    DRIVER_LIBRARY,
    DRIVER_VERSION,
    DRIVERS,
    FOLDERS,
    IN_HELP,
    IN_PACKAGES,
    LIBRARY,
    LIBRARY_FOLDERS,
    OTHER_TOOLS,
    PACKAGES,
    PROGRAM,
    STARTER,
    VERSION,
)
from gdbext.model.errors import GdbextError, NothingFound
from gdbext.safe_open.kept_open_files import Shelf
from gdbext.witnesses.nvml import find_library

_TOOL_SECONDS = 30.0  # seconds for --version and --help
_MOST = 1 << 20


class SanitizerTool(NamedTuple):
    """One release of it."""

    path: str
    release: Tuple[int, int]
    options: FrozenSet[str]
    libraries: Optional[str] = None  # the folder of its libraries, where it does not look there by itself

    @property
    def named(self) -> str:
        return f"{PROGRAM} {self.release[0]}.{self.release[1]}"


def installed(environ: Mapping[str, str]) -> SanitizerTool:
    """The first that can be run. Raises `NothingFound`, `GdbextError`."""
    path = next(_candidates(environ), None)
    if path is None:
        raise NothingFound(f"no {PROGRAM} on this host", f"{PACKAGES}; put its folder first in PATH")
    version = re.search(VERSION, _tool_output(path, "--version"))
    if version is None:
        raise GdbextError(f"{path} does not say its version", "run it by hand with --version")
    options = frozenset(re.findall(IN_HELP, _tool_output(path, "--help")))
    return SanitizerTool(path, (int(version[1]), int(version[2])), options, _libraries(path))


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    on_path = programs.find(PROGRAM, environ).path
    if on_path is not None:
        yield on_path
    named = {"CUDA_HOME": environ.get("CUDA_HOME", ""), "CUDA_PATH": environ.get("CUDA_PATH", "")}
    folders = [row.format(**named) for row in FOLDERS]
    folders += [os.path.join(packages, row) for packages in sys.path for row in IN_PACKAGES]
    for folder in folders:
        found = programs.find(os.path.join(folder, PROGRAM), environ).path if os.path.isabs(folder) else None
        if found is not None:
            yield found


def _tool_output(path: str, option: str) -> str:
    try:
        done = subprocess.run(
            [path, option], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"no answer in {_TOOL_SECONDS:.0f} s"
        raise GdbextError(f"cannot run {path}: {why}", PACKAGES) from None
    return done.stdout[:_MOST].decode("utf-8", "replace")


def _libraries(path: str) -> Optional[str]:
    """Where its libraries are, if not beside it. Raises `GdbextError` where a part is missing."""
    real = os.path.realpath(path)
    if _is_script(real):
        return None  # NVIDIA's wrapper, which knows
    home = os.path.dirname(real)
    folders = [os.path.normpath(os.path.join(home, one)) for one in LIBRARY_FOLDERS]
    found = [one for one in folders if os.path.isfile(os.path.join(one, LIBRARY))]
    if not found:
        raise GdbextError(f"{path} has no {LIBRARY} beside it, so it starts nothing", PACKAGES)
    whole = [one for one in found if os.access(os.path.join(one, STARTER), os.X_OK)]
    if not whole:
        raise GdbextError(f"{found[0]} has no {STARTER} that can be run, so it starts nothing", PACKAGES)
    return None if whole[0] == home else whole[0]


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def tool_problems(tool: SanitizerTool, environ: Mapping[str, str]) -> List[str]:
    """What keeps the tool from its work on this host, a line each."""
    found = [_driver(tool), _tracer()]
    found += [f"{name} is set: {why}" for name, why in OTHER_TOOLS.items() if environ.get(name)]
    return [one for one in found if one]


def has_driver(environ: Mapping[str, str]) -> bool:
    """Whether the library of NVIDIA's driver is there."""
    return find_library(DRIVER_LIBRARY, environ) is not None


def _driver(tool: SanitizerTool) -> str:
    said: Dict[str, str] = of_this_host()
    found = re.search(DRIVER_VERSION, said.get("NVIDIA driver", ""))
    if found is None:
        return "no NVIDIA driver is loaded on this host: no kernel can run here"
    floor = next(((least, cuda) for since, least, cuda in DRIVERS if tool.release >= since), None)
    if floor is None or int(found[1]) >= floor[0]:
        return ""
    return f"the driver is {found[1]}, and {tool.named} came with {floor[1]}, which needs {floor[0]}"


def _tracer() -> str:
    """A debugger that is there already would have to share every process."""
    lines = text_of("/proc/self/status").split("\n")
    pid = next((int(one.split()[1]) for one in lines if one.startswith("TracerPid:")), 0)
    return f"gdbext is traced by pid {pid}: the sanitizer and a debugger slow each other down" if pid else ""


def without_lines(program: str, environ: Mapping[str, str]) -> str:
    """Whether reports of the program's own kernels have no line; "" where they have, or where it has none itself."""
    path = shutil.which(program, path=environ.get("PATH"))
    try:
        code = device_code_of(Shelf().open(path)) if path else None
    except (OSError, ValueError):
        return ""
    if code is None or code.lines not in ("no", "some"):
        return ""
    have = "no kernel has" if code.lines == "no" else f"{code.with_lines} of {code.cubins} cubins have"
    return f"in {path} {have} lines: build it with -lineinfo, or reports have none"
