"""How far ranks have come, as lines of their logs tell."""

TIMED_OUT = (
    r"Work(?:N|H|X|M|E)CCL\(SeqNum=(?P<seq>\d{1,12}), OpType=(?P<op>\w{1,40})"
    r"(?:, NumelIn=(?P<count>\d{1,20}))?"
)
"""The collective that torch's watchdog gave up, with its number in the order of its process group."""

READY = r"(?P<tensor>[^\s,]{1,300}) \[ready ranks: ?(?P<ranks>\d+(?:-\d+)?(?:, ?\d+(?:-\d+)?)*)\]"
"""An operation that waits in Horovod's coordinator, and the ranks that have submitted it: as it lists them, or as
ranges, which is how the list is kept."""

PROGRESS = (
    r"last enqueued (?:\w{4} )?work: (?P<enqueued>-?\d{1,12}), "
    r"last completed (?:\w{4} )?work: (?P<completed>-?\d{1,12})"
)
"""How far a rank got in its process group."""

JOINED = (
    r"rank:? (?P<rank>\d{1,6}),.{0,120}"
    r"\(world_size=(?P<all>\d{1,6}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,6})"
)
"""torch's store counts who has joined; the name of the number is another one from torch 2.1 on."""

STORE_KEY = r"\bkey: ?(?P<key>store_based_barrier_key:[^\s,(]{0,200})"
"""The barrier that the line is about: each group has its own."""
PASSED = rf"\b[Rr]ank (?P<rank>\d{{1,6}}): Completed store-based barrier for {STORE_KEY[2:]}"
"""All members of a group have joined, so that nobody waits there any more."""

GROUP = r"PG(?: ID \S{1,20})? GUID (?P<group>[^\s\])]{1,80})"
"""Name of the process group; lines without it are of the default one."""

WHAT = r"^what\(\): +(?P<text>\S.*)"
"""How C++'s runtime begins the line behind that of an exception that nobody caught: the exception's text."""

UNEVEN = ("ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV", "GATHER", "SCATTER", "BROADCAST", "COALESCED", "UNKNOWN")
"""Operations whose sizes may differ between ranks, or whose number means something else on the two sides."""

ANNOUNCED = r"Running collective: CollectiveFingerPrint\(SequenceNumber=(?P<seq>\d{1,12}),? ?OpType=(?P<op>\w{1,40})"
"""What torch prints before each collective that it checks; the numbers are those of one process group."""

DEFAULT_GROUP = r"store_based_barrier_key:(?:1 .{0,80}worker_count|(?:0|default_pg)? ?\(.{0,80}num_workers_joined)"
"""The barrier of all ranks of the job; later keys may be of groups that have some of them."""

FIRST_FAULTS = (
    *("network-transport", "p2p-or-topology", "gpu-fault", "driver-bug", "shm-too-small"),
    *("no-memory-left", "memory", "device-memory"),
)
"""Causes, and ids of rows, of faults of the network, of memory and of drivers: what other lines may follow from."""
