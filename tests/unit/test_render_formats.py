"""Formats of others: what they must be, and that nothing in a target's names is markup, a mention or syntax there."""

import base64
import contextlib
import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from render_samples import empty, hang, healthy, never_came, scattered

from gdbext.cli import main
from gdbext.commands.for_others import for_others
from gdbext.commands.options.shared_arguments import FORMATS
from gdbext.model.codes import Word
from gdbext.model.formatted import Formatted
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.waits import Edge, Node
from gdbext.render import Style, render
from gdbext.render.formats import slack, ticket
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


def test_every_format_that_can_be_typed_has_a_writer():
    assert tuple(WRITERS) == FORMATS


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("sample", "payload"), LOOKS)
def test_lines_are_printable_whatever_came(name, sample, payload):
    for line in written(name, poisoned(SAMPLES[sample](), payload)):
        assert line.isprintable(), ascii(line)


OUTSIDE = re.compile(
    r"|#### [A-Z][a-z ]+|### [\w -]+ \([\w -]+ confidence\)|<details><summary>[A-Z][a-z ]+</summary>|</details>"
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
    text = run_format(name, file)
    assert text.strip() and SECRET not in text


def test_what_is_shared_is_one_object_where_it_was():
    thread = ThreadStack("1", (Frame("poll"), Frame("main")))
    found = dataclasses.replace(healthy(1), snapshot=JobSnapshot((RankSnapshot(0, (thread, thread)),)))
    shared = for_others("dot", found).diagnosis.snapshot.processes[0]
    assert shared.threads[0] is shared.threads[1]


@pytest.mark.parametrize("command", ["diagnose", "stacks"])
def test_a_format_and_a_document_exclude_each_other(command, capsys):
    assert main.main([command, str(DEMO / "pinned-alloc.json"), "--format", "slack", "--json"]) == 2
    assert "--json is a format of its own" in capsys.readouterr().err


def test_a_file_of_a_format_and_an_unknown_one(tmp_path, capsys):
    target = tmp_path / "hang.dot"
    words = ["stacks", "-q", str(DEMO / "pinned-alloc.json"), "--format", "dot", "--output", str(target)]
    assert main.main(words) == 1
    assert target.read_text().startswith("digraph waits {\n") and capsys.readouterr().out == ""
    assert target.stat().st_mode & 0o777 == 0o600
    assert main.main(["diagnose", str(DEMO / "pinned-alloc.json"), "--format", "docx"]) == 2
    assert "'docx'" in capsys.readouterr().err
