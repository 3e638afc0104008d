"""What counts as standing still, and when a watch looks."""

import pytest

from gdbext.analysis.progress.standstill import Patience, Stillness
from gdbext.model.watching import Pulse, ThreadPulse

SECOND = 1_000_000_000


def thread(at, cpu=0.0, naps=0.0, place="202@7ffe1000"):
    """A thread that uses `cpu` of a core and sleeps `naps` times a second."""
    return ThreadPulse(1, int(at * cpu * SECOND), int(at * naps), place(at) if callable(place) else place)


def watch(polls, **more):
    """Seconds of standstill after `polls` polls, one a second, of one rank with one thread."""
    stillness = Stillness()
    stood = 0.0
    for at in range(polls):
        stood = stillness.poll({7: Pulse(float(at), {7: thread(at, **more)})})
    return stood


@pytest.mark.parametrize(
    "pulse",
    [
        {},
        {"place": None, "cpu": 1.0},
        {"place": None, "cpu": 0.5},
        {"naps": 1.0, "cpu": 0.01},
        {"naps": 2000.0, "cpu": 0.2},
        {"place": lambda at: "7@1" if at % 2 else "202@2", "naps": 3.0},
    ],
    ids=["asleep", "spins", "spins on a busy machine", "heartbeat", "polls", "helper with two places"],
)
def test_what_stands_still(pulse):
    assert watch(12, **pulse) >= 10


@pytest.mark.parametrize(
    "pulse",
    [
        {"place": lambda at: f"202@{at:x}"},
        {"naps": 50.0, "cpu": 0.6},
        {"place": None, "naps": 20.0, "cpu": 0.9},
    ],
    ids=["other depths", "works and sleeps", "is awake whenever it is seen"],
)
def test_what_moves(pulse):
    assert watch(12, **pulse) == 0


def test_counters_and_processes_that_change_are_movement():
    stillness = Stillness()
    for at in range(5):
        still = stillness.poll({7: Pulse(float(at), {7: thread(at)})}, "AllReduce 41")
    assert still == 4
    assert stillness.poll({7: Pulse(5.0, {7: thread(5)})}, "AllReduce 42") == 0
    assert stillness.poll({8: Pulse(6.0, {8: thread(6)})}, "AllReduce 42") == 0


def test_a_job_stands_while_most_of_its_ranks_do():
    """One rank runs on, and the others wait for it: that is worth a look. With half of them busy it is not."""

    def stood(moving, ranks=4):
        stillness, seconds = Stillness(), 0.0
        for at in range(12):
            places = [f"202@{at:x}" if number < moving else "202@7ffe1000" for number in range(ranks)]
            pulses = {number: Pulse(float(at), {number: thread(at, place=one)}) for number, one in enumerate(places)}
            seconds = stillness.poll(pulses)
        return seconds

    assert [stood(moving) for moving in (0, 1, 2, 3, 4)] == [11, 11, 11, 0, 0]
    assert [stood(1, ranks) for ranks in (1, 2, 3)] == [0, 11, 11]


def test_a_look_that_cannot_tell_is_followed_by_one_more():
    patience, stillness = Patience(still=10, least=30), standing("1@1")
    assert patience.wants_look(100, 10, stillness)
    patience.undecided(100, 20)
    assert not patience.wants_look(119, 29, stillness)
    assert patience.wants_look(120, 30, stillness)


def test_a_reused_thread_id_is_another_thread():
    stillness = Stillness()
    stillness.poll({7: Pulse(0.0, {7: ThreadPulse(1, 0, 0, "1@1")})})
    later = {7: Pulse(1.0, {7: ThreadPulse(2, 900_000_000, 99, "1@1")})}
    assert stillness.poll(later) == 1


def test_what_a_look_disturbs_is_no_movement():
    stillness = Stillness()
    for at in range(10):
        stillness.poll({7: Pulse(float(at), {7: thread(at)})})
    begun_anew = {7: Pulse(10.0, {7: thread(10, place="219@7ffe1000")})}
    stillness.settle(begun_anew)
    assert stillness.poll({7: Pulse(11.0, {7: thread(11)})}) == 11


def standing(place, polls=3):
    stillness = Stillness()
    for at in range(polls):
        stillness.poll({7: Pulse(float(at), {7: thread(at, place=place)})})
    return stillness


def test_one_look_a_standstill():
    patience, stillness = Patience(still=10, least=30), standing("1@1")
    assert not patience.wants_look(100, 9, stillness)
    assert patience.wants_look(101, 10, stillness)
    patience.looked(101, True, stillness)
    assert not patience.wants_look(500, 400, stillness), "it still stands: that hang is known"
    assert not patience.wants_look(510, 1, stillness), "it moves"
    assert patience.wants_look(520, 11, stillness), "and stands again"


def test_looks_are_rate_limited():
    patience, stillness = Patience(still=1, least=30), standing("1@1")
    patience.looked(100, True, stillness)
    patience.wants_look(101, 0, stillness)
    assert not patience.wants_look(129, 5, stillness)
    assert patience.wants_look(131, 7, stillness)


def test_an_idle_server_is_looked_at_once():
    """It answers a request now and then, and goes back to where it was found idle."""
    patience, idle = Patience(still=10, least=30, most=600), standing("202@idle")
    assert patience.wants_look(100, 10, idle)
    patience.looked(100, False, idle)
    for at in range(200, 600, 100):
        assert not patience.wants_look(at, 0, idle)
        assert not patience.wants_look(at + 50, 50, idle)
    patience.wants_look(600, 0, idle)
    assert patience.wants_look(650, 50, standing("202@elsewhere")), "another place is no idle place"
    assert patience.wants_look(750, 150, idle), "and idle is not believed for ever"


def test_looks_that_find_nothing_become_rare():
    patience, stillness = Patience(still=1, least=30, most=600), standing("1@1")
    at, gaps = 0.0, []
    for number in range(6):
        elsewhere = standing(f"2@{number}")
        begun = at
        patience.wants_look(at, 0, elsewhere)
        while not patience.wants_look(at, 5, elsewhere):
            at += 1
        gaps.append(at - begun)
        patience.looked(at, False, stillness)
    assert gaps == [0, 60, 120, 240, 480, 600]
