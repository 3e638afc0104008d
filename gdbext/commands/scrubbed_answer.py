"""An answer for people who have no right to see the processes, in a form that they use."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.model.formatted import Formatted
from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.scrubbing.shareable_snapshot import shareable


def for_others(name: str, diagnosis: Diagnosis, origin: Optional[Origin] = None) -> Formatted:
    """`name`: of the format. The tree is made anew, of names without secrets."""
    shared = shareable(replace(diagnosis, tree=None))
    return Formatted(name, replace(shared, tree=merge(shared.snapshot, shared.processes)), shareable(origin))
