"""MindSpore's dump configuration out of `--set NAME=VALUE`, checked against what its documentation allows."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Sequence, Union

from gdbext.knowledge.dumps.mindspore_keys import (
    COMMON,
    E2E,
    IMPLIED,
    KEYS,
    NOT_WITH_MODE_4,
    ON_DEVICE,
    RULES,
    DumpKey,
    Value,
)
from gdbext.model.errors import UsageError
from gdbext.model.text.digits import integer_or_none

_TEXTS = {
    "steps": re.compile(r"all|\d{1,9}(?:-\d{1,9})?(?:\|\d{1,9}(?:-\d{1,9})?)*"),
    "text": re.compile(r"[\w.-]{1,100}"),
}
_WORDS = {"true": True, "false": False}


def configuration(folder: str, settings: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """The document of MINDSPORE_DUMP_CONFIG. Raises `UsageError` for what MindSpore would refuse or ignore."""
    rows = {row.name: row for row in KEYS}
    chosen: Dict[str, Value] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        row = rows.get(name)
        if row is None or not equals:
            raise UsageError(f"--set {text[:80]}: no such setting", f"one of {', '.join(rows)}")
        chosen[name] = _value(row, value)
    for (name, value_of), (other, implied) in IMPLIED.items():
        if name in chosen and value_of in (None, chosen[name]):
            chosen.setdefault(other, implied)
    _check(chosen, rows)
    made: Dict[str, Dict[str, Any]] = {COMMON: {"path": folder}, E2E: {}}
    for row in KEYS:
        found = chosen.get(row.name, row.default)
        if found is not None and not (row.name == NOT_WITH_MODE_4 and chosen.get("op_debug_mode") == 4):
            made[row.section][row.name] = list(found) if isinstance(found, tuple) else found
    return made


def _value(row: DumpKey, text: str) -> Value:
    """Raises `UsageError`."""
    parts = [part.strip() for part in text.split(",") if part.strip()] if row.kind in ("words", "numbers") else []
    numbers: List[Union[int, None]] = [integer_or_none(part) for part in (parts or [text])]
    if row.kind == "choice":
        found: Union[str, int, bool, None] = _WORDS.get(text.lower(), numbers[0] if numbers[0] is not None else text)
        if any(found == value and type(found) is type(value) for value in row.values):
            return found  # type: ignore[return-value]
    elif row.kind == "words" and parts and (not row.values or set(parts) <= set(row.values)):
        return tuple(parts)
    elif row.kind in ("numbers", "count") and None not in numbers and (parts or row.kind == "count"):
        values = tuple(number for number in numbers if number is not None)
        return values if row.kind == "numbers" else values[0]
    elif row.kind in _TEXTS and _TEXTS[row.kind].fullmatch(text):
        return text
    allowed = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in row.values)
    raise UsageError(f"--set {row.name}={text[:60]} is not allowed", allowed or row.meaning)


def _check(chosen: Dict[str, Value], rows: Dict[str, DumpKey]) -> None:
    """Raises `UsageError` where two settings do not go together."""
    for rule in RULES:
        if rule.name not in chosen or (rule.values and chosen[rule.name] not in rule.values):
            continue
        other = chosen.get(rule.other, rows[rule.other].default)
        if other not in rule.needs:
            wanted = " or ".join(f"{rule.other}={need}" for need in rule.needs)
            raise UsageError(f"--set {rule.name}={_text(chosen[rule.name])}: {rule.why}", f"--set {wanted}")
    if chosen.get("op_debug_mode") == 4 and NOT_WITH_MODE_4 in chosen:
        raise UsageError(f"--set {NOT_WITH_MODE_4}: op_debug_mode=4 takes no steps", "leave it out")
    if chosen.get("dump_mode") == 1 and not chosen.get("kernels"):
        raise UsageError(
            "--set dump_mode=1 needs to know which operators", "--set kernels=MatMul,name-regex(Default/.+)"
        )
    some = chosen.get("statistic_category")
    if chosen.get("stat_calc_mode") == "device" and isinstance(some, tuple) and not set(some) <= set(ON_DEVICE):
        raise UsageError("--set statistic_category: the device does not compute all of these", ", ".join(ON_DEVICE))


def _text(value: Value) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
