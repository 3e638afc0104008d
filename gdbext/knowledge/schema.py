"""The kinds of rows. A row is literal data with its source; everything that decides lives in analysis/."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class FrameRule:
    """A frame that tells what its thread does.

    `function` and `module` are regular expressions searched from the start of the demangled name (without
    arguments) and of the library's file name. `language` "python" matches Python functions, then `file` is
    searched in the file name. Rules are ordered: within one frame the first that matches decides; which frame of
    a stack decides is the analysis' business, helped by `rank` (higher beats lower on the same stack, on equal
    terms the innermost frame wins).
    """

    id: str
    kind: str  # label of labels.WAIT_KINDS
    function: str
    source: str  # where this was seen: a fact sheet section, an issue, a test program
    module: str = ""
    file: str = ""
    language: str = "native"
    rank: int = 50
    collective: Optional[str] = None  # "all_reduce", ...; None when the frame does not name one
    captures: Tuple[str, ...] = ()  # arguments or locals the collector should read in this frame
    helper: Optional[str] = None  # the thread is a helper of this kind, set aside
    idle: bool = False  # waiting here is normal: no work has come
    under: str = ""  # regex: some frame further out (caller side) must match its function name as well
    leaf: bool = False  # matches only as innermost frame (after frames without a name)


@dataclass(frozen=True)
class RankVariable:
    """Environment variables of one launcher: which one says what."""

    launcher: str
    rank: str
    world_size: str = ""
    local_rank: str = ""
    source: str = ""


@dataclass(frozen=True)
class TitleRule:
    """A process title (or command line) that tells role and rank.

    Named groups of `pattern` that mean something: rank, local_rank, tp, pp, dp, ep, cp.
    """

    pattern: str
    role: str  # "rank", or what it is instead
    source: str
    local: bool = False  # the number in the title is the local rank


@dataclass(frozen=True)
class EngineProfile:
    """How one engine looks in /proc and on stacks."""

    name: str
    titles: Tuple[TitleRule, ...] = ()
    libraries: Tuple[str, ...] = ()  # regex on mapped file names that prove the engine
    namespaces: Tuple[str, ...] = ()  # regex on function names: the engine's own code
    python_paths: Tuple[str, ...] = ()  # regex on Python file names: the engine's own code
    variables: Tuple[RankVariable, ...] = ()
    threads_are_ranks: bool = False  # one process, a thread per GPU
    environment: Tuple[str, ...] = ()  # variables that mark its processes
    tuning: Tuple[str, ...] = ()  # variables worth recording in a snapshot
    notes: Mapping[str, str] = field(default_factory=dict)
