"""Numbers, lists and dictionaries of CPython, and where a frame has its module's names (64-bit, with the GIL)."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Tuple


class ObjectsRow(NamedTuple):
    """One release. A number's first word is its length with a sign, or from 3.12 on a tag: length, then three bits."""

    frame_globals: int  # in the frame
    tagged: bool
    log_sizes: bool  # a table of keys has the logarithms of its sizes, and a kind
    entries: int  # dk_nentries
    indices: int  # dk_indices


class _Dict(NamedTuple):
    keys: int  # ma_keys
    values: int  # ma_values, of a dictionary that shares its keys


INTEGER = 16
"""Offset of a number's length (ob_size, lv_tag); its first digit is behind that."""

LIST_ITEMS = 24
"""Offset of `ob_item` in a list; its length is where that of a tuple is."""

DICT = _Dict(keys=32, values=40)
UNICODE, SPLIT = 1, 2
"""dk_kind: entries without hashes, entries whose values are elsewhere (pycore_dict.h)."""

OBJECTS: Mapping[Tuple[int, int], ObjectsRow] = {
    (3, 8): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 9): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 10): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 11): ObjectsRow(8, tagged=False, log_sizes=True, entries=24, indices=32),
    (3, 12): ObjectsRow(24, tagged=True, log_sizes=True, entries=24, indices=32),
    (3, 13): ObjectsRow(24, tagged=True, log_sizes=True, entries=24, indices=32),
}
"""Headers of these releases: frameobject.h, pycore_frame.h, longintrepr.h, dictobject.h, pycore_dict.h."""
