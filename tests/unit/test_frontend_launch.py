"""A launcher in the background: logs, signals, and nothing left behind."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gdbext.cli.launch import GRACE, with_logs
from tests.inferiors.demo import state_of
from tests.inferiors.pdb_job import DEADLINE, HERE, Talker
from tests.polling import wait_until

LOGS = Path("/logs")


@pytest.mark.parametrize(
    "command, made",
    [
        ("torchrun --nproc-per-node 8 t.py", "torchrun --log-dir /logs --redirects 3 --nproc-per-node 8 t.py"),
        ("/opt/bin/torchrun t.py", "/opt/bin/torchrun --log-dir /logs --redirects 3 t.py"),
        ("python -m torch.distributed.run t.py", "python -m torch.distributed.run --log-dir /logs --redirects 3 t.py"),
        ("torchrun --tee=3 t.py", "torchrun --tee=3 t.py"),
        ("env A=1 mpirun -n 2 t", "env A=1 mpirun -n 2 t"),
        ("mpirun -n 2 t", "mpirun --output-filename /logs -n 2 t"),
        ("msrun --worker_num=8 t.py", "msrun --log_dir=/logs --join=True --worker_num=8 t.py"),
        ("python t.py", "python t.py"),
        ("python torchrun", "python torchrun"),
    ],
)
def test_each_rank_gets_a_log(command, made):
    assert with_logs(command.split(), LOGS) == made.split()


@pytest.fixture
def launch(tmp_path):
    """Starts `gdbext launch` with these words; ends it after the test."""
    started = []

    def start(*words, **environment):
        argv = [sys.executable, "-m", "gdbext", "launch", "--logs", str(tmp_path / "logs"), *words]
        started.append(Talker(argv, {"HOME": str(tmp_path), **environment}))
        return started[-1]

    yield start
    for talker in started:
        talker.end()


@pytest.mark.process
def test_status_and_log_of_the_launcher(tmp_path, launch):
    talker = launch("--", "sh", "-c", "echo begun; exit 7")
    assert "ended with status 7" in talker.rest()
    assert talker.process.returncode == 7
    assert (tmp_path / "logs" / "launcher.log").read_text() == "begun\n"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.process
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_logs_are_for_their_user_alone(mask, tmp_path):
    words = [
        sys.executable,
        "-m",
        "gdbext",
        "launch",
        "--logs",
        str(tmp_path / "some" / "logs"),
        "--",
        "echo",
        "secret",
    ]
    (tmp_path / "some").mkdir()
    done = subprocess.run(words, preexec_fn=lambda: os.umask(mask), cwd=HERE.parents[1], timeout=DEADLINE)
    assert done.returncode == 0
    assert mode(tmp_path / "some" / "logs") == 0o700
    assert mode(tmp_path / "some" / "logs" / "launcher.log") == 0o600


@pytest.mark.process
def test_an_older_log_is_closed_to_others_and_a_folder_stays_as_it_is(tmp_path, launch):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o755)
    (tmp_path / "logs" / "launcher.log").write_text("before\n")
    (tmp_path / "logs" / "launcher.log").chmod(0o644)
    launch("--", "echo", "now").rest()
    assert (tmp_path / "logs" / "launcher.log").read_text() == "before\nnow\n"
    assert (mode(tmp_path / "logs"), mode(tmp_path / "logs" / "launcher.log")) == (0o755, 0o600)


@pytest.mark.process
@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "another user's"])
def test_a_log_that_somebody_has_prepared_is_not_written(kind, tmp_path, launch):
    log, other = tmp_path / "logs" / "launcher.log", tmp_path / "other"
    log.parent.mkdir()
    other.write_text("as it was")
    if kind == "link":
        log.symlink_to(other)
    elif kind == "second name":
        os.link(other, log)
    elif kind == "pipe":
        os.mkfifo(log)
    elif os.geteuid() != 0:
        pytest.skip("gives a file to another user: needs root, not a package")
    else:
        log.touch()
        os.chown(log, 65534, 65534)
    talker = launch("--", "echo", "written")
    said = talker.rest()
    assert "launcher.log" in said and "give another folder with --logs" in said and said.count("\n") == 1
    assert talker.process.returncode == 4
    assert other.read_text() == "as it was"


@pytest.mark.process
def test_ranks_that_are_killed_at_a_breakpoint_leave_nothing(tmp_path, launch):
    """Not even by SIGKILL, after which they tidy nothing up themselves."""
    meet = tmp_path / "meet"
    script = f"{sys.executable} {HERE}/pdb_rank.py step 1 & read x <{tmp_path}/pipe; kill -KILL $!; wait"
    os.mkfifo(tmp_path / "pipe")
    talker = launch("--", "sh", "-c", script, GDBEXT_PDB_DIR=str(meet), RANK="1", WORLD_SIZE="2")
    wait_until(lambda: meet.is_dir() and list(meet.glob("pdb-*/1.*")))
    (tmp_path / "pipe").write_text("on\n")
    talker.rest()
    assert not any(meet.iterdir())


@pytest.mark.process
def test_an_orphan_in_a_session_of_its_own_is_ended(tmp_path, launch):
    os.mkfifo(tmp_path / "pipe")
    talker = launch("--", "sh", "-c", f"setsid sh -c 'echo $$ >{tmp_path}/pipe; exec sleep 1000' & wait $!")
    orphan = int((tmp_path / "pipe").read_text())
    talker.until("started pid ")
    launcher = int(talker.until(";").rstrip(";"))
    os.kill(launcher, signal.SIGKILL)
    assert "ended 1 process that outlived the launcher" in talker.rest()
    assert talker.process.returncode == 128 + signal.SIGKILL
    assert state_of(orphan)[0] is None


@pytest.mark.process
def test_a_ctrl_c_while_the_job_is_ended_ends_it_at_once(tmp_path, launch):
    """What has not gone gently yet is killed; nothing is left that could be said to run on."""
    os.mkfifo(tmp_path / "pipe")
    code = "trap 'echo told >{0}' TERM; echo $$ >{0}; while :; do sleep 1000 & wait $!; done".format(tmp_path / "pipe")
    (tmp_path / "deaf.sh").write_text(code)
    talker = launch("--", "sh", "-c", f"setsid bash {tmp_path}/deaf.sh & wait $!")
    orphan = int((tmp_path / "pipe").read_text())
    talker.until("started pid ")
    os.kill(int(talker.until(";").rstrip(";")), signal.SIGKILL)
    assert (tmp_path / "pipe").read_text() == "told\n"
    begun = time.monotonic()
    talker.signal(signal.SIGINT)
    text = talker.rest()
    assert time.monotonic() - begun < GRACE
    assert state_of(orphan)[0] is None
    assert "that outlived the launcher" in text and "runs on" not in text
    assert talker.process.returncode == 128 + signal.SIGKILL


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_job(tmp_path, launch, number):
    os.mkfifo(tmp_path / "pipe")
    name = signal.Signals(number).name[3:]
    script = f"trap 'echo got {name}; exit 3' {name}; echo >{tmp_path}/pipe; while :; do read x <{tmp_path}/pipe; done"
    talker = launch("--", "bash", "-c", script)
    (tmp_path / "pipe").read_text()
    talker.until("started")
    talker.signal(number)
    talker.rest()
    assert talker.process.returncode == 3
    assert (tmp_path / "logs" / "launcher.log").read_text() == f"got {name}\n"


@pytest.mark.process
def test_ctrl_c_reaches_the_job_from_its_first_moment(tmp_path):
    """It comes right after the job was started, and before anybody waits for it."""
    os.mkfifo(tmp_path / "pipe")
    script = f"trap 'exit 3' INT; echo >{tmp_path}/pipe; while :; do read x <{tmp_path}/pipe; done"
    code = """if True:
        import os, signal, sys
        from gdbext.cli import main as cli, launch
        def say(self, text):
            if text.startswith("started"):
                open(sys.argv[1]).read()
                os.kill(os.getpid(), signal.SIGINT)
        launch.Progress.say = say
        sys.exit(cli.main(["launch", "--logs", sys.argv[2], "--", "bash", "-c", sys.argv[3]]))"""
    words = [sys.executable, "-c", code, str(tmp_path / "pipe"), str(tmp_path / "logs"), script]
    assert subprocess.run(words, cwd=HERE.parents[1], timeout=DEADLINE).returncode == 3


@pytest.mark.process
def test_a_ctrl_c_before_the_prompt_says_that_the_job_is_ended(tmp_path):
    """`--rank` leaves Ctrl-C to the prompt, and there is none yet."""
    code = """if True:
        import os, signal, sys
        from gdbext.cli import main as cli, launch
        def say(self, text):
            print(text, flush=True)
            if text.startswith("started"):
                os.kill(os.getpid(), signal.SIGINT)
        launch.Progress.say = say
        sys.exit(cli.main(["launch", "--rank", "0", "--logs", sys.argv[1], "--", "sleep", "1000"]))"""
    words = [sys.executable, "-c", code, str(tmp_path / "logs")]
    done = subprocess.run(words, cwd=HERE.parents[1], timeout=DEADLINE, capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGINT
    assert "asking the job to end" in done.stdout and "runs on" not in done.stdout
    assert state_of(int(done.stdout.split()[2].rstrip(";")))[0] is None


@pytest.mark.process
def test_what_outlives_the_launcher_is_asked_to_end_once(tmp_path, launch):
    """A second time may mean to it that it must not tidy up."""
    os.mkfifo(tmp_path / "pipe")
    code = """if True:
        import signal, sys, time
        came = []
        signal.signal(signal.SIGTERM, lambda *_: came.append(1))
        open(sys.argv[1], "w").write("ready")
        while not came:
            time.sleep(0.01)
        time.sleep(0.4)  # tidies up
        open(sys.argv[2], "w").write(str(len(came)))"""
    (tmp_path / "orphan.py").write_text(code)
    words = f"{sys.executable} {tmp_path}/orphan.py {tmp_path}/pipe {tmp_path}/came"
    talker = launch("--", "sh", "-c", f"setsid {words} & read x <{tmp_path}/pipe; exit 0")
    talker.rest()
    assert (tmp_path / "came").read_text() == "1"


@pytest.mark.process
def test_the_job_is_asked_to_end_when_we_are_killed(tmp_path, launch):
    os.mkfifo(tmp_path / "pipe")
    script = f"trap 'echo bye >{tmp_path}/pipe; exit' TERM; echo $$ >{tmp_path}/pipe; while :; do sleep 0.1; done"
    talker = launch("--", "bash", "-c", script)
    job = int((tmp_path / "pipe").read_text())
    talker.signal(signal.SIGKILL)
    assert (tmp_path / "pipe").read_text() == "bye\n"
    wait_until(lambda: state_of(job)[0] in (None, "Z"))


@pytest.mark.process
@pytest.mark.parametrize("words, said", [((), "no command to start"), (("--", "/no/such"), "No such file")])
def test_what_cannot_be_started_is_one_line(launch, words, said):
    talker = launch(*words)
    text = talker.rest()
    assert said in text
    assert len(text.splitlines()) == 1


@pytest.mark.process
@pytest.mark.mpi
def test_the_prompt_of_a_rank_under_mpirun(tmp_path, launch):
    (tmp_path / "meet").mkdir(mode=0o700)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]
    job = [*mpirun, sys.executable, str(HERE / "pdb_rank.py"), "environment", "1"]
    talker = launch("--rank", "2", "--", *job, GDBEXT_PDB_DIR=str(tmp_path / "meet"), TMPDIR=str(tmp_path))
    assert "rank 2" in talker.until("(Pdb) ")
    talker.type("p number")
    talker.until("0")
    talker.type("c")
    talker.rest()
    assert talker.process.returncode == 0
    assert len(list((tmp_path / "logs").rglob("stdout"))) == 3
    assert "done 0" in (tmp_path / "logs" / "launcher.log").read_text()
    assert not list((tmp_path / "meet").iterdir())
