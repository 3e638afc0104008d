"""What ranks of several hosts leave for each other in $GDBEXT_PDB_SHARED: all of it goes, and nothing else."""

import os
import signal
import sys
import time

import pytest

from gdbext.rankpdb import host_folder, shared_folder
from gdbext.rankpdb.identity import Identity
from tests.inferiors.pdb_job import HERE, Talker

JOB, OTHER = "0123456789ab", "ba9876543210"
HOSTS = ("aaaaaaaa", "bbbbbbbb", "cccccccc")
LONG = 3600.0


class Rank(Talker):
    """`do` says what it answers."""

    def do(self, command):
        self.type(command)
        self.until(f"{command.split()[0]} ")
        return self.until("\n").strip()

    def leave(self):
        """A normal end."""
        self.do("close")
        self.hang_up()
        self.rest()
        assert self.process.returncode == 0

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    """Starts a rank: rank N is on host N."""
    started = []

    def one(rank, host=None, job=JOB, world=2, silence=60.0, skew=0.0):
        words = [tmp_path, host or HOSTS[rank], job, rank, world, silence]
        argv = [sys.executable, str(HERE / "shared_rank.py"), *map(str, words)]
        started.append(Rank(argv, {"SKEW": str(skew)}))
        started[-1].until("ready\n")
        return started[-1]

    yield one
    for talker in started:
        talker.end()


def left(tmp_path):
    """Names of what is in the folder; None when even our own folder in it is gone."""
    return {path.name for path in tmp_path.glob("*/*")} if any(tmp_path.iterdir()) else None


def grow_old(tmp_path, seconds=LONG):
    """All but what a rank is just writing: it gives that its name at any moment."""
    for path in tmp_path.glob("*/[!.]*"):
        at = path.stat().st_mtime - seconds
        os.utime(path, (at, at))


@pytest.mark.process
@pytest.mark.parametrize("skew", [-LONG, LONG])
def test_a_normal_end_leaves_nothing(start, tmp_path, skew):
    """Whatever the clocks of the hosts and of the file system say."""
    far, near = start(1, skew=skew), start(0, skew=skew)
    assert near.do("look 1 1") == "Seen(passed=False, ended=False, sign=0.0)"
    far.do("opens 1")
    assert "passed=False, ended=False" in near.do("look 1 1")
    assert "sign=0.0" not in near.do("look 1 1")
    far.do("passes 1")
    assert "passed=True" in near.do("look 1 1")
    assert "passed=False, ended=False, sign=0.0" in near.do("look 1 2")
    for rank in (near, far):
        assert left(tmp_path)
        rank.leave()
    assert left(tmp_path) is None


@pytest.mark.process
def test_the_debugged_rank_ends_while_another_waits_for_it_elsewhere(start, tmp_path):
    far, near = start(1, silence=LONG), start(0, silence=LONG)
    far.do("opens 1")
    near.do("look 1 1")
    far.do("passes 1")
    far.leave()
    assert left(tmp_path) is None
    assert "ended=True" in near.do("look 1 2")


@pytest.mark.process
def test_one_that_comes_late_still_reads_it_and_tidies_up(start, tmp_path):
    far, near, late = start(1, world=3), start(0, world=3), start(2, world=3)
    far.do("opens 1")
    near.do("look 1 1")
    far.do("passes 1")
    far.leave()
    near.leave()
    assert left(tmp_path)
    assert "passed=True" in late.do("look 1 1")
    assert left(tmp_path) is None
    assert "ended=True" in late.do("look 1 2")


@pytest.mark.process
def test_the_debugged_rank_is_killed(start, tmp_path):
    far, near = start(1, silence=0.3), start(0, silence=0.3)
    far.do("opens 1")
    near.do("look 1 1")
    far.kill()
    sign, end = near.do("look 1 1"), time.monotonic() + 0.5  # longer than the silence
    while time.monotonic() < end:
        assert near.do("look 1 1") == sign
    near.leave()
    assert left(tmp_path) is None


@pytest.mark.process
def test_a_rank_of_its_host_tidies_up_after_a_killed_one(start, tmp_path):
    far, near, mate = start(1), start(0), start(2, host=HOSTS[1])
    far.do("opens 1")
    near.do("look 1 1")
    far.kill()
    mate.leave()
    assert left(tmp_path) is None


@pytest.mark.process
def test_a_rank_that_waits_is_killed(start, tmp_path):
    far, near = start(1), start(0)
    far.do("opens 1")
    near.do("look 1 1")
    near.kill()
    far.do("passes 1")
    far.leave()
    assert left(tmp_path) is None


def killed_run(start, tmp_path, **how):
    """All its ranks are killed with -9 while they wait."""
    far, near = start(1, **how), start(0, **how)
    far.do("opens 1")
    far.do("passes 1")
    far.do("opens 2")
    near.do("look 1 1")
    far.kill()
    near.kill()
    assert len(left(tmp_path)) == 2


@pytest.mark.process
@pytest.mark.parametrize("rank, job", [(1, JOB), (1, OTHER), (0, JOB)], ids=["same job", "same host", "other host"])
def test_the_next_start_is_not_misled_by_a_killed_run_and_removes_what_it_left(start, tmp_path, rank, job):
    killed_run(start, tmp_path)
    if rank == 0:  # it cannot see the process, only that it has been silent
        start(0).leave()
        assert len(left(tmp_path)) == 2
        new = start(0)
        assert new.do("look 1 1") == "Seen(passed=False, ended=False, sign=0.0)"
        grow_old(tmp_path)
    else:
        new = start(rank, job=job)
    new.do("sweep")
    assert left(tmp_path) is None
    new.do(f"opens {rank}")
    assert len(left(tmp_path)) == 1


@pytest.mark.process
@pytest.mark.parametrize("skew", [-LONG, LONG])
def test_a_second_run_with_the_same_identity(start, tmp_path, skew):
    killed_run(start, tmp_path, skew=skew)
    far, near = start(1, skew=skew), start(0, skew=skew)
    assert near.do("look 1 1") == "Seen(passed=False, ended=False, sign=0.0)"
    far.do("opens 1")
    assert "passed=False, ended=False, sign=1" in near.do("look 1 1")
    far.do("passes 1")
    assert "passed=True" in near.do("look 1 1")
    far.do("sweep")  # its predecessor was on the same host
    far.leave()
    near.leave()
    assert left(tmp_path) is None


@pytest.mark.process
def test_what_others_left_unread_goes_with_the_next_start(start, tmp_path):
    far = start(1)
    far.do("opens 1")
    far.do("passes 1")
    far.leave()  # rank 0 has never come
    (name,) = left(tmp_path)
    start(0, job=OTHER).leave()
    assert left(tmp_path) == {name}  # it may be about to come
    grow_old(tmp_path)
    start(0, job=OTHER).leave()
    assert left(tmp_path) is None


@pytest.mark.process
@pytest.mark.parametrize("job", [JOB, OTHER])
def test_a_rank_that_lives_keeps_its_own(start, tmp_path, job):
    far, near = start(1), start(0)
    far.do("opens 1")
    near.do("look 1 1")
    mates, elsewhere = start(0, host=HOSTS[1], job=job), start(0, host=HOSTS[2], job=job)
    for rank in (mates, elsewhere):
        rank.do("sweep")
    assert len(left(tmp_path)) == 2
    grow_old(tmp_path)  # it stands still
    mates.do("sweep")  # and is seen to live
    assert len(left(tmp_path)) == 2
    elsewhere.do("sweep")
    assert left(tmp_path) is None
    near.do("look 1 1")  # ended, or perhaps not
    far.do("beat")  # it stood still, but lives
    assert "passed=False, ended=False, sign=1" in near.do("look 1 1")
    far.do("passes 1")
    assert "passed=True" in near.do("look 1 1")
    far.leave()
    assert left(tmp_path) is None


def test_it_ends_while_another_finds_it(tmp_path, monkeypatch):
    """The last mark is there, and everything goes before the rank that has laid it can read."""
    place = ("train.py:33", 1)
    monkeypatch.setattr(host_folder, "host", lambda: HOSTS[1])
    far, near = (
        shared_folder.Folder(Identity(rank, 2, range(rank, rank + 1), JOB), str(tmp_path), LONG) for rank in (1, 0)
    )
    far.opens(place)
    lay = near._sheets.mark

    def lay_late(name):
        lay(name)
        far.passes(place)
        far.close()

    monkeypatch.setattr(near._sheets, "mark", lay_late)
    assert near.look(1, place).ended
    assert left(tmp_path) is None


def test_the_last_reader_removes_what_a_rank_that_is_still_ending_has_left(tmp_path, monkeypatch):
    """The process lives on for a moment after it wrote that it has ended, and looks no more for who reads it."""
    place = ("train.py:33", 1)
    monkeypatch.setattr(host_folder, "host", lambda: HOSTS[1])
    far, near = (
        shared_folder.Folder(Identity(rank, 2, range(rank, rank + 1), JOB), str(tmp_path), LONG) for rank in (1, 0)
    )
    far.opens(place)
    far.passes(place)
    far.close()
    assert left(tmp_path), "nobody has read it yet"
    assert near.look(1, place).passed
    near.close()
    assert left(tmp_path) is None


@pytest.mark.process
def test_many_ranks_sweep_at_once(start, tmp_path):
    """Six of them, thirty times, beside one that lives and writes."""
    alive, many = start(1), [start(0, host=HOSTS[0], job=OTHER) for _ in range(6)]
    home = tmp_path / f"gdbext-pdb-{os.geteuid()}"
    for _ in range(30):
        alive.type("opens 1")
        alive.type("passes 1")
        home.mkdir(mode=0o700, exist_ok=True)
        for number in range(20):
            for mark in ("", ".0", ".2"):
                (home / f"{OTHER}-0.{number}.{HOSTS[1]}.{number}.17{mark}").touch(mode=0o600)
        grow_old(tmp_path)
        for rank in many:
            rank.type("sweep")
        for _ in range(2):
            alive.until("None\n")
        for rank in many:
            rank.until("sweep None\n")
        alive.do("beat")
        (name,) = left(tmp_path)
        assert name.startswith(f"{JOB}-0.1.{HOSTS[1]}.{alive.pid}.")
    for rank in (*many, alive):
        assert rank.do("close") == "None"
    assert {name.count(".") for name in left(tmp_path)} == {4}  # rank 0 of its job has not come


@pytest.mark.process
def test_what_is_not_ours_stays(start, tmp_path):
    home = tmp_path / f"gdbext-pdb-{os.geteuid()}"
    home.mkdir(mode=0o700)
    name = f"{JOB}-0.1.{HOSTS[1]}.1.17"
    (tmp_path / "precious").write_text("{}")
    (home / name).symlink_to(tmp_path / "precious")
    (home / f"{name}.0").mkdir()
    (home / f"{name}x").touch()
    (home / "notes").touch()
    (home / f".{name}").symlink_to("nowhere")
    for path in home.iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    before = sorted(home.iterdir())
    new = start(0)
    assert new.do("look 1 1") == "Seen(passed=False, ended=False, sign=0.0)"
    new.leave()
    assert sorted(home.iterdir()) == before
    assert (tmp_path / "precious").read_text() == "{}"


@pytest.mark.process
def test_a_folder_behind_a_link_is_not_used(start, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"gdbext-pdb-{os.geteuid()}").symlink_to("elsewhere")
    rank = start(1)
    for command in ("opens 1", "look 0 1"):
        assert "is not a folder" in rank.do(command)
    rank.leave()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_files_of_other_owners_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(host_folder, "host", lambda: HOSTS[1])
    mine = shared_folder.Folder(Identity(1, 2, range(1, 2), JOB), str(tmp_path), 1.0)
    mine.opens(("train.py:33", 1))
    grow_old(tmp_path)
    other = shared_folder.Folder(Identity(0, 2, range(1), OTHER), str(tmp_path), 1.0)
    monkeypatch.setattr(host_folder, "host", lambda: HOSTS[0])
    new = other._sheets._new

    def of_another(text, make):
        now = new(text, make)
        other._sheets._owner += 1
        return now

    monkeypatch.setattr(other._sheets, "_new", of_another)
    other.sweep()
    assert len(left(tmp_path)) == 1
    monkeypatch.undo()
    mine.close()


@pytest.fixture
def two_hosts(tmp_path, silence):
    """Ranks 0 and 1 at a breakpoint, and a terminal with rank 1's prompt."""
    started, common = [], {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "here"}
    common.update(MASTER_PORT="1", GDBEXT_PDB_SHARED=str(tmp_path / "shared"), HOME=str(tmp_path))
    (tmp_path / "shared").mkdir()
    for rank in (0, 1):
        (tmp_path / f"host{rank}").mkdir(mode=0o700)
        environment = {**common, "RANK": str(rank), "GDBEXT_PDB_DIR": str(tmp_path / f"host{rank}")}
        argv = [sys.executable, str(HERE / "pdb_host.py"), HOSTS[rank], silence, "1"]
        started.append(Talker(argv, environment))
    started.append(Talker([sys.executable, "-m", "gdbext", "pdb"], environment))
    started[2].until("(Pdb) ")
    started[0].until("for rank 1, 3600 s at most (on another host: the folder GDBEXT_PDB_SHARED)")
    while len(left(tmp_path / "shared")) < 2:  # rank 0 has found it
        assert started[0].process.poll() is None
    yield started
    for talker in started:
        talker.end()


@pytest.mark.process
@pytest.mark.parametrize("way, silence", [("continue", "60"), ("kill", "5")])
def test_breakpoints_of_two_hosts_leave_nothing(two_hosts, tmp_path, way):
    near, far, terminal = two_hosts
    if way == "kill":
        far.signal(signal.SIGKILL)
        assert "resumes: rank 1 sends no heartbeat any more" in near.rest()
    else:
        terminal.type("c")
        assert "rank 1 has" in near.rest()
        assert "reported by the folder GDBEXT_PDB_SHARED" in near.seen
        assert "done 101" in far.rest()
    assert near.seen.endswith("done 1\n")
    assert left(tmp_path / "shared") is None


FORKS = """
import os, sys
from gdbext.rankpdb import breakpoint_
breakpoint_(rank=1, timeout=0.01)
if os.fork() == 0:
    sys.exit()
os.wait()
breakpoint_(rank=1, timeout=0.01)
print("left", [name.count(".") for _, _, names in os.walk(sys.argv[1]) for name in names])
"""


@pytest.mark.process
def test_a_forked_child_that_ends_removes_nothing(tmp_path):
    environment = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "here"}
    environment.update(MASTER_PORT="1", GDBEXT_PDB_SHARED=str(tmp_path), GDBEXT_PDB_DIR=str(tmp_path / "meet"))
    (tmp_path / "meet").mkdir(mode=0o700)
    rank = Talker([sys.executable, "-c", FORKS, str(tmp_path / f"gdbext-pdb-{os.geteuid()}")], environment)
    try:
        assert "left [4]" in rank.rest()
    finally:
        rank.end()
