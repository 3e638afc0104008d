"""Which hosts `--hosts` means, and what it refuses."""

import pytest

from gdbext.collect.hosts import host_names
from gdbext.collect.hosts.host_names import SSH, hosts_of
from gdbext.model.errors import GdbextError
from tests.front_end import gdbext
from tests.unit.test_evidence_ras import MISMATCH, document, listener, rank, service


@pytest.fixture
def answers(monkeypatch):
    """Stands in for squeue and kubectl: what they were asked, and what they say."""
    asked = []

    def make(text):
        monkeypatch.setattr(host_names, "_asked", lambda *words: asked.append(words) or text)
        return asked

    return make


def test_node_sets_files_and_names(tmp_path):
    assert hosts_of("node[01-03],gpu7").names == ("gpu7", "node01", "node02", "node03")
    file = tmp_path / "hosts"
    file.write_text("a slots=8\n# none\n\nb  # the second\na\n")
    assert hosts_of(str(file)).names == ("a", "b") and hosts_of(str(file)).via == SSH


def test_slurm_and_kubernetes(answers):
    asked = answers("node[1-2]\n")
    hosts = hosts_of("slurm:4711")
    assert hosts.names == ("node1", "node2") and "--jobid=4711 --overlap" in hosts.via and "--jobs=4711" in asked[0]
    answers("pod/vllm-0\npod/vllm-1\n")
    hosts = hosts_of("k8s:serving/app=vllm,tier!=test")
    assert hosts.names == ("vllm-0", "vllm-1") and hosts.via == "kubectl exec -i --namespace=serving %h --"


@pytest.mark.parametrize(
    "text",
    [
        "-oProxyCommand=x",
        "a;reboot",
        "$(reboot)",
        "node[1-",
        "slurm:1;x",
        "slurm:",
        "k8s:a b/x",
        "k8s:serving/$(x)",
        "''",
    ],
)
def test_what_is_no_host_never_reaches_a_shell(text, answers):
    answers("")
    with pytest.raises(GdbextError):
        hosts_of(text)


def test_a_container_of_each_pod(answers):
    answers("pod/a\n")
    via = ["--container", "main"]
    done = gdbext("ranks", "--hosts", "k8s:serving/app=vllm", "--dry-run", *via)
    assert done.returncode == 0 and "kubectl exec -i --namespace=serving --container=main a -- sh" in done.stdout
    for wrong in (
        ["--hosts", "n1", *via],
        ["--hosts", "k8s:s/x", "-c", "a b"],
        ["--hosts", "k8s:s/x", "--via", "x %h", *via],
    ):
        done = gdbext("ranks", "--dry-run", *wrong)
        assert done.returncode == 2 and "--container is the name of" in done.stderr, wrong


def test_nccls_status_service_names_the_hosts(monkeypatch):
    """Each once, without what NCCL prints around an address; what is no name never reaches a shell."""
    rows = [{**rank(0, 1, 7), "host": "10.0.0.1<45000>"}, {**rank(1, 1, 7), "host": "10.0.0.2"}, {"host": 7}]
    rows += [{**rank(2, 1, 8), "host": "10.0.0.2"}, {"rank": 3, "host": "fe80::1%eth0"}]
    for answer, known, expected in (
        (document(*rows), True, ("10.0.0.1", "10.0.0.2", "fe80::1")),
        (document({"rank": 0, "host": "a;reboot"}), True, "is not the name of a host"),
        (document(), True, "no host"),
        ("{}", True, "no communicators in it"),
        (MISMATCH, False, "it answers in text"),
    ):
        with listener(service(answer, known)) as port:
            monkeypatch.setenv("NCCL_RAS_ADDR", f"127.0.0.1:{port}")
            if isinstance(expected, tuple):
                assert hosts_of("ras").names == expected
                continue
            with pytest.raises(GdbextError, match=expected):
                hosts_of("ras")
    with pytest.raises(GdbextError, match="does not name the hosts"):
        hosts_of("ras")  # the port is closed now
    monkeypatch.setenv("NCCL_RAS_ADDR", "192.0.2.1:28028")
    with pytest.raises(GdbextError, match="no address of this host"):
        hosts_of("ras")


def test_a_watch_stays_on_its_host_and_says_so():
    done = gdbext("watch", "--hosts", "n[1-2]")
    assert done.returncode == 2 and "run gdbext watch on each host" in done.stderr


def test_what_would_run_is_shown_and_what_means_one_host_is_refused():
    done = gdbext("diagnose", "--hosts", "n[1-2]", "--dry-run", "--user", "me", "--sudo", "--no-stop")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("me@n1 sudo -n sh") and "--no-stop" in lines[2]
    for words in (["4711"], ["--pgid", "5"], ["--via", "x %h", "--user", "y"]):
        done = gdbext("diagnose", "--hosts", "n[1-2]", "--dry-run", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (words, done.stderr)
    for command in ("diagnose", "comms"):
        done = gdbext(command, "--dry-run")
        assert (done.returncode, done.stderr) == (2, "gdbext: --dry-run goes with --hosts\n")
    done = gdbext("comms", "--hosts", "n[1-9]", "--max-hosts", "3")
    assert done.returncode == 2 and "more than 3" in done.stderr
