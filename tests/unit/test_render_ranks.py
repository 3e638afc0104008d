"""Tables of jobs, ranks and attached inferiors, and the lines of errors."""

import pytest
from render_samples import hang, poisoned

from gdbext.model.attached_ranks import AttachedRank, RankOutput, RankOutputs, RankTable
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.job import Job, JobSnapshot, RankProcess
from gdbext.render import Style, render

STYLE = Style(100)


def worker(rank, **more):
    known = {"device": f"cuda:{rank}", "threads": 109, "state": "S", "rank_source": "title", "labels": {"tp": rank}}
    return RankProcess(4711 + rank, "rank", "vllm", f"VLLM::Worker_TP{rank}", rank, **{**known, **more})


JOB = Job(
    "pgid 4711",
    "vllm",
    (worker(0), worker(1, state="D"), worker(2)),
    (RankProcess(4700, "front end"), RankProcess(4701, "engine core")),
    world_size=4,
    absent=(3,),
    notes=("Titles are all that is known of pid 4712.",),
)


def test_a_job():
    assert render(JOB, STYLE) == [
        "vllm: 3 of 4 ranks (pgid 4711)",
        "rank   pid  title             device  groups  threads  state                      rank from",
        "----  ----  ----------------  ------  ------  -------  -------------------------  ---------",
        "   0  4711  VLLM::Worker_TP0  cuda:0  tp0         109  sleeping                   title",
        "   1  4712  VLLM::Worker_TP1  cuda:1  tp1         109  blocked in the kernel (D)  title",
        "   2  4713  VLLM::Worker_TP2  cuda:2  tp2         109  sleeping                   title",
        "Rank 3: no process found on this host.",
        "Also of this job: front end (pid 4700), engine core (pid 4701)",
        "Titles are all that is known of pid 4712.",
    ]


def test_several_jobs_none_and_one_of_which_little_is_known():
    bare = Job("pid 99", None, (RankProcess(99, "rank"),))
    lines = render((JOB, bare), STYLE)
    assert lines[:2] == ["2 jobs on this host", ""]
    assert lines[-4:] == ["job: 1 rank (pid 99)", "rank  pid  rank from", "----  ---  ---------", "   ?   99  unknown"]
    assert render((JOB,), STYLE) == render(JOB, STYLE)
    assert render((), STYLE) == ["No rank process was found on this host, or none that the options select."]


def test_attached_ranks():
    refused = "held by another tracer (pid 77)"
    shown = RankTable(
        (
            AttachedRank(worker(0), 1, state="stopped", attach_ms=310.0, held_ms=4100.5, current=True),
            AttachedRank(worker(1), state="not attached", problem=refused),
        ),
        absent=(2, 3),
        notes=("All stay stopped until llm-detach-all.",),
    )
    assert render(shown, STYLE) == [
        "rank  inferior   pid  title             device  threads  state         stopped for  attach",
        "----  --------  ----  ----------------  ------  -------  ------------  -----------  ------",
        " * 0         1  4711  VLLM::Worker_TP0  cuda:0      109  stopped             4.1 s  310 ms",
        "   1         -  4712  VLLM::Worker_TP1  cuda:1      109  not attached            -       -",
        "Ranks 2-3: no process found on this host.",
        "rank 1: held by another tracer (pid 77)",
        "All stay stopped until llm-detach-all.",
    ]


def test_what_gdb_printed_keeps_its_columns_but_not_its_escapes():
    outputs = RankOutputs(
        "bt 1",
        (
            RankOutput(worker(0), 1, "#0  main ()\n    at \x1b[32mmain.cc\x1b[0m:3\n"),
            RankOutput(RankProcess(88, "rank"), 2, error="No stack.\x07"),
        ),
    )
    assert render(outputs, STYLE) == [
        "rank 0 (inferior 1)",
        "#0  main ()",
        "    at main.cc:3",
        "pid 88 (inferior 2)",
        "No stack.",
    ]


def test_snapshots_of_ranks():
    snapshot = hang(3, 1).snapshot
    assert render(snapshot.processes, STYLE) == [
        "rank   pid  title           threads  state   pause  host",
        "----  ----  --------------  -------  -----  ------  ------",
        "   0  4711  rtp_llm_rank-0        2  ok     3.5 ms  node17",
        "   1  4712  rtp_llm_rank-1        2  ok     3.6 ms  node17",
        "   2  4713  rtp_llm_rank-2        2  ok     3.7 ms  node17",
    ]
    assert render(snapshot, STYLE) == render(snapshot.processes, STYLE)
    assert render(JobSnapshot((), problems=("no permission",)), STYLE) == ["No process was read.", "no permission"]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("unicode", [False, True])
def test_hostile_titles_neither_widen_nor_colour_a_table(width, unicode):
    style = Style(width, unicode=unicode)
    attached = RankTable((AttachedRank(worker(1), 1, True, "stopped", problem="refused " * 40),), (3,), ("note " * 50,))
    for shown in (poisoned(JOB), poisoned((JOB, JOB)), poisoned(attached), poisoned(hang(4, 1).snapshot)):
        lines = render(shown, style)
        assert max(map(len, lines)) <= width
        assert all(line.isprintable() for line in lines)


def test_an_error_and_its_next_step():
    error = UsageError("several jobs run here", "name one: --pgid 4711")
    assert render(error, STYLE) == ["gdbext: several jobs run here", "  next: name one: --pgid 4711"]
    assert render(GdbextError("bad\x1b[31m"), STYLE) == ["gdbext: bad"]
    assert render(GdbextError(""), STYLE) == ["gdbext: GdbextError"]
    assert render(error, Style(100, color=True))[0] == "\x1b[1;31mgdbext: \x1b[0mseveral jobs run here"


@pytest.mark.parametrize("obj", [None, 3, "text", (1, 2), [JOB, 3]])
def test_what_has_no_renderer_says_so(obj):
    with pytest.raises(TypeError, match="no renderer for"):
        render(obj, STYLE)


def test_source_is_highlighted_only_in_colour():
    assert Style().highlight("int x = 1;") == "int x = 1;"
    painted = Style(color=True).highlight("def f():\n    return 1\n", "python")
    assert "\x1b[" in painted
    assert painted.count("\n") == 2
