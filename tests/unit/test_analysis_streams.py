"""What a stream's number says."""

import pytest

from gdbext.analysis.streams.stream_ids import of_handle, of_torch_id
from gdbext.model.missing import Missing


@pytest.mark.parametrize(
    "handle, kind", [(0, "default"), (1, "legacy"), (2, "per-thread"), (3, "user"), (0x7F0000001000, "user")]
)
def test_handles(handle, kind):
    found = of_handle(handle)
    assert (found.kind, found.handle) == (kind, handle)
    assert bool(found.notes) == (kind != "user")


@pytest.mark.parametrize("which, index", [(1, 0), (1, 31), (2, 5), (4, 17)])
def test_streams_of_the_pool(which, index):
    found = of_torch_id(index << 5 | which << 1 | 1)
    assert (found.kind, found.pool_index, found.priority) == ("pool", index, 1 - which)
    assert isinstance(found.handle, Missing) and "1.13" in found.notes[0]


def test_other_ids_of_torch():
    assert of_torch_id(0).kind == "default"
    assert of_torch_id(0x7F0000001000)[:2] == ("user", 0x7F0000001000)
    assert of_torch_id(2).kind == "per-thread"


@pytest.mark.parametrize("number", [1, 0xF << 1 | 1, 1 << 10 | 3, -1, 0x7F0000001001])
def test_what_is_no_id_of_torch_is_not_decoded(number):
    found = of_torch_id(number)
    assert found.kind == "unverified" and found.pool_index is None and "not a stream id" in found.handle.reason
