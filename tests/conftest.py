"""The tiers of the tests, and fixtures for those that drive a real gdb."""

import contextlib
import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
import traceback
import warnings
import zlib
from pathlib import Path

import hypothesis
import pytest

from tests import checked_json

for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # ignored under nohup, or behind a shell's `&`
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)  # what the tests start inherits that they are ignored, but no handler

HERE = Path(__file__).parent
_STARTS = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
_started = []  # processes of the pure test that runs


_LONGEST = (
    "test_live_matrix",
    "test_slow_hangs",
    "test_tensor_layouts",
    "test_break",
    "test_demo_engine",
    "test_debugger_session",
    "test_break_conditions",
    "test_tensor_torch",
    "test_hangs",
    "test_real_input",
)
"""Files that take half a minute and more: begun last, one of them would keep one processor while the others rest."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The longest files first. Each test has one tier: `gdb` in tests/gdb, `process` where so marked, else `pure`."""
    order = {name: number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    for item in items:
        if HERE / "gdb" in item.path.parents:
            item.add_marker("gdb")
        elif not item.get_closest_marker("process"):
            item.add_marker("pure")


hypothesis.settings.register_profile(
    "any machine",
    deadline=None,  # of one example: a busy machine takes its time
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # there the same examples each time; elsewhere others are found
)
hypothesis.settings.load_profile("any machine")

_leave = subprocess.Popen.__exit__


def _leave_without_waiting(process, kind, error, where):
    """A test that fails within `with Popen(...)` does not wait for the end of a process that never ends."""
    if kind is not None:
        process.kill()
    _leave(process, kind, error, where)


subprocess.Popen.__exit__ = _leave_without_waiting


def _end_what_nobody_has(error):
    """Processes and files that only the frames of a failed test had: later their end would fail another test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        while error is not None:
            traceback.clear_frames(error.__traceback__)
            for frame, _ in traceback.walk_tb(error.__traceback__):
                frame.f_locals  # before Python 3.13 a copy of them is kept until it is asked for again
            error = error.__cause__ or error.__context__
        gc.collect()
    for process in list(subprocess._active):  # collected, and still running
        with contextlib.suppress(OSError):
            process.kill()
            process.wait(60)
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with contextlib.suppress(OSError):
                stream.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is not None and not item.config.option.usepdb:
        _end_what_nobody_has(call.excinfo.value)
    return report


def _note(event, _arguments):
    if event in _STARTS:
        _started.append(event)


sys.addaudithook(_note)
checked_json.begin()


def _none_was_started(item):
    if item.get_closest_marker("pure") and _started:
        pytest.fail(f"a pure test starts a process ({_started[0]}): mark it `process`")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    _started.clear()
    done = yield
    _none_was_started(item)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    done = yield
    _none_was_started(item)
    return done


def pytest_terminal_summary(terminalreporter):
    """How the time of a run is spread over the tiers: `pure` is to be a small part of it."""
    spent = dict.fromkeys(("pure", "process", "gdb"), 0.0)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for tier in set(spent) & set(getattr(report, "keywords", ())):
                spent[tier] += getattr(report, "duration", 0.0)  # what was not chosen has none
    if len([seconds for seconds in spent.values() if seconds]) > 1:
        parts = (f"{tier} {seconds:.0f} s" for tier, seconds in spent.items())
        share = spent["pure"] / sum(spent.values())
        terminalreporter.write_line(f"time of the tests: {', '.join(parts)}; pure is {share:.1%}")


NEWEST = Path(sys.executable).parent / "gdb"
"""gdb of the `gdb-for-pwndbg` package, beside the distribution's."""


def gdbs():
    """Every gdb that the suite must pass on. One that is not installed fails its tests: a skip would hide it."""
    return [shutil.which("gdb", path="/usr/local/bin:/usr/bin:/bin") or "gdb", str(NEWEST)]


@functools.lru_cache(maxsize=None)
def can_call(gdb):
    """Whether a gdb can call functions on this processor: gdb 13 cannot write the registers of one with AMX."""
    with subprocess.Popen(["sleep", "60"]) as target:
        try:
            words = [gdb, "-nx", "-batch", "-p", str(target.pid), "-ex", "call (int)getpid()"]
            done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
        finally:
            target.kill()
    return "extended state" not in done.stdout + done.stderr


@pytest.fixture(scope="session")
def calling_gdb():
    """Path of a gdb that can call functions on this processor, the distribution's where it can."""
    return next(gdb for gdb in gdbs() if can_call(gdb))


@pytest.fixture(params=["distribution", "newest"])
def any_gdb(request):
    """Path of a gdb; the test runs once with each. One marked `calls` needs a gdb that can call functions here."""
    gdb = gdbs()[request.param == "newest"]
    if request.node.get_closest_marker("calls") and not can_call(gdb):
        pytest.skip(f"{gdb} cannot write the registers of this processor, so that it cannot call any function")
    return gdb


def pytest_generate_tests(metafunc):
    """`turn_gdb`: a path of a gdb as well, for what hardly depends on its release: tests take turns with them.

    GDBEXT_EVERY_GDB=1 runs each with all.
    """
    if "turn_gdb" in metafunc.fixturenames:
        turn = zlib.crc32(metafunc.function.__name__.encode()) % 2
        chosen = (0, 1) if os.environ.get("GDBEXT_EVERY_GDB") else (turn,)
        names = [("distribution", "newest")[number] for number in chosen]
        metafunc.parametrize("turn_gdb", [gdbs()[number] for number in chosen], ids=names)
