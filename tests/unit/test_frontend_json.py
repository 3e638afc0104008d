"""`--json` takes no value and answers with one document, also where the answer is an error; `--output` names a file."""

import json

import pytest

from gdbext.cli import explain, main
from gdbext.model.errors import FINDING, OK, USAGE
from tests.docs_scenes import ROOT

TEXT = str(ROOT / "tests/data/field/nccl-warn-ib.txt")


def document(capsys):
    """stdout has one document, whatever the error, and stderr the line for people."""
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert "Traceback" not in printed.err
    return json.loads(line)


@pytest.mark.parametrize(
    ("words", "error", "hint", "status"),
    [
        (["diagnose", "no/such.txt", "--json"], "cannot read no/such.txt: No such file or directory", None, 4),
        (["diagnose", "--json", "--engine", "nope"], "unknown engine 'nope'", "known engines are ", 2),
        (["diagnose", "--json", "--samples", "x"], "diagnose: argument --samples: invalid int value: 'x'", "--help", 2),
        (["stacks", "--json", "--no-such-option"], "stacks: unknown option '--no-such-option'", "Did you mean", 2),
        (["diagnos", "--json"], "unknown command 'diagnos'", "Did you mean 'diagnose'?", 2),
        (["ranks", "--json", "x"], "ranks: argument PID: not a process id: x", "--help", 2),
        (["ranks", "1", "--json", "x"], "argument PID: not a process id: x", "--help", 2),
        (["comms", "--json", "4194304"], "no process 4194304 is running", "ranks`", 4),
        (["explain", "--json", "gill"], "unknown label 'gill'", "gil", 2),
        (["error", "--json", "nope"], "unknown error 'nope'", "give a number such as 700", 2),
        (
            ["watch", "--json", "--every", "0"],
            "--still, --every, --keep and --spinning-after must be positive",
            None,
            2,
        ),
        (["pdb", "--json", "--deadline", "x"], "pdb: argument --deadline: invalid float value: 'x'", "--help", 2),
    ],
)
@pytest.mark.process
def test_every_error_is_a_document_too(words, error, hint, status, capsys):
    assert main.main(words) == status
    answer = document(capsys)
    assert list(answer) == ["schema", "tool", "error", "hint", "exit"]
    assert (answer["schema"], answer["error"], answer["exit"]) == (1, error, status)
    assert (answer["hint"] or "").find(hint or "") >= 0


@pytest.mark.parametrize(
    ("raised", "error", "status"),
    [
        (KeyboardInterrupt(), "interrupted; every process keeps running", 130),
        (MemoryError(), "out of memory", 4),
        (ValueError("lost"), "internal error: ValueError: lost", 4),
    ],
)
def test_what_nobody_expected_is_a_document_too(raised, error, status, monkeypatch, capsys):
    def fails(_):
        raise raised

    monkeypatch.delenv("GDBEXT_TRACEBACK", raising=False)
    monkeypatch.setattr(explain, "explain", fails)
    assert main.main(["explain", "--json"]) == status
    answer = document(capsys)
    assert answer["error"].startswith(error) and answer["exit"] == status


def test_an_error_behind_the_answer_leaves_it_the_only_document(capsys):
    assert main.main(["diagnose", TEXT, "--json", "--save", "/proc/self/fd/none"]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"]
    assert "cannot write /proc/self/fd/none" in printed.err


def test_without_json_an_error_is_on_stderr_alone(capsys):
    assert main.main(["diagnose", "no/such.txt"]) == 4
    assert capsys.readouterr() == ("", "gdbext: cannot read no/such.txt: No such file or directory\n")


@pytest.mark.process
def test_a_program_that_is_started_keeps_its_options(capsys):
    assert main.main(["run", "/no/such/program", "--json"]) == 4
    assert capsys.readouterr().out == ""


@pytest.mark.process
def test_pids_and_files_may_stand_behind_it(capsys):
    assert main.main(["ranks", "4194304", "--json", "4194305"]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["jobs"] == []
    assert "4194304" in printed.err and "4194305" in printed.err
    assert main.main(["diagnose", "-q", "--json", TEXT]) == FINDING
    assert document(capsys)["verdict"]["cause"] == "network-transport"
    assert main.main(["explain", "--json", "gil"]) == OK
    assert document(capsys)["label"] == "gil"


@pytest.mark.parametrize("form", [["--json"], []])
def test_output_names_a_file(form, tmp_path, capsys):
    target = tmp_path / "answer"
    words = ["diagnose", TEXT, *form, "--output", str(target)]
    assert main.main(words) == FINDING
    printed = capsys.readouterr()
    assert printed.out == "" and f"answer written to {target}\n" in printed.err
    text = target.read_text()
    assert target.stat().st_mode & 0o777 == 0o600 and "\x1b" not in text
    assert (json.loads(text)["verdict"]["cause"] if form else text) and "network-transport" in text
    target.write_text("old")
    assert main.main(words) == USAGE
    printed = capsys.readouterr()
    assert f"{target} exists; choose another name; --force overwrites it" in printed.err
    assert target.read_text() == "old"
    assert main.main([*words, "--force"]) == FINDING
    assert target.read_text() == text


def test_a_file_behind_json_is_written_for_one_more_release(tmp_path, capsys):
    target = tmp_path / "hang.json"
    assert main.main(["diagnose", TEXT, "-q", "--json", str(target)]) == FINDING
    printed = capsys.readouterr()
    assert "network-transport (" in printed.out, "as it was: the text to stdout"
    assert printed.err.startswith("gdbext: --json takes no value any more: use --json --output ")
    assert json.loads(target.read_text())["verdict"]["cause"] == "network-transport"


def test_a_look_is_not_overwritten_but_read(tmp_path, capsys):
    """`gdbext diagnose x.txt --json hang.json` replaced a look that was there."""
    target = tmp_path / "hang.json"
    assert main.main(["diagnose", TEXT, "-q", "--save", str(target)]) == FINDING
    kept = target.read_text()
    capsys.readouterr()
    assert main.main(["diagnose", "-q", "--json", str(target)]) == FINDING
    assert document(capsys)["verdict"]["cause"] == "network-transport"
    assert main.main(["diagnose", TEXT, "--json", str(target)]) == USAGE
    assert "hang.json is a snapshot" in document(capsys)["error"]
    assert main.main(["ranks", "--json", str(target)]) == USAGE
    assert "exists, and --json takes no value any more" in document(capsys)["error"]
    assert target.read_text() == kept


def test_a_dash_behind_json_is_left_out_beside_other_inputs(capsys):
    assert main.main(["diagnose", "-q", "--json", "-", TEXT]) == FINDING
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"]["cause"] == "network-transport"
    assert printed.err == "gdbext: --json takes no value any more: leave the - out\n"
