"""Locks and owners from the words of a futex's memory and the names on the stack: both must agree."""

import random
import struct

import pytest

from gdbext.capture.locks_in_memory.futexes import (
    AFTER,
    BEFORE,
    FutexCall,
    ThreadIds,
    Wanted,
    confirmed_waits,
    freeze,
    futex_call,
    ids_at,
    thread_ids,
)
from gdbext.capture.locks_in_memory.lock_context import (
    SharedFiles,
    Surroundings,
    exists_beside,
    oldest_id,
    place_in,
    shared_in,
)
from gdbext.capture.locks_in_memory.mutex_owners import kind_by_frames, mark_unchanged, resolve
from gdbext.capture.memory.maps import parse_maps
from gdbext.knowledge.runtimes.glibc_locks import HANDED_OVER, LET_GO, PARKED
from gdbext.model.job import RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.codec import decode, encode
from tests.unit.stacks import stack

WAITER, OWNER = 100, 200
IDS = {WAITER: WAITER, OWNER: OWNER}
AROUND = Surroundings(IDS, complete=True)
ADDRESS = 0x7000_0000_1000
LIBC = "libc.so.6"
MUTEX = (f"__lll_lock_wait@{LIBC}", f"___pthread_mutex_lock@{LIBC}", "update@engine")


def words(*numbers, at=0):
    """Memory from the futex word on; `at` words of it lie in front."""
    data = bytes(BEFORE) + struct.pack(f"<{len(numbers)}I", *numbers) + bytes(AFTER)
    start = BEFORE + 4 * at
    return data[start - BEFORE : start], data[start : start + AFTER]


def call(*numbers, at=0, expected=None, operation=0, private=True, timed=False, address=ADDRESS):
    before, memory = words(*numbers, at=at)
    value = numbers[at] if expected is None else expected
    return FutexCall(WAITER, address, operation, value, timed, private, before, memory)


def one(wait, *frames, around=AROUND, others=(), **fields):
    """The row of the thread that waits."""
    stacks = [stack(*frames, lwp=WAITER, id="1", **fields), *others]
    (row,) = resolve({WAITER: wait}, stacks, around)
    return row


def mutex(lock=2, count=0, owner=OWNER, kind=0, **fields):
    return call(lock, count, owner, 1, kind, **fields)


# --- mutexes ---


@pytest.mark.parametrize(
    ("wait", "detail"),
    [
        (mutex(), ""),
        (mutex(kind=1, count=3), "recursive, taken 3 times"),
        (mutex(kind=2), "error-checking"),
        (mutex(kind=3), "adaptive"),
        (mutex(lock=0x80000000 | OWNER, kind=0x90, private=False), "robust"),
        (mutex(lock=0x80000000 | OWNER, owner=0, kind=0x20, operation=6), "priority-inheriting"),
    ],
)
def test_the_owner_of_a_mutex(wait, detail):
    row = one(wait, *MUTEX)
    assert (row.kind, row.owner, row.detail, row.address) == ("mutex", OWNER, detail, ADDRESS)
    assert not row.gone


def test_a_thread_that_locks_twice_owns_it_itself():
    assert one(mutex(owner=WAITER), *MUTEX).owner == WAITER


@pytest.mark.parametrize(
    ("wait", "reason"),
    [
        (mutex(lock=0, owner=0, expected=2), LET_GO.reason),
        (mutex(owner=0), HANDED_OVER.reason),
        (mutex(lock=77), "its lock word is 77"),
        (mutex(owner=0x6F6C6C65), "is damaged"),
        (mutex(kind=0xABC000), "is not a mutex"),
        (mutex(operation=6, kind=0), "is not a mutex"),
        (FutexCall(WAITER, ADDRESS, 0, 2, False, True), "cannot be read"),
    ],
)
def test_an_owner_that_memory_does_not_prove_is_unknown(wait, reason):
    row = one(wait, *MUTEX)
    # A word that changed since the thread went to sleep says the same whatever else stands there.
    assert isinstance(row.owner, Missing)
    assert reason in row.owner.reason or row.owner in (LET_GO, HANDED_OVER)


def test_an_owner_that_is_no_thread():
    gone = one(mutex(owner=300), *MUTEX)
    assert (gone.owner, gone.gone, gone.owner_process) == (300, True, None)
    left = one(
        mutex(owner=300), *MUTEX, around=Surroundings(IDS, complete=True, parent=42, parents_threads=frozenset({300}))
    )
    assert (left.owner, left.gone, left.owner_process) == (300, True, 42)
    ended = one(mutex(owner=300), *MUTEX, around=Surroundings(IDS, complete=True, parent=42, before_fork=301))
    assert (ended.owner, ended.gone, ended.owner_process) == (300, True, 42), "it had the lock at the fork"
    partly = one(mutex(owner=300), *MUTEX, around=Surroundings(IDS, complete=False))
    assert isinstance(partly.owner, Missing)
    assert not partly.gone


@pytest.mark.parametrize(
    "programs, ids, parent, oldest",
    [
        ({7: "/bin/a", 42: "/bin/a"}, {7: 7, 9: 9}, 42, 7),
        ({7: "/bin/b", 42: "/bin/a"}, {7: 7, 9: 9}, 42, 0),  # it has replaced its program: its memory is new
        ({7: "/bin/a", 42: "/bin/a"}, {7: 7, 3: 3}, 42, 0),  # the kernel has begun anew
        ({7: "/bin/a"}, {7: 7}, 42, 0),
        ({7: "/bin/a", 42: "/bin/a"}, {7: 7}, None, 0),
        ({7: "/bin/a", 42: "/bin/a"}, {5: 7, 6: 9}, 42, 5),  # in a container
    ],
)
def test_which_ids_are_older_than_a_forked_process(programs, ids, parent, oldest, tmp_path):
    for pid, program in programs.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "exe").symlink_to(program)
    assert oldest_id(7, parent, ids, str(tmp_path)) == oldest


def test_ids_of_a_container_are_translated():
    around = Surroundings({7: WAITER, 8: OWNER}, complete=True)
    assert one(mutex(owner=8), *MUTEX, around=around).owner == OWNER


def test_an_owner_in_another_process_needs_shared_memory():
    shared = mutex(owner=8, kind=0x80, private=False)
    other = Surroundings(IDS, complete=True, others={8: (4711, 4712)})
    row = one(shared, *MUTEX, around=other)
    assert (row.owner, row.owner_process, row.shared, row.gone) == (4712, 4711, True, False)
    assert isinstance(one(shared, *MUTEX).owner, Missing)
    private = Surroundings(IDS, complete=True, others={8: (4711, 4712)}, shared=lambda address: False)
    assert one(shared, *MUTEX, around=private).gone


@pytest.mark.parametrize(
    ("place", "frames", "kind"),
    [
        ("/lib64/ld-linux-x86-64.so.2", MUTEX, "loader"),
        ("/usr/lib/libcuda.so.535.1", MUTEX, "driver"),
        (None, (*MUTEX[:2], "??@libcuda.so.1", "cudaFree@libcudart.so.12"), "driver"),
        ("/opt/engine", MUTEX, "mutex"),
    ],
)
def test_whose_mutex_it_is(place, frames, kind):
    assert one(mutex(), *frames, around=Surroundings(IDS, complete=True, place=lambda address: place)).kind == kind


# --- the other kinds ---

RWLOCK = (
    f"futex_wait@{LIBC}",
    f"__pthread_rwlock_rdlock_full64@{LIBC}",
    f"pthread_rwlock_rdlock@{LIBC}",
    "serve@engine",
)


def test_a_writer_of_a_rwlock_whichever_word_is_waited_on():
    lock = (3, 0, 1, 0, 0, 0, OWNER, 0)  # write phase, locked for writing
    for at in (2, 3):
        row = one(call(*lock, at=at, address=ADDRESS + 4 * at), *RWLOCK)
        assert (row.kind, row.owner, row.address) == ("rwlock", OWNER, ADDRESS)


def test_words_beside_a_rwlock_that_look_like_one_do_not_hide_it():
    row = one(call(1 << 3, 1 << 3 | 2, 0, 1, 0, 0, 0, 0, 0, at=3), *RWLOCK)
    assert (row.address, row.detail) == (ADDRESS - 8, "held by 1 reader")


def test_the_drivers_lock_may_be_a_rwlock():
    frames = (*RWLOCK[:3], "??@libcuda.so.1", "cuLaunchKernel@libcuda.so.1", "launch@engine")
    row = one(call(3, 0, 1, 0, 0, 0, OWNER, 0, at=2), *frames)
    assert (row.kind, row.owner) == ("driver", OWNER)


def test_readers_of_a_rwlock_are_counted_and_unnamed():
    row = one(call(2 << 3 | 2, 1, 0, 0, 0, 0, 0, 0, at=2), *RWLOCK)
    assert isinstance(row.owner, Missing)
    assert row.detail == "held by 2 readers"


def test_memory_that_is_no_rwlock():
    row = one(call(*([0xDEADBEEF] * 8), at=2), *RWLOCK)
    assert isinstance(row.owner, Missing)
    assert row.address == ADDRESS


def test_a_join_waits_for_the_thread_itself():
    row = one(call(OWNER), f"__futex_abstimed_wait_common@{LIBC}", f"__pthread_clockjoin_ex@{LIBC}", "main@engine")
    assert (row.kind, row.owner) == ("join", OWNER)
    ended = one(call(0, expected=OWNER), f"pthread_join@{LIBC}")
    assert ended.owner == LET_GO


def test_a_join_is_known_by_its_word_where_nothing_has_a_name():
    around = Surroundings(IDS, {ADDRESS: OWNER}, complete=True)
    row = one(call(OWNER), f"??@{LIBC}", f"??@{LIBC}", "main@engine", around=around)
    assert (row.kind, row.owner) == ("join", OWNER)


def test_a_shared_mutex_whose_owner_no_process_has():
    nobody = Surroundings(IDS, complete=True, exists=exists_beside(IDS, "/nonexistent"))
    shared = mutex(owner=300, kind=0x80, private=False)
    assert one(shared, *MUTEX, around=nobody).gone
    container = Surroundings({7: WAITER}, complete=True, exists=exists_beside({7: WAITER}, "/nonexistent"))
    assert not one(shared, *MUTEX, around=container).gone


def test_a_thread_that_the_kernel_refused_its_mutex():
    """glibc lets it sleep on a zero of its own: it never wakes."""
    row = one(call(0, 0x7FFF, 0xFFFFFFFF, 0, 0x1234), *MUTEX)
    assert (row.owner, row.gone) == (PARKED, True)


@pytest.mark.parametrize(
    ("frame", "wait", "kind", "address", "detail"),
    [
        ("pthread_cond_wait", call(4), "condvar", ADDRESS - 40, ""),
        ("__new_sem_wait_slow64", call(0, 2), "semaphore", ADDRESS, "2 waiting"),
        ("pthread_barrier_wait", call(2, 0, 4, at=1), "barrier", ADDRESS - 4, "2 of 4 have arrived"),
        ("__pthread_once_slow", call(1), "once", ADDRESS, ""),
        ("_int_malloc", call(2), "malloc", ADDRESS, ""),
    ],
)
def test_kinds_without_an_owner_say_so(frame, wait, kind, address, detail):
    row = one(wait, f"__lll_lock_wait_private@{LIBC}", f"{frame}@{LIBC}", "work@engine")
    assert (row.kind, row.address, row.detail) == (kind, address, detail)
    assert isinstance(row.owner, Missing)


def test_the_gil_belongs_to_the_thread_that_python_names():
    waits = (f"__pthread_cond_wait_common@{LIBC}", f"___pthread_cond_timedwait64@{LIBC}", "PyCOND_TIMEDWAIT@python3")
    frames = (*waits, "take_gil@python3", "PyEval_RestoreThread@python3", "f@a.py:1")
    holder = stack("enqueue@x.so", lwp=OWNER, id="2", gil=True)
    row = one(call(4), *frames, others=[holder], gil=False)
    assert (row.kind, row.owner, row.timed) == ("gil", OWNER, False)
    nobody = one(call(4), *frames, others=[stack("enqueue@x.so", lwp=OWNER, id="2")])
    assert isinstance(nobody.owner, Missing)
    again = one(call(4), *frames, others=[stack("enqueue@x.so", lwp=OWNER, id="2")], gil=True)
    assert again.owner == WAITER
    awake = one(call(5, expected=4), *frames, gil=True)  # it gets the GIL, and has yet to return
    assert isinstance(awake.owner, Missing)
    (between_two_calls,) = resolve({}, [stack(*frames[3:], lwp=WAITER), holder], AROUND)
    assert (between_two_calls.owner, between_two_calls.address) == (OWNER, 0)


def test_frames_decide_the_kind_and_stop_at_other_code():
    assert kind_by_frames(stack(f"??@{LIBC}", f"pthread_mutex_lock@{LIBC}", "f@engine").frames)[0] == "mutex"
    assert kind_by_frames(stack(f"syscall@{LIBC}", "my_lock@engine", f"pthread_mutex_lock@{LIBC}").frames)[0] == "futex"
    assert kind_by_frames(())[0] == "futex"
    row = one(mutex(), f"syscall@{LIBC}", "std::__atomic_wait@engine")
    assert row.kind == "futex"
    assert isinstance(row.owner, Missing)


# --- what is read, and when ---


def test_only_futex_calls_that_wait_are_taken():
    assert futex_call(1, (202, ADDRESS, 128, 2, 0, 0, 0)) == FutexCall(1, ADDRESS, 0, 2, False, True)
    assert futex_call(1, (202, ADDRESS, 0x189, 2, 0x7FFF, 0, 0)).timed
    assert futex_call(1, (219, ADDRESS, 0x189, 2, 0x7FFF, 0, 0)) is not None  # restarted after an interruption
    for other in (
        None,
        (),
        (0, 3, ADDRESS, 1, 0, 0, 0),
        (202, ADDRESS, 1, 1, 0, 0, 0),
        (202, ADDRESS + 1, 0, 2, 0, 0, 0),
    ):
        assert futex_call(1, other) is None


def test_memory_is_read_in_one_go_and_holes_are_no_harm():
    asked = []

    def read_many(ranges):
        asked.append(list(ranges))
        return [None, struct.pack("<1024I", *([2] * 1024))]

    calls = {1: (202, ADDRESS, 128, 2, 0, 0, 0), 2: (1, 1, 1, 1, 1, 1, 1), 3: (202, ADDRESS + 8, 128, 1, 0, 0, 0)}
    found = freeze(calls, read_many)
    assert asked == [[(ADDRESS - 4096, 4096), (ADDRESS, 4096)]]
    assert (found[1].word(0), found[1].word(-4), found[1].word(AFTER)) == (2, None, None)
    assert (found[1].asleep, found[3].asleep) == (True, False)


def test_a_lock_over_two_pages():
    at = ADDRESS + 4096 - 8
    pages = [struct.pack("<1024I", *range(1024)), struct.pack("<1024I", *range(1024, 2048))]
    (found,) = freeze({1: (202, at, 128, 1022, 0, 0, 0)}, lambda ranges: pages[: len(ranges)]).values()
    assert [found.word(offset) for offset in (-8, 0, 4, 8, 12)] == [1020, 1022, 1023, 1024, 1025]
    (half,) = freeze({1: (202, at, 128, 1022, 0, 0, 0)}, lambda ranges: [pages[0], None]).values()
    assert [half.word(offset) for offset in (0, 4, 8)] == [1022, 1023, None]


def test_pages_are_bounded():
    wanted = Wanted({tid: (202, tid << 20, 128, 2, 0, 0, 0) for tid in range(1, 5000)})
    assert len(wanted.ranges) <= 2048
    assert len(wanted.filled([None] * len(wanted.ranges))) == 4999


def registers(number, *arguments, pointer=0):
    kept = [0] * 27
    kept[15], kept[21] = number % (1 << 64), pointer
    for index, value in zip((14, 13, 12, 7, 8, 9), arguments):
        kept[index] = value
    return kept


def test_a_wait_counts_when_the_registers_of_the_stop_show_it():
    waits = {1: futex_call(1, (202, ADDRESS, 128, 2, 0, 0, 0))}
    assert confirmed_waits(waits, {1: registers(202, ADDRESS, 128, 2)}) == waits
    for later in (registers(202, ADDRESS + 8, 128, 2), registers(-1, ADDRESS, 128, 2), ()):
        assert confirmed_waits(waits, {1: later}) == {}


def test_ids_come_from_the_descriptors_of_the_threads():
    def read_many(ranges):
        return [struct.pack("<I", address & 0xFF) for address, _ in ranges]

    assert thread_ids({5: registers(-1, pointer=0x1000)}, read_many) == ({0xD0: 5}, {0x12D0: 5})
    assert ids_at({5: 0, 6: 1 << 60}, read_many) == ({}, {})


@pytest.mark.parametrize(
    ("ids", "whole"),
    [
        ({5: 5, 6: 6}, True),
        ({1: 5, 2: 6}, True),  # in a container
        ({5: 5}, False),
        ({5: 5, 0: 6}, False),  # it has ended
        ({5: 5, 9: 6}, False),  # another thread has its descriptor by now
    ],
)
def test_ids_of_threads_that_ended_meanwhile_are_not_all(ids, whole):
    assert ThreadIds(ids, {}).are_all({5, 6}) is whole


MAPS = """\
1000-2000 rw-p 00000000 00:00 5 /lib/libx.so
2000-3000 rw-p 00000000 00:00 0
5000-6000 rw-s 00000000 00:01 9 /dev/shm/ring
6000-7000 rw-p 00000000 00:00 0 [heap]
"""


def test_where_a_lock_lies():
    place, shared = place_in(parse_maps(MAPS)), shared_in(parse_maps(MAPS))
    assert [place(at) for at in (0x1100, 0x2100, 0x6100, 0x9000)] == ["/lib/libx.so", "/lib/libx.so", "[heap]", None]
    assert [shared(at) for at in (0x1100, 0x5100, 0x9000)] == [False, True, True]


def test_who_shares_the_memory_of_a_lock():
    memory = parse_maps(MAPS)
    files = SharedFiles({1: memory, 2: memory, 3: parse_maps("")})
    assert [files.with_process(1)(at) for at in (0x5100, 0x1100, 0x9000)] == [[2], [], []]
    around = Surroundings(IDS, complete=True, sharers=lambda address: [41, 42])
    row = one(call(0, 1, private=False), f"sem_wait@{LIBC}", "take@engine", around=around)
    assert (row.shared, row.detail) == (True, "1 waiting, shared with pid 41, 42")
    assert one(call(0, 1), f"sem_wait@{LIBC}", "take@engine", around=around).detail == "1 waiting"


def test_a_second_look_tells_lasting_from_moving():
    first = one(mutex(), *MUTEX)
    assert [row.still for row in mark_unchanged([first], [one(mutex(), *MUTEX)])] == [True]
    assert [row.still for row in mark_unchanged([first], [one(mutex(owner=WAITER), *MUTEX)])] == [False]
    assert [row.still for row in mark_unchanged([first], [])] == [False]


def test_rows_survive_a_saved_snapshot():
    rows = (one(mutex(), *MUTEX), one(mutex(owner=0), *MUTEX))
    snapshot = RankSnapshot(0, (), locks=rows)
    assert decode(RankSnapshot, encode(snapshot)).locks == rows


def test_random_memory_never_makes_up_an_owner():
    chance = random.Random(7)
    frames = (
        MUTEX,
        RWLOCK,
        (f"pthread_join@{LIBC}",),
        (f"pthread_cond_wait@{LIBC}",),
        (f"pthread_barrier_wait@{LIBC}",),
    )
    for _ in range(3000):
        numbers = [chance.choice((0, 1, 2, 3, OWNER, chance.getrandbits(32))) for _ in range(32)]
        wait = call(*numbers, at=chance.randrange(12), operation=chance.choice((0, 6, 9)))
        row = one(wait, *chance.choice(frames), around=Surroundings(IDS, complete=False))
        assert isinstance(row.owner, Missing) or row.owner in IDS.values()
