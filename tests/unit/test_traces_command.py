"""`gdbext trace` as it is typed: answers, documents, exit codes, and one clear line for each bad input."""

import csv
import gzip
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from gdbext.cli.main import main
from gdbext.model.errors import FINDING, NOTHING, OK, UNTOLD, USAGE
from gdbext.render import Style, render
from gdbext.traces.summary import compare, summarise
from tests.traces.making import Plan, write


@pytest.fixture
def run(capsys):
    def go(*words):
        status = main(["trace", *map(str, words)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err and "internal error" not in said.err
        return status, said.out, said.err

    return go


def test_diagnose_names_the_late_rank_and_what_it_did(tmp_path, run):
    write(Plan(late="data", who=2), tmp_path)
    status, out, _ = run("diagnose", tmp_path, "-q")
    assert status == FINDING
    assert "rank 2 comes late to the collectives" in out and "waited for its data" in out
    assert "cause    late-rank (high confidence)" in out
    status, out, _ = run("diagnose", tmp_path, "-q", "--json")
    document = json.loads(out)
    assert status == FINDING and document["schema"] == 1
    assert [one["rank"] for one in document["processes"]] == [0, 1, 2, 3]
    verdict = document["verdict"]
    assert (verdict["cause"], verdict["culprits"], verdict["late"]) == ("late-rank", [2], True)
    assert verdict["victims"] == [0, 1, 3] and verdict["remedies"] and verdict["evidence"]
    assert document["processes"][2]["late"]["before"] == "idle"
    assert sum(document["processes"][0]["shares"][key] for key in ("compute", "exposed", "idle")) == pytest.approx(1)
    assert document["collectives"]["skew"] > 40


def test_diagnose_of_an_even_job_and_of_one_rank(tmp_path, run):
    write(Plan(), tmp_path / "even")
    assert run("diagnose", tmp_path / "even", "-q")[0] == OK
    status, out, _ = run("diagnose", tmp_path / "even" / "rank0.json", "-q")
    assert status == UNTOLD and "a trace of one rank only" in out
    write(Plan(late="kernel", who=1, absent=(1,)), tmp_path / "absent")
    status, out, _ = run("diagnose", tmp_path / "absent", "-q", "--json")
    assert status == UNTOLD and json.loads(out)["verdict"]["late"] is None
    assert "no trace of rank 1" in json.loads(out)["verdict"]["missing"]


def test_a_damaged_file_lowers_what_is_said(tmp_path, run):
    paths = write(Plan(), tmp_path, packed=True)
    with open(paths[1], "r+b") as file:
        file.truncate(file.seek(0, 2) * 3 // 4)
    status, out, _ = run("diagnose", tmp_path, "-q", "--json")
    document = json.loads(out)
    assert document["processes"][1]["state"] == "partial" and document["processes"][1]["problems"]
    assert status == UNTOLD and document["verdict"]["confidence"] != "high"


def test_a_picture_and_csv(tmp_path, run):
    write(Plan(late="rotating"), tmp_path)
    status, out, _ = run("diagnose", tmp_path, "-q", "--picture", tmp_path / "skew.svg", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == FINDING and len(rows) == 48 and float(rows[0]["skew_us"]) > 100
    picture = ElementTree.parse(tmp_path / "skew.svg").getroot()
    bars = [one for one in picture.iter() if one.get("fill") == "#c00"]
    assert len(bars) == 48, "one red mark a collective"


def test_merge_writes_a_new_file_alone(tmp_path, run):
    write(Plan(ranks=2), tmp_path / "in")
    out = tmp_path / "all.json.gz"
    status, text, err = run("merge", tmp_path / "in", "-o", out)
    assert status == OK and "in, " in text and "scratch files" in err
    assert len(json.loads(gzip.decompress(out.read_bytes()))["gdbext"]["ranks"]) == 2
    status, _, err = run("merge", tmp_path / "in", "-o", out, "-q")
    assert status == USAGE and "exists" in err
    status, text, _ = run("merge", tmp_path / "in", "-o", out, "-q", "--force", "--json", "--ranks", "1")
    document = json.loads(text)
    assert status == OK and document["events"]["in"] == document["events"]["out"] and len(document["processes"]) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.json.gz", "in"], "no scratch file is left"


def test_a_merge_that_is_refused_leaves_nothing(tmp_path, run):
    write(Plan(ranks=4, groups=2), tmp_path / "in")
    status, _, err = run("merge", tmp_path / "in", "-o", tmp_path / "o.json.gz", "--require-aligned", "-q")
    assert status == NOTHING and "cannot be aligned" in err and not (tmp_path / "o.json.gz").exists()


def test_summary_by_rank(tmp_path, run):
    write(Plan(late="kernel", who=1, steps=4), tmp_path)
    status, out, _ = run("summary", tmp_path, "-q", "--json")
    document = json.loads(out)
    rows = {row["name"]: row for row in document["rows"]}
    gemm = next(row for name, row in rows.items() if "cutlass" in name)
    assert status == OK and gemm["count"] == 4 * 16 and gemm["category"] == "kernel"
    assert gemm["ranks"]["1"]["total"] > 2 * gemm["ranks"]["0"]["total"]
    assert gemm["min"] <= gemm["mean"] <= gemm["max"] and 0 < gemm["share"] < 1
    status, out, _ = run("summary", tmp_path, "-q", "--by", "stream", "--csv", "--most", "3")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 3 and {row["stream"] for row in rows} <= {"stream 7", "stream 20"}
    status, out, _ = run("summary", tmp_path, "-q", "--steps", "0-1", "--json")
    some = next(row for row in json.loads(out)["rows"] if "cutlass" in row["name"])
    assert 0.4 < some["count"] / gemm["count"] < 0.6


def test_summary_by_step(tmp_path):
    paths = write(Plan(ranks=1, steps=3), tmp_path)
    found = summarise(paths, "step", 100, lambda text: None)
    assert {row.sort for row in found.rows} == {"step 0", "step 1", "step 2"}
    assert len({row.count for row in found.rows if "AllReduce" in row.name}) == 1


def test_summary_by_stage(tmp_path):
    write(Plan(ranks=1, steps=2), tmp_path, name="170-TP-{rank}-DECODE.trace.json")
    (path,) = tmp_path.iterdir()
    found = summarise([str(path)], "stage", 100, lambda text: None)
    assert {row.sort for row in found.rows} == {"decode"}


def test_diff_of_two_runs(tmp_path, run):
    write(Plan(steps=4), tmp_path / "a")
    write(Plan(steps=4, late="kernel", who=0), tmp_path / "b")
    status, out, _ = run("diff", tmp_path / "a", tmp_path / "b", "-q", "--json")
    rows = json.loads(out)["rows"]
    assert status == OK and any("cutlass" in row["name"] and row["change"] == "slower" for row in rows)
    status, out, _ = run("diff", tmp_path / "a", tmp_path / "a", "-q")
    assert status == OK and "No kernel" in out
    before = summarise([str(tmp_path / "a" / "rank0.json")], "category", 1000, lambda text: None)
    gone = compare(before, type(before)(before.files, before.rows[1:], "category", before.total), 10)
    assert [row.change for row in gone.rows] == ["gone"] and "gone" in "\n".join(render(gone, Style()))


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["diagnose"], USAGE, "missing traces"),
        (["diagnose", "{here}"], NOTHING, "no trace in"),
        (["diagnose", "{here}/none.json"], NOTHING, "does not exist"),
        (["diff", "{here}"], USAGE, "diff needs two runs"),
        (["merge", "{here}", "--window", "5"], USAGE, "not a range of seconds"),
        (["merge", "{here}", "--ranks", "a-b"], USAGE, "not a list of numbers"),
        (["merge", "{here}", "--kernels", "("], USAGE, "not a valid regular expression"),
        (["summary", "{here}", "--by", "moon"], USAGE, "not one of category"),
        (["nonsense"], USAGE, "nonsense"),
        ([], USAGE, "missing subcommand"),
    ],
)
def test_what_is_typed_wrongly_is_said_in_a_line(tmp_path, run, words, status, said):
    found = run(*(word.format(here=tmp_path) for word in words))
    assert found[0] == status and said in found[2] and found[2].count("\n") == 1


def test_a_job_without_collectives(tmp_path, run):
    for path in write(Plan(ranks=2), tmp_path):
        document = json.loads(Path(path).read_text())
        document["traceEvents"] = [one for one in document["traceEvents"] if "AllReduce" not in one["name"]]
        with open(path, "w") as file:
            json.dump(document, file)
    status, out, _ = run("diagnose", tmp_path, "-q")
    assert status == UNTOLD and "no collectives that end together" in out


def test_events_out_of_order(tmp_path, run):
    for path in write(Plan(late="host", who=3), tmp_path):
        document = json.loads(Path(path).read_text())
        document["traceEvents"].reverse()
        with open(path, "w") as file:
            json.dump(document, file)
    status, out, _ = run("diagnose", tmp_path, "-q", "--json")
    assert status == FINDING and json.loads(out)["verdict"]["culprits"] == [3]


def test_names_cannot_control_a_terminal(tmp_path, run):
    write(Plan(ranks=2, late="kernel", who=1), tmp_path)
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace("cutlass::Kernel2", "\\u001b[31m\\u202e"))
    for words in (["diagnose", tmp_path, "-q"], ["summary", tmp_path, "-q"]):
        _, out, _ = run(*words)
        assert "\x1b" not in out and "\u202e" not in out


def ascend(rank, late, zero=1_712_195_495_000_000):
    """A `trace_view.json` as CANN's profiler writes it: a bare list, no categories, times as words."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "Communication"}},
    ]
    now = 0.0
    for number in range(30):
        longest = max(400 + late.get(other, 0) for other in range(4))
        work = 400 + late.get(rank, 0)
        where = {"Task Type": "AI_CORE", "Task Id": number, "Stream Id": 2}
        for at, name in enumerate(("MatMulV2", "FlashAttentionScore")):
            start = f"{zero + now + at * work / 2:.3f}"
            events.append(
                {"ph": "X", "name": name, "pid": 7, "tid": 2, "ts": start, "dur": work / 2 - 1, "args": where}
            )
        end = now + longest + 50
        events.append(
            {
                "ph": "X",
                "name": "hcom_allReduce__123_0_1",
                "pid": 9,
                "tid": 4,
                "ts": f"{zero + now + work:.3f}",
                "dur": end - now - work,
            }
        )
        now = end + 3
    return events


def test_traces_of_ascend(tmp_path, run):
    for rank in range(4):
        folder = tmp_path / f"host_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        (folder / "trace_view.json").write_text(json.dumps(ascend(rank, {2: 300})))
        (folder.parent / f"profiler_info_{rank}.json").write_text("{}")
    status, out, _ = run("diagnose", tmp_path, "-q", "--json")
    document = json.loads(out)
    assert status == FINDING and document["verdict"]["culprits"] == [2]
    assert document["processes"][2]["rank"] == 2 and document["processes"][2]["late"]["before"] == "kernel"
    status, out, _ = run("merge", tmp_path, "-o", tmp_path / "all.json.gz", "-q", "--json")
    events = json.loads(out)["events"]
    assert status == OK and events["in"] == events["out"] == 4 * 92 and events["invalid"] == 0


@pytest.mark.process
def test_merged_without_msgspec_no_event_is_lost(tmp_path, run):
    """The slower reader of the standard library writes the same events (it once lost those that name processes)."""
    for rank in range(2):
        folder = tmp_path / "ranks" / f"host_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        (folder / "trace_view.json").write_text(json.dumps(ascend(rank, {2: 300})))
    plain = "import sys; sys.modules['msgspec'] = None; from gdbext.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["trace", "merge", str(tmp_path / "ranks"), "-q", "-o"]
    subprocess.run([sys.executable, "-c", plain, *words, str(tmp_path / "plain.json")], check=True)
    assert run(*words[1:], tmp_path / "fast.json")[0] == OK
    slow, fast = (json.loads(gzip.decompress((tmp_path / f"{which}.json").read_bytes())) for which in ("plain", "fast"))
    assert slow["traceEvents"] == fast["traceEvents"] and slow["traceEvents"]
