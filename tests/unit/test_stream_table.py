"""Streams of a process joined, and how the table of them reads."""

import json
from dataclasses import replace

import pytest

from gdbext.analysis.failures.error_codes import code
from gdbext.analysis.streams.stream_ids import Decoded, of_handle, of_torch_id
from gdbext.analysis.streams.stream_table import MOST_USES, Sighting, grouped, is_doubtful, with_kernels
from gdbext.knowledge.vendor_calls.stream_calls import CALLS, call_row
from gdbext.model.codes import Code
from gdbext.model.missing import Missing
from gdbext.model.stream import (
    NOT_IN_HANDLE,
    Asked,
    DeviceKernel,
    KnownStream,
    RankStreams,
    StreamTable,
    StreamUse,
    StreamWait,
)
from gdbext.render import Style, render
from gdbext.render.json.document import dumps

HANDLE = 0x7F0000001000


def use(expression="stream", owner="", thread="1", waits="", function="f", argument=False):
    return StreamUse(expression, owner, thread, 0, function, waits, argument)


def saw(handle=HANDLE, event=False, device=NOT_IN_HANDLE, decoded=None, **details):
    return Sighting(
        event, decoded or (Decoded("event", handle) if event else of_handle(handle)), device, use(**details)
    )


def test_one_stream_in_many_places():
    streams, events = grouped([saw(), saw(expression="a"), saw(), saw(event=True), saw(device=3, waits="stream")])
    assert [(one.kind, one.handle, one.device, len(one.uses)) for one in streams] == [("user", HANDLE, 3, 3)]
    assert streams[0].uses[0].waits == "stream"
    assert [one.handle for one in events] == [HANDLE]


def test_a_stream_of_the_pool_and_its_handle_are_one():
    pooled = of_torch_id(5 << 5 | 2 << 1 | 1)
    known = pooled._replace(handle=HANDLE)
    (one,), _ = grouped([saw(), saw(decoded=known, device=3)])
    assert (one.kind, one.pool_index, one.priority, one.device, one.handle) == ("pool", 5, -1, 3, HANDLE)
    streams, _ = grouped([saw(decoded=pooled, device=3), saw(decoded=pooled, device=2), saw(decoded=pooled, device=3)])
    assert sorted(one.device for one in streams) == [2, 3]


def test_each_thread_has_a_per_thread_stream_of_its_own():
    streams, _ = grouped([saw(2, thread="1"), saw(2, thread="2"), saw(0, thread="1"), saw(0, thread="2")])
    assert [one.kind for one in streams] == ["default", "per-thread", "per-thread"]


def test_order_and_caps():
    streams, _ = grouped([saw(0x50), saw(0), saw(0x40), saw(0x60, waits="stream")])
    assert [one.handle for one in streams] == [0x60, 0, 0x40, 0x50]
    (one,), _ = grouped([saw(expression=str(number)) for number in range(100)])
    assert (len(one.uses), one.more_uses) == (MOST_USES, 100 - MOST_USES)


def test_what_only_a_local_variable_holds_is_doubtful():
    assert is_doubtful(KnownStream("user", 1, uses=(use(),)))
    for sure in (
        use(owner="Layer"),
        use(argument=True),
        use(waits="stream"),
        use(function=""),
    ):
        assert not is_doubtful(KnownStream("user", 1, uses=(use(), sure)))


def test_kernels_go_to_the_streams_of_their_device():
    kernels = (DeviceKernel(0, 0, 7, "Active", name="a"), DeviceKernel(1, 1, 8, "Active", name="b"))
    busy, idle = Asked("busy", device=0), Asked("idle", device=0)
    rows = [(1, Missing("")), (0, busy), (0, idle), (NOT_IN_HANDLE, busy), (NOT_IN_HANDLE, Missing(""))]
    streams = tuple(KnownStream("user", number, device, asked=asked) for number, (device, asked) in enumerate(rows))
    found = with_kernels(RankStreams(1, 10, 0, streams, kernels=kernels))
    assert [one.kernels for one in found.streams] == [("b",), ("a",), (), ("a",), ()]
    assert with_kernels(RankStreams(1, 10, 0, streams)).streams == streams


@pytest.mark.parametrize(
    "function, argument, waits",
    [
        ("cudaStreamSynchronize", 0, "stream"),
        ("cudaStreamSynchronize_ptsz", 0, "stream"),
        ("cuStreamSynchronize", 0, "stream"),
        ("cudaEventSynchronize", 0, "event"),
        ("cudaDeviceSynchronize", None, "device"),
        ("cudaMallocHost", None, "device"),
        ("cuMemAllocHost_v2", None, "device"),
        ("cudaMemcpy", None, "default"),
        ("cudaMemcpyAsync", 4, ""),
        ("cudaLaunchKernel", 7, ""),
        ("cudaLaunchKernelExC", 0, ""),
        ("cuLaunchKernel", 8, ""),
        ("cuMemcpyDtoHAsync_v2", 3, ""),
        ("ncclAllReduce", 6, ""),
        ("pncclAllGather", 5, ""),
        ("ncclReduce", 7, ""),
        ("cublasSetStream_v2", 1, ""),
    ],
)
def test_functions_that_take_a_stream(function, argument, waits):
    row = call_row(function)
    assert (row.argument, row.waits) == (argument, waits)


def test_functions_that_take_none():
    assert not any(
        map(call_row, (None, "", "main", "cudaMallocHostile", "cudaGetDevice", "cutlass::f", "ncclCommInitRank"))
    )
    assert all(row.source and (row.offset < 0 or row.argument is not None) for row in CALLS)


WAIT = StreamWait(
    "2", 11, "worker", "cudaStreamSynchronize", "stream", 5, HANDLE, "code of the call", "ft::f", "a/b.cc", 7
)


def table(*streams, **details):
    rank = RankStreams(1, 4711, 0, streams, **details)
    return StreamTable((rank,))


def lines(answer, width=140):
    return "\n".join(render(answer, Style(width=width)))


def test_words_of_the_table():
    stream = KnownStream("user", HANDLE, 0, uses=(use(waits="stream", thread="2"), use("this->stream_", "ft::Gpt")))
    text = lines(table(stream, waits=(WAIT,)))
    assert "rank 0: 1 stream" in text and "thread 2" in text and "ft::Gpt::stream_ +1" in text
    assert "stream 0x7f0000001000" in text and "b.cc:7" in text
    assert "state" not in text  # nobody was asked
    failed = replace(stream, asked=Asked("failed", code("CUresult", 700)))
    assert "failed 700" in lines(table(failed)) and "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in lines(table(failed))
    unknown = replace(WAIT, handle=Missing("optimised away"), how="")
    assert "an unknown stream" in lines(table(stream, waits=(unknown,)))
    assert "thread 2 in cudaStreamSynchronize: optimised away" in lines(table(stream, waits=(unknown,)))
    device = replace(unknown, waits="device", call="cudaMallocHost")
    assert "all streams of the device" in lines(table(waits=(device,)))
    kernel = DeviceKernel(0, 0, 7, "Active", None, True, "(4,1,1)", "(256,1,1)", "spin", "flag=0x1")
    assert "*0" in lines(table(stream, kernels=(kernel,)))
    assert "no stream was found" in lines(table())


def test_one_line_where_no_rank_has_a_stream():
    empty = [RankStreams(number + 1, 4711 + number, number, ()) for number in range(8)]
    text = lines(StreamTable(tuple(empty)))
    assert text.count("\n") == 0 and text.startswith("ranks 0-7: no stream was found in the frames")
    one = replace(empty[3], streams=(KnownStream("user", HANDLE, 0, uses=(use(waits="stream", thread="2"),)),))
    text = lines(StreamTable((*empty[:3], one)))
    assert "rank 2: 0 streams" in text and "rank 3: 1 stream" in text


def test_one_line_for_all_that_was_not_asked_any_more():
    stuck = Missing("cuStreamIsCapturing did not return within 2 s")
    after = Missing(f"not asked any more: {stuck.reason}", Code.GIVEN_UP)
    streams = [KnownStream("user", HANDLE + number, asked=after if number else stuck) for number in range(5)]
    text = lines(table(*streams))
    assert text.count("did not return") == 1 and "4 others not queried" in text


def test_what_comes_from_the_target_is_made_safe_and_short():
    name = "a\x1b[31m\n" * 300
    stream = KnownStream("user", HANDLE, uses=(use(owner=name), use(waits="stream")))
    wait = replace(WAIT, name=name, engine_function=name)
    text = lines(table(*[stream] * 100, waits=(wait,) * 100, problems=(name,)), 100)
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 100 and "36 more" in text


def test_document():
    stream = KnownStream("user", HANDLE, asked=Asked("busy", None, False, -1, 3, 0), uses=(use(),))
    document = json.loads(dumps(table(stream, waits=(WAIT,))))
    (rank,) = document["ranks"]
    assert rank["streams"][0]["driver"]["state"] == "busy" and rank["streams"][0]["handle"] == HANDLE
    assert rank["streams"][0]["missing"] == {"device": NOT_IN_HANDLE.reason}
    assert rank["waits"][0]["call"] == "cudaStreamSynchronize" and rank["kernels"] is None
