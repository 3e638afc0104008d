"""The JSON contract: every key of it, and nothing that a parser could choke on."""

import json

import pytest
from render_samples import empty, hang, never_came, poisoned, scattered

from gdbext import __version__, render
from gdbext.model.attached_ranks import AttachedRank, RankOutput, RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job, JobSnapshot, RankProcess, RankSnapshot
from gdbext.model.json_documents.answers import ANSWERED, LISTS
from gdbext.model.json_documents.document_row import rows
from gdbext.model.rank_prompts import RankPrompts
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.model.watching import WatchEvent
from gdbext.render.json.document import document, dumps

UNSEEN = {"state": None, "cpu": None, "wchan": None}
HEAD = {"schema": 1, "tool": f"gdbext {__version__}"}


def test_a_diagnosis_is_the_contract():
    got = document(hang(2, 1))
    assert {key: got[key] for key in HEAD} == HEAD
    assert list(got) == [
        "schema",
        "tool",
        "taken_at",
        "pause_ms",
        "processes",
        "verdict",
        "problems",
        "witnesses",
        "hosts",
        "gpu_errors",
    ]
    assert got["taken_at"] == 1792454400.25
    assert got["pause_ms"] == {"max": 3.6, "per_rank": {"0": 3.5, "1": 3.6}}
    assert got["processes"][0] == {
        "index": 0,
        "rank": 0,
        "role": "rank",
        "pid": 4711,
        "host": "node17",
        "engine": "rtp-llm",
        "title": "rtp_llm_rank-0",
        "state": "ok",
        "problems": [],
        "wait": {
            "kind": "nccl-group-launch",
            "thread": "7",
            "frame": 2,
            "collective": "all_reduce",
            "communicator": "0x55d0c0ffee00",
            "op_count": None,
        },
        "threads": [
            {"id": "7", "name": "engine-loop", "kind": "nccl-group-launch", "helper": None, "idle": False, **UNSEEN},
            {
                "id": "8",
                "name": "cuda-EvtHandlr",
                "kind": "condvar-idle",
                "helper": "driver-event",
                "idle": False,
                **UNSEEN,
            },
        ],
        "locks": [],
        "peers": [],
        "clients": [],
        "after": None,
        "kernels": None,
    }
    verdict = got["verdict"]
    assert verdict.pop("summary").startswith("Rank 1 allocates")
    assert verdict.pop("remedies")[1] == {
        "action": "Keep cudaMallocHost off the thread that launches collectives.",
        "reason": "It waits for the whole device.",
    }
    assert verdict.pop("evidence")[0] == {
        "text": "rank 1 is in cudaMallocHost, which waits for the device",
        "process": 1,
        "thread": "7",
        "frame": 3,
    }
    assert verdict == {
        "cause": "implicit-sync-vs-collective",
        "confidence": "high",
        "culprits": [1],
        "victims": [0],
        "absent": [],
        "root": None,
        "chain": [],
        "alternatives": [],
        "unexplained": [],
        "decisive": {"process": 1, "thread": "7"},
        "other_errors": [],
        "missing": ["NCCL operation counts: the library has no symbols"],
        "hangs": True,
        "decided_by": None,
    }


def test_the_unknown_is_null():
    thread = ThreadStack("1", (), name=None)
    got = document(Diagnosis(JobSnapshot((RankSnapshot(0, (thread,)),)), (), Verdict("unknown", "low", "")))
    assert got["taken_at"] is None
    assert got["pause_ms"] == {"max": None, "per_rank": {"0": None}}
    assert got["processes"][0]["rank"] is None
    assert got["processes"][0]["wait"] == {
        "kind": "unknown",
        "thread": None,
        "frame": None,
        "collective": None,
        "communicator": None,
        "op_count": None,
    }
    assert got["processes"][0]["threads"] == [
        {"id": "1", "name": None, "kind": "unknown", "helper": None, "idle": False, **UNSEEN}
    ]
    assert got["verdict"]["decisive"] == {"process": None, "thread": None}


@pytest.mark.parametrize(
    "ranks, keys",
    [((4, 5), ["4", "5"]), ((None, 1), ["0", "1"]), ((1, 1), ["0", "1"])],
    ids=["known", "one unknown", "the same twice"],
)
def test_pauses_go_by_rank_only_where_ranks_tell_processes_apart(ranks, keys):
    processes = tuple(RankSnapshot(index, (), rank=rank) for index, rank in enumerate(ranks))
    got = document(Diagnosis(JobSnapshot(processes), (), Verdict("unknown", "low", "")))
    assert list(got["pause_ms"]["per_rank"]) == keys


def worker(rank):
    return RankProcess(4711 + rank, "rank", rank=rank, labels={"tp": rank})


JOB = Job("pgid 1", "vllm", (worker(0),), (RankProcess(5, "front end"),), 2, (1,), ("a note",))
OTHERS = {
    "jobs": (JOB, JOB),
    "tree": hang(8, 3).tree,
    "threads": (Backtrace(1, 0, ThreadStack("7", (Frame("main"), Frame(None))), (0, None)),),
    "attached": RankTable((AttachedRank(worker(0), 1),), (1,), ("a note",)),
    "outputs": RankOutputs("bt", (RankOutput(worker(0), 1, "#0"),)),
    "hang": hang(8, 3),
    "never came": never_came(),
    "empty": empty(),
    "scattered": scattered(64),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_document_is_plain_versioned_json(name):
    text = dumps(OTHERS[name])
    assert "\n" not in text
    assert json.loads(text) == document(OTHERS[name])
    assert {key: json.loads(text)[key] for key in HEAD} == HEAD


@pytest.mark.parametrize("name", OTHERS)
def test_hostile_text_is_escaped_not_shown(name):
    text = dumps(poisoned(OTHERS[name]))
    assert "\x1b" not in text
    assert not any(ord(character) < 32 for character in text)
    text.encode("utf-8")
    json.loads(text)


def test_jobs():
    got = document((JOB,))["jobs"][0]
    assert got["job"] == "pgid 1"
    assert got["absent"] == [1]
    assert got["ranks"][0]["labels"] == {"tp": 0}
    assert got["others"][0]["role"] == "front end"
    assert document(()) == {**HEAD, "jobs": []}


def test_a_tree_is_a_flat_list_in_which_each_call_names_its_caller():
    leaf = TreeNode("leaf", (1,), threads=3)
    root = TreeNode("main", (0, 1), module="/bin/x", file="m.c", line=4, children=(leaf, TreeNode(None, (0,))))
    task = TreeNode("serve", (0,), threads=9, children=(TreeNode("wait", (0,), threads=9),))
    got = document(StackTree((root,), {"pool": 2}, tasks=(task,)))
    assert [(node["caller"], node["function"], node["threads"]) for node in got["tasks"]] == [
        (None, "serve", 9),
        (0, "wait", 9),
    ]
    assert [(node["id"], node["caller"], node["function"], node["ranks"]) for node in got["nodes"]] == [
        (0, None, "main", [0, 1]),
        (1, 0, "leaf", [1]),
        (2, 0, None, [0]),
    ]
    assert got["counts"] == "rank"
    assert got["folded"] == {"pool": 2}


def test_a_very_deep_tree_can_be_written():
    node = TreeNode("leaf", (0,))
    for _ in range(5000):
        node = TreeNode("call", (0,), children=(node,))
    assert len(json.loads(dumps(StackTree((node,))))["nodes"]) == 5001


@pytest.mark.parametrize("obj", [None, 3, (1,), object(), JobSnapshot(())])
def test_what_has_no_document_says_so(obj):
    with pytest.raises(TypeError, match="no document for"):
        document(obj)


def test_whatever_has_a_document_has_lines():
    """They are looked up by where a type of the model stands."""
    bare = [kind for kind in ANSWERED if kind not in getattr(render._module_of(kind), "RENDERERS", ())]
    assert bare == [WatchEvent, RankPrompts, GdbextError], "their commands print them as they come"
    assert [kind for kind in LISTS if kind not in render._module_of(kind).LIST_RENDERERS] == []


def test_what_has_no_lines_is_said():
    for nothing in (1, (1,), (Job("j", None, ()), 1), [thread() for thread in (object,)]):
        with pytest.raises(TypeError, match="no renderer for"):
            render.render(nothing, render.Style())


@pytest.mark.parametrize("words", ["a-b", "rank:upper", "**", "=rank", "rank??"])
def test_a_row_that_means_nothing_is_an_error(words):
    with pytest.raises(ValueError, match="is not a row"):
        rows(f"pid {words}")
