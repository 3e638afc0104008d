"""`--explain-verdict`: all that was weighed for an answer, as text and in JSON; nothing of it without the option."""

import json
from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.waits.which_cause_wins import with_contradictions
from gdbext.cli import main
from gdbext.commands import diagnose
from gdbext.commands.argument_parser import help_text, option_names
from gdbext.commands.declared.diagnose import DIAGNOSE
from gdbext.commands.gdb_arguments import parse
from gdbext.knowledge.causes.wait_causes import CAUSES as ROWS
from gdbext.model.considered_hypotheses import LIMITS, REGRADES, SOURCES, Considered, Regrade
from gdbext.model.errors import FINDING
from gdbext.model.locks import LockWait
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.waits import Hypothesis
from gdbext.render import Style, render
from gdbext.render.json.document import document
from gdbext.render.text.verdict.considered_hypotheses import MOST
from tests.unit.stacks import ENGINE, gloo_reducing, inside, job, rank, reducing, sleeping, stack, syncing

LOCKS = ("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6")
READS = ("read@libc.so.6", "receive@engine ipc.cc:9", "main@engine main.cc:9")
ASCII = Style(width=100, unicode=False)
HEADING = "Hypotheses, the best first"


def locked(number, still=None):
    """A rank two threads of which wait for each other."""
    fields = {} if still is None else {"still": still, "switches": 9}
    frames = [(*LOCKS, f"step{lwp}@engine engine.cc:{lwp}", "main@engine main.cc:9") for lwp in (1, 2)]
    threads = [stack(*some, id=str(lwp), lwp=lwp, **fields) for lwp, some in zip((1, 2), frames)]
    return rank(number, *threads, locks=(LockWait(1, "mutex", 0x1000, 2), LockWait(2, "mutex", 0x2000, 1)))


def reads(number):
    return rank(number, stack(*READS))


def deadlock():
    """Rank 1 is in a deadlock; rank 2, in a read, would explain less."""
    return judge(job(reducing(0), locked(1), reads(2), reducing(3)))


def told(diagnosis, style=ASCII):
    """The lines above the answer, which is as it was."""
    lines = render(replace(diagnosis, explains=True), style)
    first = lines.index(HEADING)
    behind = lines.index("", first)
    assert [*lines[:first], *lines[behind + 1 :]] == render(diagnosis, style)
    return lines[first:behind]


def keys(diagnosis):
    return document(replace(diagnosis, explains=True))["verdict"]


def considered(diagnosis, **fields):
    """The same answer, of which other things were weighed."""
    return replace(diagnosis, verdict=replace(diagnosis.verdict, considered=Considered(**fields)))


# --- text ---


def test_every_hypothesis_with_what_speaks_for_and_against_it():
    text = "\n".join(told(deadlock()))
    first, _, second = text.partition("\n  2. ")
    assert "  1. lock-order-deadlock (rule locks), high confidence: the answer\n" in first
    assert "     blames    rank 1\n" in first
    assert "     explains  3 of 3 stuck ranks: ranks 0-1,3\n" in first
    assert "     against   nothing\n" in first
    assert "     weakest   rank 1 -> mutex 0x1000 (mutex, proven) [rank 1, thread 1, frame 0]: thread 1 of" in first
    assert "     chain     ranks 0,3 -> all_reduce -> rank 1 thread 1 -> mutex 0x1000 -> thread 2 (holds it)" in first
    assert "caveat" not in first
    assert second.startswith("missing-rank (rule elsewhere), medium confidence\n")
    assert "     explains  2 of 3 stuck ranks: ranks 0,3; not rank 1\n" in second
    assert f"     caveat    {LIMITS['unexplained']}\n" in second


def test_it_is_wrapped_and_plain_where_it_must_be():
    for width in (60, 80, 100, 160):
        assert all(len(line) <= width for line in told(deadlock(), Style(width=width)))
    assert "\n".join(told(deadlock())).isascii()
    assert any(" → " in line for line in told(deadlock(), Style()))


def test_an_absent_rank_is_blamed_by_its_number():
    ranks = (syncing(0), inside(1, "cudaFree@libcudart.so.12"), reducing(2))
    assert "     blames    rank 3 (no process)" in told(judge(job(*ranks, world_size=4, absent=(3,))))


def test_a_graph_without_an_explanation_says_so():
    text = "\n".join(told(judge(job(syncing(0), syncing(1)))))
    assert "\n  The wait graph has no cycle" in text and "No rank made progress" in text


def test_a_hundred_hypotheses_are_twelve_and_how_many_are_left():
    one = deadlock().verdict.considered.hypotheses[0]
    many = tuple(replace(one, row=f"row{number}") for number in range(100))
    lines = told(considered(deadlock(), hypotheses=many, stuck=(0, 1, 3)))
    assert sum("lock-order-deadlock (rule" in line for line in lines) == MOST == 12
    assert "  ... 88 more, all in --json" in lines
    assert len(lines) < 200


def test_what_comes_from_the_target_is_made_safe():
    found = deadlock()
    best = found.verdict.considered.hypotheses[0]
    node = replace(best.chain[0].source, label="\x1b[31mrank\u202e 1" + "x" * 30_000)
    fact = replace(best.weakest_edge.facts[0], text="\x1b]0;x\x07" + "y" * 30_000)
    edge = replace(best.weakest_edge, source=node, facts=(fact,))
    hostile = replace(best, weakest_edge=edge, contradictions=("\x1b[2J" * 3, *"abcdef"))
    lines = told(considered(found, hypotheses=(hostile,), stuck=(0, 1, 3)))
    assert "\x1b" not in "".join(lines) and len(lines) < 30
    assert any("4 more" in line for line in lines)


# --- what was weighed ---


@pytest.mark.parametrize(
    ("ranks", "row", "limits"),
    [
        ((gloo_reducing(0), sleeping(1), gloo_reducing(2)), "elsewhere", ()),
        ((syncing(0), sleeping(1), syncing(2)), "elsewhere", ("inferred",)),
        ((reducing(0), reads(1), locked(2)), "elsewhere", ("assumed",)),
        ((reducing(0), locked(1), reads(2), reducing(3)), "elsewhere", ("unexplained",)),
    ],
)
def test_why_a_hypothesis_is_not_surer(ranks, row, limits):
    (found,) = (one for one in judge(job(*ranks)).verdict.considered.hypotheses if one.row == row)
    assert found.limits == limits
    assert bool(limits) == (found.confidence != "high")


def test_the_limits_name_what_keeps_the_confidence_down():
    most = {row.id: row.most for row in ROWS}
    looks = [(reducing(0), reads(1), locked(2)), (syncing(0), reads(1)), (syncing(0), syncing(1), sleeping(2))]
    some = [one for ranks in looks for one in judge(job(*ranks)).verdict.considered.hypotheses]
    assert some
    for one in some:
        assert set(one.limits) <= set(LIMITS)
        assert ("row" in one.limits) == (one.confidence == most[one.row] != "high"), one.row
        assert one.weakest_edge is None or one.weakest_edge.strength == one.weakest


def test_a_deadlock_a_thread_of_which_went_on_is_contradicted():
    moved = job(reducing(0), locked(1, still=4), locked(2, still=0), apart=1.5)
    one = next(one for one in judge(moved).verdict.considered.hypotheses if one.row == "locks")
    assert one.contradictions == ("rank 1 moved between two samples",)
    assert (one.confidence, one.limits) == ("medium", ("contradicted",))
    assert deadlock().verdict.considered.hypotheses[0].contradictions == ()
    assert "     against   rank 1 moved between two samples" in told(judge(moved))


def test_a_rank_elsewhere_may_well_go_on():
    away = stack("clock_nanosleep@libc.so.6", "reload@engine x.cc:1", "main@engine", still=3, switches=9)
    found = judge(job(syncing(0), rank(1, away), syncing(2), apart=1.5)).verdict.considered.hypotheses
    (one,) = (one for one in found if one.source == "graph")
    assert one.row == "elsewhere" and not any("rank 1 went on" in text for text in one.contradictions)


def test_progress_that_was_seen_is_the_first_and_speaks_against_the_others():
    polls = ("sched_yield@libc.so.6", "??@libcuda.so.1", "cudaStreamSynchronize@libcudart.so.12", *ENGINE)
    found = judge(job(*(rank(n, stack(*polls, still=5, switches=50)) for n in (0, 1)), apart=1.5))
    first = found.verdict.considered.hypotheses[0]
    assert (first.source, first.row, first.cause) == ("progress", "goes-on", "not-a-hang")
    assert "  1. not-a-hang (progress goes-on), high confidence" in told(found)
    assert found.verdict.considered.answer is None


def hypothesis(source, confidence, weakest="named", circle=False):
    return Hypothesis(source, "other", confidence, (), (), (), (), (), weakest, circle, source=source)


@pytest.mark.parametrize(
    ("one", "against"),
    [
        (hypothesis("graph", "high"), True),
        (hypothesis("idle", "high"), True),
        (hypothesis("logs", "medium"), True),
        (hypothesis("logs", "high"), False),
        (hypothesis("graph", "high", "named", circle=True), True),
        (hypothesis("graph", "high", "proven", circle=True), False),
    ],
)
def test_what_progress_speaks_against(one, against):
    told, going = with_contradictions([one, hypothesis("progress", "medium")])
    assert bool(told.contradictions) == against
    assert bool(going.contradictions) == (one.circle and one.weakest == "proven")


def test_a_log_line_does_not_remove_a_culprit():
    """The line names a cause and nobody: who is to blame stays whom the stacks show."""
    line = "rank 0: NCCL WARN NET/IB : Got completion from peer with status=12 opcode=0 len=0 vendor err 129"
    ranks = (syncing(0), inside(1, "cudaMallocHost@libcudart.so.12"), syncing(2))
    alone = judge(job(*ranks)).verdict
    told = judge(job(*ranks, said=(line,))).verdict
    assert alone.culprits == told.culprits == (1,)


def test_a_line_is_older_than_a_stack_that_shows_the_rank_where_the_others_wait():
    line = "RuntimeError: Rank 2 failed to pass monitoredBarrier in 1800000 ms"
    ranks = (reducing(0), inside(1, "cudaMallocHost@libcudart.so.12"), reducing(2))
    found = judge(job(*ranks, said=(line,))).verdict
    (said,) = (one for one in found.considered.hypotheses if one.source == "logs")
    assert said.culprits == (2,) and said.contradictions == ("rank 2 has reached what the others wait for",)
    assert found.culprits == (1,)


def test_who_changed_the_confidence_is_told():
    ranks = (reducing(0), locked(1), reads(2), reducing(3))
    found = judge(job(*(replace(one, source="text:loose") for one in ranks)))
    assert found.verdict.considered.regrades == (Regrade("unread", "high", "low"),)
    text = " ".join(" ".join(told(found)).split())
    assert f"The confidence of the answer became low, from high: {REGRADES['unread']}." in text
    assert found.verdict.considered.hypotheses[0].confidence == "high"
    assert deadlock().verdict.considered.regrades == ()


def test_of_several_jobs_the_indexes_are_those_of_the_whole_look():
    def of(name, *ranks):
        return [replace(one, environment={"TORCHELASTIC_RUN_ID": name}) for one in ranks]

    look = job(*of("one", sleeping(0), sleeping(1)), *of("two", reducing(0), locked(1), reducing(2)))
    found = judge(look).verdict
    assert found.culprits == (3,)
    assert found.considered.stuck == (2, 3, 4)
    best = found.considered.hypotheses[found.considered.answer]
    assert best.culprits == (3,) and best.weakest_edge.source.process == 3


# --- JSON ---


def test_the_document_has_all_of_them():
    verdict = keys(deadlock())
    first, second = verdict["hypotheses"]
    assert (first["row"], first["cause"], first["agrees"], first["share"]) == ("locks", "lock-order-deadlock", True, 1)
    assert (first["contradictions"], first["limits"], first["weakest"]) == ([], [], "proven")
    (fact,) = first["weakest_edge"]["facts"]
    assert (fact["process"], fact["thread"], fact["frame"]) == (1, "1", 0)
    assert first["chain"] == verdict["chain"]
    assert (second["row"], second["agrees"], second["limits"]) == ("elsewhere", False, ["unexplained"])
    assert (second["explained"], second["unexplained"], second["share"]) == ([0, 2, 3], [1], 0.6667)
    assert {one["source"] for one in verdict["hypotheses"]} == {"graph"} and verdict["regrades"] == []


def test_a_hypothesis_without_an_edge_has_none():
    bare = considered(deadlock(), hypotheses=(Hypothesis("nobody", "other", "low", (), (), (), (), (), "named"),))
    (one,) = keys(bare)["hypotheses"]
    assert one["weakest_edge"] is None and one["chain"] == []
    assert "     explains  no rank is in a collective, a lock or a set-up" in told(bare)


def test_what_a_log_says_is_one_of_the_hypotheses():
    line = "Watchdog caught collective operation timeout"
    found = keys(
        judge(job(syncing(0), sleeping(1), said=("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", line)))
    )
    (one,) = (one for one in found["hypotheses"] if one["source"] == "logs")
    assert (one["row"], one["cause"]) == ("told-by-log", "gpu-fault") and one["source"] in SOURCES


def test_without_the_option_nothing_of_it_is_there():
    found = deadlock()
    assert found.explains is False and found.verdict.considered.hypotheses
    assert not {"hypotheses", "regrades"} & set(document(found)["verdict"])
    assert HEADING not in render(found, ASCII)


# --- the option ---


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "look.json"
    path.write_text(dump_snapshot(job(reducing(0), locked(1), reads(2), reducing(3))))
    return str(path)


def test_the_shell_has_it(saved, capsys):
    assert main.main(["diagnose", saved, "-q", "--explain-verdict"]) == FINDING
    assert HEADING in capsys.readouterr().out
    assert main.main(["diagnose", saved, "-q"]) == FINDING
    assert HEADING not in capsys.readouterr().out
    assert main.main(["diagnose", saved, "-q", "--json", "--explain-verdict"]) == FINDING
    assert len(json.loads(capsys.readouterr().out)["verdict"]["hypotheses"]) == 2


def test_the_shell_tells_of_it(capsys):
    with pytest.raises(SystemExit):
        main.main(["diagnose", "--help"])
    assert "--explain-verdict" in capsys.readouterr().out


def test_gdb_has_it_in_help_and_completion():
    assert "--explain-verdict" in help_text(DIAGNOSE) and "--explain-verdict" in option_names(DIAGNOSE)
    assert parse(DIAGNOSE, "--explain-verdict").explain_verdict is True
    assert parse(DIAGNOSE, "").explain_verdict is False


class Session:
    ranks = staticmethod(lambda: [1])
    snapshot = staticmethod(lambda: job(reducing(0), locked(1)))
    with_engine_processes = staticmethod(lambda snapshot: snapshot)


@pytest.mark.parametrize(("line", "explains"), [("", False), ("--explain-verdict", True)])
def test_gdb_passes_it_on(line, explains):
    assert diagnose.diagnose(Session(), parse(DIAGNOSE, line)).explains is explains
