"""System calls that go on after an interruption (restart_syscall(2)) are shown as they were begun."""

import pytest

from gdbext.capture.without_stop.resumed_calls import as_begun
from gdbext.knowledge.runtimes.system_calls import CLOCK_NANOSLEEP, FUTEX, NANOSLEEP, POLL, RESTART
from tests.unit.stacks import stack

ARGUMENTS = (1, 1, 0xFFFFFFFF, 0, 0, 0)


@pytest.mark.parametrize(
    ("function", "call", "begun"),
    [
        ("__GI___poll", RESTART, POLL),
        ("poll", RESTART, POLL),
        ("__GI___clock_nanosleep", RESTART, CLOCK_NANOSLEEP),
        ("__clock_nanosleep_2", RESTART, CLOCK_NANOSLEEP),
        ("__nanosleep", RESTART, NANOSLEEP),
        ("__futex_abstimed_wait_common64", RESTART, RESTART),
        ("zmq_poll", RESTART, RESTART),
        ("poll", FUTEX, FUTEX),
    ],
)
def test_the_innermost_function_tells_what_goes_on(function, call, begun):
    assert as_begun((call, *ARGUMENTS), stack(f"{function}@libc.so.6", "main@engine")) == (begun, *ARGUMENTS)


def test_what_is_not_known_stays_so():
    assert as_begun(None, stack("poll@libc.so.6")) is None
    assert as_begun((RESTART, *ARGUMENTS), stack()) == (RESTART, *ARGUMENTS)
