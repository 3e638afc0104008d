"""`--html FILE`: where the page goes, who may read it, and what is said where none can be made."""

import dataclasses
import importlib.util
import json
import os

import pytest

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.cli import diagnosis_bundle
from gdbext.commands import output
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.verdict import Verdict
from gdbext.model.waits import Edge, Node
from gdbext.render.html.chain_picture import picture
from tests import page_samples
from tests.front_end import gdbext


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "hang.json"
    path.write_text(dump_snapshot(page_samples.classic()))
    return path


def test_a_file_beside_the_answer(saved, tmp_path):
    page = tmp_path / "hang.html"
    done = gdbext("diagnose", saved, "--html", page)
    assert done.returncode == 1 and f"page written to {page}" in done.stderr
    assert "implicit-sync-vs-collective" in done.stdout and "<html" not in done.stdout
    assert page.stat().st_mode & 0o777 == 0o600, "stacks may hold secrets"
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and "serve::HostBuffer::grow" in text
    assert "2026-10-20" in text, "when the look was taken"
    again = gdbext("diagnose", saved, "--html", page)
    assert again.returncode == 2 and "exists" in again.stderr and again.stdout == "", "said before the work"
    assert gdbext("diagnose", saved, "--html", page, "--force").returncode == 1


def test_the_page_alone_on_standard_output(saved, tmp_path):
    done = gdbext("diagnose", saved, "--html", "-", "-q")
    assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.rstrip().endswith("</html>")
    both = gdbext("diagnose", saved, "--html", "-", "--json", "-q")
    assert both.returncode == 2 and "standard output" in json.loads(both.stdout)["error"]
    apart = gdbext("diagnose", saved, "--html", "-", "--json", "--output", tmp_path / "answer.json", "-q")
    assert apart.stdout.startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "answer.json").read_text())["verdict"]["culprits"] == [2]


@pytest.mark.parametrize(("command", "first"), [("stacks", "stacks"), ("locks", "locks"), ("comms", "communicators")])
def test_other_commands_have_their_part_first(command, first, tmp_path):
    path = tmp_path / "look.json"
    path.write_text(dump_snapshot(page_samples.locks()))
    done = gdbext(command, path, "--html", "-", "-q")
    parts = done.stdout.split('<section id="')[1:]
    parts = [one.partition('"')[0] for one in parts if 'class="part"' in one[:60]]
    assert parts[0] == first, done.stderr


def test_pasted_stacks_have_a_page(tmp_path):
    text = tmp_path / "stacks.txt"
    text.write_text("Thread 1 (LWP 7):\n#0  0x00007f in read () from /lib/libc.so.6\n#1  0x0055 in main () at a.c:3\n")
    assert "<b>main</b>" in gdbext("diagnose", text, "--html", "-", "-q").stdout


def test_a_look_from_a_file_has_its_date_once_and_no_age(saved):
    """A page is read later than it was made: `2 days ago` would be wrong there."""
    text = gdbext("diagnose", saved, "--html", "-", "-q").stdout
    assert text.count("2026-10-20") == 1 and " ago" not in text.split("<body>")[1].split("<script")[0]
    assert "<dt>File</dt><dd>hang.json</dd>" in text


def test_of_a_process_whose_threads_wait_for_each_other_those_of_the_circle_are_red():
    ends = [Node(f"thread:{name}", "thread", f"thread {name}", 0, str(name)) for name in range(3)]
    edges = [Edge(ends[one], ends[other], "holds", "proven") for one, other in ((0, 1), (1, 2), (2, 1))]
    verdict = Verdict(cause="lock-order-deadlock", confidence="high", summary="", culprits=(0,), chain=tuple(edges))
    assert [box.role for box in picture(verdict, {}).boxes] == ["waits", "culprit", "culprit"]
    straight = dataclasses.replace(verdict, chain=tuple(edges[:2]))
    assert [box.role for box in picture(straight, {}).boxes] == ["waits", "waits", "culprit"]


def test_a_bundle_of_two_looks_has_a_timeline(tmp_path):
    """As `gdbext watch` keeps it, where the first look could not tell."""
    look = page_samples.slow()
    diagnosis_bundle.write(str(tmp_path / "kept"), dataclasses.replace(judge(look), tree=merge(look)))
    page = (tmp_path / "kept" / "report.html").read_text("utf-8")
    assert '<section id="samples" class="part"' in page and "-4.0 s" in page
    again = gdbext("diagnose", tmp_path / "kept", "--html", "-", "-q").stdout
    assert '<section id="samples" class="part"' in again


def test_without_jinja_one_line_says_how(saved, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(output.importlib.util, "find_spec", lambda name: None if name == "jinja2" else find(name))
    done = gdbext("diagnose", saved, "--html", "x.html")
    assert (done.returncode, done.stdout) == (4, "")
    (line,) = done.stderr.splitlines()
    assert "needs the package jinja2" in line and "pip install" in line


def test_open_wants_a_file(saved):
    for words in (["--open"], ["--html", "-", "--open"]):
        done = gdbext("diagnose", saved, *words)
        assert done.returncode == 2 and "--html FILE --open" in done.stderr


@pytest.mark.process
def test_open_starts_the_browser_that_is_meant(saved, tmp_path, monkeypatch):
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    page = tmp_path / "hang.html"
    assert gdbext("diagnose", saved, "--html", page, "--open").returncode == 1
    assert seen.read_text().strip() == str(page)
    monkeypatch.setenv("BROWSER", "/nowhere/browser")
    done = gdbext("diagnose", saved, "--html", page, "--open", "--force")
    assert "no browser was found (of /nowhere/browser)" in done.stderr


def test_two_looks_compared_have_a_page(tmp_path):
    before, after, page = (tmp_path / name for name in ("10h.json", "11h.json", "diff.html"))
    look = page_samples.classic()
    before.write_text(dump_snapshot(look))
    after.write_text(dump_snapshot(dataclasses.replace(look, processes=look.processes[:7])))
    done = gdbext("diff", before, after, "--html", page)
    assert done.returncode == 1 and "7 ranks did not move; 1 rank gone" in done.stdout
    assert page.stat().st_mode & 0o777 == 0o600 and "1 rank gone" in page.read_text("utf-8")
    alone = gdbext("diff", before, after, "--html", "-", "-q")
    assert alone.stdout.rstrip() == page.read_text("utf-8").rstrip()
    assert gdbext("diff", before, after, "--html", "-", "--json").returncode == 2
