"""`llm-tensor list --python`: the torch tensors in the Python frames of the selected thread, by names."""

import os
import subprocess
import sys

import pytest

from tests.gdb.gdbrun import INFERIORS, gdb_batch

pytestmark = [pytest.mark.gdb, pytest.mark.torch]


@pytest.fixture(scope="module")
def process():
    """Pid, and the addresses of two tensors."""
    command = [sys.executable, str(INFERIORS / "torch_frames.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        _, hidden, shared = running.stdout.readline().split()
        yield running.pid, hidden, shared
        running.kill()


def line_with(text):
    """The number of the first line of the program that has a text."""
    lines = (INFERIORS / "torch_frames.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


SPARSE = tuple(f"py2:kinds[{number}]" for number in (2, 3, 4))
LIGHT = ("set auto-solib-add off", "set width 200")  # 6 s less


def test_the_list_prints_names_that_can_be_typed(turn_gdb, process):
    pid, *_ = process
    answer = gdb_batch(turn_gdb, *LIGHT, f"attach {pid}", "llm-tensor list --python --json", "detach")
    (listed,) = answer.documents
    found = {one["name"]: one for one in listed["tensors"]}
    own = {name for name in found if name.startswith(("py1:", "py2:"))}
    assert own == {
        *("py1:weight", "py1:shared", "py1:hidden", "py1:empty", "py2:hidden", "py2:transposed", "py2:shared"),
        *("py2:empty", "py2:self.hidden", "py2:self.cache", "py2:self.linear.weight", "py2:self.linear.bias"),
        *("py2:self.linears[0].weight", "py2:kv[0]", "py2:kv[1][0]", 'py2:kv[1][1]["k"]', 'py2:batch["ids"]'),
        *("py2:batch[7]", 'py2:state["layers.0.weight"]', 'py2:state["layers.0.bias"]', "py2:steps"),
        *("py2:self.queue[0]", 'py2:self.heads["a"].weight', 'py2:self.scales["k"]', "py2:self.biases[0]"),
        *("py2:config.scale", "py2:later.args[0]", "py2:uneven"),
        *("py2:other_order", *(f"py2:kinds[{number}]" for number in range(5))),
    }
    assert found["py2:transposed"]["strides"] == [1, 3] and found["py2:transposed"]["notes"] == ["in Layer.forward"]
    assert (found['py2:batch["ids"]']["dtype"], found['py2:batch["ids"]']["shape"]) == ("int16", [2, 3])
    assert (found["py2:steps"]["dtype"], found["py2:steps"]["strides"]) == ("fp64", [12, 2])
    assert found["py2:empty"]["shape"] == [0, 3] and listed["place"].endswith(
        f"selected is py0, in ready at torch_frames.py:{line_with('sys.stdin.read()')}"
    )
    commands = [f"llm-tensor p {name} --json" for name in sorted(own) + ["at_the_top"]]
    answer = gdb_batch(turn_gdb, *LIGHT, f"attach {pid}", *commands, "detach")
    values = {one["tensor"]["name"]: one for one in answer.documents if "tensor" in one}
    assert set(values) == own - {"py2:other_order", *SPARSE} | {"at_the_top"}
    assert values["py2:kinds[0]"]["elements"] == [10, 14, 18, 22, 26, 30]
    told = {one["name"]: one for one in listed["tensors"]}
    by_one, by_many = told["py2:kinds[0]"]["notes"], told["py2:kinds[1]"]["notes"]
    assert "quantised: 0.25 * (the stored integer - 10); the values here are the stored integers" in by_one
    assert any(note.startswith("quantised by channel") for note in by_many)
    parts = [[(part["name"], part["dtype"], part["shape"]) for part in told[name]["parts"]] for name in SPARSE]
    assert parts[0] == [("indices", "int64", [2, 5]), ("values", "fp32", [5])]
    assert parts[1] == [("pointers", "int64", [3]), ("indices", "int64", [5]), ("values", "fp32", [5])]
    assert parts[2] == [("indices", "int64", [2, 0]), ("values", "fp32", [0])]
    assert told[SPARSE[0]]["missing"]["address"] == "sparse (COO): its values are a tensor of their own"
    assert values["py2:steps"]["elements"] == [1.0, 3.0, 5.0, 13.0, 15.0, 17.0]
    assert values['py2:kv[1][1]["k"]']["elements"] == [3.0, 4.0, 5.0]
    assert values['py2:batch["ids"]']["elements"] == [0, 1, 2, 3, 4, 5]
    assert values["py2:self.queue[0]"]["elements"] == [1, 2, 3, 4, 5, 6]
    assert values["py2:later.args[0]"]["elements"] == [6, 7, 8] and values["py2:self.biases[0]"]["elements"] == [4]


def test_names_indexes_and_refusals(turn_gdb, process):
    pid, _, shared = process
    commands = [
        "hidden", "py1:hidden[1, :2]", "py2:kv[1][0][2]", "py2:self.linears", "py2:batch", "py1:hiden",
        "py2:self.computed", "py2:hidden.grad", "py2:count", "py2:rate", "py2:password", "py2:circle", "py9:hidden",
        'py2:batch["idz"]', "py2:other_order",
    ]  # fmt: skip
    lines = [f"llm-tensor p {one}" for one in commands]
    more = (
        "llm-tensor hash py2:hidden",
        f"llm-tensor p {shared} --as pyobject",
        "llm-tensor diff py1:hidden py2:kv[0]",
    )
    answer = gdb_batch(turn_gdb, *LIGHT, f"attach {pid}", *lines, *more, "detach")
    inner = f"py1, in Layer.forward.<locals>.inner at torch_frames.py:{line_with('ready(hidden=')}"
    forward = f"py2, in Layer.forward at torch_frames.py:{line_with('inner(torch.nn')}"
    ready = f"py0, in ready at torch_frames.py:{line_with('sys.stdin.read()')}"
    assert "py1:hidden[1, :2]: fp32 [2, 3] on cpu" in answer.out and f"  Python frame {inner}\n[3. 4.]" in answer.out
    assert "py2:kv[1][0][2]: fp32 [3, 2]" in answer.out and "[2. 5.]" in answer.out
    assert f"py2:self.linears: ModuleList in Python frame {forward}, 1 entry" in answer.out
    assert '["ids"]' in answer.out and "[7]" in answer.out
    assert answer.err.splitlines()[-10:] == [
        f"hidden: no variable hidden in {ready}; {inner} has one: py1:hidden",
        f"py1:hiden: no variable hiden in {inner}; near: hidden",
        f"py2:self: computed is a property of Layer: reading it needs a call ({forward})",
        f"py2:hidden is a tensor: reading .grad of it needs a call; of {forward}",
        f"py2:count is the number 3 ({forward})",
        f"py2:rate is the number 0.5 ({forward})",
        f"py2:password is the text 'not a tensor' ({forward})",
        f"py2:circle is a list without tensors ({forward})",
        "py9: this thread has 6 Python frames; llm-bt shows their numbers",
        f'py2:batch: a dict of 3 has no key "idz" ({forward}); near: ids',
    ]


def test_another_thread_and_what_has_no_python(process):
    pid, *_ = process
    other = "thread apply all -s -q llm-tensor list --python"
    answer = gdb_batch("gdb", "set auto-solib-add off", f"attach {pid}", other, "detach")
    assert "on_another_thread" in answer.out and "selected is py" in answer.out
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            without = gdb_batch("gdb", f"attach {sleeper.pid}", "llm-tensor list --python")
        finally:
            sleeper.kill()
    assert "no Python frames: not a Python process" in without.err
    assert "llm-tensor list --python" not in without.out


@pytest.fixture(scope="module")
def two_ranks():
    """Pids of two processes that hold equal values at other addresses, but for one tensor."""
    command = [sys.executable, str(INFERIORS / "numpy_ranks.py")]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    ranks = [
        subprocess.Popen([*command, str(rank)], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}, **options)
        for rank in (0, 1)
    ]
    assert [rank.stdout.readline() for rank in ranks] == ["ready\n", "ready\n"]
    yield [rank.pid for rank in ranks]
    for rank in ranks:
        rank.kill()
        rank.wait()
        rank.stdin.close()
        rank.stdout.close()


def test_ranks_are_compared_by_name_wherever_the_thread_is(turn_gdb, two_ranks):
    first, second = two_ranks
    ranks = (f"attach {first}", "add-inferior", "inferior 2", f"attach {second}", "inferior 1")
    names = ("hidden", "self.kv[1]", 'batch["ids"]', "elsewhere", "only")
    commands = [f"llm-tensor diff py1:{name} --all-ranks --json" for name in names[:-1]]
    answer = gdb_batch(
        turn_gdb, *LIGHT, *ranks, *commands, f"llm-tensor diff py1:{names[-1]} --all-ranks", "kill inferiors 2"
    )
    groups = [[group["ranks"] for group in one["groups"]] for one in answer.documents]
    assert groups == [[[0, 1]], [[0, 1]], [[0], [1]], [[0, 1]]]
    assert "no variable only" in answer.text


def test_names_in_a_core_file(turn_gdb, two_ranks, tmp_path):
    core = str(tmp_path / "core")
    gdb_batch(turn_gdb, f"attach {two_ranks[0]}", f"generate-core-file {core}", "detach", source=None)
    commands = (
        'llm-tensor p py1:batch["ids"]',
        "llm-tensor p py1:self.kv[1][0]",
        "llm-tensor list --python",
        "llm-tensor p hiden",
    )
    answer = gdb_batch(
        turn_gdb, "set width 200", f"file {os.path.realpath(sys.executable)}", f"core-file {core}", *commands
    )
    assert "[0 1 2 3]" in answer.out and "[7. 8.]" in answer.out
    assert "py1:self.kv[0]" in answer.out and "no variable hiden in py0" in answer.err
