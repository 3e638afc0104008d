"""`llm-tensor list --python`: the torch tensors in the Python frames of the selected thread, by names."""

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


def test_tensors_by_the_names_of_the_program(turn_gdb, process):
    pid, hidden, shared = process
    commands = ("llm-tensor list --python --json", f"llm-tensor p {shared} --as pyobject", "llm-tensor list --python")
    light = ("set auto-solib-add off", "set width 200", f"attach {pid}")  # 6 s less
    answer = gdb_batch(turn_gdb, *light, *commands, "detach")
    (listed,) = answer.documents
    found = {one["name"]: one for one in listed["tensors"]}
    assert set(found) == {
        "inner.weight", "inner.shared", "inner.hidden", "inner.empty",
        "Layer.forward.hidden", "Layer.forward.transposed", "Layer.forward.shared", "Layer.forward.empty",
    } | {name for name in found if name.startswith("Module.")}  # fmt: skip
    assert (found["Layer.forward.hidden"]["dtype"], found["Layer.forward.hidden"]["shape"]) == ("fp32", [2, 3])
    assert found["Layer.forward.transposed"]["shape"] == [3, 2] and found["Layer.forward.transposed"]["strides"] == [
        1,
        3,
    ]
    assert (found["inner.shared"]["dtype"], found["inner.shared"]["where"]) == ("int16", "cpu")
    assert (found["Layer.forward.empty"]["dtype"], found["Layer.forward.empty"]["shape"]) == ("bf16", [0, 3])
    assert found["inner.weight"]["shape"] == [2, 2]
    assert found["inner.hidden"]["notes"][0] == found["Layer.forward.hidden"]["notes"][0] == hidden
    assert "[0 1 2 3]" in answer.out  # the command that the list names
    assert f" {shared}\n" in answer.out
    assert "llm-tensor p NOTE --as pyobject shows one" in answer.out
    assert "variables at the top level of a module are not read (1 frame)" in answer.out
    assert "not a tensor" not in answer.text and "password" not in answer.text


def test_another_thread_and_what_has_no_python(process):
    pid, *_ = process
    other = "thread apply all -s -q llm-tensor list --python"
    answer = gdb_batch("gdb", "set auto-solib-add off", f"attach {pid}", other, "detach")
    assert "elsewhere.on_another_thread" in answer.out
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            without = gdb_batch("gdb", f"attach {sleeper.pid}", "llm-tensor list --python")
        finally:
            sleeper.kill()
    assert "there is no torch in this process (no libc10.so is loaded)" in without.err
    assert "llm-tensor list --python" not in without.out
