"""`gdbext doctor` in a pod: what its manifest lacks, each with a patch that can be typed."""

import json
import os
import re
import shutil

import pytest
from discovery_tree import Tree

from gdbext.capture.private_folder import place_for_copies
from gdbext.discovery.checkup import host_points
from gdbext.discovery.preflight_checks.pod_lacks import ROWS, pod_points
from gdbext.discovery.proc.procfs import ProcFS

ALL, NONE = f"{1 << 19:016x}", f"{0:016x}"
US = 50


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """`pod(first, CapEff, CapBnd, yama)`: a /proc of a pod in which we are process 50."""
    made = Tree(tmp_path)
    monkeypatch.setattr(ProcFS, "owner_of_files", lambda self, pid: 1000)

    def build(first="python serve.py", effective=NONE, bounding=NONE, yama="0", place="/kubepods/pod1"):
        shutil.rmtree(tmp_path / "1")  # as the tree has made it
        made.add(1, 0, first, comm=first.rsplit("/")[-1].split()[0])
        made.add(US, 1, "gdbext", status={"CapEff": effective, "CapPrm": effective, "CapBnd": bounding})
        os.symlink(str(US), tmp_path / "self")
        (tmp_path / str(US) / "cgroup").write_text(f"0::{place}\n")
        (tmp_path / "sys/kernel/yama").mkdir(parents=True)
        (tmp_path / "sys/kernel/yama/ptrace_scope").write_text(f"{yama}\n")
        return ProcFS(str(tmp_path))

    build.tree = made
    return build


def said(proc, found=False):
    return [(point.state, point.text) for point in pod_points(proc, found)]


def test_a_pod_that_lacks_everything(pod):
    texts = [text for state, text in said(pod(yama="1")) if state == "warning"]
    assert ["SYS_PTRACE" in texts[0], "only its own processes" in texts[1], "ptrace_scope" in texts[2]] == [True] * 3
    assert len(texts) == 3


def test_a_pod_that_lacks_nothing(pod):
    proc = pod("/pause", ALL, ALL, "1")
    assert said(proc) == [("ok", "it has SYS_PTRACE, and sees the processes of all containers of the pod")]


def test_where_the_job_is_seen_nothing_need_be_shared(pod):
    assert said(pod(effective=ALL, bounding=ALL), found=True) == [
        ("ok", "it has SYS_PTRACE, and sees the processes of this container")
    ]


def test_a_node_is_seen_by_its_threads(pod):
    proc = pod("systemd", ALL, ALL)
    pod.tree.add(2, 0, [""], kernel=True, comm="kthreadd")
    assert "of the node" in said(proc)[0][1]


def test_a_right_that_our_user_does_not_have(pod):
    ((state, text),) = said(pod("/pause", NONE, ALL))
    assert state == "warning" and "gdbext runs as another user" in text


def test_a_kernel_that_is_locked_is_a_hindrance(pod):
    ((state, text),) = said(pod("/pause", ALL, ALL, "3"))
    assert state == "hindrance" and "ptrace_scope=3" in text


@pytest.mark.parametrize("place", ["/user.slice", "/docker/0123"])
def test_elsewhere_it_says_nothing(place, pod):
    assert said(pod(yama="1", place=place)) == []


def test_the_doctor_tells_it_without_a_job(pod):
    points = list(host_points(pod(), (), place_for_copies))
    assert [point.name for point in points] == ["job", "pod", "pod", "copies"]


def test_every_patch_is_one(pod):
    """JSON below a pod's template, of fields that a manifest has."""
    found = []
    for row in ROWS:
        for text in re.findall(r"-p '([^']*)'", row.remedy):
            spec = json.loads(text)["spec"]["template"]["spec"]
            contexts = [one["securityContext"] for one in spec.get("containers", ())]
            found += [*contexts, *([spec] if "shareProcessNamespace" in spec else [])]
        assert row.source
    assert found == [
        {"capabilities": {"add": ["SYS_PTRACE"]}},
        {"runAsUser": 0},
        {"shareProcessNamespace": True},
    ]


def test_a_debug_container_is_told_to_run_gdbext():
    """The image's own command would start the service."""
    asked = [row.remedy for row in ROWS if "kubectl debug" in row.remedy]
    assert asked and all(remedy.endswith("-- gdbext diagnose") for remedy in asked)
