"""Completion, help, settings and colour inside gdb."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tests.gdb.gdbrun import INIT, Target, Terminal, gdb_batch

pytestmark = pytest.mark.gdb


def completions(gdb, *lines):
    """What gdb completes each line to; a line without `complete ` before it is run."""
    words = [word for line in lines for word in ("echo --\\n", line)]
    answers = gdb_batch(gdb, *words).out.split("--\n")[1:]
    return [answer.splitlines() for answer in answers]


def test_completion(any_gdb):
    with Target("plain", env={"RANK": "12", "WORLD_SIZE": "16"}) as target:
        one, many, apply, command, setting, value, label, _, number, several, every = completions(
            any_gdb,
            "complete llm-attach-all --n",
            "complete llm-attach-all --",
            "complete llm-rank ap",
            "complete llm-rank apply all info thr",
            "complete set llm m",
            "complete set llm color o",
            "complete llm-explain gil",
            f"llm-attach-all {target.pid} --output /dev/null",
            "complete llm-rank 1",
            "complete llm-rank apply 1",
            "complete llm-rank apply ",
        )
    assert one == ["llm-attach-all --name"]
    assert "llm-attach-all --pgid" in many
    assert apply == ["llm-rank apply"]
    assert "llm-rank apply all info threads" in command
    assert "set llm max-pause" in setting
    assert value == ["set llm color off", "set llm color on"]
    assert label == ["llm-explain gil", "llm-explain gil-deadlock"]
    assert "llm-rank 12" in number
    assert "llm-rank apply 12" in several
    assert "llm-rank apply all" in every


def test_values_complete(any_gdb, tmp_path):
    for name in ("answer.json", "again.json", "bundle"):
        (tmp_path / name).touch()
    other = subprocess.Popen(["VLLM::Worker_TP0"], executable=shutil.which("cat"), stdin=subprocess.PIPE)
    with other, Target("plain", env={"RANK": "12", "WORLD_SIZE": "16"}) as target:
        found = completions(
            any_gdb,
            "complete llm-attach-all --engine v",
            "complete llm-attach-all --engine=v",
            "complete llm-check on --engine fast",
            "complete llm-break main --others ",
            "complete llm-break main --action l",
            "complete llm-error cudaErrorIll",
            "complete llm-tensor stats x --where p",
            "complete llm-tensor stats x --dtype bf",
            "complete llm-break li",
            "complete llm-check o",
            f"complete llm-ranks --json --output {tmp_path}/a",
            "complete llm-attach-all ",
            f"llm-attach-all {target.pid} --output /dev/null",
            "complete llm-stacks --json --name",
            "complete llm-bt --ranks 0-3,1",
            "complete llm-break --rank 12 recur",
            f"llm-rank {target.pid}",
            "frame function ncclAllReduce",
            "complete llm-tensor p -1 + datat",
        )
    assert found[:4] == [
        ["llm-attach-all --engine vllm"],
        ["llm-attach-all --engine=vllm"],
        ["llm-check on --engine fastertransformer"],
        [f"llm-break main --others {word}" for word in ("hold", "run", "stop")],
    ]
    assert found[4] == ["llm-break main --action log"]
    assert "llm-error cudaErrorIllegalAddress" in found[5] and len(found[5]) == 3
    assert found[6] == ["llm-tensor stats x --where pinned"]
    assert found[7] == ["llm-tensor stats x --dtype bf16"]
    assert found[8] == ["llm-break list"] and found[9] == ["llm-check off", "llm-check on"]
    assert found[10] == [f"llm-ranks --json --output {tmp_path}/{name}" for name in ("again.json", "answer.json")]
    assert f"llm-attach-all {other.pid}" in found[11], "a rank that runs here, before any attach"
    assert found[13] == ["llm-stacks --json --name"]
    assert found[14] == ["llm-bt --ranks 0-3,12"]
    assert found[15] == ["llm-break --rank 12 recurse"]
    assert found[-1][0] == "llm-tensor p -1 + datatype"


def test_help_and_dash_h_say_the_same(turn_gdb):
    helped, asked = gdb_batch(turn_gdb, "help llm-attach-all", "echo --\\n", "llm-attach-all -h").out.split("--\n")
    options = re.compile(r"^  (-\S+)", re.MULTILINE)
    assert options.findall(helped) == options.findall(asked) != []
    assert helped.startswith("Attach to all ranks of a job")


def test_settings(turn_gdb):
    answer = gdb_batch(
        turn_gdb, "set llm max-pause nan", "set llm max-pause -1", "set llm max-pause 0.25", "show llm max-pause",
        "set llm frames 12", "show llm", "set llm", "set llm nonsense 1", "show llm nonsense",
    )  # fmt: skip
    assert answer.err.count("is a number of seconds") == 2
    assert "llm max-pause: 0.25 (" in answer.out and "llm frames: 12 (" in answer.out
    assert "Traceback" not in answer.text and len(answer.err.splitlines()) == 5


@pytest.mark.parametrize(
    "setting, environment, colored",
    [
        ("auto", {}, False),
        ("on", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, False),
        ("off", {}, False),
    ],
)
def test_colour(turn_gdb, setting, environment, colored):
    """Batch mode turns gdb's own styling off; `auto` follows it."""
    with Target("plain") as target:
        env = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **environment}
        answer = gdb_batch(turn_gdb, f"set llm color {setting}", f"llm-attach-all {target.pid}", env=env)
        styled = gdb_batch(
            turn_gdb, "set style enabled on", f"set llm color {setting}", f"llm-attach-all {target.pid}", env=env
        )
    assert ("\x1b[" in answer.out) == colored
    assert ("\x1b[1m" in styled.out) == (colored or (setting == "auto" and not any(environment.values())))


def test_an_answer_into_a_file(turn_gdb, tmp_path):
    """Text without colour, or a document; never over a file that is there, unless that is wanted."""
    with Target("plain") as target:
        look = f"llm-ranks {target.pid}"
        answer = gdb_batch(
            turn_gdb, "set style enabled on", "set llm color on", f"{look} --json --output {tmp_path}/out.json",
            f"{look} --output {tmp_path}/out.txt", f"{look} --json --output {tmp_path}/out.txt", "echo --\\n",
            f"{look} --output {tmp_path}/out.txt --force",
        )  # fmt: skip
    (document,) = answer.documents
    refused = f"{tmp_path}/out.txt exists"
    assert (document["error"], document["exit"]) == (refused, 2) and refused in answer.err
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o600
    assert json.loads((tmp_path / "out.json").read_text())["ranks"][0]["process"]["pid"] == target.pid
    text = (tmp_path / "out.txt").read_text()
    assert str(target.pid) in text and "\x1b" not in text and not text.startswith("{")
    assert answer.out.splitlines()[-1] == "--"


def test_json_takes_no_value(turn_gdb, tmp_path):
    """A pid stays a pid; a file is taken for one more release."""
    with Target("plain") as target:
        answer = gdb_batch(
            turn_gdb, f"llm-ranks --json {target.pid}", f"llm-ranks {target.pid} --json {tmp_path}/x.json"
        )
    (document,) = answer.documents
    assert document["ranks"][0]["process"]["pid"] == target.pid
    assert json.loads((tmp_path / "x.json").read_text())["ranks"] == document["ranks"]
    assert f"--json takes no value any more: use --json --output {tmp_path}/x.json" in answer.err
    assert str(target.pid) in answer.out.splitlines()[-1] or "Nothing is attached" in answer.out


def test_every_error_is_a_document_too(any_gdb):
    """Of our own, of usage, of gdb, and of a bug."""
    answer = gdb_batch(
        any_gdb,
        "llm-bt --json",
        "llm-ranks --json --engine nope",
        "llm-ranks --json 'unfinished",
        "llm-explain --json gill",
        "llm-tensor p 0x10 --dtype nope --json",
        "llm-stream p --json no_such_symbol",
        "python from gdbext.inside_gdb.session.one_session import session",
        "python session().ranks = lambda: exec('raise ValueError(\"lost\")')",
        "llm-stacks --json",
        "llm-bt",
    )
    assert [document["exit"] for document in answer.documents] == [2, 2, 2, 2, 2, 4, 4]
    assert all(list(document) == ["schema", "tool", "error", "hint", "exit"] for document in answer.documents)
    bug = answer.documents[-1]
    assert bug["error"] == "internal error in llm-stacks: ValueError: lost"
    assert bug["hint"] == "run `set llm debug on` and retry for a traceback"
    assert answer.documents[0]["hint"] == "llm-attach-all attaches the ranks of a job"
    assert len(answer.err.splitlines()) == 8 and "Traceback" not in answer.err


def test_names_of_a_target_in_errors_and_progress_control_no_terminal(any_gdb):
    """Titles, variables, paths and keys of maps stand in them."""
    words = r"rank \x1b]0;owned\x07\u202e\udcff, the end"
    raised = words.replace("\\", r"\\")
    answer = gdb_batch(
        any_gdb,
        "python from gdbext.inside_gdb.session.one_session import session; from gdbext.model.errors import GdbextError",
        f"python session().say('{words}')",
        f"python session().ranks = lambda: exec('raise GdbextError(\"{raised}\")')",
        "llm-ranks",
        f"python session().ranks = lambda: exec('raise ValueError(\"{raised}\")')",
        "llm-ranks",
    )
    assert answer.err.count("the end") == 3, answer.err
    assert "\x1b" not in answer.err and "\x07" not in answer.err and "Traceback" not in answer.err


WHILE_TYPED = """
import ctypes
import gdb
from gdbext.inside_gdb.base.timer import beside_the_line, later

def warn():
    if ctypes.c_int.in_dll(ctypes.CDLL(None), "rl_end").value == 7:
        beside_the_line(lambda: gdb.write("beware\\n", gdb.STDERR))
    else:
        later(0.02, warn)

later(0.02, warn)
"""


def test_a_warning_leaves_a_line_that_is_typed_whole(any_gdb, tmp_path):
    script = tmp_path / "warn.py"
    script.write_text(WHILE_TYPED)
    with Terminal(any_gdb, f"source {INIT}", f"cd {tmp_path}", echo=True) as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.command("source warn.py")
        terminal.send("echo fi")
        said = terminal.expect(r"beware\r\n.*echo fi")
        assert re.search(r"echo fi\r\nbeware\r\n\r?\(gdb\) echo fi\Z", said), said
        assert "fine\r\n" in terminal.command("ne\\n")


def test_our_own_attach_hinders_nobody(turn_gdb):
    with Target("plain", env={"RANK": "0", "WORLD_SIZE": "2"}) as one, Target("plain", env={"RANK": "1"}) as two:
        attached = f"llm-attach-all {one.pid} --output /dev/null"
        both, part = gdb_batch(
            turn_gdb, attached, f"llm-doctor {one.pid} --json", f"llm-doctor {one.pid} {two.pid} --json"
        ).documents
    found = [[point for point in document["points"] if point["name"] == "attach"] for document in (both, part)]
    assert [[point["state"] for point in points] for points in found] == [["ok"], ["ok", "ok"]], found
    assert found[0][0]["text"] == "this gdb is attached to 1 of 1 ranks"
    assert "lets us attach to all 1 others" in found[1][1]["text"]
    assert not any("PID" in point["text"] for point in both["points"])
    memory = next(point for point in both["points"] if point["name"] == "GPU memory")
    assert memory["state"] == ("ok" if "this cuda-gdb" in memory["text"] else "warning")
