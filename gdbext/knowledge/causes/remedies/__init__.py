"""What to do about each cause. Conditions are data: advice that means nothing for this job is not given."""

from typing import Mapping, Tuple

from gdbext.knowledge.causes.late_ranks import LATE_REMEDIES
from gdbext.knowledge.causes.remedies import (
    between_ranks,
    crashes_and_rare_causes,
    gpu_and_network,
    in_one_process,
    no_cause_found,
)
from gdbext.knowledge.row_kinds import RemedyRule

SHOWN_BY: Mapping[str, Tuple[str, ...]] = {
    "gil": ("gil-deadlock",),
    "mutex": ("lock-order-deadlock", "gil-deadlock"),
    "sigbus": ("shm-too-small",),
    "module-load": ("lazy-module-load-vs-collective",),
    "nccl-init": ("init-rendezvous",),
    "nccl-destroy-abort": ("destructor-or-teardown",),
    "cuda-error-throw": ("gpu-fault",),
}
"""Causes of which a wait is the sign, whatever the culprit's thread waits in."""

SELDOM = ("destructor-or-teardown",)
"""Causes of few of the waits that their advice names: `explain WAIT` gives that advice last."""

REMEDIES: Tuple[RemedyRule, ...] = (
    *between_ranks.REMEDIES,
    *in_one_process.REMEDIES,
    *gpu_and_network.REMEDIES,
    *crashes_and_rare_causes.REMEDIES,
    *no_cause_found.REMEDIES,
    *LATE_REMEDIES,
)
