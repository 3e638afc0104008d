"""The JSON schema of every answer: current, valid, and what documents of any object are like."""

import json

import jsonschema
import model_samples
import pytest

from gdbext.cli.main import main
from gdbext.model.errors import OK, USAGE, GdbextError
from gdbext.model.json_documents.answers import ANSWERED, ANSWERS, LISTS
from gdbext.model.json_documents.json_schema import laid_out, whole_schema
from gdbext.render import dumps
from tests import checked_json

SCHEMA = whole_schema()
WRITTEN = laid_out(SCHEMA)
KINDS = [kind for kind in ANSWERED if kind is not GdbextError]


def test_the_text_is_the_schema():
    assert json.loads(WRITTEN) == SCHEMA and WRITTEN.isascii()
    assert max(map(len, WRITTEN.splitlines())) <= 240, "what fits on a line stands on one"


def test_every_reference_leads_somewhere():
    wanted = {part.partition('"')[0] for part in WRITTEN.split('"$ref": "#/$defs/')[1:]}
    assert wanted == set(SCHEMA["$defs"]), "no definition is missing, and none is unused"
    assert set(ANSWERS) <= wanted


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("sample", ["full", "bare", "missing"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_documents_fit(kind, sample):
    made = getattr(model_samples, sample)(kind)
    checked_json.check(json.loads(dumps(made)))
    if kind in LISTS:
        checked_json.check(json.loads(dumps((made, made))))


@pytest.mark.parametrize(
    "document",
    [
        {"error": "lost", "hint": None},
        {"error": 3, "hint": None, "exit": 4},
        {"error": "lost", "hint": None, "exit": 4, "new": 1},
        {"files": [], "taken_at": None, "hosts": []},
    ],
    ids=["a key is missing", "a wrong type", "a key too many", "no answer"],
)
def test_what_is_no_answer_is_noticed(document):
    with pytest.raises(AssertionError):
        checked_json.check({"schema": 1, "tool": "gdbext 0", **document})


def test_the_command_prints_all_or_one(capsys):
    assert (main(["schema"]), capsys.readouterr().out) == (OK, WRITTEN + "\n")
    assert main(["schema", "explain"]) == OK
    one = json.loads(capsys.readouterr().out)
    assert [form["required"][2] for form in one["anyOf"]] == ["label", "causes"]
    assert sorted(one["$defs"]) == ["Origin", "Remedy", "Sign"], "what the answers of this command need"
    assert main(["schema", "run"]) == USAGE
    assert "run has no schema; known are diagnose, stacks" in capsys.readouterr().err
