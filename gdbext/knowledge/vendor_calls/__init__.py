"""Calls of accelerators' runtimes and of collective libraries: a vendor's prefix and a verb make a rule.

A new vendor is a row of `vendors`, a new call a name in `verbs`. What only one library has (NCCL's launch path, CUPTI)
stands with that library in `knowledge.frames`.
"""

from __future__ import annotations

from typing import Iterator, Sequence, Tuple

from gdbext.knowledge.frame_precedence import API, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule
from gdbext.knowledge.vendor_calls.call_rules import COLLECTIVE, COMMUNICATOR, DEVICE
from gdbext.knowledge.vendor_calls.vendor_prefixes import COLLECTIVES, DEVICES, Vendor

SUFFIX = r"(_v\d+|_ptsz|_ptds|_v\d+_pt[ds]s?z?|_spt|_common)*$"
"""Versions of one call in the driver, those for the per-thread default stream, and what these share in ROCm's clr."""

COMMUNICATOR_MEMBERS = ("comm->commHash", "comm->rank", "comm->nRanks", "comm->opCount")
"""Members of ncclComm, readable where the library has debug information (as in the wheels of PyPI)."""


def _like(vendor: Vendor, vendors: Sequence[Vendor], call: str) -> str:
    """The rule of the first vendor, which explains those of the others."""
    return "" if vendor is vendors[0] else f"{vendors[0].name}-{call}"


def _device_rules(vendor: Vendor) -> Iterator[FrameRule]:
    for verb in DEVICE:
        yield FrameRule(
            f"{vendor.name}-{verb.id}",
            verb.kind,
            rf"({vendor.prefix})({verb.names}){SUFFIX}",
            f"{vendor.source}; {verb.source}",
            rank=API,
            captures=verb.captures,
            like=_like(vendor, DEVICES, verb.id),
        )


def _collective_rules(vendor: Vendor) -> Iterator[FrameRule]:
    for number, verb in enumerate(COMMUNICATOR):
        yield FrameRule(
            f"{vendor.name}-{verb.id}",
            verb.kind,
            rf"({vendor.prefix})({verb.names})$",
            f"{vendor.source}; {verb.source}",
            rank=OUTER + number,
            captures=verb.captures,
            like=_like(vendor, COLLECTIVES, verb.id),
        )
    for one in COLLECTIVE:
        yield FrameRule(
            f"{vendor.name}-{one.collective}",
            "nccl-group-launch",
            rf"({vendor.prefix})({one.names})(V|v|C|VC|_on_stream|_block|_warp)*$",
            vendor.source,
            rank=API,
            collective=one.collective,
            captures=("comm", *COMMUNICATOR_MEMBERS, *one.captures, "stream") if vendor.argument_names else (),
            like=_like(vendor, COLLECTIVES, one.collective),
        )


RULES: Tuple[FrameRule, ...] = (
    *(rule for vendor in DEVICES for rule in _device_rules(vendor)),
    *(rule for vendor in COLLECTIVES for rule in _collective_rules(vendor)),
)

_ANY_PREFIX = r"(?P<vendor>[a-z]{2,8}?)(?:rt)?"

UNLISTED: Tuple[FrameRule, ...] = tuple(
    FrameRule(
        f"unlisted-{verb.id}",
        verb.kind,
        rf"{_ANY_PREFIX}({verb.names}){SUFFIX}",
        f"named as every runtime names it; {verb.source}",
        rank=STEP,
        like=f"{DEVICES[0].name}-{verb.id}",
        library_of_vendor=True,
    )
    for verb in DEVICE
    if verb.id not in ("init", "pointer-query", "module-load")
) + tuple(
    FrameRule(
        f"unlisted-{one.collective}",
        "nccl-group-launch",
        rf"(?P<vendor>[a-z]{{1,6}}ccl|[A-Z][a-z]{{1,6}}ccl)_?({one.names})$",
        "named as every library of collectives names it",
        rank=STEP,
        collective=one.collective,
        like=f"{COLLECTIVES[0].name}-{one.collective}",
        library_of_vendor=True,
    )
    for one in COLLECTIVE
)
"""Vendors that no row has: a fact of less weight, and only in a library that is named after the same prefix."""
