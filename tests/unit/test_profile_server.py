"""Which port of a job is its server's: by command lines and the kernel's tables of sockets."""

import pytest

from gdbext.cli.profiler.profile_http import Answer
from gdbext.cli.profiler.profile_server import server_of
from gdbext.discovery.locks_pipes_sockets.sockets import listeners
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.profilers import PROFILERS, REQUEST_PATHS
from gdbext.model.errors import GdbextError, NothingFound
from gdbext.model.job import Job, RankProcess
from tests.unit.discovery_tree import Tree

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
FRONT, RANK = 10, 20


def row(address, port, inode, state="0A"):
    ends = f"{address}:{port:04X} {'0' * len(address)}:0000"
    return f"   0: {ends} {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n"


class Host(Tree):
    """A front end and a rank, with sockets: port -> (address, inode)."""

    def __init__(self, folder, command="vllm serve m --port 8001", listens=((8001, "0100007F", 7),), **front):
        super().__init__(folder)
        net = {"net": "net:[1]", "mnt": "mnt:[1]"}
        held = [f"socket:[{inode}]" for _, _, inode in listens]
        self.add(FRONT, 1, command, open_files=held, namespaces={**net, **front.pop("namespaces", {})}, **front)
        self.titled(RANK, FRONT, "VLLM::Worker_TP0", namespaces=net)
        self.add(99, 1, "python gdbext", namespaces=net)
        (folder / "self").symlink_to("99")
        for pid in (FRONT, RANK):
            (folder / str(pid) / "net").mkdir()
            old = [row(address, port, inode) for port, address, inode in listens if len(address) == 8]
            new = [row(address, port, inode) for port, address, inode in listens if len(address) == 32]
            (folder / str(pid) / "net/tcp").write_text(HEAD + "".join(old) + row("0100007F", 4000, 99, state="01"))
            (folder / str(pid) / "net/tcp6").write_text(HEAD + "".join(new))
        self.proc = ProcFS(str(folder))

    def server(self, port=None, folder=None, engine="vllm"):
        ranks = (RankProcess(RANK, "rank", engine),)
        return server_of(
            Job("a test", engine, ranks, (RankProcess(FRONT, "front end", engine),)), self.proc, port, folder
        )


def test_the_port_of_the_command_line(tmp_path):
    host = Host(tmp_path, listens=((8001, "0100007F", 7), (29500, "00000000", 8)))
    found = host.server()
    assert (found.url, found.pid, found.tls) == ("http://127.0.0.1:8001", FRONT, False)
    assert listeners(host.proc, (FRONT, RANK)) == {"127.0.0.1:8001": {FRONT}, "0.0.0.0:29500": {FRONT}}


@pytest.mark.parametrize(
    ("command", "listens", "url"),
    [
        ("vllm serve m", ((8000, "00000000", 7),), "http://127.0.0.1:8000"),
        ("vllm serve m --port=9", ((9, "0" * 32, 7),), "http://[::1]:9"),
        ("vllm serve m --port 9 --ssl-certfile c", ((9, "00000000", 7),), "https://127.0.0.1:9"),
        ("vllm serve m --port 9", ((9, "0200000A", 7),), "http://10.0.0.2:9"),
    ],
)
def test_addresses(tmp_path, command, listens, url):
    assert Host(tmp_path, command, listens).server().url == url


def test_the_port_that_the_user_names(tmp_path):
    host = Host(tmp_path, "vllm serve m", ((8800, "00000000", 7),))
    with pytest.raises(NothingFound, match=r"listens on vllm's port 8000; they listen on 8800; --port N names it"):
        host.server()
    assert host.server(8800).recognised == f"--port, held by pid {FRONT} of the job"
    with pytest.raises(NothingFound, match=r"listens on port 1; they listen on 8800"):
        host.server(1)


def test_a_server_that_is_still_starting(tmp_path):
    with pytest.raises(
        NothingFound, match=r"no process of the job listens on port 8001 \(or its sockets may not be read\)"
    ):
        Host(tmp_path, listens=()).server()


def test_a_container_with_a_network_of_its_own(tmp_path):
    host = Host(tmp_path, namespaces={"net": "net:[2]"})
    (tmp_path / str(RANK) / "ns/net").unlink()
    (tmp_path / str(RANK) / "ns/net").symlink_to("net:[2]")
    with pytest.raises(GdbextError, match=rf"a network of its own .* nsenter -t {FRONT} -n gdbext profile"):
        host.server()


def test_files_of_a_container(tmp_path):
    assert Host(tmp_path, namespaces={"mnt": "mnt:[2]"}).server().root == f"{tmp_path}/{FRONT}/root"
    assert Host(tmp_path / "other").server().root == "" if (tmp_path / "other").mkdir() is None else False


CONFIG = '{"profiler":"torch","torch_profiler_dir":"/traces"}'


@pytest.mark.parametrize(
    ("command", "environ", "folder"),
    [
        (["vllm", "serve", "--port", "8001", "--profiler-config", CONFIG], {}, "/traces"),
        (["vllm", "serve", "--port", "8001", f"--profiler-config={CONFIG}"], {}, "/traces"),
        (["vllm", "serve", "--port", "8001", "--profiler-config.torch_profiler_dir", "/d"], {}, "/d"),
        (["vllm", "serve", "--port", "8001", "--profiler-config", "{"], {}, None),
        (["vllm", "serve", "--port", "8001"], {"VLLM_TORCH_PROFILER_DIR": "/old"}, "/old"),
        (["vllm", "serve", "--port", "8001"], {}, None),
    ],
)
def test_where_it_was_told_to_write(tmp_path, command, environ, folder):
    assert Host(tmp_path, command, environ=environ).server().folder == folder


def test_what_an_answer_says():
    assert Answer(401, '{"error": {"message": "no\\n key"}}').said == "no key"
    assert Answer(404, '{"detail": "Not Found"}').said == "Not Found"
    assert Answer(500, "x" * 1000).said == "x" * 300
    assert Answer(500, "[" * 100_000).said == "[" * 300
    assert Answer(200, "").good and not Answer(404, "").good


@pytest.mark.parametrize("row", PROFILERS.values(), ids=PROFILERS)
def test_rows(row):
    assert row.source and row.engine in {profile.name for profile in PROFILES}
    options = {
        "dir",
        "steps",
        "start_step",
        "activities",
        "by_stage",
        "stages",
        "stack",
        "shapes",
        "engine_merge",
        "prefix",
    }
    assert set(row.fields) <= options
    assert row.proof and "steps" in row.fields
    assert all(other.engine == row.engine or not set(row.proof) <= set(other.proof) for other in PROFILERS.values())


def test_where_requests_go():
    assert all(path.startswith("/") for _, path in REQUEST_PATHS)
    assert len({key for key, _ in REQUEST_PATHS}) == len(REQUEST_PATHS)


def test_another_engine(tmp_path):
    with pytest.raises(GdbextError, match="turbomind has no profiler that can be started over HTTP"):
        Host(tmp_path).server(engine="turbomind")
