"""Ranks with secrets, and ranks whose names and files are attacks: neither comes through to what we print or write."""

import ast
import json
import os
import re
import stat
import subprocess
import sys

import pytest

from tests.conftest import gdbs
from tests.gdb.gdbrun import INFERIORS, INIT, ROOT

pytestmark = pytest.mark.gdb

SECRET = "hf_plantedPLANTEDplanted0123456789"
HOSTILE = b'x\x1b]0;pwned\x07";shell touch>$PLANTED\n<b>'  # where a function's name should be
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
# The folders: blanks, quotes, a command for gdb, one for the shell, an escape sequence.
FOLDER = "a b\";shell touch $PLANTED;#'$(touch $PLANTED)`touch $PLANTED`\x1b[31m"
SCRIPT = "import os; open(os.environ['PLANTED'] + '-{}', 'w')\n"
LOOKS = (
    ("diagnose",),
    ("diagnose", "--json", "--together"),
    ("diagnose", "--no-stop"),
    ("stacks",),
    ("locks", "--json"),
    ("comms",),
    ("ranks", "--json"),
)


def patched(path, placeholder):
    """The hostile name in the place of a harmless one of the same length."""
    data = path.read_bytes()
    name = (HOSTILE + b"_" * 99)[: len(placeholder)]
    assert data.count(placeholder) >= 1
    path.write_bytes(data.replace(placeholder, name))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The hostile program, and beside each of its files what gdb would run if it trusted them."""
    base = tmp_path_factory.mktemp("hostile")
    folder = base / FOLDER
    for name in (folder, base / "home" / ".config" / "gdb", base / "cwd"):
        name.mkdir(parents=True)
    source, flags = str(INFERIORS / "hostile.c"), ["-O1", "-fno-inline", "-pthread"]
    library, program = folder / "libx.so", folder / "rank"
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-DLIBRARY", "-o", library, source], check=True)
    subprocess.run(["gcc", *flags, "-o", program, source, str(library)], check=True)
    patched(program, b"PROGRAM_PLACEHOLDER_0123456789_0123456789")
    for script in (folder / "libx.so-gdb.py", folder / "rank-gdb.py"):
        script.write_text(SCRIPT.format(script.name))
    (folder / "rank-gdb.gdb").write_text("shell touch $PLANTED-rank-gdb.gdb\n")
    for init in (base / "cwd" / ".gdbinit", base / "home" / ".gdbinit", base / "home" / ".config" / "gdb" / "gdbinit"):
        init.write_text(f"shell touch $PLANTED-{init.name}\n")
    return base


@pytest.fixture(scope="module")
def job(place):
    """A hostile rank and one with secrets."""
    launcher = {"TORCHELASTIC_RUN_ID": "run\x1b]0;pwned\x07", "MASTER_ADDR": "node\x1b[2J", "MASTER_PORT": "1"}
    base = {**os.environ, **launcher, "WORLD_SIZE": "2", "PLANTED": str(place / "planted")}
    hostile = {**base, "RANK": "0", "LD_LIBRARY_PATH": str(place / FOLDER)}
    secretive = {**base, "RANK": "1", "HF_TOKEN": SECRET, "NCCL_DEBUG": "INFO", "NCCL_SECRET": SECRET}
    words = [str(INFERIORS / "secretive.py"), SECRET, "--api-key", SECRET, f"--hf-token={SECRET}"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    ranks = [[str(place / FOLDER / "rank")], [sys.executable, *words]]
    started = [subprocess.Popen(argv, env=env, **pipes) for argv, env in zip(ranks, (hostile, secretive))]
    try:
        assert [rank.stdout.readline() for rank in started] == ["ready\n", "ready\n"]
        yield [str(rank.pid) for rank in started]
    finally:
        for rank in started:
            rank.kill()
            rank.communicate()


@pytest.fixture(scope="module")
def said(place, job):
    """All that the commands printed: name -> text."""
    environment = {**os.environ, "HOME": str(place / "home"), "PLANTED": str(place / "planted")}
    environment["PYTHONPATH"] = str(ROOT)
    texts = {}

    def run(name, words):
        done = subprocess.run(words, env=environment, cwd=place / "cwd", capture_output=True, timeout=600)
        texts[name] = (done.stdout + done.stderr).decode()

    for words in LOOKS:
        kept = ["--once"] if words[0] in ("diagnose", "stacks", "locks") else []
        kept += ["--save", str(place / "look.json")] if words == ("diagnose",) else []
        kept += ["--bundle", str(place / "bundle")] if "--together" in words else []
        run(" ".join(words), [sys.executable, "-m", "gdbext", words[0], *job, *words[1:], *kept])
    for name, gdb in zip(("distribution", "newest"), gdbs()):
        # As a person starts it who only leaves the files in home and cwd out: its own auto-load settings are on.
        words = [gdb, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off"]
        lines = [f"source {INIT}", f"llm-attach-all {' '.join(job)}", "llm-ranks", "llm-nccl-diagnose", "llm-stacks"]
        lines += ["llm-locks", "llm-nccl-diagnose --json", "llm-rank apply all bt 4", "llm-detach-all"]
        run(f"gdb {name}", words + [word for line in lines for word in ("-ex", line)])
    return texts


def test_everything_was_looked_at(said, job):
    assert "torch: 2 ranks (" in said["diagnose"], said["diagnose"]
    assert "PLANTED" in said["stacks"], "the hostile function is on the stacks"
    assert "wait  secretive.py:" in said["stacks"]
    for gdb in ("gdb distribution", "gdb newest"):
        assert "All of them are running again." in said[gdb], said[gdb]
        assert "pwned" in said[gdb]


def test_no_secret_comes_through(said, place):
    kept = {
        str(path): path.read_text() for path in [place / "look.json", *(place / "bundle").rglob("*")] if path.is_file()
    }
    assert len(kept) > 6
    assert "NCCL_DEBUG" in kept[str(place / "look.json")], "the variables of the rank with the secrets were read"
    assert [name for name, text in {**said, **kept}.items() if SECRET in text] == []


def test_what_is_kept_is_private(said, place):
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [place / "bundle", *(place / "bundle").rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert stat.S_IMODE((place / "look.json").stat().st_mode) == 0o600


def test_names_of_a_target_control_no_terminal(said):
    found = {name: CONTROLS.search(text) for name, text in said.items()}
    assert {name: repr(said[name][hit.start() - 60 : hit.end() + 20]) for name, hit in found.items() if hit} == {}


def test_files_beside_the_program_and_names_in_it_run_nothing(said, place):
    assert sorted(path.name for path in place.iterdir() if path.name.startswith("planted")) == []
    assert os.listdir(place / "cwd") == [".gdbinit"]


def test_documents_are_whole(said):
    for name in (" ".join(words) for words in LOOKS if "--json" in words):
        document, _ = json.JSONDecoder().raw_decode(said[name])
        assert document["schema"] == 1, said[name]


def test_the_traps_work(place, job):
    """A gdb that trusts the folder does run them; else the tests above would prove nothing."""
    environment = {**os.environ, "HOME": str(place / "home"), "PLANTED": str(place / "trap")}
    words = [gdbs()[0], "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "add-auto-load-safe-path /"]
    subprocess.run([*words, "-p", job[0]], env=environment, cwd=place / "cwd", capture_output=True, timeout=600)
    found = {path.name for path in place.iterdir() if path.name.startswith("trap")}
    assert {"trap-section", "trap-rank-gdb.py", "trap-libx.so-gdb.py", "trap-gdbinit"} <= found


UNPICKLERS = {"pickle", "_pickle", "shelve", "dill", "cloudpickle", "joblib"}  # marshal: between our own processes
SHELLS = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"}
FORBIDDEN = """
import pickle
from pickle import loads
from os import popen as quiet
os.system(line)
subprocess.run(line, shell=True)
subprocess.run(line, shell=wanted)
gdb.execute("shell " + line)
gdb.execute(f"pipe bt | {line}")
"""


def forbidden(text):
    """Lines that could have a shell read something, or that could unpickle."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if UNPICKLERS & {name.partition(".")[0] for name in names} or SHELLS & set(names):
            yield node.lineno
        elif isinstance(node, ast.Call):
            attribute = getattr(node.func, "attr", "")
            asked = [one.value for one in node.keywords if one.arg == "shell"]
            first = next(ast.walk(node.args[0]), None) if node.args and attribute == "execute" else None
            words = [one.value for one in ast.walk(first) if isinstance(one, ast.Constant)] if first else []
            to_gdb = str(words[0]).split()[:1] if words else []
            if (
                (attribute in SHELLS and getattr(node.func.value, "id", "") in ("os", "subprocess", "asyncio"))
                or not all(isinstance(one, ast.Constant) and one.value is False for one in asked)
                or to_gdb in (["shell"], ["!"], ["pipe"], ["|"], ["make"])
            ):
                yield node.lineno


def test_no_shell_and_no_pickle():
    assert list(forbidden(FORBIDDEN)) == list(range(2, 10)), "what is looked for is found"
    sources = list((ROOT / "gdbext").rglob("*.py"))
    assert len(sources) > 200
    assert [f"{path}:{line}" for path in sources for line in forbidden(path.read_text("utf-8"))] == []
