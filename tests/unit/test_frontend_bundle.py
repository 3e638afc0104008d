"""A bundle: what is in it, who can read it, what is not in it, and that it is read back with the same verdict."""

import collections.abc
import json
import os
import stat
import typing
from dataclasses import replace

import model_samples
import pytest

from gdbext.capture.symbols import library_versions
from gdbext.cli import diagnosis_bundle, main
from gdbext.model.activity import Activity, Child
from gdbext.model.errors import FINDING, OK, USAGE, GdbextError
from gdbext.model.host import HostLook
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.verdict import Diagnosis
from gdbext.model.witness import Statement, Witness

TOKEN = "hf_" + "Q" * 30
PASSWORD = "correct-horse"


def rank(index, *frames, **more):
    stack = ThreadStack(str(100 + index), tuple(frames), 100 + index, state="S", cpu=0.0)
    return RankSnapshot(index, (stack,), pid=100 + index, rank=index, world_size=2, source="text:gdb", **more)


def snapshot():
    """Rank 1 waits for a compiler; secrets stand wherever a program or a person could have put them."""
    waits = (Frame("poll", "/lib/libc.so.6"), Frame("ncclGroupEnd", "/opt/libnccl.so.2", pc=0x1234))
    compiles = (
        Frame("wait4", "/lib/libc.so.6", captures={"file": f"https://me:{PASSWORD}@host/x", "line": 3}),
        Frame("make_cubin", file="/opt/triton/backends/nvidia/compiler.py", line=7, language="python"),
    )
    first = rank(
        0,
        *waits,
        title=f"serve --api-key {TOKEN}",
        environment={"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"/tmp/log?token={TOKEN}"},
        problems=(f"password={PASSWORD} was refused",),
        said=(f"Authorization: Bearer {TOKEN}",),
    )
    second = rank(1, *compiles, activity=Activity(2.0, 0, 0, None, (Child("ptxas", 7, 0.9),)))
    witness = Witness("RAS", "failed", f"token={TOKEN}", (Statement(f"secret={PASSWORD}"),))
    said = (f"Authorization: Bearer {TOKEN}",)
    host = HostLook(name="node1", read=True, reason=f"refused: password={PASSWORD}")
    look = JobSnapshot((first, second), 1.0, apart=2.0, witnesses=(witness,), problems=(f"token: {TOKEN}",))
    return replace(look, said=said, hosts=(host,))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "look.json"
    path.write_text(dump_snapshot(snapshot()))
    return path


def texts(folder):
    return {path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_bundle_holds_what_a_maintainer_asks_for(saved, tmp_path, capsys):
    into = tmp_path / "case"
    assert main.main(["diagnose", str(saved), "--bundle", str(into)]) == OK
    out = capsys.readouterr()
    assert f"bundle written to {into}" in out.err
    found = {str(name): text for name, text in texts(into).items()}
    assert sorted(found) == sorted(
        [
            "README.txt",
            "verdict.txt",
            "verdict.json",
            "report.html",
            "snapshot.json",
            "witnesses.txt",
            "variables.txt",
            "versions.txt",
        ]
        + ["stacks/rank-0-pid-100.txt", "stacks/rank-1-pid-101.txt"]
    )
    assert json.loads(found["verdict.json"])["verdict"]["cause"] == "not-a-hang"
    assert "ptxas used 90% of a core" in found["verdict.txt"]
    assert "#1   0x0000000000001234 in ncclGroupEnd () from /opt/libnccl.so.2" in found["stacks/rank-0-pid-100.txt"]
    assert "make_cubin () at /opt/triton/backends/nvidia/compiler.py:7" in found["stacks/rank-1-pid-101.txt"]
    assert "NCCL_DEBUG=INFO" in found["variables.txt"]
    assert not list(tmp_path.glob(".case*")), "nothing is left beside it"


def test_nobody_else_can_read_it_and_no_secret_is_in_it(saved, tmp_path):
    into = tmp_path / "case"
    main.main(["diagnose", str(saved), "--bundle", str(into), "--quiet", "--json", "--output", str(tmp_path / "other")])
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [into, *into.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert TOKEN in saved.read_text()
    assert not [name for name, text in texts(into).items() if TOKEN in text or PASSWORD in text]


class Secretive(model_samples.Maker):
    """A secret in every text that is no word of ours."""

    def __call__(self, kind, name="", number=0, depth=0):
        if typing.get_origin(kind) is collections.abc.Mapping:  # keys are words of ours: variables, counters
            return {"NCCL_DEBUG": self(typing.get_args(kind)[1], name, 0, depth + 1)}
        made = super().__call__(kind, name, number, depth)
        return f"{made} --hf-token={TOKEN} password={PASSWORD}" if kind is str and name not in WORDS_OF_OURS else made


WORDS_OF_OURS = {*model_samples.WORDS, "ThreadStack.id", "ThreadStack.state", "RankSnapshot.after", "Verdict.cause"}


def test_no_text_of_the_model_brings_a_secret_into_it(tmp_path, monkeypatch):
    monkeypatch.setattr(
        diagnosis_bundle, "can_make_pages", lambda: False
    )  # it judges again, which samples are not made for
    diagnosis = Secretive(True)(Diagnosis)
    diagnosis_bundle.write(str(tmp_path / "case"), diagnosis, running=False)
    found = texts(tmp_path / "case")
    assert len(found) > 5
    assert not [str(name) for name, text in found.items() if TOKEN in text or PASSWORD in text]


def test_it_is_read_back_with_the_same_verdict(saved, tmp_path, capsys):
    into = tmp_path / "case"
    main.main(["diagnose", str(saved), "--bundle", str(into), "--json", "--quiet"])
    first = json.loads(capsys.readouterr().out)
    main.main(["diagnose", str(into), "--json", "--quiet"])
    again = json.loads(capsys.readouterr().out)
    assert again["verdict"] == first["verdict"]
    assert again["processes"][1]["wait"] == first["processes"][1]["wait"]


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link"])
def test_what_is_there_stays(saved, tmp_path, kind, capsys):
    into = tmp_path / "case"
    if "folder" in kind:
        into.mkdir()
        if kind == "folder":
            (into / "mine").write_text("mine")
    elif kind == "file":
        into.write_text("mine")
    else:
        into.symlink_to(tmp_path / "nowhere")
    assert main.main(["diagnose", str(saved), "--bundle", str(into), "--force"]) == USAGE
    assert "case exists; choose another name for the bundle" in capsys.readouterr().err
    assert not (into / "README.txt").exists()


def test_a_folder_that_is_no_bundle_and_one_that_cannot_be_written(saved, tmp_path, capsys):
    assert main.main(["diagnose", str(tmp_path)]) == 4
    assert "without snapshot.json" in capsys.readouterr().err
    assert main.main(["diagnose", str(saved), "--bundle", str(tmp_path / "no" / "case")]) == 4
    assert "/no is not a folder" in capsys.readouterr().err


def test_a_full_disk_leaves_nothing_behind(saved, tmp_path, monkeypatch, capsys):
    def full(name, text):
        raise GdbextError(f"cannot write {name}: No space left on device")

    monkeypatch.setattr(diagnosis_bundle, "write_private", full)
    assert main.main(["diagnose", str(saved), "--bundle", str(tmp_path / "case")]) == 4
    assert "No space left" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["look.json"]


def test_a_bundle_of_a_finding_keeps_its_exit_status(tmp_path, capsys):
    look = tmp_path / "look.json"
    look.write_text(dump_snapshot(replace(snapshot(), processes=snapshot().processes[:1])))
    assert main.main(["diagnose", str(look), "--bundle", str(tmp_path / "case"), "--quiet"]) == FINDING
    assert load_snapshot((tmp_path / "case" / "snapshot.json").read_text()).processes[0].rank == 0


def test_releases_by_file_and_folder_names(tmp_path):
    site = tmp_path / "7/root/opt/lib/python3.12/site-packages"
    for name in ("torch-2.13.0+cu129.dist-info", "nvidia_nccl_cu12-2.28.9.dist-info", "secret-1.0.dist-info"):
        (site / name).mkdir(parents=True)
    paths = [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08",
        "/opt/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so",
        "/usr/lib/libnccl.so.2",
    ]
    assert library_versions.versions(7, paths, str(tmp_path)) == {
        "libcuda": "575.57.08",
        "libnccl": "2",
        "nvidia_nccl_cu12": "2.28.9",
        "torch": "2.13.0+cu129",
    }


def test_a_saved_look_tells_nothing_of_the_processes_that_run_here_now(tmp_path, capsys):
    """Its pids are those of another time, and maybe of another host."""
    mine = replace(rank(0), pid=os.getpid(), source="live", alive=True, libraries=(library_versions.__file__,))
    (tmp_path / "look.json").write_text(dump_snapshot(JobSnapshot((mine,))))
    main.main(["diagnose", str(tmp_path / "look.json"), "--bundle", str(tmp_path / "case"), "--quiet"])
    found = {str(name): text for name, text in texts(tmp_path / "case").items()}
    assert not [name for name in found if name.startswith("maps")]
    assert found["versions.txt"] == "engine: unknown\n"


NASTY = "\x1b[2J\u202e\x9b\u2028x\nrank 7: well\t\udcff\U000e0041"


def test_no_text_of_it_controls_a_terminal(tmp_path, capsys):
    stack = ThreadStack(NASTY, (Frame(NASTY, NASTY, file=NASTY),), 1, NASTY, NASTY, wchan=NASTY, truncated=NASTY)
    job = RankSnapshot(0, (stack,), 1, problems=(NASTY,), environment={NASTY: NASTY}, python=NASTY)
    witness = Witness(NASTY, "failed", NASTY, (Statement(NASTY, NASTY),))
    (tmp_path / "look.json").write_text(dump_snapshot(JobSnapshot((job,), engine=NASTY, witnesses=(witness,))))
    assert (
        main.main(["diagnose", str(tmp_path / "look.json"), "--bundle", str(tmp_path / "case"), "--quiet"]) == FINDING
    )
    for name, text in texts(tmp_path / "case").items():
        assert text.replace("\n", "").isprintable(), name
        assert name.suffix == ".json" or "rank 7: well" not in text.splitlines(), name
