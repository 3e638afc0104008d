"""Numbers, lists, dictionaries, classes and instances of CPython (64-bit, with the GIL), and who keeps items where."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Tuple


class ObjectsRow(NamedTuple):
    """One release. A number's first word is its length with a sign, or from 3.12 on a tag: length, then three bits."""

    frame_globals: int  # in the frame
    tagged: bool
    log_sizes: bool  # a table of keys has the logarithms of its sizes, and a kind
    entries: int  # dk_nentries
    indices: int  # dk_indices
    instances: str = ""  # how an instance keeps its attributes: a word of INSTANCES
    cached_keys: int = 0  # ht_cached_keys in a class: the names of the attributes that its instances keep
    values: int = 0  # in a PyDictValues: what stands in front of the first value


class _Dict(NamedTuple):
    used: int  # ma_used
    keys: int  # ma_keys
    values: int  # ma_values, of a dictionary that shares its keys


class _Deque(NamedTuple):
    left_block: int  # leftblock, rightblock, leftindex, rightindex
    in_block: int  # BLOCKLEN
    left_link: int  # of a block
    items: int
    right_link: int


class _Class(NamedTuple):
    """A PyTypeObject; unchanged from 3.8 to 3.14."""

    basic_size: int
    item_size: int
    flags: int
    base: int
    dictionary: int
    dict_offset: int
    mro: int
    size: int  # bytes up to the end of the last of them


INTEGER = 16
"""Offset of a number's length (ob_size, lv_tag); its first digit is behind that."""

FLOAT = 16
"""Offset of `ob_fval`."""

BITS_OF_A_DIGIT = 30

LIST_ITEMS = 24
"""Offset of `ob_item` in a list; its length is where that of a tuple is."""

DICT = _Dict(used=16, keys=32, values=40)

DEQUE = _Deque(left_block=24, in_block=64, left_link=0, items=8, right_link=520)
"""_collectionsmodule.c: BLOCKLEN items in a block between two links; its length is where that of a list is. Unchanged
from 3.8 to 3.14, as tests/inferiors/python_objects.py shows in each of them."""
UNICODE, SPLIT = 1, 2
"""dk_kind: entries without hashes, entries whose values are elsewhere (pycore_dict.h)."""

CLASS = _Class(basic_size=32, item_size=40, flags=168, base=256, dictionary=264, dict_offset=288, mro=344, size=352)
INLINE_VALUES, MANAGED_DICT, HEAP_CLASS = 1 << 2, 1 << 4, 1 << 9
LIST_CLASS, TUPLE_CLASS, DICT_CLASS, CLASS_OF_CLASSES = 1 << 25, 1 << 26, 1 << 29, 1 << 31
"""tp_flags (object.h)."""

MANAGED_DICT_AT, MANAGED_VALUES_AT = -24, -32
"""From an instance to its dictionary and (3.11) its values: both stand in front of it."""

INSTANCES: Mapping[str, str] = {
    "": "a dictionary that the class has the offset of",
    "two-pointers": "one to the values, one to the dictionary that replaces them",
    "one-pointer": "to the values, less one, or to the dictionary that replaces them",
    "inside": "values behind the instance, which are valid or not; then the dictionary in front of it counts",
}

OBJECTS: Mapping[Tuple[int, int], ObjectsRow] = {
    (3, 8): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 9): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 10): ObjectsRow(48, tagged=False, log_sizes=False, entries=32, indices=40),
    (3, 11): ObjectsRow(8, False, True, 24, 32, "two-pointers", 872),
    (3, 12): ObjectsRow(24, True, True, 24, 32, "one-pointer", 880),
    (3, 13): ObjectsRow(24, True, True, 24, 32, "inside", 880, 8),
    (3, 14): ObjectsRow(24, True, True, 24, 32, "inside", 880, 8),
}
"""Headers of these releases: frameobject.h, pycore_frame.h, longintrepr.h, dictobject.h, pycore_dict.h, object.h,
pycore_object.h."""

# --- classes whose attributes and items are elsewhere than in the object itself ---

MEMBER, MEMBER_TYPE, MEMBER_OFFSET = 40, 8, 16
"""Offsets: `d_member` in a member descriptor; `type` and `offset` in the PyMemberDef that it leads to."""
MEMBER_OBJECTS = (6, 16)
"""Types of a member that is an object: _Py_T_OBJECT, Py_T_OBJECT_EX (structmember.h, descrobject.h)."""

FIELD_OF_A_NAMED_TUPLE = 16
"""Offset of `index` in a `_collections._tuplegetter` (_collectionsmodule.c)."""


class IteratorRow(NamedTuple):
    """How many items an iterator has still to give: the word at `left`, or what its sequence has behind
    the number at `done`."""

    left: int = 0
    done: int = 0
    sequence: int = 0
    inner: int = 0  # it passes on what this iterator gives
    first_of: int = 0  # it takes one item of each iterator in this tuple


_OF_SEQUENCE, _OF_DICTIONARY = IteratorRow(done=16, sequence=24), IteratorRow(left=48)
ITERATORS: Mapping[str, IteratorRow] = {
    "list_iterator": _OF_SEQUENCE,
    "tuple_iterator": _OF_SEQUENCE,
    "dict_keyiterator": _OF_DICTIONARY,
    "dict_valueiterator": _OF_DICTIONARY,
    "dict_itemiterator": _OF_DICTIONARY,
    "enumerate": IteratorRow(inner=24),
    "zip": IteratorRow(first_of=24),
}
"""listobject.c, tupleobject.c, dictobject.c, enumobject.c, bltinmodule.c; unchanged from 3.8 to 3.14."""

GENERATOR = "generator"
RANGE_ITERATOR = "range_iterator"
RANGE_LEFT: Mapping[bool, IteratorRow] = {False: IteratorRow(done=16, left=40), True: IteratorRow(left=32)}
"""Whether numbers have tags (3.12): since then a range's iterator counts its `len` down; before, its `index` went up to
it (rangeobject.c)."""

PROXIES: Mapping[str, int] = {
    "weakproxy": 16,
    "weakcallableproxy": 16,
    "weakref.ProxyType": 16,
    "weakref.CallableProxyType": 16,
    "mappingproxy": 16,
}
"""Objects that stand for another one, and where they have its address (wr_object; mappingproxyobject)."""

REFERENCES: Mapping[str, int] = {"weakref": 16, "weakref.ReferenceType": 16}
"""Objects that one calls for another one, `owner()`, and where they have its address (wr_object, None of one that is
gone)."""

MEMBERS_IN_C: Mapping[str, Mapping[str, int]] = {
    "method": {"__func__": 16, "__self__": 24},
    "cell": {"cell_contents": 16},
}
"""Attributes of CPython's own objects whose classes keep their names elsewhere from 3.12 on (classobject.h,
cellobject.h)."""

DEQUES = ("collections.deque",)
HOLDERS_IN_C = (*DEQUES, "types.SimpleNamespace", "functools.partial")
"""Classes that CPython's C code makes and whose instances hold what programs give them."""

ATTRIBUTES_IN = ("_parameters", "_buffers", "_modules")
"""Dictionaries of an nn.Module in which its `__getattr__` looks (torch/nn/modules/module.py)."""

ITEMS_IN: Mapping[str, str] = {
    "BatchEncoding": "data",
    "BatchFeature": "data",
    "UserDict": "data",
    "UserList": "data",
    "ModuleList": "_modules",
    "Sequential": "_modules",
    "ModuleDict": "_modules",
    "ParameterDict": "_parameters",
    "ParameterList": "_parameters",
    "BufferDict": "_buffers",
    "IntermediateTensors": "tensors",
    "PPProxyTensors": "tensors",
}
"""Classes, and what is derived of them without a `__getitem__` of its own, and the attribute that has their items.
Sources: Lib/collections/__init__.py; torch/nn/modules/container.py, where the keys of a list are the numbers as text;
transformers' tokenization_utils_base.py and feature_extraction_utils.py; vllm/sequence.py;
sglang/srt/model_executor/forward_batch_info.py."""

TEXT_OF_NUMBERS = ("ModuleList", "Sequential", "ParameterList")

LENGTH_IN: Mapping[str, str] = {"ParameterList": "_size"}
"""Those of them that keep some items elsewhere, and the attribute that says how many there are (container.py)."""

ITEMS_BY_ATTRIBUTE = ("ParameterList", "ParameterDict")
"""Those of them whose `__getitem__` is `getattr(self, str(key))` (container.py)."""

OWN_ITEMS = ("OrderedDict", "defaultdict", "Counter", "ModelOutput", "Size")
"""Classes with a `__getitem__` of their own that gives what the dictionary or tuple holds."""

# --- coroutines and tasks: as `ctypes` reads them in 3.11.7, 3.12.1 and 3.13.0 (tests/inferiors/python_tasks.py) ---


class CoroutineRow(NamedTuple):
    """Offsets in a coroutine or generator, and in its frame."""

    state: int  # cr_frame_state, a signed byte: below 0 while it can be resumed, 0 while it runs, above when it is done
    frame: int  # cr_iframe
    stack_top: int  # in the frame: how many values it has, variables and the stack
    tasks: str  # the WeakSet of asyncio.tasks that has all tasks


COROUTINES: Mapping[Tuple[int, int], CoroutineRow] = {
    (3, 11): CoroutineRow(75, 80, 64, "_all_tasks"),
    (3, 12): CoroutineRow(67, 72, 64, "_scheduled_tasks"),
    (3, 13): CoroutineRow(67, 72, 64, "_scheduled_tasks"),
}

FRAME_SIZE = 96
"""Bytes of such a frame up to its variables, in each of these releases."""

AWAITED_INSIDE = ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper")
"""What stands between a coroutine and one that it awaits: a step of an asynchronous generator, `__await__()` of one."""
AWAITED = 16
"""Offset in each of them (`ags_gen`, `agt_gen`, `cw_coroutine`) of what is suspended (cpython Objects/genobject.c)."""

MODULE_NAMES = 16
"""Offset of `md_dict` in a module."""

SET_USED, SET_MASK, SET_TABLE = 24, 32, 40
"""Offsets in a set: length, mask and table; an entry is a key and its hash."""

OF_LOOP = 16
"""Offset of `fut_loop` in a task or future of C."""

FUNCTION_NAME = 32
"""Offset of `func_name` in a function of these releases."""
