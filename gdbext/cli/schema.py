"""`gdbext schema [COMMAND]`: the JSON schema of all answers, or of those of one command."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Dict

import gdbext
from gdbext.cli.terminal import write_lines
from gdbext.model.errors import OK, UsageError

FILE = Path(gdbext.__file__).parent / "answers.schema.json"
"""Written by scripts/json-schema."""

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


def run(options: argparse.Namespace) -> int:
    """Print it. Raises `UsageError` for what has no answer."""
    if options.path:
        write_lines([str(FILE)])
        return OK
    text = FILE.read_text("ascii")
    write_lines(
        [text.rstrip() if options.answer is None else json.dumps(_of(json.loads(text), options.answer), indent=1)]
    )
    return OK


def _of(whole: Dict[str, Any], name: str) -> Dict[str, Any]:
    """The schema of one command's answers, with the definitions that it needs."""
    answers = [reference["$ref"].rpartition("/")[2] for reference in whole.pop("anyOf")]
    if name not in answers:
        raise UsageError(f"{name} has no schema", f"known are {', '.join(answers)}")
    definitions = whole.pop("$defs")
    needed: Dict[str, Any] = {}
    todo = [name]
    while todo:
        one = todo.pop()
        if one not in needed:
            needed[one] = definitions[one]
            todo += _REFERENCE.findall(json.dumps(definitions[one]))
    return {**whole, **needed.pop(name), "$defs": dict(sorted(needed.items()))}
