"""The wait chain in the answer and in the document."""

import dataclasses
import json
from pathlib import Path

from gdbext.analysis.verdict.judge import judge
from gdbext.model.evidence import Evidence
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.model.waits import Edge, Hypothesis, Node
from gdbext.render import Style, render
from gdbext.render.formats.dot import graph
from gdbext.render.json.document import dumps
from gdbext.render.text.verdict.chain import MOST, chain_text
from tests.unit.render_samples import hang
from tests.unit.stacks import gloo_reducing, job, sleeping

DEMO = Path(__file__).resolve().parents[2] / "gdbext" / "demo"
RANKS = Node("rank:0", "rank", "ranks 0,2-3", 0, "1", 100)
REDUCE = Node("collective:0", "collective", "all_reduce")
CULPRIT = Node("rank:1", "rank", "rank 1", 1, "5", 101)
CACHE = Node("lock:1", "lock", "mutex serve::cache")
LOADER = Node("thread:1:7", "thread", "thread 7 weight-loader", 1, "7", 101)
PIPE = Node("peer:1", "peer", "read(pipe:[4711])")
TOKENIZER = Node("pid:880", "process", "pid 880 (tokenizer)", pid=880, state="stopped")
CHAIN = (
    Edge(RANKS, REDUCE, "gloo", "named", (Evidence("ranks 0,2-3 are in all_reduce", 0, "1", 2),)),
    Edge(REDUCE, CULPRIT, "member", "inferred"),
    Edge(CULPRIT, CACHE, "mutex", "proven"),
    Edge(CACHE, LOADER, "holds", "proven"),
    Edge(LOADER, PIPE, "io", "proven", needs="any"),
    Edge(PIPE, TOKENIZER, "other end", "proven", needs="any"),
)
PLAIN = Style(width=100, unicode=False)


def chained(chain=CHAIN):
    sample = hang(4, 1)
    verdict = dataclasses.replace(sample.verdict, chain=chain, root=chain[-1].target if chain else None)
    return dataclasses.replace(sample, verdict=verdict)


def test_the_chain_in_one_line():
    assert chain_text(CHAIN, Style()) == (
        "ranks 0,2-3 → all_reduce → rank 1 thread 5 → mutex serve::cache → thread 7 weight-loader (holds it) → "
        "read(pipe:[4711]) → pid 880 (tokenizer), stopped"
    )
    assert " -> " in chain_text(CHAIN, PLAIN) and chain_text(CHAIN, PLAIN).isascii()
    assert chain_text((), Style()) == ""


def test_a_circle_says_so():
    circle = (Edge(CULPRIT, CACHE, "mutex", "proven"), Edge(CACHE, CULPRIT, "holds", "proven"))
    assert chain_text(circle, Style()).endswith("rank 1 (holds it, cycle)")


def test_a_circle_over_gpus_leads_back_to_its_first_rank():
    """The GPUs run two collectives, which counters of the communicators name; no number that counts other things."""
    for scenario, way in (
        (
            "cublas-first-use",
            "rank 0 → GPU of rank 0 → all_reduce → rank 1 → GPU of rank 1 → all_gather → rank 0 (cycle)",
        ),
        ("collective-mismatch", "rank 1 → all_gather → rank 0 → all_reduce → rank 1 (cycle)"),
        (
            "collective-mismatch-count",
            "rank 1 → all_reduce of 2048 elements → rank 0 → all_reduce of 4096 elements → rank 1 (cycle)",
        ),
    ):
        looked = load_snapshot((DEMO / f"{scenario}.json").read_bytes())
        assert chain_text(judge(looked).verdict.chain, Style()) == way


def test_it_is_wrapped_at_the_width_and_stands_below_the_suspect():
    for width in (60, 80, 100):
        lines = render(chained(), Style(width=width))
        assert all(len(line) <= width for line in lines)
        first = next(number for number, line in enumerate(lines) if line.startswith("  chain    ranks 0,2-3 → "))
        assert lines[first - 1].startswith("  suspect")
        assert lines[first + 1].startswith("           ")
    assert not any("chain" in line for line in render(chained(()), Style()))


def test_a_long_one_and_a_hostile_one_stay_short():
    nodes = [Node(str(number), "thread", f"\x1b[31mthread {number} " + "x" * 500) for number in range(200)]
    chain = tuple(Edge(one, other, "condvar-idle", "named") for one, other in zip(nodes, nodes[1:]))
    text = chain_text(chain, PLAIN)
    assert text.count("->") == MOST and "\x1b" not in text and len(text) < 1000
    assert len(render(chained(chain), PLAIN)) < 60


def test_a_remark_is_neither_dead_nor_a_process():
    nobody = Node("process:peer", "process", "no other process has it open", state="dead")
    someone = Node("pid:880", "process", "pid 880 (tokenizer)", pid=880, state="dead")
    pipe = Node("peer:1", "peer", "read(pipe:[4711])")
    assert chain_text((Edge(pipe, nobody, "other end", "inferred"),), PLAIN).endswith("-> no other process has it open")
    assert chain_text((Edge(pipe, someone, "other end", "proven"),), PLAIN).endswith("-> pid 880 (tokenizer), dead")
    drawn = "\n".join(graph(chained((Edge(pipe, nobody, "condvar-idle", "inferred"),)), None))
    assert '[label="no other process has it open", shape=plaintext]' in drawn and '[label="wait-or-poll"]' in drawn
    assert 'label="pid 880 (tokenizer), dead", shape=box' in "\n".join(
        graph(chained((Edge(pipe, someone, "other end", "proven"),)), None)
    )


def test_the_document_has_nodes_and_facts():
    verdict = json.loads(dumps(chained()))["verdict"]
    first = verdict["chain"][0]
    assert first["from"] == {
        "id": "rank:0", "kind": "rank", "label": "ranks 0,2-3", "process": 0, "thread": "1", "pid": 100, "state": None,
    }  # fmt: skip
    assert (first["kind"], first["strength"], first["needs"]) == ("gloo", "named", "all")
    assert first["facts"] == [{"text": "ranks 0,2-3 are in all_reduce", "process": 0, "thread": "1", "frame": 2}]
    assert verdict["chain"][-1]["to"]["pid"] == 880
    assert (verdict["root"]["kind"], verdict["root"]["state"]) == ("process", "stopped")


def test_text_and_document_tell_the_same_chain():
    found = judge(job(gloo_reducing(0), sleeping(1), gloo_reducing(2), gloo_reducing(3)))
    labels = [one["to"]["label"] for one in json.loads(dumps(found))["verdict"]["chain"]]
    (line,) = (line for line in render(found, Style(width=120)) if line.startswith("  chain"))
    assert line == f"  chain    ranks 0,2-3 → {' → '.join(labels)}"
    assert labels == ["all_reduce", "rank 1"]


def test_what_is_left_and_a_close_second_are_said():
    found = judge(job(gloo_reducing(0), sleeping(1), gloo_reducing(2)))
    own = found.verdict
    second = dataclasses.replace(_hypothesis(own), cause="other", confidence=own.confidence)
    both = dataclasses.replace(own, alternatives=(second,), unexplained=(2,))
    lines = render(dataclasses.replace(found, verdict=both), Style(width=120))
    assert "  suspect  rank 1 (pid 1001); holding up ranks 0,2; not explained: rank 2" in lines
    assert any(line.startswith("  or       other, rank") for line in lines)
    document = json.loads(dumps(dataclasses.replace(found, verdict=both)))["verdict"]
    assert document["unexplained"] == [2]
    assert document["alternatives"][0]["cause"] == "other"


def _hypothesis(verdict):
    root = (verdict.root,)
    return Hypothesis("elsewhere", "missing-rank", "high", root, verdict.chain, root, (0, 1, 2), (), "named")
