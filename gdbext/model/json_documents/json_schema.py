"""The JSON schema of every `--json` document, made of the rows that the documents are made of: types come from the
annotations of the model, descriptions from its docstrings and comments."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Iterable as AbstractIterable
from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union, get_args, get_origin, get_type_hints

from gdbext.model.codes import Word
from gdbext.model.job import SCHEMA
from gdbext.model.json_documents.answers import ANSWERS, LISTS, rows_of
from gdbext.model.json_documents.document_row import Row, Rows, expanded
from gdbext.model.look_origin import Origin
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.field_rules import RULES

Schema = Dict[str, Any]

_WIDTH = 118

_NULL: Schema = {"type": "null"}
_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", Missing: "null"}
_COMMENT = re.compile(r"^    (\w+): [^#\n]*  # (.*)$", re.MULTILINE)
_NUMBER: Schema = {
    "description": "a number; NaN and infinities are words; a complex number has two parts; null: it was not read",
    "anyOf": [
        {"type": ["number", "boolean", "string", "null"]},
        {"type": "object", "properties": {"re": {"$ref": "#/$defs/Number"}, "im": {"$ref": "#/$defs/Number"}}},
    ],
}


class Schemas:
    """The schemas of all types that were asked for, by name."""

    def __init__(self) -> None:
        self.found: Dict[str, Schema] = {"Number": _NUMBER}

    def answer(self, kind: Any) -> Schema:
        """A whole document: its head, the keys of the type, and of a look that was kept in a file where that is."""
        schema = self._list(kind) if get_origin(kind) else self._object(kind, rows_of(kind))
        head = {"schema": {"const": SCHEMA}, "tool": {"description": "gdbext and its release", "type": "string"}}
        read_from = {**self.of(Origin), "description": "the files that the look came from, where it did"}
        return {
            **schema,
            "properties": {**head, **schema["properties"], "read_from": read_from},
            "required": [*head, *schema["required"]],
        }

    def _list(self, kind: Any) -> Schema:
        key = LISTS[get_args(kind)[0]]
        return {"type": "object", "properties": {key: self.of(kind)}, "required": [key]}

    def of(self, hint: Any) -> Schema:
        """What a value of that type is as JSON."""
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in _SCALARS:
            return {"type": _SCALARS[hint]}
        if hint in (Any, object):
            return {}
        if origin is Union:
            return _either([self.of(one) for one in arguments])
        if inspect.isclass(origin) and issubclass(origin, AbstractMapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if inspect.isclass(origin) and issubclass(origin, AbstractIterable):
            return {"type": "array", "items": _either([self.of(one) for one in arguments if one is not Ellipsis])}
        if issubclass(hint, Word):
            return {"enum": [str(one) for one in hint]}
        if hint.__name__ not in self.found:
            self.found[hint.__name__] = {}  # a type may hold itself
            self.found[hint.__name__] = self._object(hint, rows_of(hint))
        return {"$ref": f"#/$defs/{hint.__name__}"}

    def _object(self, kind: type, rows: Rows) -> Schema:
        about = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
        schema: Schema = {"description": about, "type": "object", "properties": {}, "required": []}
        for row in expanded(kind, rows):
            if row.key:
                schema["properties"][row.key] = self._row(kind, row)
                schema["required"].append(row.key)
            else:
                self._spread(schema, _typed(kind, row)[0])
        return schema

    def _spread(self, schema: Schema, hint: Any) -> None:
        """The keys of another object in this one; of one that may be None they may all be absent."""
        certain = [one for one in get_args(hint) if one is not type(None)] if get_origin(hint) is Union else [hint]
        if get_origin(certain[0]):
            schema["additionalProperties"] = self.of(get_args(certain[0])[1])
            return
        other = self._object(certain[0], rows_of(certain[0]))
        schema["properties"].update(other["properties"])
        schema["required"] += other["required"] if certain[0] is hint else []

    def _row(self, kind: type, row: Row) -> Schema:
        hint, about, labels = _typed(kind, row)
        if row.reasons:
            properties = {one.key: {"type": "string"} for one in row.rows}
            return {"description": "why they are null", "type": "object", "properties": properties}
        if row.rows:
            schema = self._nested(hint, row.rows)
        elif row.turn:
            schema = _TURNED[row.turn](hint)
        elif labels:
            schema = {"enum": [*labels, None] if get_origin(hint) is Union else [*labels]}
        else:
            schema = self.of(hint)
        schema = _either([schema, _NULL]) if row.or_null else schema
        return {"description": about, **schema} if about else schema

    def _nested(self, hint: Any, rows: Rows) -> Schema:
        several = get_origin(hint) is not None and get_origin(hint) is not Union
        kinds = [one for one in get_args(hint) or (hint,) if one not in (type(None), Ellipsis)]
        one = {**self._object(kinds[0], rows)}
        del one["description"]
        if several:
            return {"type": "array", "items": one}
        return _either([one, _NULL]) if type(None) in get_args(hint) else one


def _either(some: List[Schema]) -> Schema:
    """One of them; alike ones once."""
    plain = [one for one in some if set(one) == {"type"} and isinstance(one["type"], (str, list))]
    names: List[str] = []
    for one in plain:
        names += [one["type"]] if isinstance(one["type"], str) else one["type"]
    names = [name for name in dict.fromkeys(names) if name != "integer" or "number" not in names]
    rest = [one for one in some if one not in plain]
    merged = [{"type": names[0] if len(names) == 1 else names}] if names else []
    options = [one for number, one in enumerate(rest) if one not in rest[:number]] + merged
    return options[0] if len(options) == 1 else {"anyOf": options}


def _typed(kind: Any, row: Row) -> Tuple[Any, str, Sequence[str]]:
    """The type of the row's value, what the model says of it, and the words that it may be, where they are fixed."""
    if row.made is not None:
        return get_type_hints(row.made)["return"], " ".join((inspect.getdoc(row.made) or "").split()), ()
    about = ""
    labels: Sequence[str] = ()
    for name in filter(None, row.path.split(".")):
        rule = RULES.get(kind, {}).get(name)
        about, labels = _comments(kind).get(name, ""), rule.labels if rule else ()
        member = inspect.getattr_static(kind, name, None)
        hints = get_type_hints(member.fget) if isinstance(member, property) else get_type_hints(kind)
        kind = hints["return" if isinstance(member, property) else name]
    return kind, about, labels


@functools.lru_cache(maxsize=None)
def _comments(kind: Any) -> Dict[str, str]:
    """What is written beside its fields; nothing where the package was installed without its sources."""
    try:
        return dict(_COMMENT.findall(inspect.getsource(kind)))
    except OSError:
        return {}


def _hex(hint: Any) -> Schema:
    text: Schema = {"type": "string", "pattern": "^0x[0-9a-f]+$"}
    return _either([text, _NULL]) if get_origin(hint) is Union else text


def _number(hint: Any) -> Schema:
    number: Schema = {"$ref": "#/$defs/Number"}
    kinds = [one for one in get_args(hint) or (hint,) if one is not type(None)]
    several = get_origin(hint) is tuple or get_origin(kinds[0]) is tuple
    found = {"type": "array", "items": number} if several else number
    return _either([found, _NULL]) if several and type(None) in get_args(hint) else found


def _lines(hint: Any) -> Schema:
    return {"type": ["string", "null"] if get_origin(hint) is Union else "string"}


_TURNED: Dict[str, Callable[[Any], Schema]] = {
    "hex": _hex,
    "number": _number,
    "lines": _lines,
    "reason": lambda _: {"type": ["string", "null"]},
}


def whole_schema() -> Schema:
    """The schema of any document. `$defs` has one by the name of each command, and those of the objects in them."""
    schemas = Schemas()
    answers = {
        name: {**_either([schemas.answer(kind) for kind in kinds]), "title": f"the answer of {name}"}
        for name, kinds in ANSWERS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:gdbext:answers:{SCHEMA}",
        "title": "Answers of gdbext: the documents of --json",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in answers],
        "$defs": {**answers, **dict(sorted(schemas.found.items()))},
    }


def laid_out(value: Any, indent: str = "") -> str:
    """Its text; what is short on one line."""
    text = json.dumps(value)
    if len(indent + text) <= _WIDTH or not isinstance(value, (dict, list)):
        return text
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + laid_out(one, inner) for one in value) + f"\n{indent}]"
    members = (f"{inner}{json.dumps(key)}: {laid_out(one, inner)}" for key, one in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
