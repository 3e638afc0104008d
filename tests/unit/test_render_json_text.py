"""No character of a name reaches a terminal alive, by whatever document: `jq -r` prints strings as they are."""

import ast
import dataclasses
import json
import random

import pytest

from gdbext.analysis.communicators.joined_communicators import communicator_table
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.json_documents.answers import ANSWERED, LISTS
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render import Style, dumps
from gdbext.render.json.json_text import Lines, escape_live_characters, json_text
from gdbext.render.safe_text import clean, is_live
from tests.fuzz.making import Maker
from tests.unit.product_sources import sources

LIVE = {
    "C0": "\x00\x07\x08\x0b\x0c\r\x1b",
    "DEL": "\x7f",
    "C1": "\x80\x84\x85\x90\x9b\x9d",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e",
    "bidirectional": "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "separators": "\u2028\u2029",
    "tags": "\U000e0001\U000e0041\U000e007f",
    "variation selectors": "\ufe00\ufe0f\U000e0100\U000e01ef\u180b",
    "fillers": "\u115f\u1160\u3164\uffa0\u034f\u17b4",
    "half characters": "\ud800\udbff\udc00",
    "bytes that are no UTF-8": "\udc80\udcff",
    "private and unassigned": "\ue000\U0010fffd\uffff\U000e0fff",
    "annotations": "\ufff9\ufffa\ufffb",
}
HARMLESS = "größe 日本 \u00a0\u3000 😀 e\u0301 \\u202e \\ \" '"
POISON = "".join(LIVE.values())


def strings(value):
    """Every string in a document, names of members too; those that may have lines are told apart by `json.loads` no
    more, so callers allow for them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from (name, *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def assert_tame(text, kept=""):
    assert text.isascii() and text.isprintable(), "one line that any stream can take"
    found = list(strings(json.loads(text, parse_constant=pytest.fail)))
    assert not [one for one in found if any(is_live(letter) and letter not in kept for letter in one)]
    return found


@pytest.mark.parametrize("kind", LIVE)
def test_each_of_them_is_live(kind):
    for character in LIVE[kind]:
        assert is_live(character), f"U+{ord(character):04X}"
        assert escape_live_characters(f"a{character}b") == f"a{escape_live_characters(character)}b"
        assert escape_live_characters(character).isprintable() and escape_live_characters(character).isascii()
        assert not any(map(is_live, clean(f"a{character}b", Style())))


def test_what_people_write_stays():
    assert escape_live_characters(HARMLESS) == HARMLESS
    assert json.loads(json_text({HARMLESS: [HARMLESS]})) == {HARMLESS: [HARMLESS]}


def test_words_for_them():
    assert (
        escape_live_characters("\x1b[2J\n\t\x9b\u202e\udcff\U000e0041")
        == "\\u001b[2J\\n\\t\\u009b\\u202e\\udcff\\U000e0041"
    )


def test_lines_stay_where_somebody_laid_them_out():
    assert json.loads(json_text([Lines("#0\tmain\n#1\x1b[2J"), "a\nb"])) == ["#0\tmain\n#1\\u001b[2J", "a\\nb"]


def test_what_json_has_no_number_for_is_null():
    assert json_text({"a": float("nan"), "b": [float("inf"), 1.5]}) == '{"a": null, "b": [null, 1.5]}'


@pytest.mark.parametrize("kind", [one for one in ANSWERED if one is not GdbextError], ids=lambda kind: kind.__name__)
def test_every_document(kind):
    for seed in range(4):
        made = Maker(random.Random(seed), [f"name{POISON}\n\t"], full=True).of(kind)
        if kind is CommunicatorTable:  # its members are numbers of its processes
            numbered = enumerate(made.processes)
            made = communicator_table([dataclasses.replace(one, index=number) for number, one in numbered])
        found = assert_tame(dumps(made), kept="\n\t")
        assert any("\\u202e" in one for one in found), "the name is there, written out"


@pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)
def test_every_list(kind):
    made = Maker(random.Random(1), [f"name{POISON}"], full=True).of(kind)
    assert any("\\u202e" in one for one in assert_tame(dumps((made, made))))


def test_names_have_no_lines():
    stack = ThreadStack("1\n", (Frame("f\n"),), name="a\nb")
    look = JobSnapshot((RankSnapshot(0, (stack,), title="x\nrank 1 is well"),))
    assert_tame(dumps(Diagnosis(look, (), Verdict("unknown", "low", ""))))


def test_errors():
    found = assert_tame(dumps(GdbextError(f"{POISON}\n\t", POISON)), kept="\n\t")
    assert any("\\u202e" in one for one in found)


def test_what_is_kept_comes_back_as_it_was():
    """But for halves of characters, which no text has."""
    whole = POISON.translate(dict.fromkeys(map(ord, LIVE["half characters"])))
    job = JobSnapshot((RankSnapshot(0, (), title=whole, environment={whole: whole}, said=(POISON,)),))
    text = dump_snapshot(job)
    assert text.isascii() and text.replace("\x7f", "").isprintable()
    (process,) = load_snapshot(text).processes
    assert (process.title, process.environment) == (whole, {whole: whole})
    assert "\N{REPLACEMENT CHARACTER}" in process.said[0]


PROTOCOLS = {
    "analysis/tensors/arithmetic/calculator.py": "requests to our own helper",
    "analysis/tensors/tensor_files.py": "the head of a safetensors file",
    "analysis/tensors/arithmetic/helper_process.py": "answers of our own helper",
    "inside_gdb/stacks/read_copies.py": "the result of our own gdb",
    "inside_gdb/ranks/killed_gdb.py": "requests to our own helper",
    "witnesses/nvml_child.py": "the answer of our own child",
    "collect/gdb_runs/batch_runs.py": "requests to our own gdb",
    "collect/hosts/fan_out.py": "requests to our program on another host",
    "collect/hosts/on_host.py": "answers of our program on another host",
    "cli/pdb/inject.py": "a script that is injected, and its answer",
    "cli/profiler/profile_guard.py": "requests to our own child",
    "cli/profiler/profile_http.py": "requests to a server",
    "cli/run_settings.py": "MindSpore's dump file, which it takes as it is",
    "traces/trace_event.py": "merged traces, for viewers; ASCII",
    "cli/schema.py": "looks for references in a part of the schema",
    "model/json_documents/json_schema.py": "the schema of answers; ASCII",
    "cli/vscode.py": "launch.json, whose values VS Code takes as they are; ASCII",
    "discovery/preflight_checks/pod_lacks.py": "a patch that a user hands to kubectl",
    "model/snapshot_files/codec.py": "snapshots, which are kept as they were; ASCII",
    "safe_open/slow_mounts.py": "requests to our own child",
    "safe_open/slow_mounts_child.py": "answers of our own child",
    "rankpdb/host_folder.py": "between ranks and terminals",
    "rankpdb/wire.py": "between ranks and terminals",
    "render/json/json_text.py": "this is it",
}

FORMS_OF_OTHERS = {
    "render/formats/firefox.py": "a file for the Firefox profiler",
    "render/formats/speedscope.py": "a file for speedscope",
    "render/html/page_data.py": "what a page shows, for its own script",
}
"""Who writes JSON by `json_text` that is no answer."""


def test_nobody_else_writes_json():
    writers = set()
    for name, source in sources().items():
        calls = [ast.unparse(node) for node in ast.walk(source.tree) if _is_attribute(node)]
        if {"json.dump", "json.dumps", "json.JSONEncoder"} & set(calls):
            writers.add(name)
        if not name.startswith("render/json/") and name not in FORMS_OF_OTHERS:
            assert "json_text" not in source.text, f"{name}: answers have rows in model/json_documents"
    assert writers <= set(PROTOCOLS), "answers are written by render/json/json_text.py"
    assert set(PROTOCOLS) <= writers | {"cli/pdb/inject.py"}, "a row without a writer"


def _is_attribute(node):
    return isinstance(node, ast.Attribute)
