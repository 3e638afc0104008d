"""Which engine a process runs, by the names on its stacks: /proc shows only that it is a rank of some MPI job."""

from __future__ import annotations

import functools
import re
from typing import Iterable, List, Optional, Pattern, Tuple

from gdbext.knowledge.engines.all_profiles import GENERIC, PROFILES
from gdbext.model.stack import ThreadStack


@functools.lru_cache(maxsize=1)
def _namespaces() -> List[Tuple[str, Pattern[str]]]:
    return [
        (profile.name, re.compile("|".join(f"(?:{pattern})" for pattern in profile.namespaces)))
        for profile in PROFILES
        if profile.namespaces and profile.name not in GENERIC
    ]


def engine_of(threads: Iterable[ThreadStack], known: Optional[str]) -> Optional[str]:
    """The engine whose functions occur most on the stacks, where `known` is none or only a launcher's name."""
    if known is not None and known not in GENERIC:
        return known
    functions = {frame.function for thread in threads for frame in thread.calls if frame.function}
    matches = {name: [one for one in functions if pattern.match(one)] for name, pattern in _namespaces()}
    # Engines inherit each other's namespaces (RTP-LLM has fastertransformer::): the one of that name comes first.
    own = {name: sum(one.startswith(name.replace("-", "_") + "::") for one in found) for name, found in matches.items()}
    best = max(matches, key=lambda name: (len(matches[name]), own[name]))
    return best if matches[best] else known
