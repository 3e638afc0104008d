"""The HTML page as text: nothing of a target gets alive in it, it loads nothing, and it stays small."""

import dataclasses
import json
import random
import re
from html.parser import HTMLParser

import model_samples
import pytest

from gdbext.analysis.progress.look_difference import difference
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.model.codes import ReadState
from gdbext.model.difference import STATES, JobDifference, RankDifference, StackDifference
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.page import Page
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.tasks import PythonTask
from gdbext.model.verdict import Diagnosis, ProcessJudgement, ThreadJudgement, Verdict, Wait
from gdbext.render import page_text
from gdbext.render.html import rank_waits
from gdbext.render.html.rank_matrix import matrix
from gdbext.render.safe_text import is_live
from gdbext.scrubbing.shareable_snapshot import shareable
from tests import page_samples
from tests.bench.scale_child import job
from tests.fuzz.making import Maker

SCRIPT = "alert(document.domain)"
PAYLOADS = {
    "element": f"<script>{SCRIPT}</script><img src=x onerror={SCRIPT}>",
    "end of the data": f"</script><script>{SCRIPT}</script><!--<script>",
    "attribute": f'" onmouseover="{SCRIPT}" x=\'y\' autofocus onfocus={SCRIPT} ',
    "single quote": f"' onclick='{SCRIPT}' a='",
    "style": "</style><style>*{background:url(https://evil.example/x)}</style>;}*{display:none}",
    "url": "javascript:alert(1)//https://evil.example/ data:text/html,<b>x",
    "svg": f"<svg/onload={SCRIPT}><a xlink:href='javascript:{SCRIPT}'><foreignObject>",
    "template": "{{ 7*7 }}{% raw %}{{ ''.__class__ }}",
    "bidirectional": "\u202egnp.exe\u2066\u200b\ufeff\u2028\u2029",
    "controls": "\x00\x1b[2J\x9b31m\x7f\r\n\t\ud800\udcff",
    "entity": "&lt;script&gt;&#60;b&#62;&quot;",
    "comment": "--><!-- ]]> <?php",
}
LONG = "a" * 10_000_000


class Seen(HTMLParser):
    """What a browser would make of the page: elements with their attributes, and the raw text elements."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.raw, self._inside = [], [], None
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag
        if tag in ("script", "style"):
            self.raw.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            self.raw[-1][2] += data
        else:
            self.text.append(data)


def planted(value, text):
    """Every string in a model object with `text` behind it; where a word is one of a fixed set it stays."""
    if type(value) is str:
        return value + text
    if dataclasses.is_dataclass(value):
        found = {one.name: planted(getattr(value, one.name), text) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **found)
    if isinstance(value, (tuple, list)):
        return type(value)(planted(one, text) for one in value)
    if isinstance(value, dict):
        return {planted(name, text): planted(one, text) for name, one in value.items()}
    return value


def plain():
    return Seen(page_text(page_samples.page(page_samples.classic())))


def assert_inert(text, data=True):
    """Elements and attributes are the template's own, and no address is made of a name."""
    seen = Seen(text)
    names = {tag for tag, _ in seen.elements}
    assert not names & {"img", "iframe", "object", "embed", "base", "foreignobject", "audio", "video"}, names
    attributes = {name for _, some in seen.elements for name in some}
    assert not [
        name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset", "xlink:href")
    ]
    for tag, some in seen.elements:
        if "href" in some:
            assert re.fullmatch(r"#[a-z0-9-]+|data:,", some["href"]), some
        for name in ("id", "for", "aria-labelledby", "data-i", "data-s"):
            assert re.fullmatch(r"[a-zA-Z0-9 -]*", some.get(name) or ""), some
    assert [tag for tag, _, _ in seen.raw] == ["style", "script", *["script"] * data]
    if data:
        text_of_data = seen.raw[1][2]
        assert text_of_data.isascii() and not set("<>&'") & set(text_of_data)
        json.loads(text_of_data)
    assert not [letter for letter in text if letter != "\n" and is_live(letter)]
    return seen


@pytest.mark.parametrize("kind", PAYLOADS)
def test_no_name_gets_alive(kind):
    for look in (page_samples.classic, page_samples.locks, page_samples.slow):
        page = planted(page_samples.page(look()), PAYLOADS[kind])
        seen = assert_inert(page_text(page))
        assert {tag for tag, _ in seen.elements} <= {tag for tag, _ in plain().elements} | {"pre", "caption"}


@pytest.mark.parametrize("seed", range(6))
def test_no_field_is_forgotten(seed):
    """Pages in which every text of every object is a payload."""
    words = [*PAYLOADS.values()]
    made = Maker(random.Random(seed), words, full=True).of(Page)
    assert_inert(page_text(numbered(made)))


def numbered(page):
    """As analysis makes them: processes have their places, communicators those of processes."""
    processes = tuple(dataclasses.replace(one, index=at) for at, one in enumerate(page.snapshot.processes))
    snapshot = dataclasses.replace(page.snapshot, processes=processes)
    diagnosis = page.diagnosis and dataclasses.replace(page.diagnosis, snapshot=snapshot)
    return dataclasses.replace(page, snapshot=snapshot, diagnosis=diagnosis)


@pytest.mark.parametrize("sample", ["full", "bare", "missing"])
def test_every_sample_of_the_model_has_a_page(sample):
    page = getattr(model_samples, sample)(Page, "page")
    assert_inert(page_text(page))
    assert_inert(page_text(dataclasses.replace(page, diagnosis=None)))


def test_names_of_ten_million_letters_are_cut():
    thread = ThreadStack(LONG, (Frame(LONG, LONG, file=LONG, line=1), Frame("main")), name=LONG, truncated=LONG)
    process = RankSnapshot(0, (thread,), rank=0, pid=1, host=LONG, title=LONG, problems=(LONG,), engine=LONG)
    look = JobSnapshot((process,), problems=(LONG,), engine=LONG, command=LONG)
    text = page_text(unjudged(shareable(look)))
    assert len(text) < 150_000
    assert_inert(text)


def unjudged(look):
    """A page of a look of which the answer says nothing."""
    judged = tuple(
        ProcessJudgement(one.index, Wait("unknown"), (ThreadJudgement("unknown"),) * len(one.threads))
        for one in look.processes
    )
    verdict = Verdict(cause="unknown", confidence="low", summary="Nothing is known.")
    return Page("diagnose", look, Diagnosis(look, judged, verdict, merge(look, judged)))


def test_it_may_do_nothing_but_run_its_own_script():
    text = page_text(page_samples.page(page_samples.classic()))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1).replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:" and "unsafe" not in policy
    assert rules["script-src"].startswith("'sha256-") and rules["style-src"].startswith("'sha256-")
    outside = set(re.findall(r"\w+://[^\s\"'<]+", text))
    assert outside == {"http://www.w3.org/2000/svg"}, "the name of SVG is no address that is asked"


def two_looks():
    """The classic hang, and the same job later: a rank has moved, one is gone, a counter has advanced."""
    before = page_samples.classic()
    moved = dataclasses.replace(
        before.processes[5],
        threads=tuple(dataclasses.replace(one, frames=one.frames[3:]) for one in before.processes[5].threads),
        communicators=(dataclasses.replace(before.processes[5].communicators[0], counts={"all_reduce": 900}),),
    )
    processes = tuple(moved if one.index == 5 else one for one in before.processes[:7])
    after = dataclasses.replace(before, processes=processes)
    return difference(before, after, (Origin.of(before, ("10h.json",)), Origin.of(after, ("11h.json",))))


@pytest.mark.parametrize("kind", PAYLOADS)
def test_no_name_gets_alive_in_a_difference(kind):
    found = planted(two_looks(), PAYLOADS[kind])
    found = dataclasses.replace(found, ranks=tuple(map(in_states, found.ranks)), counts="rank")
    assert_inert(page_text(shareable(found)), data=False)


def in_states(one):
    """As analysis makes it: a state is one of a fixed set."""
    return dataclasses.replace(one, state=next(state for state in STATES if one.state.startswith(state)))


@pytest.mark.parametrize("sample", ["full", "bare", "missing"])
def test_every_sample_of_a_difference_has_a_page(sample):
    assert_inert(page_text(getattr(model_samples, sample)(JobDifference, "difference")), data=False)


def test_a_difference_is_bounded_and_has_no_secret():
    said = f"password={SECRETS[1]} {SECRETS[0]}"
    ranks = tuple(
        RankDifference(LONG, state, rank, None, None, LONG, said, why=LONG + said) for rank, state in enumerate(STATES)
    )
    stacks = (StackDifference((LONG, said) * 300, (0,), tuple(range(5000))),) * 300
    origin = Origin((LONG, said), 0.0, (LONG,))
    text = page_text(shareable(JobDifference(origin, origin, ranks * 2000, stacks, notes=(LONG, said))))
    assert len(text) < 8_000_000
    assert [one for one in SECRETS if one in text] == [] and "***" in text
    assert_inert(text, data=False)


def wide(waits=3, nodes=128):
    """1,024 ranks of eight a node, in so many different waits; all of one stage of the pipeline in the first."""
    calls = ["main", *[f"serve::step{number}" for number in range(waits)]]
    processes = []
    for number in range(nodes * 8):
        at = 0 if number // 256 == 1 else 1 + number % (waits - 1)
        thread = ThreadStack(
            "1", (Frame("ncclAllReduce", "/opt/libnccl.so.2"), Frame(calls[1 + at], "/opt/libengine.so"))
        )
        labels = {"tp": number % 8, "pp": number // 256, "dp": number // 8 % 32}
        processes.append(RankSnapshot(number, (thread,), number + 1, number, host=f"n{number // 8}", labels=labels))
    return JobSnapshot(tuple(processes), world_size=nodes * 8)


def matrix_of(look):
    return matrix(page_samples.page(look))


def test_the_matrix_has_a_column_for_each_wait_and_a_row_for_each_node():
    found = matrix_of(page_samples.classic())
    assert [(one.kind, one.collective, one.where) for one in found.columns] == [
        ("pinned-host-alloc", "", "serve::HostBuffer::grow  host_buffer.cc:88"),
        ("nccl-group-launch", "all_reduce", "serve::Communicator::allReduce  communicator.cc:151"),
    ]
    cells = [
        (row.name, [[(one.role, one.ranks, one.positions) for one in cell] for cell in row.cells]) for row in found.rows
    ]
    assert cells == [
        ("node17", [[("culprit", "2", "TP 2 · PP 0")], [("waits", "0-1,3", "TP 0-1,3 · PP 0")]]),
        ("node18", [[], [("waits", "4-7", "TP 0-3 · PP 1")]]),
    ]
    (cell,) = [one for node in found.nodes for one in node.cells if one.index == 2]
    assert cell.letter == found.columns[0].letter, "a cell has the letter of its column"


def test_many_nodes_of_one_picture_are_one_row():
    found = matrix_of(wide())
    assert len(found.columns) == 3 and [row.name for row in found.rows] == ["96 nodes", "32 nodes"]
    stage = next(column for column in found.columns if column.ranks == "256-511")
    assert stage.positions == "TP 0-7 · PP 1 · DP 0-31", "what they have in common is seen"
    assert sum(one.number for row in found.rows for cell in row.cells for one in cell) == 1024


@pytest.mark.parametrize("waits", [12, 13, 200])
def test_a_matrix_has_a_bound_and_drops_no_rank(waits):
    look = wide(waits, nodes=64)
    found = matrix_of(look)
    assert len(found.columns) == 12 and len(found.rows) <= rank_waits.MOST_ROWS
    assert sum(len(one.waits) for one in found.columns) == waits
    assert found.columns[-1].letter == ("*" if waits > 12 else "L")
    assert sum(one.number for row in found.rows for cell in row.cells for one in cell) == 512
    assert_inert(page_text(page_samples.page(look)))


def test_a_process_without_host_rank_or_wait_stands_in_it():
    look = JobSnapshot((RankSnapshot(0, (), pid=7), RankSnapshot(1, (), pid=8, state=ReadState.LOST)), absent=(5,))
    found = matrix_of(look)
    assert [one.name for node in found.nodes for one in node.cells] == ["?", "?", "5"]
    assert [one.role for row in found.rows for cell in row.cells for one in cell] == ["other", "unread"]
    assert "no process" in page_text(page_samples.page(look))


SECRETS = ("hf_abcdefghijklmnopqrst", "hunter2pass", "sk-abcdefghijklmnop1234", "s3cr3tvalue")


def test_no_secret_gets_into_it():
    said = f"--hf-token={SECRETS[0]} password={SECRETS[1]} Bearer {SECRETS[3]} {SECRETS[2]}"
    look = page_samples.classic()
    first = look.processes[2]
    captured = dataclasses.replace(first.threads[0].frames[9], captures={"token": SECRETS[0], "args": said})
    frames = (*first.threads[0].frames[:9], captured, *first.threads[0].frames[10:])
    leaky = dataclasses.replace(
        first,
        title=f"serve {said}",
        environment={"NCCL_DEBUG": said},
        problems=(said,),
        said=(said,),
        threads=(dataclasses.replace(first.threads[0], frames=frames, problems=(said,)), *first.threads[1:]),
    )
    processes = tuple(leaky if one.index == 2 else one for one in look.processes)
    look = dataclasses.replace(look, processes=processes, problems=(said,), said=(said,), earlier=(look,))
    text = page_text(page_samples.page(look))
    assert [one for one in SECRETS if one in text] == []
    assert "***" in text, "something was scrubbed"


@pytest.mark.parametrize(("ranks", "threads", "most"), [(8, 100, 1_000_000), (64, 200, 1_000_000)])
def test_it_stays_small(ranks, threads, most):
    look = load_snapshot(dump_snapshot(job(ranks, threads)))
    text = page_text(page_samples.page(look))
    assert len(text) < most
    data = json.loads(Seen(text).raw[1][2])
    assert len(data["stacks"]) < 20, "stacks once"
    assert sum(one[1] for rank in data["ranks"] for one in rank["ids"]) == ranks * threads, "all threads"


def test_the_worst_stays_below_its_bounds():
    """Every stack of every thread another one, with long names."""
    frames = [
        tuple(Frame(f"f{number}_{level}_" + "x" * 200, file=f"/src/{number}.cc", line=level) for level in range(40))
        for number in range(2_000)
    ]
    ranks = [
        RankSnapshot(at, tuple(ThreadStack(f"t{n}", frames[at * 250 + n]) for n in range(250)), rank=at, pid=at + 1)
        for at in range(8)
    ]
    text = page_text(unjudged(JobSnapshot(tuple(ranks))))
    assert len(text) < 8_000_000
    assert "have no room on this page" in text


def test_tasks_of_event_loops_have_a_tree_of_their_own():
    """Without numbers of the first one's, by which the page's script finds calls."""
    frames = (Frame("Event.wait", file="locks.py", line=7, language="python"), Frame("serve<i>", language="python"))
    loop = ThreadStack("1", (Frame("epoll_wait", "libc.so.6"), Frame("main")))
    look = JobSnapshot((RankSnapshot(0, (loop,), rank=0, tasks=(PythonTask(1, frames),) * 3),))
    before, title, tree = page_text(unjudged(look)).partition("<h3>Tasks of event loops</h3>")
    assert title and "<b>main</b>" in before and "<b>main</b>" not in tree
    assert re.findall(r"<b>([^<]*)</b>", tree)[:2] == ["serve&lt;i&gt;", "Event.wait"]
    assert "3 tasks" in tree and 'id="n' not in tree.partition("</section>")[0]


def test_the_command_that_was_asked_comes_first():
    titles = {}
    for subject in ("diagnose", "stacks", "locks"):
        text = page_text(page_samples.page(page_samples.locks(), subject))
        titles[subject] = re.findall(r'<section id="(\w+)" class="part"', text)
    assert titles["diagnose"][0] == "ranks" and titles["stacks"][0] == "stacks" and titles["locks"][0] == "locks"
    assert sorted(titles["stacks"]) == sorted(titles["diagnose"])


def test_evidence_leads_to_frames_that_are_there():
    for look in (page_samples.classic, page_samples.locks, page_samples.slow):
        text = page_text(page_samples.page(look()))
        seen = Seen(text)
        ids = [some["id"] for _, some in seen.elements if "id" in some]
        assert len(ids) == len(set(ids)), "an id stands once"
        targets = {some["href"][1:] for tag, some in seen.elements if tag == "a"}
        assert targets - set(ids) == set()
        assert [one for one in targets if "-f" in one], "at least one to a frame"
