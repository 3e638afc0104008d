"""A service without a job: signals, systemd, metrics; and the parts that a look of it needs."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gdbext.cli import main
from gdbext.cli.service import host_lock, look_process, systemd
from gdbext.cli.service.host_lock import HostLock
from gdbext.cli.service.look_process import LookProcess
from gdbext.cli.service.metrics import Metrics
from gdbext.cli.service.service_settings import JobRule, Settings
from gdbext.cli.watching.look_with_bundle import limit_bundle_bytes
from gdbext.model.errors import GdbextError
from tests.polling import DEADLINE, wait_until

NOBODY = "no such title anywhere [0-9]{40}"


@contextlib.contextmanager
def service(*options, **more):
    argv = [sys.executable, "-m", "gdbext", "watch", "--service", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def event(process, kind, text=""):
    """The next of that kind with that text; others on the way are passed over."""
    while True:
        assert select.select([process.stdout], [], [], DEADLINE)[0], f"no {kind}"
        line = process.stdout.readline()
        assert line, f"it has ended: {process.stderr.read()}"
        found = json.loads(line)
        if found["event"] == kind and text in found["text"]:
            return found


def settings_file(folder, **more):
    file = folder / "service.json"
    rule = {"name": "chat", "title": NOBODY}
    text = json.dumps(
        {"every": 0.05, "into": str(folder / "kept"), "job": [rule], "lock": str(folder / "lock"), **more}
    )
    file.write_text(text)
    return str(file)


@pytest.mark.process
def test_a_service_of_systemd_reads_its_settings_again_and_ends_when_told(tmp_path):
    textfile = tmp_path / "gdbext.prom"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd_end:
        systemd_end.bind(str(tmp_path / "notify"))
        systemd_end.settimeout(DEADLINE)

        def told(word):
            while True:
                said = systemd_end.recv(4096).decode()
                if word in said:
                    return said

        environ = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        file = settings_file(tmp_path, textfile=str(textfile))
        with service("--config", file, env=environ) as process:
            assert event(process, "service")["text"] == "started: no job yet"
            assert told("READY=1") and "STATUS=no job yet" in told("WATCHDOG=1")
            assert told("WATCHDOG=1"), "it goes on"
            with open(file, "a") as settings:
                settings.write("}")
            process.send_signal(signal.SIGHUP)
            assert "stay in force" in event(process, "trouble")["text"]
            assert "MONOTONIC_USEC=" in told("RELOADING=1") and told("READY=1")
            settings_file(tmp_path, textfile=str(textfile), every=0.1)
            process.send_signal(signal.SIGHUP)
            assert event(process, "service")["text"] == "settings read again: no job yet"
            process.send_signal(signal.SIGTERM)
            assert told("STOPPING=1")
            assert process.wait(DEADLINE) == 0 and b"ended; every process keeps running" in process.stdout.read()
    numbers = {one.name: one for one in text_string_to_metric_families(textfile.read_text())}
    (errors,) = [one for one in numbers["gdbext_errors"].samples if one.name == "gdbext_errors_total"]
    assert (errors.labels, errors.value) == ({"where": "settings"}, 1.0)
    assert numbers["gdbext_alive_timestamp_seconds"].samples[0].value > 1.7e9


@pytest.mark.process
def test_without_what_it_needs_it_does_not_start(tmp_path, capsys, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main.main(["watch", "--service", "--metrics", str(taken.getsockname()[1]), "--into", str(tmp_path)]) == 4
    assert "cannot serve metrics at" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "prometheus_client" else object())
    assert main.main(["watch", "--service", "--metrics", "0", "--into", str(tmp_path)]) == 4
    assert "pip install prometheus_client" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metrics", "9465"], "--metrics is for a service"),
        (["--service", "--before-kill"], "give one of them"),
        (["--service", "--every", "0"], "--every must be a number of seconds"),
    ],
)
def test_options_that_do_not_go_together(words, said, capsys):
    assert main.main(["watch", *words]) == 2
    assert said in capsys.readouterr().err


def test_numbers_are_read_by_the_librarys_own_parser():
    numbers = Metrics()
    numbers.polled('a"b\\c\n', 8, 61.5)
    numbers.looked('a"b\\c\n', "missing-rank", 4.5)
    numbers.looked('a"b\\c\n', "missing-rank", 1.5)
    numbers.count_failure("look")
    numbers.alerted("webhook", "late")
    numbers.set_bundle_bytes(7)
    numbers.listen("127.0.0.1:0")
    port = numbers._server[0].server_port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    numbers.close()
    found = {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if not one.name.endswith("_created")
    }
    job = 'a"b\\c\n'
    assert found == {
        ("gdbext_ranks", job): 8,
        ("gdbext_standstill_seconds", job): 61.5,
        ("gdbext_verdicts_total", "missing-rank", job): 2,
        ("gdbext_looks_total", job): 2,
        ("gdbext_longest_pause_seconds", job): 0.0045,
        ("gdbext_errors_total", "look"): 1,
        ("gdbext_alerts_total", "webhook", "late"): 1,
        ("gdbext_bundle_bytes",): 7,
        ("gdbext_alive_timestamp_seconds",): 0,
    }
    numbers.forget(job)
    numbers.forget("never followed")


@pytest.mark.process
def test_other_readers_find_nothing_wrong(tmp_path):
    """The client's own parser; Prometheus' promtool too, where it is installed."""
    numbers = Metrics()
    numbers.polled("chat", 8, 61.5)
    numbers.write(str(tmp_path / "x.prom"))
    text = (tmp_path / "x.prom").read_text()
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert "gdbext_ranks" in families
    assert all(one.documentation and one.type in ("counter", "gauge") for one in families.values())
    assert all(sample.name.endswith("_total") for one in families.values() if one.type == "counter"
               for sample in one.samples)  # fmt: skip
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr
    with pytest.raises(GdbextError, match="cannot write"):
        numbers.write(str(tmp_path / "none" / "x.prom"))


def test_systemd_that_is_not_there_is_no_matter(tmp_path):
    systemd.notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "none")})
    systemd.notify("READY=1", {"NOTIFY_SOCKET": "none"})
    assert systemd.watchdog_seconds({}) == systemd.watchdog_seconds({"WATCHDOG_USEC": "3²"}) == 0
    assert systemd.watchdog_seconds({"WATCHDOG_USEC": "3000000"}) == 1.5
    assert systemd.watchdog_seconds({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}) == 1.5
    assert systemd.watchdog_seconds({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}) == 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind("\0gdbext-test-" + str(os.getpid()))
        systemd.notify("READY=1", {"NOTIFY_SOCKET": "@gdbext-test-" + str(os.getpid())})
        assert end.recv(99) == b"READY=1"


def test_two_services_take_turns(tmp_path, monkeypatch):
    path = str(tmp_path / "lock")
    one, other = HostLock(path), HostLock(path)
    assert one.take() and not other.take() and not other.take()
    one.free()
    assert other.take() and other.descriptors
    assert not one.take()
    monkeypatch.setattr(host_lock, "PATIENCE", 0.0)
    assert one.take() and not one.descriptors, "who holds it for ever keeps nobody"
    other.free()


def test_a_lock_that_is_none_keeps_nobody(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    os.symlink(tmp_path / "file", tmp_path / "link")
    for name, why in (("pipe", "is not a file"), ("link", "Too many levels"), ("no/file", "No such file")):
        lock = HostLock(str(tmp_path / name))
        assert lock.take() and why in lock.why_none and lock.descriptors == ()
    assert HostLock("").path.endswith("gdbext-look.lock")


def bundle(folder, name, size):
    (folder / name).mkdir(parents=True)
    (folder / name / "snapshot.json").write_bytes(b"x" * size)


def test_the_oldest_bundles_of_all_jobs_go_first_and_nothing_else(tmp_path):
    chat, train = tmp_path / "chat", tmp_path / "train"
    bundle(chat, "20261121-120000-unknown", 8192)
    bundle(train, "20261121-130000-unknown", 8192)
    bundle(chat, "20261121-140000-unknown", 8192)
    bundle(chat, "mine", 8192)
    assert limit_bundle_bytes((chat, train, tmp_path / "none"), 1 << 30)[0] == 0
    assert limit_bundle_bytes((chat, train), 2 * 8192)[0] == 1
    assert sorted(os.listdir(chat)) == ["20261121-140000-unknown", "mine"] and len(os.listdir(train)) == 1
    gone, left = limit_bundle_bytes((chat, train), 1)
    assert gone == 1 and left >= 8192 and "20261121-140000-unknown" in os.listdir(chat), "the newest stays"


def a_look(tmp_path, monkeypatch, script, **more):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    look = LookProcess([7], 60.0, JobRule(), Settings(rules=(), **more), tmp_path / "kept", ())
    wait_until(lambda: look.ended, "the look has ended")
    return look


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no rank could be read >&2; exit 4", "no rank could be read"),
        ("exit 4", "status 4"),
        ("echo '{}'", "status 0"),
        ("echo '[1]'", "status 0"),
        ("echo '{'; kill -9 $$", "status -9"),
    ],
)
def test_a_look_that_tells_nothing(script, said, tmp_path, monkeypatch):
    with pytest.raises(GdbextError, match=f"a diagnosis returned no result .*{said}"):
        a_look(tmp_path, monkeypatch, script).result()


@pytest.mark.process
def test_a_look_that_cannot_tell_is_kept_for_the_next(tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    first = tmp_path / "kept" / ".first-look.json"
    tells = 'echo \'{"event": "KIND", "text": "x", "at": 1, "culprits": [1]}\''
    look = a_look(tmp_path, monkeypatch, f"touch {first}; {tells.replace('KIND', 'undecided')}")
    assert (look.result().kind, look.second, first.exists()) == ("undecided", False, True)
    look = a_look(tmp_path, monkeypatch, tells.replace("KIND", "hang"))
    assert (look.second, look.result().culprits, first.exists()) == (True, (1,), False)


@pytest.mark.process
def test_a_look_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(look_process, "_GRACE", 0.0)
    look = a_look(tmp_path, monkeypatch, "exec sleep 1000", deadline=0.1)
    with pytest.raises(GdbextError, match="status -9"):
        look.result()
