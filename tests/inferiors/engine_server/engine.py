"""What an engine has of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Tuple


@dataclass(frozen=True)
class Engine:
    """`hooks`: the plugin, found by its `group` of entry points; `words`: the arguments of Python that start a server
    of a model at a port; `role`: of a process, by its title, "" for others; `serves`: what the log says when it
    serves, where /health does not tell; `caches`: variables that name folders for what it compiles."""

    name: str
    group: str
    hooks: Path
    words: Callable[[str, str], Tuple[str, ...]]
    role: Callable[[str], str]
    settings: Dict[str, str]
    serves: str = ""
    caches: Tuple[str, ...] = ("TORCHINDUCTOR_CACHE_DIR",)
