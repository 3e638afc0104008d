"""`gdbext schema [COMMAND]`: the JSON schema of all answers, or of those of one command."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any, Dict

from gdbext.cli.terminal import write_lines
from gdbext.model.errors import OK, UsageError
from gdbext.model.json_documents.json_schema import laid_out, whole_schema

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


def run(options: argparse.Namespace) -> int:
    """Print it. Raises `UsageError` for what has no answer."""
    schema = whole_schema()
    write_lines([laid_out(schema if options.answer is None else _of(schema, options.answer))])
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
