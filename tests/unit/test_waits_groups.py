"""Collectives of groups, and messages whose other side is known: who is waited for, and who is not."""

from gdbext.analysis.verdict.judge import judge
from gdbext.model.locks import LockWait, Peer
from tests.unit.stacks import ENTRY, frame, job, rank, sleeping, stack

FILE = "torch/distributed/distributed_c10d.py:77"
WORLD = ("0", (0, 1, 2))


def calls(number, function, ranks=(), **arguments):
    """A rank in this function of torch.distributed; `ranks`: a group and its members."""
    if ranks:
        arguments = {"group": ranks[0], "ranks": ",".join(map(str, ranks[1])), **arguments}
    wait = ("__futex_abstimed_wait_common64@libc.so.6", "c10d::Work::wait@libtorch_cpu.so")
    return rank(number, stack(*wait, frame(f"{function}@{FILE}", **arguments), "step@serve.py:20"))


def makes(number, *ranks, name="1"):
    wait = ("poll@libc.so.6", "c10d::TCPStore::doWait@libtorch_cpu.so")
    return rank(
        number, stack(*wait, frame(f"_new_group_with_tag@{FILE}", ranks=",".join(map(str, ranks)), group_name=name))
    )


def verdict(*ranks, **fields):
    return judge(job(*ranks, **fields)).verdict


def blamed(found):
    return found.cause, found.culprits, found.absent


def test_two_groups_in_opposite_order():
    one, two = ("1", (0, 1)), ("2", (0, 1))
    found = verdict(calls(0, "all_reduce", one), calls(1, "all_reduce", two), calls(2, "barrier", WORLD))
    assert blamed(found) == ("multi-comm-ordering", (0, 1), ())
    assert "rank 0 in all_reduce of group 1; rank 1 in all_reduce of group 2" in found.summary


def test_a_message_in_one_group_and_a_collective_of_another_are_not_said_to_be_of_the_same_communicator():
    one, two = ("1", (0, 1)), ("2", (0, 1))
    found = verdict(calls(0, "broadcast", two, src=0), calls(1, "recv", one, src=0))
    assert "rank 1 in recv from rank 0 of group 1; rank 0 in broadcast of group 2" in found.summary
    assert "Each waits in one communicator for a rank that is in another one" in found.summary


def test_groups_without_a_common_rank_wait_for_nobody_of_each_other():
    one, two = ("1", (0, 1)), ("2", (2, 3))
    found = verdict(*(calls(number, "all_reduce", one if number < 2 else two) for number in range(4)))
    assert found.cause == "unknown" and found.culprits == ()


def test_who_is_no_member_is_not_waited_for():
    group = ("1", (0, 1, 2))
    ranks = [calls(0, "all_reduce", group), sleeping(1), calls(2, "all_reduce", group), sleeping(3)]
    assert blamed(verdict(*ranks)) == ("missing-rank", (1,), ())
    absent = verdict(*ranks[:1], ranks[2], world_size=4, absent=(1, 3))
    assert blamed(absent) == ("missing-rank", (), (1,))


def test_numbers_that_do_not_fit_those_of_the_processes_say_nothing():
    """Two replicas, each with ranks of its own: rank 5 of the launcher is rank 1 of its group."""
    group = ("1", (0, 1))
    found = verdict(calls(4, "all_reduce", group), sleeping(5), calls(6, "all_reduce", group))
    assert found.culprits == (1,)


def test_ranks_that_make_different_groups():
    found = verdict(makes(0, 0, 1), makes(1, 0, 1), makes(2, 0, 1, 2))
    assert blamed(found) == ("collective-mismatch", (2,), ())
    behind = verdict(makes(0, 0, 1, 2, name="2"), makes(1, 0, 1, 2, name="2"), makes(2, 0, 1, 2))
    assert blamed(behind) == ("collective-mismatch", (2,), ()), "it has left out a group of others"
    alone = verdict(*(makes(number, 0, 1) for number in range(3)))
    assert alone.cause == "init-rendezvous" and alone.culprits == ()


def test_groups_that_only_their_members_make():
    """With use_local_synchronization their names are no numbers."""
    one, two = makes(0, 0, 1, name="9f3c"), makes(2, 2, 3, name="77ab")
    found = verdict(one, sleeping(1), two, sleeping(3))
    assert (found.cause, found.culprits) != ("collective-mismatch", (0, 2))


def test_a_rank_that_leaves_a_group_out():
    found = verdict(makes(0, 0, 1), makes(1, 0, 1), calls(2, "all_reduce", WORLD))
    assert blamed(found) == ("collective-mismatch", (2,), ())


def test_a_receive_waits_for_its_sender_alone():
    found = verdict(calls(0, "recv", WORLD, src=2), calls(1, "recv", WORLD, src=2), sleeping(2), sleeping(3))
    assert blamed(found) == ("missing-rank", (2,), ())
    none = verdict(calls(0, "recv", WORLD, src=2), calls(1, "recv", WORLD, src=2), world_size=3, absent=(2,))
    assert blamed(none) == ("missing-rank", (), (2,))


def test_a_rank_of_the_group_is_one_of_the_job():
    group = ("1", (0, 3, 1))
    asks, gets = calls(0, "send", group, group_dst=1), calls(1, "recv", group, group_src=1)
    found = verdict(asks, gets, sleeping(2), sleeping(3))
    assert blamed(found) == ("missing-rank", (3,), ())


def test_everybody_receives_first():
    found = verdict(*(calls(number, "recv", WORLD, src=(number - 1) % 3) for number in range(3)))
    assert blamed(found) == ("collective-mismatch", (0, 1, 2), ())
    assert "messages that wait for one another: rank 0 in recv from rank 2; rank 1 in recv from rank 0" in found.summary


def test_a_stage_that_expects_one_more():
    found = verdict(calls(0, "all_reduce", WORLD), calls(1, "all_reduce", WORLD), calls(2, "recv", WORLD, src=1))
    assert found.cause == "collective-mismatch" and 2 in found.culprits and 0 not in found.culprits


def test_a_message_that_both_sides_are_at_is_on_its_way():
    found = verdict(calls(0, "send", WORLD, dst=1), calls(1, "recv", WORLD, src=0))
    assert found.cause == "unknown"


# --- processes that nobody asked for ---


def parent(*others, then):
    """A rank that waits for its child, which waits for `then`; `others`: its other threads."""
    wait = ("wait4@libc.so.6", "os_waitpid@python3", "Popen._try_wait@subprocess.py:2004", "build@serve.py:9")
    waits = Peer(1, "pid 77", (77,), ("S",), ("cc1",), then=then)
    return rank(0, stack(*wait, lwp=1), *others, peers=(waits,), source="live")


def test_a_child_writes_what_its_parent_does_not_read():
    pipe = Peer(77, "pipe:[5]", (77, 1000), ("S", "S"), ("cc1", "python"))
    found = verdict(parent(then=(pipe,)))
    assert (found.cause, found.culprits) == ("other", (0,))
    assert found.summary.startswith("Rank 0 and pid 77 (cc1) wait for each other: ")
    reader = stack("read@libc.so.6", "reader@serve.py:3", id="2", lwp=2)
    assert verdict(parent(reader, then=(pipe,))).cause == "unknown"
    pool = stack("pthread_cond_wait@libc.so.6", "blas_thread_server@libscipy_openblas64_.so", *ENTRY, id="2", lwp=2)
    assert verdict(parent(pool, then=(pipe,))).cause == "other"  # a library's own thread reads no pipe


def test_a_child_that_another_program_reads_from():
    pipe = Peer(77, "pipe:[5]", (78,), ("R",), ("gzip",))
    found = verdict(parent(then=(pipe,)))
    assert (found.cause, found.root.pid) == ("unknown", 78)


def test_two_processes_with_two_locks_in_opposite_order():
    """Locks of multiprocessing whose holders the processes' own counters tell."""
    enters = ("sem_wait@libc.so.6", "SemLock.__enter__@multiprocessing/synchronize.py:95", "take@serve.py:9")

    def taking(number, holder):
        wait = LockWait(10 + number, "mutex", 0x1000 * (1 + number), 10 + holder, 1000 + holder, still=True)
        return rank(number, stack(*enters, lwp=10 + number, state="S"), locks=(wait,), source="live")

    found = verdict(taking(0, 1), taking(1, 0))
    assert blamed(found) == ("lock-order-deadlock", (0, 1), ())
    assert found.confidence == "high"
