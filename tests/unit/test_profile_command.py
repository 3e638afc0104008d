"""`gdbext profile` against a real server on localhost that is found by its process."""

import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from gdbext.cli import main
from gdbext.cli.profiler.profile_http import Http
from gdbext.model.profiling import ProfileServer
from tests.inferiors.torch_job import free_port
from tests.polling import wait_until
from tests.unit.test_layers import ROOT

pytestmark = pytest.mark.process

SOURCE = Path(__file__).parents[1] / "inferiors" / "profile_server.py"


class Server:
    """The test's server in a process that looks like that engine's."""

    def __init__(self, folder, engine, *words):
        self.folder, self.log, self.port = folder, folder / "log", free_port()
        self.traces = folder / "traces"
        script = folder / engine
        script.write_bytes(SOURCE.read_bytes())
        self.log.write_text("")
        old = {"VLLM_TORCH_PROFILER_DIR": str(self.traces)} if "--old" in words else {}
        environment = {**os.environ, "PROFILE_LOG": str(self.log), **old}
        command = [sys.executable, str(script), "serve", "--port", str(self.port), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        assert self.process.stdout.readline().startswith("ready")
        self.pid = str(self.process.pid)

    def reset(self):
        with contextlib.suppress(urllib.error.URLError):
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/reset", data=b"").close()
        shutil.rmtree(self.traces, ignore_errors=True)

    @property
    def asked(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def posted(self):
        return [one["path"] for one in self.asked if one["method"] == "POST"]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def started():
    servers = {}
    yield servers
    for server in servers.values():
        server.end()


@pytest.fixture
def serve(started, tmp_path_factory):
    """A server that a test before may have used: nothing is noted of that, and no profile runs."""

    def start(engine, *words):
        if (engine, words) not in started:
            folder = tmp_path_factory.mktemp("server")
            config = json.dumps({"profiler": "torch", "torch_profiler_dir": str(folder / "traces")})
            more = ("--profiler-config", config) if engine == "vllm" and "--old" not in words else ()
            started[engine, words] = Server(folder, engine, *more, *words)
        server = started[engine, words]
        server.reset()
        return server

    return start


@pytest.fixture
def requests(tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_text('{"text": "a", "sampling_params": {}}\n' * 3)
    return str(path)


def run(*words):
    return main.main(["profile", *map(str, words)])


def test_sglang_from_its_process_to_the_traces_of_all_ranks(serve, tmp_path, requests, capsys):
    server = serve("sglang", "--ranks", "3")
    traces = tmp_path / "out"
    status = run("run", server.pid, "--dir", traces, "--request", requests, "--seconds", 20, "--json")
    document = json.loads(capsys.readouterr().out)
    assert status == 1, "rank 1 of the test's traces is late"
    (judged,) = document["profiles"]
    assert (judged["verdict"]["cause"], judged["verdict"]["culprits"]) == ("late-rank", [1])
    assert [one["state"] for one in judged["processes"]] == ["ok"] * 3
    assert judged["merged"]["events"]["in"] == judged["merged"]["events"]["out"] == 72
    assert (traces / "merged.trace.json.gz").is_file()
    start, *sent, stop = [one for one in server.asked if one["method"] == "POST"]
    assert (start["path"], stop["path"]) == ("/start_profile", "/stop_profile")
    assert start["body"] == {"num_steps": 10000, "output_dir": str(traces)}, "it ends by itself, should we be killed"
    assert [one["path"] for one in sent] == ["/generate"] * 3
    assert document["complete"] and document["requests"] == 3
    assert [one["of"] for one in document["files"]] == ["TP 0", "TP 1", "TP 2"]
    assert document["server"] == {
        "engine": "sglang",
        "url": f"http://127.0.0.1:{server.port}",
        "pid": server.process.pid,
        "recognised": f"the --port of its command line, held by pid {server.pid} of the job",
    }


def test_steps_end_a_profile_before_its_time(serve, tmp_path, requests, capsys):
    server = serve("sglang")
    assert run("run", server.pid, "--dir", tmp_path / "out", "--request", requests, "--steps", 2, "--seconds", 60) < 4
    assert "it had stopped by itself" in capsys.readouterr().err
    assert server.posted[-1] == "/stop_profile"


def test_each_option_of_sglang_is_sent_in_its_own_words(serve, tmp_path, capsys):
    server = serve("sglang")
    words = "--steps 5 --start-step 3 --activities CPU,GPU,MEM --by-stage --stages prefill,decode --no-stack --shapes"
    assert run("start", server.pid, "--dir", tmp_path, *words.split(), "--engine-merge", "--prefix", "mine") == 0
    assert server.asked[-1]["body"] == {
        "output_dir": str(tmp_path),
        "num_steps": 5,
        "start_step": 3,
        "activities": ["CPU", "GPU", "MEM"],
        "profile_by_stage": True,
        "profile_stages": ["prefill", "decode"],
        "with_stack": False,
        "record_shapes": True,
        "merge_profiles": True,
        "profile_prefix": "mine",
    }
    assert f"gdbext profile stop {server.pid}" in capsys.readouterr().out
    assert run("stop", server.pid) == 0
    names = sorted(re.sub(r"\d+\.\d+", "1", path.name) for path in tmp_path.glob("*TP*"))
    assert names == [f"mine-1-TP-{rank}-{stage}.trace.json.gz" for rank in (0, 1) for stage in ("DECODE", "EXTEND")]


def test_a_report_of_each_stage(serve, tmp_path, requests, capsys):
    server = serve("sglang")
    words = ("--dir", tmp_path / "out", "--request", requests, "--steps", 2, "--by-stage", "--seconds", 20)
    assert run("run", server.pid, *words) == 1
    out = capsys.readouterr().out
    assert out.index("Stage DECODE") < out.index("TP1 come") < out.index("merged-decode.trace.json.gz")
    assert (
        out.index("merged-decode.trace.json.gz") < out.index("Stage EXTEND") < out.index("merged-extend.trace.json.gz")
    )


def test_vllm_writes_where_it_was_configured_to(serve, tmp_path, capsys):
    server = serve("vllm")
    assert run("run", server.pid, "--seconds", 0.1, "--json") < 4
    document = json.loads(capsys.readouterr().out)
    assert document["folder"] == str(server.traces)
    assert [one["of"] for one in document["files"] if one["is_rank"]] == ["rank 0", "rank 1"]
    assert [one["is_rank"] for one in document["files"]].count(False) == 1, "the front end's is no rank's"
    assert server.asked[0]["body"] == {"max_iterations": 50}


def test_vllm_by_the_old_variable(serve):
    server = serve("vllm", "--old", "1")
    assert run("run", server.pid, "--seconds", 0.1) < 4
    assert len(list(server.traces.glob("*rank*"))) == 2


def test_tensorrt_llm(serve, tmp_path, capsys):
    server = serve("trtllm-serve", "--ranks", "0")
    assert run("start", server.pid, "--dir", tmp_path, "--steps", 4, "--activities", "CPU,GPU") == 0
    body = {"output_dir": str(tmp_path), "num_steps": 4, "activities": ["CPU", "GPU"]}
    assert server.asked[-1] == {"method": "POST", "path": "/start_profile", "body": body, "token": None}


def test_status_asks_and_starts_nothing(serve, tmp_path, capsys):
    server = serve("vllm")
    assert run("status", server.pid, "--json") == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["ready"], job["engine"], job["folder"]) == (True, "vllm", str(server.traces))
    assert server.posted == []
    assert run("status", server.pid) == 0
    assert "ready to profile" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("case", "words", "status", "said"),
    [
        ("off", (), 4, "has no /start_profile: vllm's profiler is off; vllm serve ... --profiler-config"),
        (
            "",
            ("--api-key", "secret"),
            4,
            "requires a token (401); put the token of its --api-key into a file: --token-file",
        ),
        ("full", (), 4, "could not stop the profile (500): OSError: [Errno 28] No space left on device; free space in"),
    ],
    ids=["404", "401", "full disk"],
)
def test_a_refusal_is_one_line_with_the_next_step(serve, tmp_path, capsys, case, words, status, said):
    server = serve("vllm", "--case", case, *words)
    assert run("run", server.pid, "--seconds", 0.1, "--quiet") == status
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1 and captured.out == ""
    assert run("status", server.pid) == 0
    assert ("--profiler-config" in capsys.readouterr().out) == (case == "off")


def test_a_token_comes_from_a_file_or_the_environment(serve, tmp_path, capsys, monkeypatch):
    server = serve("vllm", "--api-key", "abc")
    token = tmp_path / "token"
    token.write_text("abc\n")
    assert run("start", server.pid, "--token-file", token) == 0
    monkeypatch.setenv("GDBEXT_TOKEN", "abc")
    assert run("stop", server.pid) == 0
    assert {one["token"] for one in server.asked} == {"Bearer abc"}
    monkeypatch.setenv("GDBEXT_TOKEN", "wrong")
    assert run("stop", server.pid) == 4
    assert "rejects our token (401)" in capsys.readouterr().err
    token.write_text("two words")
    assert run("stop", server.pid, "--token-file", token) == 2


def test_a_server_that_dies(serve, tmp_path, requests, capsys):
    server = serve("vllm", "--case", "dies")
    assert run("run", server.pid, "--request", requests, "--seconds", 30, "--quiet") == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert "ended while it was profiled" in line or "has ended" in line


def test_a_rank_whose_trace_never_comes(serve, tmp_path, capsys):
    server = serve("vllm", "--case", "missing")
    assert run("run", server.pid, "--seconds", 0.1, "--flush", 0.3, "--json") == 3
    document = json.loads(capsys.readouterr().out)
    assert document["complete"] is False
    assert any("1 trace missing or incomplete" in note for note in document["notes"])


def test_a_short_flush_is_no_limit_of_the_answer_to_a_stop(serve, capsys):
    """It says for how long nothing may be written; the server answers when its traces are."""
    server = serve("vllm", "--case", "slow")
    assert run("run", server.pid, "--seconds", 0.1, "--flush", 0.3, "--json") < 3
    assert json.loads(capsys.readouterr().out)["complete"] is True


def test_a_trace_that_is_cut(serve, tmp_path, capsys):
    server = serve("vllm", "--case", "cut")
    assert run("run", server.pid, "--seconds", 0.1, "--flush", 0.3, "--json") == 3
    states = {one["of"]: one["state"] for one in json.loads(capsys.readouterr().out)["files"] if one["is_rank"]}
    assert states == {"rank 0": "whole", "rank 1": "growing"}


def test_a_disk_that_fills(serve, tmp_path, capsys, monkeypatch):
    server = serve("vllm")
    monkeypatch.setattr("gdbext.cli.profiler.profile_files.Folder.room", lambda self: 0 if server.posted else 1 << 40)
    assert run("run", server.pid, "--seconds", 30, "--quiet") == 4
    assert "is full: 0 MB are free; free space" in capsys.readouterr().err
    assert server.posted == ["/start_profile", "/stop_profile"]


def test_a_second_start_and_a_stop_of_nothing(serve, tmp_path, capsys):
    server = serve("sglang")
    assert run("start", server.pid, "--dir", tmp_path) == 0
    assert run("start", server.pid, "--dir", tmp_path) == 4
    assert f"Call /stop_profile first.; gdbext profile stop {server.pid}" in capsys.readouterr().err
    assert run("stop", server.pid) == 0
    assert run("stop", server.pid) == 4
    assert "no profile runs" in capsys.readouterr().err


def test_an_option_that_the_engine_does_not_know_is_not_dropped(serve, tmp_path, capsys):
    server = serve("vllm")
    assert run("start", server.pid, "--by-stage") == 2
    assert "vllm's profiler does not support --by-stage; it supports --steps" in capsys.readouterr().err
    assert run("start", server.pid, "--dir", "/elsewhere") == 0, "the user says where it was configured to write"
    assert server.posted == ["/start_profile"]


def test_ctrl_c_stops_the_profiler(serve, tmp_path):
    server = serve("vllm")
    words = [sys.executable, "-m", "gdbext", "profile", "run", server.pid, "--seconds", "60"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT.parent) as ours:
        wait_until(lambda: "/start_profile" in server.posted)
        ours.send_signal(signal.SIGINT)
        said = ours.communicate(timeout=300)[1]
    assert ours.returncode == 130
    assert "stopping the profiler" in said
    assert server.posted == ["/start_profile", "/stop_profile"]


def test_ctrl_c_while_an_answer_is_closed_is_not_lost(serve, monkeypatch):
    """In the finalizer of an answer that nobody closed it would be: Python drops what is raised there."""
    server = serve("vllm")

    def close(self):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(http.client.HTTPResponse, "close", close)
    with pytest.raises(KeyboardInterrupt):
        Http().get(ProfileServer("vllm", "127.0.0.1", server.port), "/openapi.json")


def test_the_profiler_is_stopped_when_we_are_killed(serve, tmp_path):
    server = serve("vllm")
    words = [sys.executable, "-m", "gdbext", "profile", "run", server.pid, "--seconds", "60", "-q"]
    with subprocess.Popen(words, cwd=ROOT.parent, start_new_session=True) as ours:
        wait_until(lambda: "/start_profile" in server.posted)
        os.killpg(ours.pid, signal.SIGKILL)
    wait_until(lambda: server.posted == ["/start_profile", "/stop_profile"])


def test_requests_that_fail_or_never_end(serve, tmp_path, requests, capsys):
    server = serve("vllm", "--case", "bad-requests")
    assert run("run", server.pid, "--request", requests, "--seconds", 30, "--json") < 4
    document = json.loads(capsys.readouterr().out)
    assert document["failed_requests"] == 3
    assert "/generate answered 400: model not found" in document["notes"]


def test_requests_without_an_answer_do_not_hold_us(serve, tmp_path, requests, capsys):
    server = serve("vllm", "--case", "never-answers")
    assert run("run", server.pid, "--request", requests, "--seconds", 0.5, "--json") < 4
    assert json.loads(capsys.readouterr().out)["requests"] == 0


@pytest.mark.parametrize(
    ("url", "words", "status", "said"),
    [
        ("http://192.0.2.7:8000", (), 2, "192.0.2.7 is not this host, and a profiler slows a server down; --yes"),
        ("ftp://localhost", (), 2, "is not a server address"),
        ("http://localhost:PORT/v1", (), 2, "is not a server address"),
        (
            "http://localhost:PORT",
            ("--case", "no-docs"),
            4,
            "is not recognised as a server of an engine, and no request was sent",
        ),
    ],
)
def test_nothing_is_posted_to_whom_we_do_not_know(serve, tmp_path, capsys, url, words, status, said):
    server = serve("vllm", *words)
    assert run("start", "--url", url.replace("PORT", str(server.port))) == status
    assert said in capsys.readouterr().err
    assert server.posted == []


def test_a_server_by_its_address_is_recognised_by_its_routes(serve, tmp_path, capsys):
    server = serve("sglang")
    url = f"http://127.0.0.1:{server.port}"
    assert run("start", "--url", url, "--dir", tmp_path) == 0
    assert server.asked[0]["path"] == "/openapi.json"
    assert "sglang at" in capsys.readouterr().out


def test_the_port_that_is_meant(serve, tmp_path, capsys):
    server = serve("vllm")
    assert run("start", server.pid, "--port", 1) == 4
    assert f"no process of the job listens on port 1; they listen on {server.port}" in capsys.readouterr().err
    assert run("start", server.pid, "--port", server.port) == 0
    assert server.posted == ["/start_profile"]


def test_an_engine_without_such_a_profiler(capsys):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert run("start", other.pid) == 4
        other.communicate(b"\n")
    assert "has no profiler that can be started over HTTP; gdbext run --profile -- COMMAND" in capsys.readouterr().err


def test_no_traffic_no_trace(serve, tmp_path, capsys):
    server = serve("vllm", "--ranks", "1", "--case", "missing")
    server.traces.mkdir()
    name = "dp0_pp0_tp0_dcp0_ep0_rank0.1.pt.trace.json.gz"
    (server.traces / name).write_bytes(gzip.compress(b'{"traceEvents": []}'))
    assert run("run", server.pid, "--seconds", 0.1, "--flush", 0.3, "--json") == 4
    document = json.loads(capsys.readouterr().out)
    assert not [one for one in document["files"] if one["is_rank"]], "a trace of an earlier profile is not of this one"
