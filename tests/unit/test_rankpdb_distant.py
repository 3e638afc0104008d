"""Through what ranks of several hosts wait for each other, and for how long."""

import sys
import threading
import time
import types
from collections import Counter

import pytest

from gdbext.rankpdb import other_hosts
from gdbext.rankpdb.identity import Identity
from tests.inferiors.pdb_job import DEADLINE
from tests.polling import wait_until

PLACE = ("/srv/train.py:33", 1)


def ranks():
    return [other_hosts.Distant(Identity(rank, 2, range(rank, rank + 1), "0123456789ab")) for rank in (0, 1)]


@pytest.fixture
def mindspore(monkeypatch):
    """Stands for mindspore 2.10, whose `get` of a key that is not there holds the GIL until the timeout."""
    values = Counter()

    class TCPStore:
        def __init__(self, host, port, instance=True):
            self.host, self.port = host, port
            if instance:  # the scheduler's has none
                self.instance = self

        def add(self, key, amount):
            values[key] += amount
            return values[key]

        def get(self, key):
            raise AssertionError("get")

        set = check = get

    module = types.ModuleType(other_hosts._MINDSPORE[0])
    module.TCPStore = TCPStore
    monkeypatch.setitem(sys.modules, other_hosts._MINDSPORE[0], module)
    monkeypatch.setattr(other_hosts, "_LOOK", 0.005)
    monkeypatch.setattr(other_hosts, "_SIGN", 0.01)
    return TCPStore, values


def waits(rank, seconds=DEADLINE):
    said = []
    thread = threading.Thread(target=lambda: said.append(rank.wait(1, PLACE, time.monotonic() + seconds)), daemon=True)
    thread.start()
    return thread, said


def signs(values, many):
    """Wait for so many signs of life."""
    wait_until(lambda: sum(values[key] for key in list(values) if "alive" in key) >= many)


def ends(thread):
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_they_wait_through_the_store_of_mindspore(mindspore):
    made, values = mindspore
    store = made("10.0.0.1", 1234)
    near, far = ranks()
    assert near.transport() == "the TCPStore of mindspore"
    far.opens(PLACE)
    thread, said = waits(near)
    signs(values, 3)  # as long as others wait
    assert not said
    far.passes(PLACE)
    ends(thread)
    assert said == ["rank 1 has resumed (reported by the TCPStore of mindspore)"]
    far.close()
    del store


def test_each_rank_takes_the_same_of_several_stores(mindspore):
    made, _ = mindspore
    stores = [made("10.0.0.2", 1), made("10.0.0.1", 2), made("10.0.0.1", 1), made("10.0.0.0", 1, instance=False)]
    assert ranks()[0]._board()._store is stores[2]


def test_a_store_that_fails(mindspore):
    store = mindspore[0]("10.0.0.1", 1234)
    near, _ = ranks()

    def gone(key, amount):
        raise RuntimeError("TCP addition operation failed!")

    store.add = gone
    assert near.wait(1, PLACE, time.monotonic() + DEADLINE) == (
        "the TCPStore of mindspore no longer answers (RuntimeError)"
    )


def test_signs_of_life_end(mindspore, monkeypatch):
    made, values = mindspore
    monkeypatch.setattr(other_hosts, "_DEAD", 0.2)
    store = made("10.0.0.1", 1234)
    near, far = ranks()
    far.opens(PLACE)
    signs(values, 1)
    far.close()  # as its process would
    thread, said = waits(near)
    ends(thread)
    assert said == ["rank 1 sends no heartbeat any more"]
    del store


def test_nothing_reaches_the_other_host(monkeypatch):
    monkeypatch.delenv(other_hosts.SHARED, raising=False)
    near, _ = ranks()
    assert near.wait(1, PLACE, time.monotonic() + DEADLINE) == (
        "rank 1 is on another host, and neither torch.distributed nor a TCPStore of mindspore nor GDBEXT_PDB_SHARED"
        " reaches it"
    )


def test_a_place_that_was_told_to_the_folder_is_passed_there_too(mindspore, monkeypatch, tmp_path):
    """The store comes up while a prompt is open."""
    monkeypatch.setenv(other_hosts.SHARED, str(tmp_path))
    near, far = ranks()
    far.opens(PLACE)
    thread, said = waits(near)
    while len(list(tmp_path.glob("*/*"))) < 2:
        assert thread.is_alive()
    store = mindspore[0]("10.0.0.1", 1234)
    far.passes(PLACE)
    ends(thread)
    assert said == ["rank 1 has resumed (reported by the folder GDBEXT_PDB_SHARED)"]
    late = waits(ranks()[0])
    ends(late[0])
    assert late[1] == ["rank 1 has resumed (reported by the TCPStore of mindspore)"]
    far.close()
    near.close()
    assert not list(tmp_path.iterdir())
    del store
