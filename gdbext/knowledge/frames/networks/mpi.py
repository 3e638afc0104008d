"""MPI (Open MPI, MPICH): the outermost MPI_* name is what the program called, what stands inside is how it is done."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.frame_precedence import API, FATAL, LEAF, LOCK, OUTER, STEP
from gdbext.knowledge.frames.networks.fabrics import JOB_STARTS
from gdbext.knowledge.row_kinds import FrameRule

_COLLECTIVES = (
    (r"I?allreduce", "all_reduce"),
    (r"I?allgatherv?", "all_gather"),
    (r"I?bcast", "broadcast"),
    (r"I?reduce", "reduce"),
    (r"I?reduce_scatter(_block)?", "reduce_scatter"),
    (r"I?alltoall[vw]?", "all_to_all"),
    (r"I?gatherv?", "gather"),
    (r"I?scatterv?", "scatter"),
    (r"I?barrier", "barrier"),
)
_CALLS = (
    *_COLLECTIVES,
    (r"[IBSR]?send(_init)?", "send"),
    (r"(I?m?recv(_init)?|m?probe)", "recv"),
    (r"sendrecv(_replace)?", "send_recv"),
)


def _calls() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"mpi-{collective}",
            "mpi",
            rf"(?i:P?MPI_{names}(_c|_f08(ts)?)?_{{0,2}}$)",
            "mpi.h",
            rank=OUTER,
            collective=collective,
            captures=("comm", "count", "root"),
        )
        for names, collective in _CALLS
    )


def _inside() -> Tuple[FrameRule, ...]:
    """Of a stack that ends before the call of the program: what does the collective."""
    return tuple(
        FrameRule(
            f"mpi-inside-{collective}",
            "mpi",
            rf"(?i:(?:MPIR_|MPIDI?_(?:[A-Z]+_(?:mpi_)?)?|(?:ompi|mca)_coll_[a-z0-9]+_){names}(?:_\w+)?$)",
            "MPICH src/mpi/coll, Open MPI ompi/mca/coll: algorithms are called after their collective",
            rank=STEP + 2,
            collective=collective,
            not_under=rf"(?i:P?MPI_)|{JOB_STARTS}|ompi_comm_|MPIR?D?I?_Comm_",
        )
        for names, collective in _COLLECTIVES
    )


INSIDE = ("mpi-inside", *(f"mpi-inside-{collective}" for _, collective in _COLLECTIVES))
"""Rules of what stands inside of a call of MPI."""
OF_SOME_RANKS = (
    r"(?i:P?MPI_(Comm_(split|i?dup|create)\w*|Intercomm_(create|merge)\w*|(Cart|Graph|Dist_graph)_create\w*|Cart_sub)$)"
)
"""Calls that make a communicator of another one, which need not be that of all ranks."""
RETURNS_AT_ONCE = (
    r"(?i:P?MPI_(?:Test\w*|Im?probe|Request_get_status\w*|Win_test)_{0,2}$)"
    r"|ompi_request_default_test\w*$|MPIR_Test\w*$"
    r"|(?:cuda|cu|hip)(?:Stream|Event)Query(?:_ptsz)?$|p?ncclCommGetAsyncError$"
)
"""Calls that ask whether something has ended and wait for nothing: who is seen there asks again and again."""

RULES = (
    *_calls(),
    FrameRule(
        "mpi-init",
        "mpi",
        r"P?MPI_(Init\w*|Comm_(split|i?dup|create|spawn|accept|connect)\w*|Intercomm_(create|merge)\w*"
        r"|(Cart|Graph|Dist_graph)_create\w*|Cart_sub)$|ompi_mpi_init$"
        r"|p?mpi_(init(_thread)?|comm_(split|i?dup|create|spawn|accept|connect)\w*|intercomm_(create|merge)"
        r"|(cart|graph|dist_graph)_create\w*|cart_sub)_{1,2}$",
        "mpi.h",
        rank=OUTER,
    ),
    FrameRule(
        "mpi-finalize",
        "mpi",
        r"P?MPI_(Finalize|Comm_(free|disconnect)|Win_free)$|ompi_mpi_finalize$",
        "mpi.h; Open MPI 4.1 jumps from MPI_Finalize to its own function",
        rank=OUTER,
    ),
    FrameRule(
        "mpi-abort",
        "exited-or-crashed",
        r"(?i:P?MPI_Abort_{0,2}$)|MPID_Abort$|PMI[x2U]?_Abort$|ompi_mpi_abort$|(ompi_mpi|MPIR?)_errors_are_fatal\w*"
        r"|MPIR_Handle_fatal_error$|shmem_global_exit$",
        "Open MPI errhandler_predefined.c; MPICH errutil.c: the process ends itself and the job",
        rank=FATAL,
    ),
    FrameRule(
        "mpi-one-sided",
        "mpi",
        r"(?i:P?MPI_(Win_(lock|unlock|flush|sync|test|shared)\w*|R?(get|put|accumulate|get_accumulate)|Fetch_and_op|Compare_and_swap)(_c)?_{0,2}$)",
        "MPI 4.1, chapter 12: one process asks, no other has to call anything",
        rank=API,
    ),
    FrameRule(
        "mpi-other",
        "mpi",
        r"P?MPI_[A-Z]\w+$|p?mpi_(wait|probe|test|win|file|get|put|start|fetch|accumulate)\w*_{1,2}$",
        "mpi.h",
        rank=API,
    ),
    *_inside(),
    FrameRule(
        "mpi-inside",
        "mpi",
        r"(ompi_request_(default_)?(wait|test)\w*|(ompi_)?sync_wait_mt|ompi_sync_wait\w*|ompi_coll_base_sendrecv\w*|MPIR_(Wait|Test)\w*|MPIC_\w+|MPID_Progress_wait)$",
        "Open MPI ompi/request, opal/threads/wait_sync.c, MPICH src/mpi: who waits, and makes progress meanwhile",
        rank=STEP + 1,
    ),
    FrameRule(
        "mpi-inside",
        "mpi",
        r"(?!\w*(?:progress_thread|thread_engine))(MPI(R|C|D|DI|DU|ID)_?\w+|ompi_\w+|mca_(pml|coll|btl|osc|mtl|bml|rcache|mpool|common|io|topo|fcoll)_\w+|opal_progress\w*)",
        "Open MPI and MPICH sources; mlcommons/storage#172",
        rank=STEP,
    ),
    FrameRule(
        "mpi-event-loop",
        "condvar-idle",
        r"(event_base_loop|opal_libevent\w+_event_base_loop|progress_engine|opal_event_loop)$",
        "PMIx and ORTE progress threads; NVIDIA/nccl#1550",
        rank=LOCK,
        helper="MPI event loop",
    ),
    FrameRule(
        "event-loop-wait",
        "io",
        r"(e?poll|select|kq|evport|devpoll|win32)_dispatch$",
        "libevent epoll.c, poll.c, select.c: its loop waits there, whoever runs the loop",
        rank=LEAF + 2,
    ),
    FrameRule(
        "event-loop-clock",
        "io",
        r"update_time_cache$",
        "libevent event.c: its loop reads the clock each time round; Open MPI's progress runs it without sleeping",
        rank=LEAF,
    ),
    FrameRule(
        "mpi-launcher",
        "condvar-idle",
        r"(prte_event_base_loop|HYDT_dmx\w*_wait_for_event|HYD_pmci_wait_for_completion|eio_handle_mainloop)$",
        "PRRTE, MPICH src/pm/hydra tools/demux, Slurm src/common/eio.c: a launcher waits for what its processes say",
        rank=LOCK,
        helper="MPI event loop",
        leaf=True,
    ),
    FrameRule(
        "hooks-call",
        "native-compute",
        r"ucm_(?:event_call_orig|orig_\w+)$",
        "UCX ucm/event/event.c: the call to the kernel that the program asked for; the hooks take no lock for it",
        rank=LOCK + 1,
    ),
    FrameRule(
        "hooks-munmap",
        "mutex",
        r"(_?intercept_(munmap|mmap|brk)|opal_mem_hooks_\w+|ucm_\w+)",
        "libfabric#9003",
        rank=LOCK,
    ),
)
