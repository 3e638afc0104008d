"""Alerts of a service: whatever a command or a server does, the watch is not held up and hears how it went."""

import http.server
import json
import os
import shlex
import sys
import threading
import time

import pytest

from gdbext.cli.service.alerts import Alerts
from gdbext.cli.service.service_settings import JobRule
from gdbext.model.watching import WatchEvent
from tests.polling import DEADLINE, wait_until

pytestmark = pytest.mark.process
HANG = WatchEvent(
    kind="hang", text="stands still", at=0.0, cause="missing-rank", confidence="high", culprits=(1,), job="chat"
)


class Heard:
    def __init__(self):
        self.reports, self.alerts = [], Alerts(lambda *report: self.reports.append(report))

    def tell(self, event=HANG, seconds=DEADLINE, **rule):
        """How long it took to start it, and how it went."""
        began = time.monotonic()
        self.alerts.tell(event, JobRule(**rule), seconds)
        took = time.monotonic() - began
        wait_until(lambda: self.alerts.end_finished() or self.reports, "the alert has ended")
        return took, self.reports.pop()


def python(code):
    return (sys.executable, "-c", code)


def test_a_command_gets_the_event_on_its_standard_input(tmp_path):
    file = tmp_path / "seen"
    _, report = Heard().tell(exec=("sh", "-c", f"cat >{shlex.quote(str(file))}"))
    assert report == ("chat", "exec", "sent", "")
    seen = json.loads(file.read_text())
    assert (seen["event"], seen["cause"], seen["culprits"], seen["job"]) == ("hang", "missing-rank", [1], "chat")


@pytest.mark.parametrize(
    ("words", "result", "said"),
    [
        (("sh", "-c", "echo 'no route' >&2; exit 3"), "failed", "no route"),
        (("sh", "-c", "exit 3"), "failed", "status 3"),
        (("/nowhere/page",), "failed", "/nowhere/page"),
        (("sh", "-c", "printf 'a\\033[2Jb' >&2; exit 1"), "failed", "a"),
        (("true",), "sent", ""),
    ],
)
def test_how_a_command_went(words, result, said):
    _, report = Heard().tell(exec=words)
    assert report[2] == result and said in report[3] and "\x1b" not in report[3]


@pytest.mark.parametrize(
    "code",
    ["import signal; signal.pause()", "import os\nwhile True: os.write(2, b'x' * 65536); os.write(1, b'x' * 65536)"],
)
def test_a_command_that_hangs_or_floods_is_ended_with_all_it_started(code, tmp_path):
    pid = tmp_path / "pid"
    child = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    script = f"{child} & echo $! >{shlex.quote(str(pid))}; wait"
    heard = Heard()
    took, report = heard.tell(exec=("sh", "-c", script), seconds=3.0)
    assert report[2:] == ("late", "killed at its time limit") and took < 30
    assert heard.alerts.next_end is None and heard.alerts.descriptors == []
    wait_until(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}/exe"), "what it started has ended")


def test_one_alert_for_one_standstill_and_another_cause_is_another():
    heard = Heard()
    assert heard.tell(exec=("true",))[1][2] == "sent"
    _, report = heard.tell(exec=("true",))
    assert report[2] == "held back" and "the same alert was sent" in report[3]
    assert (
        heard.tell(event=WatchEvent(kind="hang", text="", at=0.0, cause="other", job="chat"), exec=("true",))[1][2]
        == "sent"
    )
    assert heard.tell(exec=("true",), cooldown=1e-9)[1][2] == "sent", "the cool-down is over"


def test_only_what_was_asked_for_is_told():
    heard = Heard()
    heard.alerts.tell(HANG, JobRule(exec=("true",), alert_on=("gone",)), 1.0)
    heard.alerts.tell(HANG, JobRule(), 1.0)
    assert heard.alerts.next_end is None and heard.reports == []


def test_the_end_of_the_service_ends_them():
    heard = Heard()
    heard.alerts.tell(HANG, JobRule(exec=("sleep", "1000")), 1000.0)
    ((one),) = heard.alerts._running
    heard.alerts.end()
    assert one.process.returncode == -9
    one.process.stderr.close()


def test_one_that_does_not_end_at_once_is_no_zombie_for_ever(monkeypatch):
    """As where the machine is busy, or it sleeps uninterruptibly: nobody waits for it."""
    heard = Heard()
    heard.alerts.tell(HANG, JobRule(exec=("sleep", "1000")), 1000.0)
    ((one),) = heard.alerts._running
    monkeypatch.setattr(one.process, "wait", lambda seconds: one.process._wait(timeout=0.0))
    heard.alerts.end()
    assert heard.alerts._killed == [one.process] or one.process.returncode == -9
    wait_until(lambda: heard.alerts.end_finished() or not heard.alerts._killed, "its end is noticed")
    assert one.process.returncode == -9
    one.process.stderr.close()


class Server(http.server.ThreadingHTTPServer):
    """Answers with the statuses of the list, one after the other; None: not at all."""

    daemon_threads = True

    def __init__(self, *statuses):
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses, self.bodies, self.release = list(statuses), [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/hook?token=sesame"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.release.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.statuses.pop(0) if len(self.server.statuses) > 1 else self.server.statuses[0]
        if status is None:
            self.server.release.wait(DEADLINE)
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_webhook_posts_the_event():
    with Server(204) as server:
        assert Heard().tell(webhook=server.url)[1] == ("chat", "webhook", "sent", "")
    assert [json.loads(body)["cause"] for body in server.bodies] == ["missing-rank"]


@pytest.mark.parametrize(
    ("statuses", "result", "said", "times"),
    [
        ((500, 204), "sent", "", 2),
        ((500,), "failed", "127.0.0.1: HTTP 500", 3),
        ((404,), "failed", "127.0.0.1: HTTP 404", 1),
        ((302,), "failed", "127.0.0.1: HTTP 302", 1),
        ((None,), "late", "killed at its time limit", None),
    ],
    ids=["once more", "broken", "refused", "elsewhere", "hangs"],
)
def test_how_a_webhook_went(statuses, result, said, times):
    with Server(*statuses) as server:
        took, report = Heard().tell(webhook=server.url, seconds=2.0 if times is None else 30.0)
        assert report[2] == result and said in report[3] and "sesame" not in report[3] and took < 30
        assert times is None or len(server.bodies) == times


def test_nobody_listens():
    with Server(204) as server:
        url = server.url
    _, report = Heard().tell(webhook=url, seconds=20.0)
    assert report[2:] == ("failed", "127.0.0.1: Connection refused")
