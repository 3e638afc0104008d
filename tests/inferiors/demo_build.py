"""Builds the demo engine and its stand-in libraries with gcc and g++, once per content of their sources."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GDBEXT_DEMO_BUILD") or HERE / "build")
"""An installed package has the sources in a folder that is not its user's."""

# Each call stays a frame, and every frame can be unwound: stacks have the shape of the real libraries'.
FRAMES = ["-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables"]
COMMON = ["-O2", "-pthread", *FRAMES, "-Wall", "-Wextra", "-Wno-unused-parameter"]
HIDDEN = "-fvisibility=hidden"
STRIPPED = "-s"
# gdb takes a line for a place only where a statement is marked to begin, which -O2 loses for most lines of a template.
EVERY_LINE = "-gno-statement-frontiers"
CPLUSPLUS = ["g++", *COMMON, "-std=c++17", "-g", EVERY_LINE]

Command = Tuple[str, List[str]]  # the file it makes, and its arguments but for the output


def _sources(pattern: str) -> List[str]:
    return sorted(str(path) for path in HERE.glob(pattern))


def _library(soname: str, *arguments: str, compiler: Sequence[str] = ("gcc", *COMMON, "-std=gnu11")) -> Command:
    shared = ["-fPIC", "-shared", f"-Wl,-soname,{soname}", "-Wl,-rpath,$ORIGIN"]
    return f"lib/{soname}", [*compiler, *shared, *arguments]


def _steps() -> List[List[Command]]:
    """Commands in rounds: those of one round do not need each other. They run in the new build folder."""
    job, cuda = str(HERE / "job.c"), HERE / "cuda"
    runtime, blas = str(cuda / "libcudart.c"), str(cuda / "libcublas.c")
    version_script = f"-Wl,--version-script={cuda / 'libcudart.map'}"
    nccl = _sources("cuda/nccl/*.cc")
    to_job = ["-Llib", "-ldemojob"]
    to_all = ["-Llib", "-l:libcudart.so.12", "-l:libcublas.so.12", "-l:libnccl.so.2", "-ldemojob"]
    static_runtime = ["gcc", *COMMON, "-fPIC", HIDDEN, "-DRUNTIME_STATIC", "-DRUNTIME_IN_NCCL", "-c", runtime]
    objects: List[Command] = [
        (f"{Path(source).stem}.o", [*CPLUSPLUS, "-c", source]) for source in _sources("engine/*.cc")
    ]
    return [
        [
            *objects,
            _library("libdemojob.so", job),
            _library("libcudart.so.12", STRIPPED, version_script, runtime),
            _library("libcublas.so.12", STRIPPED, HIDDEN, "-DRUNTIME_STATIC", blas, runtime),
            ("runtime_static.o", static_runtime),
        ],
        [
            _library("libcuda.so.1", STRIPPED, HIDDEN, str(cuda / "libcuda.c"), *to_job),
            _library("libnccl.so.2", HIDDEN, *nccl, "runtime_static.o", *to_job, compiler=CPLUSPLUS),
        ],
        [("engine", ["g++", "-pthread", *(name for name, _ in objects), "-Wl,-rpath,$ORIGIN/lib", *to_all])],
    ]


def _run(folder: Path, command: Command) -> None:
    target, arguments = command
    done = subprocess.run([*arguments, "-o", target], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cannot build {target} of the demo engine:\n{done.stderr[:4000]}")


def _strip(folder: Path) -> None:
    """stripped/: the same without any symbol but the exported ones, in the engine and in NCCL too."""
    target = folder / "stripped"
    shutil.copytree(folder / "lib", target / "lib")
    shutil.copy2(folder / "engine", target / "engine")
    libraries = [str(path) for path in (target / "lib").iterdir()]
    subprocess.run(["strip", "-s", "engine", *libraries], cwd=target, check=True)


def _make(folder: Path) -> None:
    (folder / "lib").mkdir()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for commands in _steps():
            list(pool.map(lambda command: _run(folder, command), commands))
    for leftover in folder.glob("*.o"):
        leftover.unlink()
    _strip(folder)


def _forget_old() -> None:
    """Builds pile up while one works on the engine; jobs of the last day may still run from theirs."""
    for folder in [*BUILD.glob("demo-*/"), *BUILD.glob("new-demo-*/")]:
        if folder.stat().st_mtime < time.time() - 86400:
            shutil.rmtree(folder, ignore_errors=True)


def _digest() -> str:
    """Of everything that the result depends on."""
    digest = hashlib.sha256(subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout)
    for pattern in ("*.py", "job.*", "cuda/*", "cuda/nccl/*", "engine/*"):
        for path in sorted(HERE.glob(pattern)):
            if path.is_file() and (path.suffix != ".py" or path.name == Path(__file__).name):
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def build(stripped: bool = False) -> Path:
    """Path of the engine's folder (`engine`, `lib/`), built if need be; safe when several processes ask at once."""
    folder = BUILD / f"demo-{_digest()}"
    if not folder.exists():
        BUILD.mkdir(exist_ok=True)
        with open(BUILD / "demo.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                print("· building the demo engine", file=sys.stderr, flush=True)
                _forget_old()
                new = Path(tempfile.mkdtemp(prefix="new-demo-", dir=BUILD))
                try:
                    _make(new)
                    new.chmod(0o755)
                    new.rename(folder)
                finally:
                    shutil.rmtree(new, ignore_errors=True)
    return folder / "stripped" if stripped else folder


def libraries() -> Dict[str, Path]:
    """The stand-in libraries by their SONAME."""
    return {path.name: path for path in (build() / "lib").iterdir()}
