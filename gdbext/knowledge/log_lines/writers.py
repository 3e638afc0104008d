"""Whose a log line is: pid and rank as tools print them, where no collector has put them before the line."""

from typing import Tuple

from gdbext.knowledge.row_kinds import WriterRule

RANK = r"(?:\[|GUID [^\]]{1,80} |PG \d{1,6} )Rank (?P<rank>\d{1,6})\]"
"""Whose line it is. Within another group than the default it is the number in that group."""

LAUNCHER_SAW = r"(?:noticed that|has exited due to) process rank (?P<rank>\d{1,6}) with PID (?:0|(?P<pid>\d{1,9})) "
"""Open MPI's mpirun names rank and pid of the first process that died; pid 0 where it does not know it."""

_FILE = r"(?![\w./-]{0,80}\.(?:cc?|cpp|cu|h|hpp|py|rs|go|inl?):)"

THREAD_OF_UCX = r"\[[^\]\s:]{1,80}:(?P<pid>\d{1,9}) {0,9}:\w{1,6}:(?P<tid>\d{1,9})\] {1,4}(?P<says>\S.{0,400})"
"""UCX log.c: host, pid, number of the thread and its id, then what it says."""

FATAL_OF_UCX = (
    r"\[[^\]\s:]{1,80}:\d{1,9} {0,9}:\w{1,6}(?::(?P<tid>\d{1,9}))?\] {1,12}[\w./-]{1,80}\.\w{1,4}:\d{1,7} {1,4}Fatal: "
)
"""UCX log.c, before it ends the process; a stack of the thread follows."""

WRITERS: Tuple[WriterRule, ...] = (
    WriterRule(
        r"^(?:\[[\d :.,-]{8,40}\] )?\[?"
        + _FILE
        + r"(?=[\d.-]{0,40}[A-Za-z])(?P<host>[\w.-]{1,80}):(?P<pid>\d{1,9}) {0,4}[\s:]",
        "NCCL debug.cc: host:pid:thread; UCX log.c: [host:pid:thread]",
    ),
    WriterRule(
        r"Mismatched collective detected, .{0,60} at and around rank (?P<rank>\d{1,6})",
        "NCCL init.cc: comm->rank of the process that prints it",
    ),
    WriterRule(
        r"store based barrier (?:to initialize process group for|on) rank:? (?P<rank>\d{1,6}),",
        "torch distributed_c10d.py, _store_based_barrier: the global rank",
    ),
    WriterRule(
        r"DeepEP timeout check failed: rank = (?P<rank>\d{1,6}),", "DeepEP csrc/kernels/utils.cuh, barrier_block"
    ),
    WriterRule(LAUNCHER_SAW, "Open MPI"),
    WriterRule(r"local_rank: (?P<rank>\d{1,6}) \(pid: (?P<pid>\d{1,9})\)", "torch elastic multiprocessing/api.py"),
    WriterRule(
        r"Sending process (?P<pid>\d{1,9}) closing signal|Killing subprocess (?P<pid2>\d{1,9})", "torch, DeepSpeed"
    ),
    WriterRule(r"exitcode {1,9}: -?\d{1,4} \(pid: (?P<pid>\d{1,9})\)", "torch elastic multiprocessing/errors"),
    WriterRule(r"[Rr]eceived by PID (?P<pid>\d{1,9})", "torch elastic multiprocessing/errors; glog"),
    WriterRule(r"\(PID:(?P<pid>\d{1,9}), Device:-?\d{1,4}, RankID:(?P<rank>\d{1,6})\)", "torch_npu NPUException.h"),
    WriterRule(r"\b[A-Z]{2}\d{4}: \[PID: (?P<pid>\d{1,9})\]", "CANN error messages"),
    WriterRule(r"^\s*\[[A-Z]{4,7}\] [A-Z]{2,12}\((?P<pid>\d{1,9}),", "CANN plog"),
    WriterRule(r"\brankId\[(?P<rank>\d{1,6})|localUserrank\[(?P<rank2>\d{1,6})\]", "CANN HCCL"),
    WriterRule(r"\((?P<pid>\d{1,9})\) \|CCL_[A-Z]{4,5}\|", "oneCCL log.hpp"),
    WriterRule(r"\[pid:(?P<pid>\d{1,9}) tid:", "ROCm clr debug.cpp"),
    WriterRule(
        r"traps: .{1,20}\[(?P<pid>\d{1,9})\] |\S\[(?P<pid2>\d{1,9})\]: (?:segfault|bus error|unhandled) "
        r"|(?:Killing|SIGBUS to) \S{1,20}:(?P<pid3>\d{1,9}) due to hardware",
        "Linux",
    ),
    WriterRule(
        r"Kill(?:ed)? process (?P<pid>\d{1,9}) \(|oom-kill:.{0,400},pid=(?P<pid2>\d{1,9})", "Linux mm/oom_kill.c"
    ),
    WriterRule(r"Process (?P<pid>\d{1,9}) \(.{1,64}\) of user \d+ ", "systemd-coredump"),
    WriterRule(r": line \d{1,6}: {1,6}(?P<pid>\d{1,9}) [A-Z]", "bash: how a job ended"),
    WriterRule(r"==(?P<pid>\d{1,9})==", "LLVM compiler-rt, valgrind"),
    WriterRule(r"srun: error: \S{1,120} task (?P<rank>\d{1,6}): ", "Slurm: tasks are ranks"),
    WriterRule(r"MPI_ABORT was invoked on rank (?P<rank>\d{1,6}) ", "Open MPI"),
    WriterRule(r"RANK (?P<rank>\d{1,6}) PID (?P<pid>\d{1,9}) RUNNING AT", "MPICH hydra"),
    WriterRule(r"^(?:\[[^\]]{0,60}\] ?){0,3}\[(?:RANK|rank|Rank) (?P<rank>\d{1,6})\]", "TensorRT-LLM, torch"),
    WriterRule(r"^Container rank (?P<rank>\d{1,6}) status ", "Paddle's launcher"),
    WriterRule(r"\bRank\[(?P<rank>\d{1,6})\] failed", "LMDeploy model_agent.py"),
    WriterRule(r"^[\w.]*:? ?\[(?P<rank>\d{1,6})\] is setting up NCCL communicator", "torch ProcessGroupNCCL.cpp"),
    WriterRule(RANK, "torch ProcessGroupNCCL.cpp"),
    WriterRule(r"\b(?:pid|PID|proc)[ =:]{1,2}(?P<pid>\d{1,9})\b", "as people and programs write it"),
)
"""The first that tells a pid, and the first that tells a rank; the last one only where no other tells anything: beside
a rank its pid may be of a child."""

_NCCL = r"^(?:\[[\d :.,-]{8,40}\] )?(?P<host>[\w.-]{1,80}):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,4}\] NCCL "
"""How NCCL's lines begin: host, pid, thread and device."""

NAMED: Tuple[WriterRule, ...] = (
    WriterRule(
        _NCCL + r"INFO .{0,80}\brank (?P<rank>\d{1,6}) nranks ",
        "NCCL init.cc",
    ),
    WriterRule(
        _NCCL + r"INFO (?:Ring|Channel|Tree) (?:[\d/:, ]{0,11}[/:, ])?(?P<rank>\d{1,6})\[[0-9a-f]{1,8}\] -> "
        r"(?!\d{1,6}\[[0-9a-f]{1,8}\] \[receive\])\d",
        "NCCL transport.cc: the sender prints it",
    ),
    WriterRule(
        _NCCL + r"INFO (?:Ring|Channel|Tree) [\d/:, ]{1,12}\d{1,6}\[[0-9a-f]{1,8}\] -> "
        r"(?P<rank>\d{1,6})\[[0-9a-f]{1,8}\] \[receive\]",
        "NCCL net.cc: the receiver prints it",
    ),
    WriterRule(
        _NCCL + r"(?:INFO|TRACE) ",
        "NCCL debug.cc",
    ),
)
"""Lines that are no evidence and still show that a process takes part."""
