"""Many hosts asked at once, each a shell of this machine: what they answer, how they fail, and that nothing stays."""

import io
import os
import signal
import subprocess
import sys
import zipfile

import pytest

from gdbext.collect.hosts import fan_out
from gdbext.collect.hosts.fan_out import Plan, ask_hosts
from gdbext.model.errors import GdbextError
from tests.polling import wait_until

pytestmark = pytest.mark.process

ANSWERS = "import sys; open(sys.argv[1], 'w').write(f'look of {sys.argv[2]}')"


def program(text):
    """What a host runs in place of gdbext."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("__main__.py", text)
    return target.getvalue()


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """A folder with a script for each host: it gets the words that lead to a shell. Looks leave nothing in TMPDIR."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))

    def make(**scripts):
        for name, text in scripts.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        return list(scripts)

    yield make
    wait_until(lambda: not list(scratch.iterdir()), lambda: f"nothing stays: {list(scratch.iterdir())}")


def asked(tmp_path, names, text=ANSWERS, **limits):
    limits = {"connect": 120.0, "deadline": 300.0, **limits}
    words = ("{LOOK}", "one word")
    plan = Plan(via=f"{tmp_path}/%h", words=words, program=program(text), **limits)
    said = []
    return ask_hosts(names, plan, said.append), said


def test_all_answer_at_one_agreed_time(hosts, tmp_path):
    names = hosts(a='exec "$@"', b='echo welcome to b; exec "$@"', c='sleep 0.3; exec "$@"')
    text = "import sys, time; open(sys.argv[1], 'w').write(str(time.time()))"
    answers, said = asked(tmp_path, names, text)
    assert [one.host for one in answers] == names and not any(one.problem for one in answers)
    times = [float(one.look) for one in answers]
    assert max(times) - min(times) < 5  # Python's start beside others; the looks began together
    assert all(abs(one.offset) <= one.error + 0.01 for one in answers), "one clock has no offset"
    assert said[-1] == "3 of 3 hosts have answered"


def test_each_that_fails_is_named_with_its_reason_and_the_rest_answers(hosts, tmp_path):
    names = hosts(
        good='exec "$@"',
        refuses="echo 'Permission denied (publickey).' >&2; exit 255",
        silent="exec sleep 1000",
        zeros="exec head -c 1000000000 /dev/zero",
        nonsense="echo 'gdbext1 [1, 2, 3]'; exec cat",
        lies='echo \'gdbext1 ["end", {"sha256": "00"}]\'; exec cat',
        old="PATH=/nowhere exec /bin/sh",
        cut='"$@" | head -c 100',
    )
    answers, _ = asked(tmp_path, names, connect=15.0)
    reasons = {one.host: one.problem for one in answers}
    assert answers[0].look == b"look of one word" and reasons["good"] is None
    assert "status 255 (Permission denied (publickey).)" in reasons["refuses"]
    assert "no shell answered within 15 s" in reasons["silent"]
    assert "a line of over 1 MiB" in reasons["zeros"]
    assert "unexpected output" in reasons["nonsense"] and "unexpected output" in reasons["lies"]
    assert answers[names.index("old")].look, "Python where no PATH leads to it"
    assert all(reasons[name] for name in names[1:] if name != "old")


def test_only_a_host_with_the_same_python_gets_what_is_compiled_here(hosts, tmp_path):
    other = 'sed -u \'1,/gdbext1/s/\\("magic": "\\)......../\\100000000/\''
    names = hosts(same='exec "$@"', other=f'"$@" | {other}')
    text = "import sys; open(sys.argv[1], 'w').write('{}')"
    plan = Plan(
        via=f"{tmp_path}/%h",
        words=("{LOOK}",),
        program=program(text.format("source")),
        compiled=program(text.format("compiled")),
    )
    same, different = ask_hosts(names, plan, print)
    assert (same.look, different.look) == (b"compiled", b"source"), (same.problem, different.problem)


def test_what_gdbext_says_there_is_the_reason(hosts, tmp_path):
    error = "gdbext: reading\ngdbext: 2 jobs are here: choose one\n\n    gdbext diagnose 80"
    answers, _ = asked(tmp_path, hosts(a='exec "$@"'), f"import sys; sys.exit({error!r})")
    assert answers[0].problem == "2 jobs are here: choose one gdbext diagnose 80"


INTERRUPTED = """
import os, sys, time
try:
    open(f"{sys.argv[2]}/begun.{os.getpid()}", "w")
    time.sleep(1000)
except KeyboardInterrupt:
    open(f"{sys.argv[2]}/ended.{os.getpid()}", "w")
"""


def test_a_look_that_takes_too_long_is_interrupted(hosts, tmp_path):
    names = hosts(a='exec "$@"')
    plan = Plan(via=f"{tmp_path}/%h", words=("x", str(tmp_path)), program=program(INTERRUPTED), deadline=10.0)
    (answer,) = ask_hosts(names, plan, print)
    assert answer.problem == "no answer within 10 s there" and list(tmp_path.glob("ended.*"))


CALLER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without
from gdbext.collect.hosts.fan_out import Plan, ask_hosts
folder, *names = sys.argv[1:]
ask_hosts(names, Plan(via=folder + "/%h", words=("x", folder), program=open(folder + "/program", "rb").read()), print)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_caller_that_is_gone_ends_every_look(hosts, tmp_path, sign):
    names = hosts(a='exec "$@"', b='exec "$@"')
    (tmp_path / "program").write_bytes(program(INTERRUPTED))
    with subprocess.Popen([sys.executable, "-c", CALLER, tmp_path, *names], stderr=subprocess.DEVNULL) as caller:
        wait_until(lambda: len(list(tmp_path.glob("begun.*"))) == 2, "both looks have begun")
        os.kill(caller.pid, sign)
    wait_until(lambda: len(list(tmp_path.glob("ended.*"))) == 2, "both were interrupted")


def test_a_clock_that_is_off_is_measured(hosts, tmp_path):
    names = hosts(late='exec "$@"')
    hour = 3600.0
    text = fan_out.start_text().replace("time=time.time()", f"time=time.time() + {hour}")
    assert text != fan_out.start_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fan_out, "start_text", lambda: text.replace('request["at"]', f'(request["at"] - {hour})'))
        answers, _ = asked(tmp_path, names)
    assert answers[0].look and abs(answers[0].offset - hour) <= answers[0].error + 0.01


def test_via_needs_a_place_for_the_host():
    with pytest.raises(GdbextError, match="no %h"):
        fan_out.command("ssh node1")
