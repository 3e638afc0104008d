"""Objects of every kind in one function; says "ready" and name=address of each, then waits on stdin.

Runs on CPython 3.8 and later. `Leaf` stands for a tensor.
"""

import collections
import dataclasses
import functools
import sys
import types
import weakref
from typing import NamedTuple


class Leaf:
    def __init__(self, number):
        self.number = number


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)

    def method(self):
        return self


class Inline:
    """Names that every instance has, in the same order: shared keys, values inside of the instance from 3.13 on."""

    shared = Leaf(-1)

    def __init__(self, first, second):
        self.first = first
        self.second = second

    @property
    def computed(self):
        return self.first

    def method(self):
        return self.first


class Slotted:
    __slots__ = ("one", "two", "unset")

    def __init__(self, one, two):
        self.one, self.two = one, two


class Both(Slotted):
    def __init__(self, one, two, three):
        super().__init__(one, two)
        self.three = three


class Module:
    """As torch.nn.Module keeps what is assigned."""

    def __init__(self, parameters, modules):
        self.training = True
        self._parameters = dict(parameters)
        self._buffers = collections.OrderedDict(mask=Leaf(7))
        self._modules = dict(modules)

    def __getattr__(self, name):
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                return held[name]
        raise AttributeError(name)


class ModuleList(Module):
    def __init__(self, modules):
        super().__init__({}, {str(number): one for number, one in enumerate(modules)})

    def __getitem__(self, number):
        return self._modules[str(number % len(self._modules))]


class ParameterList(Module):
    """As in torch: what is no parameter is an attribute of the instance."""

    def __init__(self, first, other, last):
        super().__init__({"0": first, "2": last}, {})
        self._size = 3
        setattr(self, "1", other)

    def __getitem__(self, number):
        return getattr(self, str(number % self._size))


class ParameterDict(Module):
    def __getitem__(self, key):
        return getattr(self, key)


class BatchEncoding(collections.UserDict):
    def __getitem__(self, key):
        return self.data[key]


class Own(collections.UserDict):
    def __getitem__(self, key):
        return Leaf(key)


class IntermediateTensors:
    def __init__(self, tensors):
        self.tensors = tensors

    def __getitem__(self, key):
        return self.tensors[key]


@dataclasses.dataclass
class Record:
    __slots__ = ("left",)
    left: object


class Queue(collections.deque):
    pass


class Lazy(dict):
    def __getitem__(self, key):
        return Leaf(key)


class Proxy:
    def __getattr__(self, name):
        return Leaf(name)


class Pair(NamedTuple):
    left: object
    right: object


class Sized(tuple):
    """Keeps a dictionary behind items of any number."""


in_module = Leaf(99)


def work(self, kv, batch, hidden):
    captured = hidden
    inline, changed, dictionary = Inline(Leaf(1), Leaf(2)), Inline(Leaf(3), Leaf(4)), Inline(Leaf(5), Leaf(6))
    changed.third = Leaf(8)
    del changed.first
    vars(dictionary)["later"] = Leaf(9)
    slotted, both, pair = Slotted(Leaf(10), Leaf(11)), Both(Leaf(12), Leaf(13), Leaf(14)), Pair(Leaf(15), Leaf(16))
    ordered, counted = collections.OrderedDict(a=Leaf(17)), collections.defaultdict(Leaf, {3: Leaf(18), -4: Leaf(19)})
    odd = {(1, 2): Leaf(20), 2.5: Leaf(21), True: Leaf(22), "größe": Leaf(23), 1 << 40: Leaf(24), "": Leaf(25)}
    circle = Plain(leaf=Leaf(26))
    circle.circle, circle.list = circle, [circle, Leaf(27)]
    proxy, lazy, weak, by_call = weakref.proxy(circle), Lazy(x=Leaf(28)), weakref.proxy(inline), Proxy()
    sized = Sized([Leaf(29), Leaf(30)])
    sized.extra = Leaf(31)
    queue, long, turned = collections.deque([Leaf(60)]), Queue(map(Leaf, range(1000))), collections.deque(maxlen=100)
    turned.extend(map(Leaf, range(250)))
    long.rotate(70)
    long.name, both_ends, deep_queue = Leaf(61), collections.deque([in_module] * 500), collections.deque([(Leaf(62),)])
    both_ends.appendleft(Leaf(63))
    record, space, bound = Record(Leaf(64)), types.SimpleNamespace(x=Leaf(65)), circle.method
    partial = functools.partial(print, Leaf(66), sep=Leaf(67))
    reference, stage = weakref.ref(circle), IntermediateTensors({"hidden_states": Leaf(68)})
    gone, own = weakref.ref(Plain()), Own(x=Leaf(69))
    ahead, behind = ParameterList(Leaf(70), Leaf(71), Leaf(72)), ParameterDict({"a": Leaf(73)}, {})
    large = dict.fromkeys(map(str, range(100_000)), in_module)
    large["early"] = in_module
    many = [in_module] * 1_000_000
    del large["5"]

    def inner():
        return captured

    expressions = """
        hidden captured self.hidden self.weight self.mask self.child.weight self.layers[0].weight self.layers[-1].weight
        kv[0] kv[-1] kv[1][0] kv[1][1]["k"] batch["ids"] batch.data["ids"] inline.first inline.second inline.shared
        changed.second changed.third dictionary.first dictionary.later slotted.one slotted.two both.one both.three
        pair.left pair.right pair[1] ordered["a"] counted[3] counted[-4] odd["größe"] odd[1099511627776] odd[""]
        circle.leaf circle.circle.circle.leaf circle.list[1] proxy.leaf weak.second sized[1] sized.extra
        large["0"] large["60000"] many[999999] in_module Inline.shared
        queue[0] queue[-1] long[0] long[63] long[64] long[500] long[999] long[-1] long.name turned[0] turned[99]
        both_ends[0] both_ends[1] deep_queue[0][0] record.left space.x bound.__self__.leaf partial.args[0]
        partial.keywords["sep"] reference().leaf reference().circle.leaf stage["hidden_states"]
        stage.tensors["hidden_states"]
        ahead[0] ahead[1] ahead[2] ahead[-1] ahead[-2] behind["a"] behind.a
    """
    for expression in expressions.split():
        found = eval(expression)
        assert isinstance(found, Leaf), expression
        words.append(f"{expression}={id(found):x}")
    print("ready", *words, flush=True)
    sys.stdin.read()
    held = (
        queue,
        long,
        turned,
        both_ends,
        deep_queue,
        record,
        space,
        bound,
        partial,
        reference,
        stage,
        gone,
        own,
        ahead,
        behind,
    )
    return held, inner, proxy, lazy, by_call, slotted, both, pair, ordered, counted, odd, weak, many


words = []
weight = Module({"weight": Leaf(40)}, {})
layers = ModuleList([Module({"weight": Leaf(41)}, {}), Module({"weight": Leaf(42)}, {})])
root = Module({"weight": Leaf(43)}, {"child": weight, "layers": layers})
root.hidden = Leaf(44)
work(root, [Leaf(45), (Leaf(46), {"k": Leaf(47)}), Leaf(48)], BatchEncoding({"ids": Leaf(49)}), Leaf(50))
