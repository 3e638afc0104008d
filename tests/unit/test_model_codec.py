"""Snapshots survive the way to JSON and back; other files are one clear line."""

import json
from pathlib import Path

import pytest

from gdbext.model.codes import Code, Word
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files import limits
from gdbext.model.snapshot_files.codec import TOOL, decode, dump_snapshot, encode, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from tests.fuzz import campaign

FUZZED = 20

SAMPLES = Path(__file__).parents[1] / "data" / "snapshots"
FRAME = Frame(
    "f<int>", "/lib/x.so", 4096, "f.cc", 7, captures={"comm": 93, "text": "a", "count": Missing("optimized out")}
)
THREAD = ThreadStack("3", (FRAME, Frame(None)), 12, "name", "S", 0.25, syscall=(202, 0), still=0, switches=4)
SNAPSHOT = JobSnapshot(
    (RankSnapshot(0, (THREAD,), rank=3, environment={"RANK": "3"}, problems=("a", "b")),),
    taken_at=1.5,
    absent=(1, 2),
    apart=2.0,
    earlier=(JobSnapshot(()),),
)


def test_there_and_back():
    assert load_snapshot(dump_snapshot(SNAPSHOT)) == SNAPSHOT


def test_what_is_at_its_default_is_not_written():
    assert encode(Frame("f")) == {"function": "f"}


def test_keys_of_a_later_release_are_ignored():
    document = json.loads(dump_snapshot(SNAPSHOT))
    document["snapshot"]["processes"][0]["colour"] = "red"
    assert load_snapshot(json.dumps(document)) == SNAPSHOT


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", '{"schema": 1}', '{"schema": 1, "snapshot": []}', "[" * 100000],
)
def test_something_else_is_one_line(text):
    with pytest.raises(GdbextError, match="not a gdbext snapshot"):
        load_snapshot(text)


def test_another_schema_says_so():
    with pytest.raises(GdbextError, match="schema 99, this gdbext reads 1"):
        load_snapshot('{"schema": 99, "snapshot": {}}')


@pytest.mark.parametrize(
    "data", [{"id": 1, "frames": []}, {"id": "1", "frames": [3]}, {"frames": []}, {"id": "1", "frames": [], "lwp": "x"}]
)
def test_values_of_another_type_are_refused(data):
    with pytest.raises(ValueError):
        decode(ThreadStack, data)


@pytest.mark.parametrize("name", ["every-field.json", "bundle/snapshot.json"])
def test_what_earlier_releases_wrote_is_read(name):
    """Written before texts were ASCII: a byte that is no UTF-8 stands there as it is. Frames stand in their threads."""
    snapshot = load_snapshot((SAMPLES / name).read_bytes())
    assert len(snapshot.processes) == 2 and snapshot.earlier
    assert load_snapshot(dump_snapshot(snapshot)) == snapshot


def test_a_byte_that_is_no_utf8_is_kept():
    assert (load_snapshot((SAMPLES / "every-field.json").read_bytes()).processes[0].title or "").endswith("\udcff")


def test_frames_in_their_threads_are_read_and_named():
    document = {"schema": 1, "snapshot": encode(SNAPSHOT)}
    assert load_snapshot(json.dumps(document)) == SNAPSHOT
    thread = document["snapshot"]["processes"][0]["threads"][0]
    for frames, says in (
        ([{"function": "f", "line": "7"}], r"frames\[0\]\.line is a text"),
        (None, "frames is not a list"),
    ):
        thread["frames"] = frames
        with pytest.raises(GdbextError, match=r"processes\[0\]\.threads\[0\]\." + says):
            load_snapshot(json.dumps(document))


def test_equal_stacks_stand_once_and_are_one_object():
    def thread(lwp: int, function: str = "f") -> ThreadStack:
        frames = (Frame(function, "/lib/x.so", lwp << 20, sp=lwp << 30), Frame("main", pc=(lwp << 20) + 7), Frame(None))
        return ThreadStack(str(lwp), frames, lwp)

    ranks = (RankSnapshot(0, (thread(5), thread(6))), RankSnapshot(1, (thread(7), thread(8, "g"))))
    snapshot = JobSnapshot(ranks, earlier=(JobSnapshot(ranks[:1]),))
    saved = json.loads(dump_snapshot(snapshot))["snapshot"]["stacks"]
    assert {name: len(rows) for name, rows in saved.items()} == {"calls": 4, "stacks": 2, "offsets": 2}
    read = load_snapshot(dump_snapshot(snapshot))
    assert read == snapshot
    looks = (read, *read.earlier)
    five, six, seven, eight, earlier, _ = (one for look in looks for rank in look.processes for one in rank.threads)
    assert five.calls is six.calls is seven.calls is earlier.calls
    assert eight.calls is not five.calls
    assert (six.frames[1].pc, six.frames[-1].pc, six.frames[0].sp, six.frames[1].sp) == (
        (6 << 20) + 7,
        None,
        6 << 30,
        None,
    )
    assert six.frames[1:] == snapshot.processes[0].threads[1].frames[1:]
    assert dump_snapshot(read) == dump_snapshot(snapshot)


LOCK = {"thread": 1, "kind": "mutex", "address": 1, "owner": 2}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("processes", 0, "locks"), [{**LOCK, "kind": "x"}], 'processes[0].locks[0].kind is "x", not one of mutex,'),
        (("processes", 0, "locks"), [{**LOCK, "owner": {"missing": 1}}], "locks[0].owner is an object, not a whole"),
        (("processes", 0, "pause_ms"), 10**400 - 1, "processes[0].pause_ms is a number of more than 38 digits"),
        (("processes", 0, "pause_ms"), 10**500, "is a number of 501 digits"),
        (("processes", 0, "pause_ms"), float("nan"), "is NaN"),
        (("processes", 0, "pause_ms"), -1.0, "processes[0].pause_ms is -1.0, not between 0"),
        (("processes", 0, "index"), {"missing": 1}, "processes[0].index is not a whole number"),
        (("processes", 0, "index"), 7, "processes[0].index is 7, not 0"),
        (("processes", 0, "state"), "fine", 'processes[0].state is "fine", not one of ok, partial, lost'),
        (("processes", 0, "title"), "\ud800", "processes[0].title has half a character"),
        (("processes", 0, "title"), "x" * 70_000, "processes[0].title is longer than 65,536 characters"),
        (("processes", 0, "environment", "RANK"), 3, "processes[0].environment[RANK] is not a text"),
        (("stacks", "calls", 1, "line"), "7", "stacks.calls[1].line is a text"),
        (("stacks", "calls", 1), [], "stacks.calls[1] is not an object"),
        (("stacks", "stacks", 0, 1), 2, "stacks.stacks[0] is not a row number: there are 2"),
        (("stacks", "stacks", 0, 1), True, "stacks.stacks[0] is not a row number"),
        (("stacks", "stacks", 0), {}, "stacks.stacks[0] is not a list"),
        (("stacks", "offsets", 0, 0), 1 << 130, "stacks.offsets[0] has something that is not an offset"),
        (("stacks", "offsets", 0), [1], "threads[0].pc has 1 offsets for 2 frames"),
        (
            ("processes", 0, "threads", 0, "stack"),
            -1,
            "processes[0].threads[0].stack is not a row number: there are",
        ),
        (("processes", 0, "threads", 0, "pc"), 4096, "threads[0].pc is not a pair of an address and"),
        (("processes", 0, "threads", 0, "pc", 1), 9, "threads[0].pc is not a row number: there are 1"),
        (("processes", 0, "threads", 0, "pc", 0), (1 << 128) + 1, "threads[0].pc is not an address"),
        (("processes", 0, "threads", 0), [], "processes[0].threads[0] is not an object"),
        (("processes", 0, "threads", 0, "syscall", 0), "x", "processes[0].threads[0].syscall[0] is not a whole number"),
        (("processes", 0, "threads", 0, "lwp"), True, "processes[0].threads[0].lwp is true or false"),
        (("taken_at",), 1e300, "taken_at is 1e+300, not between 0"),
        (("absent", 1), -1, "absent[1] is -1"),
        (("earlier", 0, "earlier"), [{"processes": []}], "earlier[0].earlier is not empty"),
        (
            ("witnesses",),
            [{"name": "a", "state": "present", "statements": [{"text": "", "process": 9}]}],
            "process is 9",
        ),
    ],
)
def test_the_field_that_does_not_fit_is_named(path, value, says):
    document = json.loads(dump_snapshot(SNAPSHOT))
    holder = document["snapshot"]
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(GdbextError) as error:
        load_snapshot(json.dumps(document))
    assert str(error.value).startswith("not a gdbext snapshot: ") and says in str(error.value)


def test_who_wrote_what_does_not_fit_is_said():
    text = dump_snapshot(SNAPSHOT).replace('"index": 0', '"index": "0"')
    with pytest.raises(GdbextError, match=r"gdbext 9\.9 wrote it, and this is gdbext"):
        load_snapshot(text.replace(TOOL, "gdbext 9.9"))


@pytest.mark.parametrize("size", [100, 3000, 200_000])
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"processes": [], "earlier": ['])
def test_deep_nesting_is_one_line(opening, size):
    with pytest.raises(GdbextError, match="not a gdbext snapshot"):
        load_snapshot('{"schema": 1, "snapshot": {"processes": [], "earlier": [' + opening * size)


def test_a_field_that_is_very_deep_is_named_in_a_short_line():
    """Found by the fuzz (seed 1, round 61815)."""
    deep: object = 3
    for _ in range(50):
        deep = {"processes": [], "earlier": [deep]}
    with pytest.raises(GdbextError, match="not a gdbext snapshot: earlier") as error:
        load_snapshot(json.dumps({"schema": 1, "snapshot": deep}))
    assert len(str(error.value)) < 400 and str(error.value).count("...") == 1


def test_what_is_beyond_the_limits_is_left_out_and_counted(monkeypatch):
    for name, number in (("PROCESSES", 3), ("THREADS", 5), ("FRAMES_OF_A_THREAD", 4)):
        monkeypatch.setattr(limits, name, number)
    deep = ThreadStack("1", tuple(Frame(f"f{number}") for number in range(9)))
    rank = [RankSnapshot(number, (deep, deep)) for number in range(7)]
    read = load_snapshot(dump_snapshot(JobSnapshot(tuple(rank), taken_at=2.5)))
    assert read.taken_at == 2.5, "what stands behind the processes is read"
    assert read.problems == ("4 processes were left out: at most 3 are judged",)
    assert [len(one.threads) for one in read.processes] == [2, 2, 1]
    assert "1 threads were left out: at most 5 are judged" in read.processes[2].problems[0]
    assert read.processes[2].state == "partial"
    assert [frame.function for frame in read.processes[0].threads[0].frames] == ["f0", "f1", "f2", "f3"]
    assert read.processes[0].threads[0].truncated == "the outer 5 frames were left out"


@pytest.mark.parametrize("table", [True, False])
def test_the_frames_of_all_threads_together_are_limited(monkeypatch, table):
    monkeypatch.setattr(limits, "PLACED" if table else "FRAMES", 12)
    thread = ThreadStack("1", tuple(Frame(f"f{number}", pc=number) for number in range(5)))
    snapshot = JobSnapshot((RankSnapshot(0, (thread,) * 4),))
    text = dump_snapshot(snapshot) if table else json.dumps({"schema": 1, "snapshot": encode(snapshot)})
    (read,) = load_snapshot(text).processes
    assert [len(one.frames) for one in read.threads] == [5, 5, 2, 0]
    assert [one.pc for one in read.threads[2].frames] == [0, 1]
    assert "the outer frames of 2 threads were left out" in read.problems[0] and "and 12 of all" in read.problems[0]


def test_what_a_target_may_contain_can_be_read_again():
    hostile = "\ud800" + "\U0001f600" * 100_000
    rank = RankSnapshot(
        0, (ThreadStack("1", (Frame(hostile, hostile, file=hostile),)),), environment={hostile: hostile}
    )
    (read,) = load_snapshot(dump_snapshot(JobSnapshot((rank,)))).processes
    assert len(read.threads[0].frames[0].function or "") == limits.LONGEST_TEXT


def test_names_and_items_are_found_wherever_the_window_ends(monkeypatch):
    monkeypatch.setattr("gdbext.model.snapshot_files.json_pieces.LONGEST", 700)
    monkeypatch.setattr("gdbext.model.snapshot_files.json_pieces._PIECE", 13)
    for indent in (None, 1):
        text = json.dumps(json.loads(dump_snapshot(SNAPSHOT)), indent=indent)
        assert load_snapshot(text) == SNAPSHOT


def test_mutations_give_an_answer_or_one_line():
    """`scripts/fuzz` has many more."""
    counts, failed = campaign.run(5, range(FUZZED), 60.0)
    assert not failed and counts["read"] > FUZZED // 5 and counts[campaign.REFUSED] > FUZZED // 5


BEFORE = "it was let go just before the look: the thread is about to run"


@pytest.mark.parametrize(
    ("thread", "lock", "told"),
    [
        ({"truncated": "it ran while it was read, 3 times: not read without a stop"}, {}, ("ran", None, False)),
        ({"truncated": "not read, only what /proc says of it"}, {}, ("outline", None, False)),
        ({"truncated": "limit of 2 frames"}, {"detail": "held by 2 readers"}, ("other", None, True)),
        ({"truncated": "new words", "end": "ran"}, {"detail": "new words", "readers": True}, ("ran", None, True)),
        ({"truncated": "words", "end": "of a later release"}, {}, ("other", None, False)),
        ({}, {"owner": {"missing": BEFORE}}, ("other", Code.MOVING, False)),
        ({}, {"owner": {"missing": "new words", "code": "parked"}}, ("other", Code.PARKED, False)),
        ({}, {"owner": {"missing": "words", "code": "of a later release"}}, ("other", Code.OTHER, False)),
    ],
)
def test_what_code_depends_on_is_told_of_snapshots_from_before_it_was_saved(thread, lock, told):
    threads = [{"id": "1", "frames": [], **thread}]
    locks = [{"thread": 1, "kind": "mutex", "address": 1, "owner": 2, **lock}]
    document = {"schema": 1, "snapshot": {"processes": [{"index": 0, "threads": threads, "locks": locks}]}}
    process = load_snapshot(json.dumps(document).encode()).processes[0]
    wait = process.locks[0]
    code = wait.owner.code if isinstance(wait.owner, Missing) else None
    assert (process.threads[0].end, code, wait.readers) == told
    assert load_snapshot(dump_snapshot(JobSnapshot((process,))).encode()).processes[0] == process


@pytest.mark.parametrize("kind", Word.__subclasses__())
def test_a_word_is_its_text_everywhere(kind):
    for one in kind:
        assert {str(one), f"{one}", json.loads(json.dumps(one)), "".join([one])} == {one.value}
        assert one == one.value and {one.value: 1}[one]
