"""`ranks` and `doctor` over several hosts: their answers as one, and what a host may send instead."""

import json

import pytest

from gdbext.cli import hosts
from gdbext.collect.hosts import fan_out, listings
from gdbext.collect.hosts.fan_out import HostAnswer
from gdbext.model.checkup import Point
from tests.front_end import gdbext

RANK = {"pid": 7, "role": "rank", "engine": "torch", "title": "train.py", "rank": 0, "labels": {"tp": 0}}
JOB = {"job": "pgid 7", "engine": "torch", "world_size": 2, "absent": [], "others": [], "notes": ["Yama"]}
GOOD = {"name": "gdb", "state": "ok", "text": "GNU gdb 13.1", "remedy": ""}
BAD = {"name": "yama", "state": "hindrance", "text": "ptrace_scope is 1", "remedy": "sysctl"}


@pytest.fixture
def sent(monkeypatch):
    """The hosts a, b, ... send these documents; text is why one sends none."""

    def make(*documents):
        def ask(names, plan, say):
            asked.append(plan.words)
            return [
                HostAnswer(host=name, problem=what) if isinstance(what, str) else HostAnswer(name, look=packed(what))
                for name, what in zip(names, documents)
            ]

        monkeypatch.setattr(fan_out, "ask_hosts", ask)
        monkeypatch.setattr(hosts, "of_this_installation", lambda: (b"", b""))
        return "h[{}]".format(",".join(str(number) for number in range(1, len(documents) + 1)))

    asked = make.asked = []
    return make


def packed(what):
    return what if isinstance(what, bytes) else json.dumps(what).encode()


def test_the_jobs_of_each_host(sent):
    names = sent(
        {"jobs": [{**JOB, "ranks": [RANK]}]}, {"jobs": []}, {"jobs": [{**JOB, "ranks": [{**RANK, "rank": 1}]}]}
    )
    done = gdbext("ranks", "--hosts", names, "--json", "--name", "train")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["jobs"]
    assert [(job["job"], [(one["rank"], one["host"]) for one in job["ranks"]]) for job in found] == [
        ("h1, pgid 7", [(0, "h1")]),
        ("h3, pgid 7", [(1, "h3")]),
    ]
    assert sent.asked[0][:5] == ("ranks", "--json", "--output", "{LOOK}", "--name")
    assert "2 jobs on 2 hosts" in gdbext("ranks", "--hosts", names).stdout


def test_a_host_that_lists_nothing_is_named_with_its_reason(sent):
    names = sent({"jobs": [{**JOB, "ranks": [RANK]}]}, "no shell answered", {"error": "no such option"})
    done = gdbext("ranks", "--hosts", names)
    assert done.returncode == 3 and "h2 was not read: no shell answered" in done.stderr
    assert "h3 was not read: its reply is not a list of jobs: no such option" in done.stderr
    names = sent({"jobs": []}, {"jobs": []})
    assert gdbext("ranks", "--hosts", names).returncode == 4
    names = sent("refused", "refused")
    done = gdbext("ranks", "--hosts", names)
    assert done.returncode == 4 and "no host could be read: h1: refused (and 1 more)" in done.stderr


def test_equal_points_of_several_hosts_are_one(sent):
    names = sent({"points": [GOOD, BAD]}, {"points": [GOOD]}, "refused")
    done = gdbext("doctor", "--hosts", names, "--json")
    points = json.loads(done.stdout)["points"]
    assert done.returncode == 1
    assert [(one["name"], one["state"], one["text"]) for one in points] == [
        ("gdb", "ok", "h[1-2]: GNU gdb 13.1"),
        ("yama", "hindrance", "h1: ptrace_scope is 1"),
        ("host", "hindrance", "h3: not asked: refused"),
    ]
    names = sent({"points": [GOOD]}, {"points": [GOOD]})
    assert gdbext("doctor", "--hosts", names).returncode == 0


@pytest.mark.parametrize(
    "what",
    [
        b"\0" * 100,
        b"[" * 100_000,
        b"[]",
        {"jobs": 7, "points": 7},
        {"jobs": [7], "points": [7]},
        {"jobs": [{}], "points": [{}]},
        {"jobs": [{**JOB, "ranks": [{**RANK, "pid": "x"}]}], "points": [{**GOOD, "text": 1}]},
        {},
    ],
)
@pytest.mark.parametrize("command", ["ranks", "doctor"])
def test_a_host_that_sends_something_else_is_named_and_the_rest_is_answered(sent, command, what):
    rest = {"jobs": [{**JOB, "ranks": [RANK]}], "points": [GOOD]}
    done = gdbext(command, "--hosts", sent(rest, what))
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == (3 if command == "ranks" else 1), done.stderr
    assert "h2" in said and "its reply is not a" in said and "Traceback" not in said, said


def test_names_of_hosts_are_folded():
    point = Point("gdb", "ok", "GNU gdb 13.1")
    one = listings.checkup_of({name: [point] for name in ("n01", "n02", "x")}, {}).points[0]
    assert one.text == "n[01-02],x: GNU gdb 13.1"
