"""How each engine is built so that a look shows all it can."""

from typing import Tuple

from gdbext.knowledge.engines.engine_list import rows
from gdbext.knowledge.engines.engine_row_kinds import BuildRow

BUILDS: Tuple[BuildRow, ...] = rows("builds", "BUILDS")

BUILT: Tuple[str, ...] = tuple(dict.fromkeys(row.engine for row in BUILDS))
"""What `--how` takes."""
