"""`doctor --build`: what a file, or all files of a process, will show, and how to get the rest. Nothing is changed."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.analysis.build_report.file_points import points_of
from gdbext.capture.build_facts.built_file import DAMAGED, built_file, texts_in
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.nccl.library import release_of
from gdbext.capture.symbols.environ import read_environ
from gdbext.capture.symbols.library_versions import versions
from gdbext.capture.symbols.mapped_libraries import MappedFile, libraries_with_code
from gdbext.discovery.preflight_checks.attach_permission import attach_problems
from gdbext.discovery.preflight_checks.process_debug_settings import debug_checks, process_points
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.engines.all_build_ways import BUILDS, BUILT
from gdbext.knowledge.engines.all_profiles import GENERIC, PROFILES
from gdbext.knowledge.errors.checks import DEBUG_CHECKS, NEVER_SEARCHED
from gdbext.model.build_report import BuildReport, BuildWay, BuiltFile
from gdbext.model.checkup import Point
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.text.digits import is_whole
from gdbext.safe_open.kept_open_files import Opened, Shelf
from gdbext.scrubbing.secrets_in_text import title_of
from gdbext.witnesses import shared_memory
from gdbext.witnesses.question import Asked, Question

_MOST_FILES = 16
_SECONDS = 30.0  # for all files of a process together
_SHM_SECONDS = 2.0
_SYSTEM = re.compile(r"/(?:usr/)?lib(?:32|64)?/(?!.*(?:site|dist)-packages)|/lib-dynload/|/ld-linux")
_OTHER_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
_INTERPRETER = re.compile(r"/(?:python|bash|sh|orterun|mpirun)[\d.]*$")


def how(engine: str) -> BuildReport:
    """How an engine is built; "llama.cpp" and "TensorRT_LLM" are understood. Raises UsageError for one without rows."""
    name = re.sub(r"[._\s]", "-", engine.lower())
    if name not in BUILT:
        raise UsageError(f"how {engine} is built is not known", f"known are {', '.join(BUILT)}")
    return BuildReport(target="", engine=name, ways=_ways(name))


def build_report(target: str) -> BuildReport:
    """About a path or a pid. Raises `GdbextError` where there is nothing to read."""
    return _of_process(int(target)) if is_whole(target) else _of_file(target)


def _of_file(path: str) -> BuildReport:
    shelf = Shelf()
    try:
        opened = shelf.open(path)
    except OSError as error:
        raise NothingFound(f"{path} cannot be read: {error.strerror}", "name an object file, or a pid") from None
    found, texts = _examined(path, opened, Missing("no process"), shelf)
    if found.problem and found.symbols == "unknown":
        raise NothingFound(f"{path} cannot be read: {found.problem}", "name a program or a library (.so), or a pid")
    engine = _engine_of([path, opened.real_path], texts)
    return BuildReport(
        target=path,
        engine=engine,
        files=(found,),
        points=tuple(_about_engine(engine, texts)),
        ways=_ways(engine),
    )


def _of_process(pid: int) -> BuildReport:
    proc = ProcFS()
    try:
        maps = list(read_maps(pid))
    except OSError:
        maps = []
    shelf = Shelf()
    mapped = libraries_with_code(pid, maps, shelf) if maps else ()
    if not mapped:
        why = next((problem for problem, _ in attach_problems(proc, [pid]) if problem.blocking), None)
        text = why.text if why else f"{pid} has no program in its memory"
        raise NothingFound(text, why.remedy if why else "name a process of the job: `gdbext ranks` lists them")
    environment = read_environ(pid)
    paths = [one.path for one in mapped]
    engine = _engine_of(paths, ())
    shown = _shown(mapped, proc.exe(pid), engine)
    files: List[BuiltFile] = []
    texts: Set[bytes] = set()
    until = time.monotonic() + _SECONDS
    for one in shown:
        found, more = _of_mapped(one, environment, shelf, until)
        files.append(found)
        texts |= more
    engine = engine or _engine_of((), texts)
    points = [
        *_about_engine(engine, texts),
        *process_points(proc, pid, environment, paths, _releases(pid, mapped)),
        *_shared_memory(pid, environment),
    ]
    arguments = proc.cmdline(pid)
    title = "" if isinstance(arguments, Missing) else title_of(arguments)
    return BuildReport(
        target=f"process {pid}" + (f" ({title[:120]})" if title else ""),
        engine=engine,
        files=tuple(files),
        points=tuple(points),
        others=len(mapped) - len(shown),
        ways=_ways(engine),
    )


def _of_mapped(
    one: MappedFile, environment: Maybe[Mapping[str, str]], shelf: Shelf, until: float
) -> Tuple[BuiltFile, Set[bytes]]:
    problem = one.problem
    if time.monotonic() > until:
        problem = f"not read: the files before it took {_SECONDS:g} s"
    if problem or one.opened is None:
        found = BuiltFile(path=one.path, build_id=one.build_id or "", problem=problem or "it cannot be read")
        return replace(found, points=tuple(points_of(found, False))), set()
    return _examined(one.path, one.opened, environment, shelf)


def _examined(
    path: str, opened: Opened, environment: Maybe[Mapping[str, str]], shelf: Shelf
) -> Tuple[BuiltFile, Set[bytes]]:
    """A file, and which texts of checks stand in it."""
    found = built_file(path, opened, os.environ, shelf)
    texts: Set[bytes] = set()
    if found.symbols != "unknown":
        try:
            texts = texts_in(opened, [row.text for row in DEBUG_CHECKS])
        except DAMAGED:
            pass  # what is damaged has been said of it already
    found = replace(found, checks=tuple(debug_checks(texts, environment)))
    return replace(found, points=tuple(points_of(found, bool(os.environ.get("DEBUGINFOD_URLS"))))), texts


def _engine_of(paths: Iterable[str], texts: Iterable[bytes]) -> str:
    """By the files' names, else by the checks in them; "" where neither tells."""
    for profile in PROFILES:
        if profile.name not in GENERIC and any(re.search(one, path) for one in profile.libraries for path in paths):
            return profile.name
    return next((row.engine for row in DEBUG_CHECKS if row.text in texts), "")


def _shown(mapped: Iterable[MappedFile], program: Maybe[str], engine: str) -> List[MappedFile]:
    """The engine's files, the program, torch's and NCCL's where there is no engine, then others that are neither the
    system's nor CUDA's nor of a Python package."""
    own = "" if isinstance(program, Missing) else re.sub(r" \(deleted\)$", "", program)
    names = (engine,) if engine else GENERIC
    patterns = [pattern for profile in PROFILES if profile.name in names for pattern in profile.libraries]
    places: Dict[int, List[MappedFile]] = {}
    for one in mapped:
        if any(re.search(pattern, one.path) for pattern in patterns):
            places.setdefault(0 if engine else 2, []).append(one)
        elif one.path == own:
            if not _INTERPRETER.search(one.path):
                places.setdefault(1, []).append(one)
        elif not (
            _SYSTEM.search(one.path)
            or _OTHER_PACKAGES.search(one.path)
            or re.match(NEVER_SEARCHED, one.path.rpartition("/")[2])
        ):
            places.setdefault(3, []).append(one)
    return [one for place in sorted(places) for one in places[place]][:_MOST_FILES]


def _about_engine(engine: str, texts: Set[bytes]) -> Iterator[Point]:
    rows = [row for row in DEBUG_CHECKS if row.engine == engine]
    if rows and not any(row.text in texts for row in DEBUG_CHECKS):
        row = rows[0]
        why = f"; {row.absent}" if row.absent else ""
        yield Point("check", "warning", f"{row.function} is in none of these files{why}")


def _releases(pid: int, mapped: Sequence[MappedFile]) -> Dict[str, str]:
    """Of libraries and packages; of NCCL by its own words, where its file's name has only its first number."""
    found = versions(pid, [one.path for one in mapped])
    nccl = next((one for one in mapped if re.search(r"/libnccl[.-][^/]*$", one.path)), None)
    said = release_of(nccl.opens_as, nccl.path) if nccl else None
    return {**found, "libnccl": said} if said else found


def _shared_memory(pid: int, environment: Maybe[Mapping[str, str]]) -> Iterator[Point]:
    """What the witness of a diagnosis says of the room in /dev/shm."""
    asked = Asked(index=0, pid=pid, environment={} if isinstance(environment, Missing) else environment)
    witness = shared_memory.ask(Question((asked,), time.monotonic() + _SHM_SECONDS))
    for statement in witness.statements:
        full = statement.says == "shm-full"
        remedy = "docker --shm-size, or an emptyDir of medium Memory at /dev/shm" if full else ""
        yield Point(shared_memory.NAME, "warning" if full else "ok", statement.text, remedy)
    if not witness.statements:
        yield Point(shared_memory.NAME, "ok", f"unknown: {witness.reason}")


def _ways(engine: str) -> Tuple[BuildWay, ...]:
    return tuple(
        BuildWay(row.engine, row.gives, row.commands, row.notes, row.source) for row in BUILDS if row.engine == engine
    )


def answer(build: Optional[str], engine: Optional[str]) -> BuildReport:
    """What `--build` and `--how` ask for."""
    if build is not None and engine is not None:
        raise UsageError("--build and --how are two questions", "ask one after the other")
    return build_report(build) if build is not None else how(engine or "")
