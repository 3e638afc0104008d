"""The profiles of all engines: how they look in /proc and on stacks."""

from typing import Tuple

from gdbext.knowledge.engines.engine_list import parts
from gdbext.knowledge.row_kinds import EngineProfile

PROFILES: Tuple[EngineProfile, ...] = tuple(engine.PROFILE for engine in parts("profile"))

NAMES: Tuple[str, ...] = tuple(profile.name for profile in PROFILES)
"""What `--engine` takes."""

GENERIC: Tuple[str, ...] = ("torch", "mpi")
"""Names of profiles that stand for "no known engine"."""
