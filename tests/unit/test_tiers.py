"""The tiers of the tests: what is pure starts no process, and nobody sleeps where an event can be waited for."""

import ast
import functools
import os
import subprocess
import sys

import pytest

from tests import conftest

TESTS = conftest.HERE
SOURCES = sorted(path for path in TESTS.rglob("*.py") if TESTS / "inferiors" not in path.parents)


@pytest.mark.process
def test_a_pure_test_that_starts_a_process_fails():
    subprocess.run([sys.executable, "-c", ""], check=True)
    with pytest.raises(pytest.fail.Exception, match="mark it `process`"):
        conftest._none_was_started(_Pure)


@pytest.mark.process
def test_a_test_that_fails_leaves_no_process_and_no_open_file():
    """Else a later one fails by the warning that Python gives when it collects them."""
    pids = []

    def fails():
        process = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE)
        pids.append(process.pid)
        raise ValueError

    try:
        fails()
    except ValueError as error:
        conftest._end_what_nobody_has(error)
    assert not os.path.exists(f"/proc/{pids[0]}")
    with pytest.raises(ValueError), subprocess.Popen(["sleep", "1000"]):
        raise ValueError  # and the test does not wait for it


class _Pure:
    @staticmethod
    def get_closest_marker(name):
        return name == "pure"


@functools.lru_cache(maxsize=None)
def called(path):
    """What a file calls, as far as that is a name with dots."""
    text = path.read_text()
    if not any(word in text for word in ("sleep", "skip", "xfail")):
        return frozenset()
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return frozenset(ast.unparse(one) for one in calls if isinstance(one, (ast.Name, ast.Attribute)))


NAPS = {
    "recording.py": "a rank whose steps take long",
    "polling.py": "the one way to wait",
    "wait.py": "the program of a saved dump",
}
"""Files outside of tests/inferiors, whose programs have their own pace."""


def test_nothing_in_a_test_sleeps():
    """`tests/polling.py` is the one that does: it waits for something, or stands for work that lasts."""
    found = {path.name for path in SOURCES if called(path) & {"time.sleep", "sleep"}}
    assert found == set(NAPS)
    assert len(SOURCES) > 250


SKIPS = {
    "conftest.py": "gdb 13 cannot write the registers of some processors",
    "test_capture_activity.py": "a machine whose system calls we do not know",
    "test_capture_kill_timer.py": "no cgroup of version 2 that may be written",
    "test_capture_libraries.py": "not root; no mount namespace",
    "test_capture_python_lines.py": "a release of Python",
    "test_check.py": "no mount namespace",
    "test_discovery_filters.py": "another machine than x86-64",
    "test_discovery_peers.py": "a kernel without message queues",
    "test_frontend_launch.py": "not root",
    "test_safe_open.py": "no FUSE",
    "test_hosts_chaos.py": "not root; no network namespace",
    "test_hosts_sshd.py": "not root; no network namespace",
    "test_page_browser.py": "a release of Python; a person who wants no browser",
    "test_render_formats.py": "no browser, no npm",
    "test_safety_containers.py": "not root",
    "test_safety_inject.py": "not root",
    "test_safety_programs.py": "not root",
    "test_safety_users.py": "not root",
    "test_tensor_layout.py": "a release of numpy, which is one of Python",
}
"""What may keep tests of a file from running: rights, the kernel, the machine. What can be installed fails them."""


def test_no_skip_hides_what_is_not_installed():
    skips = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif"}
    assert {path.name for path in SOURCES if called(path) & skips} == set(SKIPS)
    assert not [path.name for path in SOURCES if called(path) & {"pytest.importorskip", "pytest.mark.xfail"}]
