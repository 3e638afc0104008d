"""Plain JSON data to model objects: every field is checked against its type, and an error names the field."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping as AbstractMapping
from collections.abc import Sequence as AbstractSequence
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union, get_type_hints

from gdbext.model.codes import Code, Word
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files import limits
from gdbext.model.snapshot_files.data_errors import Unfit
from gdbext.model.snapshot_files.field_rules import RULES, Rule
from gdbext.model.snapshot_files.words_before_codes import COMPLETED, code_of

T = TypeVar("T")

_LISTS = (tuple, AbstractSequence)

Reader = Callable[[Any], Any]
"""Takes JSON data, gives the value of a field. Raises `Unfit`."""

LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Half a character. U+DC80 to U+DCFF stay: so Python keeps bytes that are no UTF-8."""

_LONGEST_KEY = 40  # characters of a mapping's key in a path

REQUIRED = object()
"""Stands for the default of a field that has none."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a dataclass, and how its values are read."""

    read: Reader
    item: Optional[Reader]  # of one item, where it is a list
    objects: bool  # such items are objects
    member: Optional[Reader]  # of one member, where it is a mapping
    default: Any  # shared by all objects that lack the field: nothing of the model is ever changed


_FIELDS: Dict[Any, Mapping[str, Field]] = {}
_REQUIRED: Dict[Any, List[str]] = {}


def fields_of(kind: Any) -> Mapping[str, Field]:
    """The fields of a dataclass by name, in the order in which it takes them."""
    if kind not in _FIELDS:
        hints, rules = get_type_hints(kind), RULES.get(kind, {})
        _FIELDS[kind] = {
            field.name: _field(field, hints[field.name], rules.get(field.name)) for field in dataclasses.fields(kind)
        }
    return _FIELDS[kind]


def _field(field: Any, hint: Any, rule: Optional[Rule]) -> Field:
    origin, arguments = _generic(hint)
    item = reader(arguments[0], rule) if origin in _LISTS else None
    member = reader(arguments[1], rule) if origin is AbstractMapping else None
    objects = origin in _LISTS and dataclasses.is_dataclass(arguments[0])
    return Field(reader(hint, rule), item, objects, member, _default(field))


def _default(field: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()


def built(kind: Type[T], found: Mapping[str, Any]) -> T:
    """The object with these values. Raises `Unfit` where one is missing that has no default."""
    if kind not in _REQUIRED:
        _REQUIRED[kind] = [name for name, field in fields_of(kind).items() if field.default is REQUIRED]
    for name in _REQUIRED[kind]:
        if name not in found:
            raise Unfit("is missing").within(name)
    return kind(**found)


def reader(kind: Any, rule: Optional[Rule] = None) -> Reader:
    """How values of one type are read. Made once a field: a job of a thousand ranks has a million frames."""
    if dataclasses.is_dataclass(kind):
        return _object_reader(kind)
    origin, arguments = _generic(kind)
    if origin is Union:
        return _union_reader(arguments, rule)
    if origin in _LISTS:
        return _tuple_reader(arguments[0], rule)
    if origin is AbstractMapping:
        return _mapping_reader(arguments[1], rule)
    return _word_reader(kind) if issubclass(kind, Word) else _SCALARS[kind](rule)


def _generic(kind: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """`Mapping[str, int]` as (Mapping, (str, int)); (None, ()) for what has no parameters."""
    return getattr(kind, "__origin__", None), getattr(kind, "__args__", ())


def _object_reader(kind: Any) -> Reader:
    rows: List[Tuple[str, Reader, Any]] = []
    completed = COMPLETED.get(kind)

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise Unfit("is not an object")
        if not rows:  # only now: a type may hold itself
            rows.extend((name, field.read, field.default) for name, field in fields_of(kind).items())
        values: List[Any] = []
        name = ""
        try:
            for name, one, default in rows:
                if name in data:
                    values.append(one(data[name]))
                elif default is REQUIRED:
                    raise Unfit("is missing")
                else:
                    values.append(default)
        except Unfit as problem:
            raise problem.within(name) from None
        return kind(*values) if completed is None else completed(kind(*values), data)

    return read


def _tuple_reader(item: Any, rule: Optional[Rule]) -> Reader:
    one = reader(item, rule)

    def read(data: Any) -> Any:
        if type(data) is not list:
            raise Unfit("is not a list")
        try:
            return tuple(map(one, data))
        except Unfit:
            for number, value in enumerate(data):
                try:
                    one(value)
                except Unfit as problem:
                    raise problem.within(f"[{number}]") from None
            raise

    return read


def _mapping_reader(item: Any, rule: Optional[Rule]) -> Reader:
    one = reader(item, rule)

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise Unfit("is not an object")
        found = {}
        for key, value in data.items():
            try:
                found[MEMBER_NAME(key)] = one(value)
            except Unfit as problem:
                raise problem.within(place_of(key)) from None
        return found

    return read


def place_of(key: str) -> str:
    """The step of a path to the member of a mapping."""
    return f"[{key[:_LONGEST_KEY]}]"


def _text_reader(rule: Optional[Rule]) -> Reader:
    labels = rule.labels if rule is not None else ()

    def read(data: Any) -> Any:
        if type(data) is not str:
            raise Unfit("is not a text")
        if len(data) > limits.LONGEST_TEXT:
            raise Unfit(f"is longer than {limits.LONGEST_TEXT:,} characters")
        if labels and data not in labels:
            raise Unfit(f"is {_shown(data)}, not one of {', '.join(labels)}")
        if not data.isascii() and LONE_SURROGATE.search(data):
            raise Unfit("has half a character (a lone surrogate)")
        return sys.intern(data)  # the names of functions and libraries come again and again

    return read


def _word_reader(kind: Type[Word]) -> Reader:
    words = {str(one): one for one in kind}
    other = words.get("other")  # stands for those of a later release

    def read(data: Any) -> Any:
        if type(data) is not str:
            raise Unfit("is not a text")
        word = words.get(data, other)
        if word is None:
            raise Unfit(f"is {_shown(data)}, not one of {', '.join(words)}")
        return word

    return read


def _integer_reader(rule: Optional[Rule]) -> Reader:
    low, high = (-limits.INTEGER, limits.INTEGER) if rule is None else (rule.least, rule.most)

    def read(data: Any) -> Any:
        if type(data) is not int:
            raise Unfit("is not a whole number")
        if not low <= data <= high:
            raise Unfit(f"is {_shown(data)}, not {_range(low, high)}")
        return data

    return read


def _float_reader(rule: Optional[Rule]) -> Reader:
    low, high = (-limits.FLOAT, limits.FLOAT) if rule is None else (rule.least, rule.most)

    def read(data: Any) -> Any:
        if type(data) is not float and type(data) is not int:
            raise Unfit("is not a number")
        if not low <= data <= high:  # nor is NaN
            raise Unfit(f"is {_shown(data)}, not {_range(low, high)}")
        return float(data)

    return read


def _flag_reader(rule: Optional[Rule]) -> Reader:
    def read(data: Any) -> Any:
        if type(data) is not bool:
            raise Unfit("is neither true nor false")
        return data

    return read


_SCALARS: Mapping[Any, Callable[[Any], Reader]] = {
    str: _text_reader,
    int: _integer_reader,
    float: _float_reader,
    bool: _flag_reader,
}


def _union_reader(choices: Any, rule: Optional[Rule]) -> Reader:
    """One of several types, told apart by what stands in the JSON text."""
    ways: Dict[type, Reader] = {}
    for choice in choices:
        if choice is not Missing:
            ways.update(dict.fromkeys(_json_types(choice), _nothing if choice is type(None) else reader(choice, rule)))
    reason, code, may_miss = _text_reader(None), _word_reader(Code), Missing in choices

    def read(data: Any) -> Any:
        if may_miss and type(data) is dict and data.keys() in _MISSING and type(data["missing"]) is str:
            text = reason(data["missing"])
            return Missing(text, code(data["code"]) if "code" in data else code_of(text))
        way = ways.get(type(data))
        if way is None:
            raise Unfit(f"is {_JSON_NAMES[type(data)]}, not {' or '.join(sorted({_JSON_NAMES[one] for one in ways}))}")
        return way(data)

    return read


_MISSING = ({"missing"}, {"missing", "code"})

MEMBER_NAME = _text_reader(None)
"""How the names in a mapping are read."""


def _nothing(data: Any) -> None:
    return None


_JSON_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _json_types(kind: Any) -> Tuple[type, ...]:
    if kind is float:
        return (float, int)
    if kind in _JSON_NAMES:
        return (kind,)
    if isinstance(kind, type) and issubclass(kind, Word):
        return (str,)
    return (list,) if _generic(kind)[0] in _LISTS else (dict,)


def _shown(data: Any) -> str:
    if isinstance(data, str):
        return f'"{data[:_LONGEST_KEY]}"'
    if isinstance(data, int) and abs(data) > limits.INTEGER:
        return "a number of more than 38 digits"
    return str(data)


def _range(low: float, high: float) -> str:
    return f"between {low:,} and {high:,}"
