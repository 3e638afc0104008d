"""The files of docs/deploy: read by what will read them, and tried where that needs no cluster."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from gdbext.cli.command_line import parser
from gdbext.commands.declared.watch import COMMANDS
from tests.polling import DEADLINE, wait_until

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def pod_of(document):
    return document["spec"]["template"]["spec"] if "template" in document["spec"] else document["spec"]


def test_the_page_names_every_file():
    named = set(re.findall(r"\]\(([\w.-]+)\)", (FOLDER / "README.md").read_text("utf-8")))
    assert named == {path.name for path in FOLDER.iterdir()} - {"README.md"}


@pytest.mark.parametrize("name", ["daemonset.yaml", "sidecar.yaml"])
def test_a_pod_that_may_look(name):
    """It sees the processes, it may trace them, and nothing asks for more."""
    for pod in map(pod_of, documents(name)):
        assert pod.get("hostPID") or pod.get("shareProcessNamespace")
        (ours,) = [one for one in pod["containers"] if one["name"] == "gdbext"]
        rights = ours["securityContext"]
        assert "SYS_PTRACE" in rights["capabilities"]["add"] and rights["capabilities"]["drop"] == ["ALL"]
        assert not rights["allowPrivilegeEscalation"] and "privileged" not in rights
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounts = [
            mount for one in (*pod["containers"], *pod.get("initContainers", ())) for mount in one["volumeMounts"]
        ]
        assert {mount["name"] for mount in mounts} == volumes
        assert any(ours["args"][ours["args"].index("--into") + 1].startswith(one["mountPath"]) for one in mounts)


def test_the_last_look_of_a_pod_is_over_before_kubelet_kills():
    (pod,) = map(pod_of, documents("sidecar.yaml"))
    (hook,) = [one["lifecycle"]["preStop"]["exec"]["command"] for one in pod["containers"] if "lifecycle" in one]
    assert int(re.search(r"--deadline (\d+)", hook[-1])[1]) < pod["terminationGracePeriodSeconds"] - 10
    assert hook[-1].endswith("|| true")


def lines_with_gdbext():
    """(file, words behind `gdbext`) of every line that runs it."""
    for path in (*FOLDER.glob("*.sh"), *FOLDER.glob("*.service"), *FOLDER.glob("*.yaml"), FOLDER / "Containerfile"):
        for line in path.read_text("utf-8").splitlines():
            found = re.search(r"(?:gdbext|gdbext\.pyz) (watch .*?)(?: (?:>&2|2>&1|\|\|?|\|\| true).*)?$", line)
            if found and not line.lstrip().startswith("#"):
                yield path.name, found[1]
    for name in ("daemonset.yaml", "sidecar.yaml"):
        for pod in map(pod_of, documents(name)):
            yield name, shlex.join(next(one["args"] for one in pod["containers"] if one["name"] == "gdbext"))


@pytest.mark.parametrize(("name", "line"), sorted(lines_with_gdbext()))
def test_every_option_is_one_of_ours(name, line):
    text = re.sub(r'\$\{\w+[:-][^}]*\}|"\$\w+"|\$\w+', "7", line).replace('"7"', "7")
    options = parser().parse_args(shlex.split(text))
    assert options.command == "watch" and (options.service or options.before_kill)
    assert {one.name for one in COMMANDS[0].arguments} >= {word for word in shlex.split(text) if word.startswith("--")}


def test_lines_were_found():
    assert {name for name, _ in lines_with_gdbext()} == {
        *("before-restart.sh", "slurm-epilog.sh", "gdbext.service", "daemonset.yaml", "sidecar.yaml"),
    }


@pytest.mark.process
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_scripts(path):
    for shell in ("bash", "sh"):
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert os.access(path, os.X_OK)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.process
def test_systemd_knows_every_line_of_the_unit(tmp_path):
    unit = tmp_path / "gdbext.service"
    text = (FOLDER / "gdbext.service").read_text("utf-8")
    unit.write_text("\n".join(line for line in text.splitlines() if not line.startswith("Documentation=")) + "\n")
    assert "ProtectProc=" not in text and "CAP_SYS_PTRACE" in text and "@debug" in text
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


GDBEXT = """#!/bin/sh
echo "$@" >>{folder}/looks
for rank in 0 1; do kill -0 "$(cat {folder}/pid.$rank)" || echo "rank $rank has ended" >>{folder}/looks; done
exit 3
"""
WORKER = "import os, signal, sys\nopen(sys.argv[1], 'w').write(str(os.getpid()))\nsignal.pause()"


@pytest.mark.process
def test_workers_that_are_told_to_end_are_looked_at_before(tmp_path):
    """As torchrun does: TERM to all workers at once. One looks, while all of them live; then each gets the TERM."""
    program = tmp_path / "bin" / "gdbext"
    program.parent.mkdir()
    program.write_text(GDBEXT.format(folder=tmp_path))
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "GDBEXT_INTO": str(tmp_path / "kept")}
    workers = []
    for rank in (0, 1):
        words = [FOLDER / "before-restart.sh", "python3", "-c", WORKER, str(tmp_path / f"pid.{rank}")]
        workers.append(subprocess.Popen(words, env={**environ, "LOCAL_RANK": str(rank)}))
    for rank in (0, 1):
        wait_until(lambda rank=rank: (tmp_path / f"pid.{rank}").exists() and (tmp_path / f"pid.{rank}").read_text())
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait(DEADLINE) for worker in workers] == [143, 143], "the command's own status"
    pid = (tmp_path / "pid.0").read_text()
    wanted = f"watch --before-kill {pid} --deadline 20 --into {tmp_path / 'kept'} --quiet"
    assert (tmp_path / "looks").read_text().splitlines() == [wanted]


@pytest.mark.process
def test_a_command_that_ends_by_itself_is_not_looked_at(tmp_path):
    environ = {**os.environ, "GDBEXT_INTO": str(tmp_path / "kept")}
    done = subprocess.run([FOLDER / "before-restart.sh", "sh", "-c", "cat; exit 7"], env=environ, input=b"x", stdout=-1)
    assert (done.returncode, done.stdout) == (7, b"x") and not (tmp_path / "kept").exists()


@pytest.mark.process
def test_an_epilog_never_drains_a_node(tmp_path):
    """Without Slurm, without a job, with processes that are gone."""
    script = FOLDER / "slurm-epilog.sh"
    assert subprocess.run([script], env={"PATH": os.environ["PATH"]}).returncode == 0
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'PID JOBID'\necho '12 7'\necho 'rm 7'\necho '13 7'\n")
    (tmp_path / "logger").write_text("#!/bin/sh\ncat\n")
    (tmp_path / "gdbext").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/looks\nexit 4\n')
    for name in ("scontrol", "logger", "gdbext"):
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
    assert subprocess.run([script], env=environ).returncode == 0
    assert (
        tmp_path / "looks"
    ).read_text() == "watch --before-kill 12 13 --deadline 30 --into /var/tmp/gdbext --quiet\n"
