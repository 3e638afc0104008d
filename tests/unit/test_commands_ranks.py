"""Bodies of the commands about ranks, on a session made of literals."""

import pytest

from gdbext.commands import ranks as rank_commands
from gdbext.commands.all_commands import IN_GDB
from gdbext.commands.chosen_ranks import parse_ranks, pick_all, pick_rank
from gdbext.commands.declaration import loaded
from gdbext.commands.gdb_arguments import parse
from gdbext.model.attached_ranks import AttachedRank, RankOutputs, RankTable
from gdbext.model.codes import RankState
from gdbext.model.errors import UsageError
from gdbext.model.job import Job, JobSnapshot, RankProcess, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack

BY_NAME = {command.gdb: command for command in IN_GDB}


def attached(number, rank, pid, current=False):
    return AttachedRank(RankProcess(pid, "rank", rank=rank), number, current, RankState.STOPPED)


FOUR = [attached(1, 0, 100, current=True), attached(3, 1, 101), attached(4, 2, 102), attached(5, None, 103)]


class Session:
    """Remembers what it was asked."""

    def __init__(self, ranks=FOUR):
        self._ranks, self.selected, self.applied, self.outside = list(ranks), None, None, None

    def ranks(self):
        return self._ranks

    def select(self, number):
        self.selected = number

    def apply(self, numbers, command):
        self.applied = (list(numbers), command)
        return RankOutputs(command, ())

    def snapshot(self):
        return snapshot_of("attached")

    def with_engine_processes(self, snapshot):
        return snapshot

    def snapshot_from_outside(self, arguments):
        self.outside = list(arguments)
        return snapshot_of("outside")


def snapshot_of(name):
    thread = ThreadStack("1", (Frame(name), Frame("main")))
    return JobSnapshot((RankSnapshot(0, (thread,), rank=0),))


def run(name, line, session):
    return loaded(BY_NAME[name].body)(session, parse(BY_NAME[name], line))


@pytest.mark.parametrize(
    "text, ranks", [("0", (0,)), ("0-3,7", (0, 1, 2, 3, 7)), ("2,1,2", (2, 1)), (" 4 , 5-5", (4, 5))]
)
def test_rank_lists(text, ranks):
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1,,2", "1-2-3", "0-99999999999"])
def test_what_is_no_rank_list(text):
    with pytest.raises(UsageError):
        parse_ranks(text)


def test_a_pid_stands_for_a_rank_without_a_number():
    assert pick_rank(FOUR, 103).number == 5
    assert pick_rank(FOUR, 2).number == 4


def test_an_unknown_rank_names_the_known_ones():
    with pytest.raises(UsageError, match="no rank 9 is attached; attached ranks: 0-2"):
        pick_rank(FOUR, 9)


def test_a_number_that_two_jobs_use_needs_a_pid():
    with pytest.raises(UsageError, match="2 attached processes are rank 0; give the pid instead: 100, 200"):
        pick_rank([*FOUR, attached(9, 0, 200)], 0)


def test_all_and_none():
    assert pick_all(FOUR, "all") == tuple(FOUR)
    with pytest.raises(UsageError, match="llm-attach-all"):
        pick_all([], "all")


def test_apply_runs_on_the_inferiors_of_the_ranks():
    session = Session()
    run("llm-rank apply", "0-1,103 p x", session)
    assert session.applied == ([1, 3, 5], "p x")


def test_rank_selects_and_shows():
    session = Session()
    table = run("llm-rank", "2", session)
    assert session.selected == 4
    assert [row.process.rank for row in table.ranks] == [2]
    assert [row.process.rank for row in run("llm-rank", "", session).ranks] == [0]


def test_ranks_says_that_they_are_held():
    table = run("llm-ranks", "", Session())
    assert isinstance(table, RankTable) and len(table.ranks) == 4
    assert "llm-detach-all" in table.notes[0]


def test_attached_ranks_are_walked_where_they_are():
    session = Session()
    diagnosis = run("llm-nccl-diagnose", "--name x", session)
    assert session.outside is None
    assert diagnosis.snapshot.processes[0].threads[0].frames[0].function == "attached"
    assert diagnosis.tree is not None


def test_without_attached_ranks_a_process_of_its_own_looks(tmp_path):
    session = Session([])
    file = tmp_path / "saved.json"
    run("llm-nccl-diagnose", f"4711 --name 'a b' --save {file}", session)
    assert session.outside == ["--asked-as=llm-nccl-diagnose", "--name=a b", "4711"]
    assert '"outside"' in file.read_text() and file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_one_line():
    with pytest.raises(Exception, match=r"cannot write /no/such/folder/x: /no/such/folder is not a folder"):
        run("llm-stacks", "--save /no/such/folder/x", Session())


def test_a_word_that_names_no_rank_is_said_in_plain_words():
    with pytest.raises(
        UsageError, match="llm-rank: argument N: x is neither a rank number nor a pid; see `llm-rank -h`"
    ):
        run("llm-rank", "x", Session())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["a"], "Nothing is attached: llm-attach-all attaches them."),
        (["a", "b"], "Nothing is attached: 2 jobs are here; llm-attach-all PID attaches one, --all all of them."),
    ],
)
def test_ranks_of_several_jobs_are_not_said_to_be_one(keys, said, monkeypatch):
    jobs = [Job(key, "mpi", (RankProcess(100 + at, "t", rank=0),)) for at, key in enumerate(keys)]
    monkeypatch.setattr(rank_commands, "jobs_of", lambda args: jobs)
    notes = run("llm-ranks", "", Session([])).notes
    assert notes[-1] == said
    several = [("mpi, a: rank 0, pid 100", "llm-attach-all 100"), ("mpi, b: rank 0, pid 101", "llm-attach-all 101")]
    told = [(note.split("; ")[0], note.split("; ")[-1]) for note in notes[:-1]]
    assert told == (several if len(keys) > 1 else [])
