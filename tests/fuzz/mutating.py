"""Saved snapshots as somebody may have made them: good documents in which something is different."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections.abc import Sequence as AbstractSequence
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.codec import dump_snapshot, encode
from gdbext.model.stack import Frame, ThreadStack
from gdbext.parsers import parse_files
from tests.fuzz.making import Maker, hints_of

DATA = Path(__file__).parents[1] / "data"
_LARGEST = 30_000  # characters of a document to start from: a round takes its time

NASTY_TEXTS = (
    *("", " ", "\0", "\x1b[2J\x1b]0;x\x07", "\u202e\u2066", "\u200b\u2028\u2029", "\x9b31m", "\U000e0041\ufe0f"),
    *(
        "\ud800",
        "\udcff",
        "\udbff\udfff",
        "\uffff",
        "e" + "\u0301" * 40,
        "日本語",
        "a\nb\tc\r",
        "%s%n{}{0}",
        "../../etc/passwd",
    ),
    *("-1", "NaN", "rank 3", "(" * 3000, "<" * 3000, "a::" * 3000, "x" * 70_000, "f<" * 400 + ">" * 400, "operator<"),
)
NASTY_NUMBERS = (
    *(-1, -(10**400), 10**400, 1 << 31, 1 << 63, 1 << 64, 1 << 128, (1 << 128) + 1, 99_999_999, 10**18, -0.0, 1e308),
    *(-1e308, 1e-308, 0.5, float("nan"), float("inf"), -float("inf"), 253_402_300_800, -62_135_596_801),
)
OTHER_TYPES: Tuple[Any, ...] = (None, True, False, 0, 1.5, "", "text", [], {}, [1], {"a": 1}, [[]], {"missing": 1})
LIKE_MISSING: Tuple[Any, ...] = ({"missing": "gone"}, {"missing": None}, {"missing": ""}, {"missing": "a", "b": 1})


class Place(NamedTuple):
    """Where a value of a document stands, and of what type the model says it is."""

    holder: Any
    key: Any
    kind: Any

    def put(self, value: Any) -> None:
        self.holder[self.key] = value

    @property
    def value(self) -> Any:
        return self.holder[self.key]


_ROWS = Tuple[Tuple[int, ...], ...]
_OF_THE_TABLE: Mapping[Any, Mapping[str, Any]] = {
    JobSnapshot: {"stacks": Mapping[str, _ROWS]},
    Mapping[str, _ROWS]: {"calls": Tuple[Frame, ...], "stacks": _ROWS, "offsets": _ROWS},
    ThreadStack: {"stack": int, "pc": Tuple[int, ...], "sp": Tuple[int, ...]},
}


def places(kind: Any, data: Any) -> List[Place]:
    """All values below `data`, which has that type; fields that are not written (at their default) too."""
    found: List[Place] = []
    origin, arguments = getattr(kind, "__origin__", None), getattr(kind, "__args__", ())
    if isinstance(data, dict):  # what stands in no field of the model
        for name, hint in _OF_THE_TABLE.get(kind, {}).items():
            found += [Place(data, name, hint), *places(hint, data[name])] if name in data else []
    if dataclasses.is_dataclass(kind) and isinstance(data, dict):
        for name, hint in hints_of(kind).items():
            found.append(Place(data, name, hint))
            found += places(hint, data[name]) if name in data else []
    elif origin is Union:
        for choice in arguments:
            if choice not in (Missing, type(None)):
                found += places(choice, data)
    elif origin in (tuple, AbstractSequence) and isinstance(data, list):
        for number, item in enumerate(data):
            found += [Place(data, number, arguments[0]), *places(arguments[0], item)]
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(data, dict):
        found += [Place(data, name, arguments[1]) for name in data]
    return found


def wrong_type(chance: random.Random, place: Place) -> None:
    place.put(copy.deepcopy(chance.choice(OTHER_TYPES)))


def missing(chance: random.Random, place: Place) -> None:
    if isinstance(place.holder, list) or place.key in place.holder:
        del place.holder[place.key]


def like_missing(chance: random.Random, place: Place) -> None:
    place.put(dict(chance.choice(LIKE_MISSING)))


def extra(chance: random.Random, place: Place) -> None:
    if isinstance(place.holder, dict):
        place.holder[chance.choice(NASTY_TEXTS)[:100]] = copy.deepcopy(chance.choice(OTHER_TYPES))
    else:
        place.holder.insert(place.key, copy.deepcopy(chance.choice(OTHER_TYPES)))


def nasty_text(chance: random.Random, place: Place) -> None:
    place.put(chance.choice(NASTY_TEXTS) + chance.choice(("", "x", *NASTY_TEXTS)))


def nasty_number(chance: random.Random, place: Place) -> None:
    place.put(chance.choice(NASTY_NUMBERS))


def empty(chance: random.Random, place: Place) -> None:
    place.put(chance.choice(([], {}, "", None)))


def duplicate(chance: random.Random, place: Place) -> None:
    if isinstance(place.holder, list):
        place.holder[place.key : place.key] = [copy.deepcopy(place.value) for _ in range(chance.choice((1, 2, 40)))]


def another(chance: random.Random, place: Place) -> None:
    """Of the right type, and with any content."""
    place.put(encode(Maker(chance).of(place.kind)))


def fitting(chance: random.Random, place: Place) -> None:
    """Of the type that is there, or the least and most that is."""
    now = place.holder[place.key] if isinstance(place.holder, list) else place.holder.get(place.key)
    if isinstance(now, str):
        place.put(chance.choice(NASTY_TEXTS))
    elif isinstance(now, list) and now:
        place.put([copy.deepcopy(chance.choice(now)) for _ in range(chance.choice((0, 1, 3, 9)))])
    elif isinstance(now, dict):
        another(chance, place)
    else:
        place.put(chance.choice((0, 1, 2, 3, 5, 8, 1 << 63, 1.0, None, True)))


UNFIT = (wrong_type, missing, like_missing, extra, nasty_text, nasty_number, empty, duplicate)
FIT = (another, fitting, duplicate)


def cut(chance: random.Random, text: bytes) -> bytes:
    return text[: chance.randint(0, len(text))]


def spliced(chance: random.Random, text: bytes) -> bytes:
    at, start = chance.randint(0, len(text)), chance.randint(0, len(text))
    return text[:at] + text[start : start + chance.choice((1, 10, 1000))] + text[at:]


def noisy(chance: random.Random, text: bytes) -> bytes:
    at = chance.randint(0, len(text))
    return text[:at] + bytes(chance.randrange(256) for _ in range(chance.choice((1, 4)))) + text[at + 1 :]


def deep(chance: random.Random, text: bytes) -> bytes:
    at, size = text.find(b":", chance.randint(0, len(text))) + 1, chance.choice((50, 900, 5000, 100_000))
    opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"earlier":[', b"]}")))
    return text[:at] + opening * size + b"1" + closing * size + text[at:]


def twice(chance: random.Random, text: bytes) -> bytes:
    """A name that an object has twice."""
    at = text.find(b'"', chance.randint(0, len(text)))
    return text[:at] + b'"processes": [], "schema": 1, "frames": 3, ' + text[at:]


DAMAGES = (cut, spliced, noisy, deep, twice)


def bases() -> List[Dict[str, Any]]:
    """Documents to start from: real stacks of all kinds, and made ones, in which every field has a value."""
    found = [json.loads(path.read_text("utf-8", "surrogateescape")) for path in (DATA / "snapshots").glob("*.json")]
    for path in sorted((DATA / "field").glob("*.txt")):
        found.append(json.loads(dump_snapshot(parse_files([(path.name, path.read_bytes())]))))
    found = [one for one in found if len(json.dumps(one)) < _LARGEST]
    words = sorted({place.value for one in found for place in places(JobSnapshot, one["snapshot"]) if _is_word(place)})
    return found + [made(random.Random(seed), words) for seed in range(len(found))]


def _is_word(place: Place) -> bool:
    return isinstance(place.holder.get(place.key) if isinstance(place.holder, dict) else place.value, str)


def made(chance: random.Random, words: Sequence[str]) -> Dict[str, Any]:
    """A snapshot of words that mean something to the analysis, whose numbers fit together."""
    maker = Maker(chance, words, full=chance.random() < 0.5)
    job = encode(maker.of(JobSnapshot))
    for look in (job, *job.get("earlier", ())):
        some = [encode(maker.of(RankSnapshot)) for _ in range(chance.choice((1, 2, 3, 6)))]
        look["processes"] = [{**one, "index": number} for number, one in enumerate(some)]
        for statement in [one for witness in look.get("witnesses", ()) for one in witness.get("statements", ())]:
            statement["process"] = chance.randrange(len(some))
        if look is not job:
            look.pop("earlier", None)
    return {"schema": 1, "snapshot": job}


def mutated(chance: random.Random, documents: List[Dict[str, Any]]) -> bytes:
    """One of them with one to four differences. As JSON in Python's words: NaN and infinities stand in it."""
    document = copy.deepcopy(chance.choice(documents))
    ways = chance.choice((UNFIT, FIT, FIT))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice(ways)(chance, chance.choice(places(JobSnapshot, document["snapshot"])))
    text = json.dumps(document, ensure_ascii=chance.random() < 0.7).encode("utf-8", "surrogatepass")
    return chance.choice(DAMAGES)(chance, text) if chance.random() < 0.15 else text
