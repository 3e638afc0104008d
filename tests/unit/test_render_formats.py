"""Formats of others: what they must be, and that nothing in a target's names is markup, a mention or syntax there."""

import base64
import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from render_samples import empty, hang, healthy, never_came, scattered

from gdbext.cli import main
from gdbext.commands import output
from gdbext.commands.declared.shared_arguments import FORMATS
from gdbext.commands.scrubbed_answer import for_others
from gdbext.model.codes import Word
from gdbext.model.formatted import BINARY, Formatted
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.waits import Edge, Node
from gdbext.render import Style, binary_document, render
from gdbext.render.formats import looks as looks_of
from gdbext.render.formats import slack, ticket
from gdbext.render.formats.looks import timeline
from gdbext.render.formats.written import WRITERS

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "gdbext" / "demo"
SPEEDSCOPE = ROOT / ".venv" / "speedscope" / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
PAYLOADS = (
    "``` \n# heading\n@everyone <!channel> <@U1> <https://x.test|y>",
    "</details><script>alert(1)</script> [a](javascript:b) ![i](http://x.test/i.png) |cell| #1 owner/repo#2",
    '"]; evil [label="x\\" -> y; } digraph {',
    "a;b;c 7\x1b[2J\u202e\x00 \\N \\G <b>html</b> &amp; ````` ~~~~",
)
SECRET = "hf_" + "a1B2c3D4e5F6g7H8"


def poisoned(value, payload):
    """`value` with every text in it followed by the payload."""
    if isinstance(value, Word):
        return value
    if isinstance(value, str):
        return value + payload
    if dataclasses.is_dataclass(value):
        changes = {one.name: poisoned(getattr(value, one.name), payload) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(poisoned(item, payload) for item in value)
    if isinstance(value, dict):
        return {poisoned(key, payload): poisoned(item, payload) for key, item in value.items()}
    return value


def chained():
    """A hang with a chain, in which a node of any kind stands."""
    kinds = ("rank", "collective", "rank", "lock", "thread", "process")
    nodes = [Node(f"{kind}:{number}", kind, f"{kind} {number}", 3, "7") for number, kind in enumerate(kinds)]
    chain = tuple(Edge(one, other, "holds", "proven") for one, other in zip(nodes, nodes[1:]))
    found = hang(8, 3)
    return dataclasses.replace(found, verdict=dataclasses.replace(found.verdict, chain=chain))


SAMPLES = {"chained": chained, "never-came": never_came, "healthy": healthy, "empty": empty}
LOOKS = [(name, payload) for name in SAMPLES for payload in PAYLOADS]


def written(name, diagnosis):
    return render(Formatted(name, diagnosis), Style(60, color=True, unicode=False))


TEXTS = [name for name in FORMATS if name not in BINARY]


def test_every_format_that_can_be_typed_has_a_writer():
    assert tuple(WRITERS) == FORMATS and set(FORMATS) > BINARY


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_lines_are_printable_whatever_came(name, sample, payload):
    for line in written(name, poisoned(SAMPLES[sample](), payload)):
        assert line.isprintable(), ascii(line)


OUTSIDE = re.compile(
    r"|#### [A-Z][a-z ]+|### [\w -]+(?: \([\w -]+ confidence\))?|<details><summary>[A-Z][a-z ]+</summary>|</details>"
)


@pytest.mark.parametrize("name", ["markdown", "github"])
@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_in_markdown_a_target_writes_between_fences_alone(name, sample, payload):
    """As CommonMark reads it: a fence ends at a line of at least as many backticks and nothing else."""
    fence = None
    for line in written(name, poisoned(SAMPLES[sample](), payload)):
        ticks = re.match(r" {0,3}(`{3,})(.*)", line)
        if fence is None and ticks and "`" not in ticks[2]:
            fence = ticks[1]
        elif fence is None:
            assert OUTSIDE.fullmatch(line), line
        elif ticks and len(ticks[1]) >= len(fence) and not ticks[2].strip():
            assert ticks[1] == fence, "the one of ours"
            fence = None
    assert fence is None


def test_a_ticket_is_what_github_takes():
    for found in (scattered(), hang(1024, 700), poisoned(scattered(), "`" * 300)):
        text = "\n".join(written("github", found))
        assert len(text) < ticket.MOST
        assert text.count("<details>") == text.count("</details>") > 2
        assert text.count("```text\n") >= 3 or "````text" in text
    assert "more lines\n```" in "\n".join(written("github", scattered())), "what does not fit is counted"


@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_slack_gets_no_mention_and_no_link(sample, payload):
    lines = written("slack", poisoned(SAMPLES[sample](), payload))
    text = "\n".join(lines)
    assert "<" not in text and ">" not in text
    assert re.sub(r"&(amp|lt|gt);", "", text).count("&") == 0
    assert text.count("```") == 2 and lines[1] == lines[-1] == "```" and "`" not in "".join(lines[2:-1])
    assert len(text) <= slack.MOST
    assert len(lines) <= 12


@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_collapsed_stacks_have_a_count_and_one_part_for_each_call(sample, payload):
    diagnosis = poisoned(SAMPLES[sample](), payload)
    lines = written("collapsed", diagnosis)
    threads = [one for process in diagnosis.snapshot.processes for one in process.threads if one.frames]
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == len(threads)
    depths = {len(one.frames) + 2 for one in threads}
    assert {len(line.rpartition(" ")[0].split(";")) for line in lines} == depths


def test_collapsed_stacks_of_equal_threads_are_counted():
    pool = ThreadStack("1", (Frame("poll"), Frame("work", file="/a/b.py", line=3), Frame("main")), name="pool")
    found = dataclasses.replace(
        healthy(1), snapshot=JobSnapshot((RankSnapshot(0, (pool, dataclasses.replace(pool, id="2")), rank=5),))
    )
    assert written("collapsed", found) == ["rank 5;pool;main;work (b.py:3);poll 2"]


STATEMENT = re.compile(
    r'  (?:label="(?:[^"\\]|\\["\\])*"|rankdir=LR|node \[fontname="sans-serif"\]'
    r'|n\d+ \[label="(?:[^"\\]|\\["\\])*", shape=\w+(?:, color=red, peripheries=2)?\]|none \[[^]"]*"[\w ]+"\]'
    r'|n\d+ -> n\d+ \[label="(?:[^"\\]|\\["\\])*"(?:, style=dashed)?\]);'
)


@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_a_graph_is_statements_of_ours_with_quoted_labels(sample, payload):
    first, *statements, last = written("dot", poisoned(SAMPLES[sample](), payload))
    assert (first, last) == ("digraph waits {", "}")
    assert [line for line in statements if not STATEMENT.fullmatch(line)] == []


@pytest.mark.process
@pytest.mark.parametrize("payload", ["", *PAYLOADS])
def test_graphviz_draws_it(payload):
    text = "\n".join(written("dot", poisoned(chained(), payload)))
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('class="node"') == 6 and done.stdout.count('class="edge"') == 5
    assert "<script" not in done.stdout


@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_a_speedscope_file_is_as_its_format_says(sample, payload):
    diagnosis = poisoned(SAMPLES[sample](), payload)
    (text,) = written("speedscope", diagnosis)
    document = json.loads(text)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(set(one) <= {"name", "file", "line"} and one["name"] for one in frames)
    assert len(document["profiles"]) == len(diagnosis.snapshot.processes)
    for one in document["profiles"]:
        assert (one["type"], one["unit"], one["startValue"]) == ("sampled", "none", 0)
        assert len(one["samples"]) == len(one["weights"]) == sum(one["weights"]) == one["endValue"]
        assert all(0 <= number < len(frames) for sample in one["samples"] for number in sample)
    assert 0 <= document["activeProfileIndex"] <= max(len(document["profiles"]) - 1, 0)


def looks(count=3):
    """One rank, looked at so often: each time in another call. It was not there at the first."""
    found = hang(2, 1)
    stuck = found.snapshot.processes[1].threads[0]
    snapshots = [
        dataclasses.replace(
            found.snapshot,
            taken_at=1000.0 + 2 * number,
            processes=tuple(
                dataclasses.replace(
                    one,
                    threads=(dataclasses.replace(stuck, frames=(Frame(f"step{number}", "/e.so"), *stuck.frames[1:])),),
                )
                for one in found.snapshot.processes[number == 0 :]
            ),
        )
        for number in range(count)
    ]
    return dataclasses.replace(found, snapshot=dataclasses.replace(snapshots[-1], earlier=tuple(snapshots[:-1])))


TIMED = {**SAMPLES, "looks": looks}
TIMED_LOOKS = [(name, payload) for name in TIMED for payload in PAYLOADS]


def perfetto(diagnosis):
    """Tracks by their number: name and parent; and (track, name, start, end) of all slices, as Perfetto reads them."""
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(binary_document(Formatted("perfetto", diagnosis)))
    tracks, names, open_ones, slices = {}, {}, {}, []
    for packet in trace.packet:
        names.update({one.iid: one.name for one in packet.interned_data.event_names})
        if packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            assert one.uuid not in tracks and (not one.parent_uuid or one.parent_uuid in tracks)
            tracks[one.uuid] = (one.name, one.parent_uuid)
        elif packet.HasField("track_event"):
            one = packet.track_event
            if one.type == one.TYPE_SLICE_BEGIN:
                open_ones.setdefault(one.track_uuid, []).append((names[one.name_iid], packet.timestamp))
            else:
                name, start = open_ones[one.track_uuid].pop()
                slices.append((one.track_uuid, name, start, packet.timestamp))
    assert not any(open_ones.values()), "every slice ends"
    return tracks, slices


@pytest.mark.parametrize(("sample", "payload"), TIMED_LOOKS)
def test_a_perfetto_trace_is_as_its_messages_say(sample, payload):
    diagnosis = poisoned(TIMED[sample](), payload)
    tracks, slices = perfetto(diagnosis)
    assert sum(not parent for _, parent in tracks.values()) == len(diagnosis.snapshot.processes)
    assert all(name.isprintable() for name, _ in tracks.values()) and all(one[1].isprintable() for one in slices)
    assert all(start < end for _, _, start, end in slices) and {one[0] for one in slices} <= set(tracks)


def test_a_perfetto_trace_has_a_slice_for_each_call_of_each_look():
    tracks, slices = perfetto(looks())
    (rank,) = [uuid for uuid, (name, parent) in tracks.items() if name.startswith("rank 1") and not parent]
    assert tracks[rank][0].endswith(", suspect")
    (thread,) = [uuid for uuid, (_, parent) in tracks.items() if parent == rank]
    steps = [(name, start, end) for track, name, start, end in slices if track == thread and name.startswith("step")]
    assert steps == [(f"step{at}", at * 2 * 10**9, (at + 1) * 2 * 10**9) for at in range(3)], "until the next look"
    absent = next(uuid for uuid, (name, parent) in tracks.items() if parent and tracks[parent][0].startswith("rank 0"))
    assert {start for track, _, start, _ in slices if track == absent} == {2 * 10**9, 4 * 10**9}, "not at the first"


SHARED = {
    "stackTable": {"frame": "frameTable", "prefix": "stackTable"},
    "frameTable": {"func": "funcTable", "address": None, "inlineDepth": None, "category": "categories", "line": None,
                   "subcategory": None, "nativeSymbol": None, "innerWindowID": None, "column": None},
    "funcTable": {"name": "stringArray", "source": "sources", "resource": None, "isJS": None, "relevantForJS": None,
                  "lineNumber": None, "columnNumber": None},
    "resourceTable": {"lib": None, "name": None, "host": None, "type": None},
    "nativeSymbols": {"libIndex": None, "address": None, "name": None, "functionSize": None},
    "sources": {"filename": "stringArray", "uuid": None},
}  # fmt: skip
"""Columns of the processed profile format 60, and the table that each refers to (src/types/profile.ts)."""


@pytest.mark.parametrize(("sample", "payload"), TIMED_LOOKS)
def test_a_firefox_profile_is_as_its_format_says(sample, payload):
    diagnosis = poisoned(TIMED[sample](), payload)
    (text,) = written("firefox", diagnosis)
    profile = json.loads(text)
    meta, shared = profile["meta"], profile["shared"]
    assert (meta["preprocessedProfileVersion"], meta["markerSchema"], profile["libs"]) == (60, [], [])
    assert "grey" in [one["color"] for one in meta["categories"]], "the profiler needs one"
    assert set(shared) == {*SHARED, "stringArray"} and all(one.isprintable() for one in shared["stringArray"])
    sizes = {name: shared[name]["length"] for name in SHARED}
    sizes.update(stringArray=len(shared["stringArray"]), categories=len(meta["categories"]))
    for table, columns in SHARED.items():
        assert set(shared[table]) == {*columns, "length"}
        for column, target in columns.items():
            values = shared[table][column]
            assert len(values) == sizes[table]
            assert target is None or all(one is None or 0 <= one < sizes[target] for one in values), (table, column)
    assert all(one is None or one < at for at, one in enumerate(shared["stackTable"]["prefix"])), "callers come first"
    assert len({(one["pid"], one["tid"]) for one in profile["threads"]}) == len(profile["threads"])
    for one in profile["threads"]:
        samples = one["samples"]
        assert len(samples["stack"]) == len(samples["time"]) == samples["length"] == len(diagnosis.snapshot.earlier) + 1
        assert samples["time"] == sorted(samples["time"])
        assert all(stack is None or 0 <= stack < sizes["stackTable"] for stack in samples["stack"])
        assert one["markers"]["length"] == 0 and isinstance(one["pid"], str)


def test_a_firefox_profile_has_the_calls_of_each_look():
    profile = json.loads(written("firefox", looks())[0])
    shared = profile["shared"]
    first, last = sorted(profile["threads"], key=lambda one: one["processName"])
    assert first["samples"]["stack"][0] is None, "it was not there yet"

    def calls(at):
        while at is not None:
            function = shared["frameTable"]["func"][shared["stackTable"]["frame"][at]]
            yield shared["stringArray"][shared["funcTable"]["name"][function]]
            at = shared["stackTable"]["prefix"][at]

    stacks = [list(calls(at)) for at in last["samples"]["stack"]]
    assert [one[0] for one in stacks] == ["step0", "step1", "step2"] and {one[-1] for one in stacks} == {"main"}
    assert last["samples"]["time"] == [0, 2000, 4000]


@pytest.mark.parametrize("times", [(None, 1.0), (5.0, 5.0), (9.0, 2.0)])
def test_looks_without_times_take_a_second_each(times):
    found = looks(2)
    earlier = dataclasses.replace(found.snapshot.earlier[0], taken_at=times[0])
    snapshot = dataclasses.replace(found.snapshot, taken_at=times[1], earlier=(earlier,))
    assert timeline(dataclasses.replace(found, snapshot=snapshot)).starts == (0, 1, 2)


def test_a_timeline_has_a_bound_and_says_what_it_leaves_out():
    found = hang(3, 1)
    threads = tuple(ThreadStack(str(number), (Frame("poll"),)) for number in range(5000))
    ranks = tuple(dataclasses.replace(one, threads=(*threads, *one.threads)) for one in found.snapshot.processes)
    found = dataclasses.replace(found, snapshot=dataclasses.replace(found.snapshot, processes=ranks))
    lanes = timeline(found).ranks
    assert sum(len(one.threads) for one in lanes) <= looks_of.MOST_THREADS
    assert all(
        len(one.threads) + one.left_out == 5000 + len(hang(3, 1).snapshot.processes[0].threads) - 1 for one in lanes
    )
    assert (
        "left out" in perfetto(found)[0][1][0]
        and "left out" in json.loads(written("firefox", found)[0])["meta"]["misc"]
    )


@pytest.mark.process
@pytest.mark.skipif(
    None in (shutil.which("npm"), shutil.which("chromium")),
    reason="no browser, or no npm: with it scripts/install test brings speedscope",
)
def test_speedscope_itself_opens_it(tmp_path):
    """Its own importer, in a browser: the page names the profile of the suspect, and all ranks."""
    found = run_format("speedscope", DEMO / "pinned-alloc.json")
    code = base64.b64encode(found.encode()).decode()
    script = tmp_path / "profile.js"
    script.write_text(f'speedscope.loadFileFromBase64("hang.speedscope.json", "{code}")')
    page = f"file://{SPEEDSCOPE}#localProfilePath={script}"
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    words += [f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=8000", "--dump-dom", page]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(tmp_path)})
    shown = re.sub(r"<[^>]+>", " ", done.stdout)
    assert "implicit-sync-vs-collective (high confidence) - speedscope" in shown, done.stderr[-500:]
    assert "rank 1 (pid 4712)" in shown and "(2/3)" in shown
    assert all(f"rank {number} (pid {4711 + number})" in shown for number in range(3))


def run_format(name, file):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main.main(["diagnose", "-q", "--format", name, str(file)])
    return out.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_secrets_are_not_shared(name, tmp_path):
    """In names of threads, functions, files and variables, titles and problems."""
    frames = (
        Frame("clock_nanosleep", module="/lib/libc.so.6"),
        Frame(f"load {SECRET}", file=f"/srv/--token={SECRET}.py", line=3, language="python"),
        Frame("main", module=f"/opt/{SECRET}/engine", captures={"file": f"password={SECRET}"}),
    )
    stuck = ThreadStack("1", frames, name=SECRET[:15] + SECRET)
    ranks = tuple(
        RankSnapshot(
            index=number,
            threads=(stuck,),
            rank=number,
            pid=10 + number,
            host=f"n-{SECRET}",
            title=f"serve --api-key {SECRET}",
            problems=(f"password={SECRET}",),
            environment={"NCCL_DEBUG": f"token={SECRET}"},
        )
        for number in range(2)
    )
    file = tmp_path / "hang.json"
    file.write_text(dump_snapshot(JobSnapshot(ranks, 1.0, problems=(f"Bearer {SECRET}",))))
    target = tmp_path / "shared"
    main.main(["diagnose", "-q", "--format", name, str(file), "--output", str(target)])
    data = target.read_bytes()
    assert data.strip() and SECRET.encode() not in data


def test_what_is_shared_is_one_object_where_it_was():
    thread = ThreadStack("1", (Frame("poll"), Frame("main")))
    found = dataclasses.replace(healthy(1), snapshot=JobSnapshot((RankSnapshot(0, (thread, thread)),)))
    shared = for_others("dot", found).diagnosis.snapshot.processes[0]
    assert shared.threads[0] is shared.threads[1]


@pytest.mark.parametrize("command", ["diagnose", "stacks"])
def test_a_format_and_a_document_exclude_each_other(command, capsys):
    assert main.main([command, str(DEMO / "pinned-alloc.json"), "--format", "slack", "--json"]) == 2
    assert "--json and --format cannot be combined" in capsys.readouterr().err


def test_a_file_of_a_format_and_an_unknown_one(tmp_path, capsys):
    target = tmp_path / "hang.dot"
    words = ["stacks", "-q", str(DEMO / "pinned-alloc.json"), "--format", "dot", "--output", str(target)]
    assert main.main(words) == 1
    assert target.read_text().startswith("digraph waits {\n") and capsys.readouterr().out == ""
    assert target.stat().st_mode & 0o777 == 0o600
    assert main.main(["diagnose", str(DEMO / "pinned-alloc.json"), "--format", "docx"]) == 2
    assert "'docx'" in capsys.readouterr().err


def test_a_format_that_is_no_text_needs_a_file(tmp_path, capsys, monkeypatch):
    words = ["diagnose", "-q", str(DEMO / "pinned-alloc.json"), "--format", "perfetto"]
    assert main.main(words) == 2
    assert "--output FILE" in capsys.readouterr().err
    target = tmp_path / "hang.pftrace"
    assert main.main([*words, "--output", str(target)]) == 1
    perfetto_trace_pb2.Trace().ParseFromString(target.read_bytes())
    assert target.stat().st_mode & 0o777 == 0o600
    assert main.main([*words, "--output", str(target)]) == 2, "it exists"
    find = importlib.util.find_spec
    monkeypatch.setattr(output.importlib.util, "find_spec", lambda name: None if name == "perfetto" else find(name))
    assert main.main([*words, "--output", str(tmp_path / "other")]) == 4
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert "needs the package perfetto" in line and "pip install" in line


def test_a_name_of_ten_million_letters_is_cut():
    thread = ThreadStack(
        "1" * 10_000_000, (Frame("f" * 10_000_000, file="x" * 10_000_000, line=3),), name="n" * 10_000_000
    )
    found = dataclasses.replace(healthy(1), snapshot=JobSnapshot((RankSnapshot(0, (thread,)),)), processes=())
    assert len(binary_document(Formatted("perfetto", found))) < 20_000 and len(written("firefox", found)[0]) < 20_000
