"""Names as people type them, followed in the memory of real interpreters; and objects that are damaged."""

import os

import pytest

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import Locals, locals_of
from gdbext.capture.python.names import follow, parse_name, root_of, variables_in
from gdbext.capture.python.object_walk import Walk
from gdbext.capture.python.python_frames import Pages, freeze, thread_of
from gdbext.capture.python.runtime import find_interpreter
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_objects import INSTANCES, OBJECTS
from gdbext.model.missing import Missing
from tests.inferiors.python_target import PythonTarget, interpreters

PYTHONS = {version: path for version, path in interpreters().items() if version in OBJECTS}
EACH_PYTHON = pytest.mark.parametrize(
    "python", [PYTHONS[one] for one in sorted(PYTHONS)], ids=map(str, sorted(PYTHONS))
)


class Look:
    """The frame `work` of the target, and its objects."""

    def __init__(self, pid):
        read = ProcessMemory(pid).read
        found = find_interpreter(read_maps(pid), ProcessMemory(pid).read, os.path.realpath(f"/proc/{pid}/exe"))
        self.frozen = freeze(found, read)
        self.frame, self.top = locals_of(self.frozen, thread_of(self.frozen, read, pid), read)
        self.read_by(read)

    def read_by(self, read):
        version = self.frozen.interpreter.version
        self.objects = Attributes(Containers(Locals(self.frozen, LOCALS[version], Pages(read)), OBJECTS[version]))

    def is_leaf(self, address):
        return self.objects.name_of(address) == "Leaf"

    def at(self, text, frame=None):
        """Address and rest, or the reason."""
        name = parse_name(text)
        root = root_of(name.root, frame or self.frame, self.objects)
        if isinstance(root, Missing):
            return root.reason
        found = follow(name, root, self.objects, text, self.is_leaf)
        return found.reason if isinstance(found, Missing) else (f"{found.address:x}", found.rest)


REFUSED = {
    "hiden": "no variable hiden; near: hidden",
    "self.wieght": "self: a Module has no attribute wieght; near: weight",
    "self.layers[7]": 'self.layers: a dict of 2 has no key "7"; it has 0, 1',
    "kv[3]": "kv: a list of 3 has no item 3",
    'kv["k"]': "kv: a list of 3 has items by number, not by name",
    'batch["idx"]': 'batch: a dict of 1 has no key "idx"; near: ids',
    "inline.computed": "inline: computed is a property of Inline: reading it needs a call",
    "inline.method": "inline: method is a method of Inline: reading it needs a call",
    "slotted.unset": "slotted: the slot unset of a Slotted is not set",
    'lazy["x"]': "lazy: Lazy has a __getitem__ of its own: reading it needs a call",
    "by_call.x": "by_call: a Proxy has no x, but Proxy.__getattr__ may make one: reading it needs a call",
    "slotted[0]": "slotted: a Slotted has no items that can be read without a call",
    'large["99999"]': 'large: a dict of 100,000: "99999" is not among its first 65,536 keys',
    "queue[1]": "queue: a deque of 1 has no item 1",
    "long[-1001]": "long: a Queue of 1,000 has no item -1001",
    'queue["x"]': "queue: a deque of 1 has items by number, not by name",
    "gone()": "gone: what it referred to is gone",
    "space()": "space: a SimpleNamespace is not a weak reference: calling it would run code of the program",
    "space.y": "space: a SimpleNamespace has no attribute y; it has x",
    'own["x"]': "own: Own has a __getitem__ of its own: reading it needs a call",
    'stage["x"]': 'stage: a dict of 1 has no key "x"; it has hidden_states',
    "odd[1]": "odd: a dict of 6 has no key 1; it has größe",
}


@pytest.mark.process
@EACH_PYTHON
def test_names_lead_where_the_program_says(python):
    with PythonTarget("python_objects.py", python=python) as target:
        look = Look(target.pid)
        said = dict(word.rsplit("=", 1) for word in target.words)
        assert len(said) == 76
        assert {text: look.at(text) for text in said} == {text: (place, "") for text, place in said.items()}
        assert look.at("hidden[0]")[1] == "[0]" and look.at("kv[0].grad[1]")[1] == ".grad[1]"
        assert look.at("in_module", look.top) == look.at("in_module")
        assert {text: look.at(text) for text in REFUSED} == REFUSED


@pytest.mark.process
@EACH_PYTHON
def test_a_walk_finds_every_name_once_and_counts_the_rest(python):
    with PythonTarget("python_objects.py", python=python) as target:
        look = Look(target.pid)
        walk = Walk(objects=look.objects, ends=look.is_leaf, most_children=100, seconds=60)
        found = [leaf.name for leaf in walk.leaves(list(variables_in(look.frame, look.objects).items()))]
        assert all(look.at(name)[1] == "" for name in found)
        addresses = [look.at(name)[0] for name in found]
    wanted = """hidden captured self.hidden self.weight self.mask self.child.weight self.layers[0].weight kv[0] kv[2]
        kv[1][0] kv[1][1]["k"] batch["ids"] inline.second changed.third dictionary.later slotted.two both.one both.three
        queue[0] long[0] long[70] long[99] long.name turned[99] both_ends[0] deep_queue[0][0] record.left
        space.x partial.args[0] partial.keywords["sep"] stage["hidden_states"] ahead[0] ahead[1] ahead[2] behind["a"]
        ordered["a"] counted[-4] odd["größe"] circle.leaf circle.list[1] sized[1] sized.extra pair[0]"""
    assert set(wanted.split()) <= set(found) and not [name for name in found if name.startswith(("proxy", "weak."))]
    assert len(set(addresses)) == 258 and found.count("hidden") == 1
    (beyond,) = [line for line in walk.left_out() if "items of containers" in line]
    assert beyond.startswith("not looked into: 1,101,102 ")
    # of the first hundred: large has 98 more of its one object, many 99, both_ends 98
    assert any("295 items that are the same object as an earlier item" in line for line in walk.left_out())
    assert any("3 items whose keys are neither" in line for line in walk.left_out())
    assert any("1 containers whose items need a call" in line for line in walk.left_out())


@pytest.mark.process
def test_limits_end_a_walk_and_are_said():
    with PythonTarget("python_objects.py") as target:
        look = Look(target.pid)
        starts = list(variables_in(look.frame, look.objects).items())
        few = Walk(objects=look.objects, ends=look.is_leaf, most_objects=10)
        late = Walk(objects=look.objects, ends=look.is_leaf, seconds=-1)
        near_ones = Walk(objects=look.objects, ends=look.is_leaf, deepest=1, most_children=50)
        assert len(list(few.leaves(starts))) < 10 and "limit of 10 objects" in few.left_out()[-1]
        assert list(late.leaves(starts)) == [] and "limit of -1 s" in late.left_out()[-1]
        assert "kv[1][0]" not in {leaf.name for leaf in near_ones.leaves(starts)}
        assert any("more than 1 steps behind a name" in line for line in near_ones.left_out())


@pytest.mark.process
def test_memory_that_is_not_there_any_more():
    """Whatever page is lost: a reason, and never another object."""
    with PythonTarget("python_objects.py") as target:
        said = dict(word.rsplit("=", 1) for word in target.words if "large" not in word and "many" not in word)
        read, pages = ProcessMemory(target.pid).read, set()

        def noted(address, size):
            pages.add(address >> 12)
            return read(address, size)

        look = Look(target.pid)
        look.read_by(noted)
        assert all(look.at(text) == (place, "") for text, place in said.items())
        for page in sorted(pages):

            def without(address, size, lost=page):
                return None if address >> 12 <= lost <= (address + size - 1) >> 12 else read(address, size)

            look.read_by(without)
            found = {text: look.at(text) for text in said}
            other = {text: one for text, one in found.items() if not isinstance(one, str) and one[0] != said[text]}
            assert not {text: one for text, one in other.items() if not one[1]}
    assert len(pages) > 30


@pytest.mark.parametrize(
    "text", ["", "3", "a.", "a[", "a[b]", "a->b", "*a", "$rdi", "a::b", "a[0:2]", "py1:", "a b", "a(1)"]
)
def test_what_is_no_name_of_python(text):
    assert parse_name(text) is None


def test_a_frame_may_stand_in_front():
    name = parse_name("py12:self.kv[-3]['a b']")
    assert (name.frame, name.root) == (12, "self")
    assert [(step.attribute, step.key) for step in name.steps] == [("kv", None), (None, -3), (None, "a b")]
    assert [step.upto for step in name.steps][:2] == ["py12:self.kv", "py12:self.kv[-3]"]


def test_each_release_says_how_it_keeps_attributes():
    assert set(OBJECTS) == set(LOCALS) and {row.instances for row in OBJECTS.values()} == set(INSTANCES)
