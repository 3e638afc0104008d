"""Communicators joined across ranks, what their counts prove, and where they must keep silent."""

from dataclasses import replace

import pytest

from gdbext.analysis.communicators.joined_communicators import communicator_table, is_wrong, why_nothing
from gdbext.analysis.verdict.judge import judge
from gdbext.model.communicator import Communicator
from gdbext.model.missing import Missing
from gdbext.render import Style, render
from gdbext.render.json.document import document
from tests.unit.stacks import ENGINE, frame, inside, job, rank, sleeping, stack, syncing

X, Y = 0xAAAA, 0xBBBB
STYLE = Style(width=100, color=False, unicode=True)


def comm(number, all_reduce=4, all_gather=3, hash=X, size=3, moved=False, **fields):
    """One rank's end of a communicator."""
    counts = {"broadcast": 0, "reduce": 0, "all_gather": all_gather, "reduce_scatter": 0, "all_reduce": all_reduce}
    fields.setdefault("counts", counts)
    fields.setdefault("init_state", "ncclSuccess")
    fields.setdefault("async_error", "ncclSuccess")
    origin = "a pointer on a stack"
    return Communicator(
        0x1000 + hash, origin, "DWARF of libnccl.so.2", hash=hash, rank=number, n_ranks=size, moved=moved, **fields
    )


def holding(one, *communicators):
    return replace(one, communicators=communicators)


def waiting(number, *communicators):
    return holding(syncing(number), *communicators)


def verdict(*ranks):
    """Judged with a second copy that saw nobody move."""
    still = [
        replace(one, threads=tuple(replace(thread, still=0, switches=0) for thread in one.threads)) for one in ranks
    ]
    return judge(replace(job(*still), apart=1.5)).verdict


def group(*ranks):
    (one,) = communicator_table(ranks).groups
    return one


# --- the table ---


def test_ends_are_joined_by_hash():
    table = communicator_table(
        [rank(1, communicators=(comm(1), comm(0, hash=Y, size=2))), rank(0, communicators=(comm(0),))]
    )
    assert [(one.hash, [member.process for member in one.members], one.unseen) for one in table.groups] == [
        (X, [0, 1], (2,)),
        (Y, [1], (1,)),
    ]
    assert "not completed" in table.notes[0]


def test_who_is_behind_in_what():
    one = group(*(rank(number, communicators=(comm(number, 3 if number == 1 else 4),)) for number in range(3)))
    (uneven,) = one.uneven
    assert (uneven.kind, uneven.behind, uneven.most) == ("all_reduce", (1,), 4)
    assert one.notes == ("ranks 0,2 launched all_reduce 4 times, rank 1 only 3 times",)
    assert is_wrong(one)


def test_a_thousand_ranks_in_one_line():
    one = group(*(rank(number, communicators=(comm(number, number % 2, size=1000),)) for number in range(1000)))
    (note,) = one.notes
    assert note.startswith("500 ranks (1,3,5,")
    assert len(note) < 160


def test_never_and_once_are_words():
    one = group(rank(0, communicators=(comm(0, 1, 0, size=2),)), rank(1, communicators=(comm(1, 0, 0, size=2),)))
    assert one.notes == ("rank 0 launched all_reduce once, rank 1 never",)


def test_counts_of_a_rank_that_launches_on_are_of_another_moment():
    one = group(rank(0, communicators=(comm(0, 9, moved=True),)), rank(1, communicators=(comm(1, 4),)))
    assert one.moving
    assert not is_wrong(one)
    assert "in use" in one.notes[-1]


def test_counts_that_were_not_read_are_not_compared():
    unread = comm(1, counts=Missing("not counted"))
    one = group(rank(0, communicators=(comm(0),)), rank(1, communicators=(unread,)), rank(2, communicators=(comm(2),)))
    assert not one.uneven
    assert not is_wrong(one)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"async_error": "ncclRemoteError"}, "rank 0: asynchronous error ncclRemoteError"),
        ({"aborted": True}, "rank 0: it was aborted"),
        ({"revoked": True}, "rank 0: it was revoked"),
        ({"init_state": "ncclSystemError"}, "rank 0: its set-up failed with ncclSystemError"),
    ],
)
def test_errors_are_said(fields, said):
    one = group(rank(0, communicators=(comm(0, **fields),)))
    assert one.notes == (said,)
    assert is_wrong(one)


def test_a_set_up_that_goes_on_is_no_error():
    one = group(rank(0, communicators=(comm(0, init_state="ncclInProgress", async_error="ncclInProgress"),)))
    assert one.notes == ("rank 0: it is still being set up",)
    assert not is_wrong(one)


def test_a_claim_of_a_million_ranks_is_bounded():
    one = group(rank(0, communicators=(comm(0, size=1 << 20),)))
    assert len(one.unseen) == 4095


def test_why_there_is_nothing():
    ranks = [
        rank(0, communicator_notes=("no offsets",)),
        rank(1, communicator_notes=("no offsets",), problems=("gone",)),
    ]
    assert why_nothing(ranks) == "no NCCL communicator was found; no offsets; gone"


# --- how it is shown ---


def test_one_line_for_each_communicator():
    bad = Communicator(0x99, "comm of ncclAllReduce", problem="startMagic is 0x0")
    ranks = [
        rank(number, communicators=(comm(number, 3 if number == 1 else 4), comm(number, hash=Y))) for number in range(3)
    ]
    ranks[2] = replace(ranks[2], communicators=(*ranks[2].communicators, bad), communicator_notes=("a note\x1b[31m",))
    table = communicator_table(ranks)
    lines = render(table, STYLE)
    assert [line.split()[:3] for line in lines if line.startswith("0x") and ":" not in line] == [
        ["0xaaaa", "3", "0-2"],
        ["0xbbbb", "3", "0-2"],
    ]
    text = "\n".join(lines)
    assert "all_gather 3, all_reduce 3-4" in text
    assert "\nCommunicator 0xaaaa: ranks 0,2 launched all_reduce 4 times, rank 1 only 3 times.\n" in text
    assert "rank 2: 0x99 (comm of ncclAllReduce): startMagic is 0x0" in text
    assert "\x1b" not in text
    answer = document(table)
    assert [one["hash"] for one in answer["communicators"]] == ["0xaaaa", "0xbbbb"]
    member = answer["communicators"][0]["members"][1]
    assert (member["process_rank"], member["counts"]["all_reduce"], member["aborted"]) == (1, 3, None)
    assert member["unread"]["aborted"] == "not read"


def test_a_thousand_communicators_stay_on_a_screen():
    ranks = [rank(0, communicators=tuple(comm(0, hash=number, size=2) for number in range(1, 1001)))]
    lines = render(communicator_table(ranks), STYLE)
    assert len(lines) < 75
    assert "936 more" in "\n".join(lines)


# --- the verdict ---


def test_different_collectives_that_no_stack_shows():
    found = verdict(waiting(0, comm(0, 4, 3)), waiting(1, comm(1, 3, 4)), waiting(2, comm(2, 4, 3)))
    assert (found.cause, found.confidence, found.culprits, found.victims) == (
        "collective-mismatch",
        "high",
        (1,),
        (0, 2),
    )
    assert hex(X) in found.summary
    assert any("rank 1 only 4 times" in one.text or "rank 1 launched" in one.text for one in found.evidence)
    cited = next(one for one in found.evidence if one.text.startswith("communicator"))
    assert "read in ranks 0-2" in cited.text and cited.process is None, "it speaks of all of them"


def test_counts_read_once_are_believed_less():
    ranks = [waiting(number, comm(number, 3 + (number != 1), 4 - (number != 1), moved=None)) for number in range(3)]
    found = verdict(*ranks)
    assert (found.cause, found.confidence) == ("collective-mismatch", "medium")
    found = verdict(*(replace(one, source="held") for one in ranks))
    assert found.confidence == "high"


def test_two_communicators_in_different_order():
    ranks = [
        waiting(number, comm(number, 3 if number == 1 else 4), comm(number, 4 if number == 1 else 3, hash=Y))
        for number in range(3)
    ]
    found = verdict(*ranks)
    assert (found.cause, found.culprits) == ("multi-comm-ordering", (1,))
    assert hex(X) in found.summary
    assert hex(Y) in found.summary


def test_crossed_counts_prove_no_order_while_somebody_is_elsewhere():
    ranks = [
        waiting(number, comm(number, 3 if number == 1 else 4), comm(number, 4 if number == 1 else 3, hash=Y))
        for number in range(3)
    ]
    found = verdict(*ranks[:2], holding(sleeping(2), *ranks[2].communicators))
    assert found.cause != "multi-comm-ordering"


def test_fewer_launches_name_a_rank_when_nobody_moves():
    found = verdict(waiting(0, comm(0)), waiting(1, comm(1, 3)), waiting(2, comm(2)))
    assert (found.cause, found.confidence, found.culprits) == ("missing-rank", "medium", (1,))
    assert "rank 1 only 3 times" in found.summary


def test_one_rank_ahead_blames_nobody():
    found = verdict(waiting(0, comm(0, 5)), waiting(1, comm(1)), waiting(2, comm(2)))
    assert (found.cause, found.culprits) == ("unknown", ())
    assert any("rank 0 launched all_reduce 5 times" in one.text for one in found.evidence)


@pytest.mark.parametrize("moving", [0, 2])
def test_counts_in_motion_prove_nothing(moving):
    ranks = [
        waiting(number, comm(number, 4 - (number == 1), 3 + (number == 1), moved=number == moving))
        for number in range(3)
    ]
    assert verdict(*ranks).cause not in ("collective-mismatch", "missing-rank", "multi-comm-ordering")


def test_equal_counts_change_nothing():
    found = verdict(*(waiting(number, comm(number)) for number in range(3)))
    assert found.cause == "unknown"


def pinned(*counts):
    call = "cudaMallocHost@libcudart.so.12"
    ranks = [
        holding(inside(1, call) if number == 1 else syncing(number), comm(number, count))
        for number, count in enumerate(counts)
    ]
    return verdict(*ranks)


def test_counts_support_the_stacks():
    """A collective that the others launched and the culprit did not is in flight."""
    found = pinned(4, 3, 4)
    assert (found.cause, found.confidence, found.culprits) == ("implicit-sync-vs-collective", "high", (1,))
    assert any(hex(X) in one.text for one in found.evidence)


def test_counts_contradict_the_stacks():
    """The culprit has launched all that the others have: it is less sure that they wait for it."""
    found = pinned(4, 4, 4)
    assert (found.cause, found.confidence) == ("implicit-sync-vs-collective", "low")
    assert any(one.text.startswith("against it: rank 1 launched as many") for one in found.evidence)


def test_others_behind_as_well_is_neither():
    assert pinned(4, 3, 3).confidence == "medium"


def test_an_error_is_evidence():
    failed = comm(2, async_error="ncclSystemError")
    found = verdict(waiting(0, comm(0)), waiting(1, comm(1)), waiting(2, failed))
    texts = [one.text for one in found.evidence]
    assert any("rank 2: asynchronous error ncclSystemError" in text for text in texts)
    assert next(one for one in found.evidence if "asynchronous" in one.text).process == 2


def test_two_ranks_in_one_process_are_not_compared_by_process():
    ranks = [waiting(0, comm(0, 4, 3, size=2), comm(1, 3, 4, size=2))]
    assert verdict(*ranks).cause != "collective-mismatch"


def test_a_frames_address_is_named_by_the_memory_there():
    """Stripped frames tell the address only; the communicator at it tells the hash that joins the ranks."""

    def calling(number, hash):
        call = frame("ncclAllReduce@libnccl.so.2", comm=0x1000 + hash)
        return rank(
            number,
            stack("poll@libc.so.6", call, *ENGINE),
            communicators=(comm(number, hash=hash, size=2),),
            world_size=2,
        )

    found = verdict(calling(0, X), calling(1, Y))
    assert found.cause == "multi-comm-ordering"
    assert hex(X) in found.summary
