"""How launchers and people name the logs of one job: whose a file is, by its path."""

from typing import Tuple

from gdbext.knowledge.row_kinds import WriterRule

FILES: Tuple[WriterRule, ...] = (
    WriterRule(
        r"attempt_\d{1,4}/(?P<rank>\d{1,6})/(?:stdout|stderr|error)", "torchrun --log-dir: LOG/JOB_x/attempt_0/3/"
    ),
    WriterRule(
        r"(?i)(?:^|[/_.-])(?:global_?)?rank[-_.=]?(?P<rank>\d{1,6})(?!\d)",
        "rank_3.log, stack.rank3.txt; mpirun's rank.3",
    ),
    WriterRule(
        r"(?i)(?:^|[/_.-])(?:worker|task|proc|process|trainer|tp|local_rank)[-_.=]?(?P<rank>\d{1,6})(?!\d)",
        "worker-1.out",
    ),
    WriterRule(r"slurm-\d{1,12}[_.-](?P<rank>\d{1,6})\.(?:out|err|log)$", "srun -o slurm-%j_%t.out"),
    WriterRule(
        r"(?i)(?:^|/)(?:log|logs|out|err|output|stdout|stderr)[-_.]?(?P<rank>\d{1,6})(?:\.\w{1,4})?$",
        "out.3, stderr_3.log",
    ),
    WriterRule(
        r"(?:^|/)(?P<rank>\d{1,6})(?:/(?:stdout|stderr)(?:\.\w{1,4})?|\.(?:out|err|log|txt))$", "3/stderr, 3.log"
    ),
    WriterRule(
        r"(?i)(?:^|/)(?P<host>(?:host|node|gpu|pod|vm|server|n|compute)[\w-]{0,40}?\d{1,6})(?=[/._-][^/]{0,60}$|$)",
        "host2/stderr",
    ),
)
"""The first that finds something decides."""

SANITIZER_FILE = (
    r"(?i)(?:^|/)(?:san|sanitizer|compute-sanitizer|cuda-memcheck|memcheck|racecheck|initcheck|synccheck)[-_.](\d{1,6})"
    r"\.(?:log|txt|out|xml)$"
)
"""`compute-sanitizer --log-file san.%q{RANK}.log`; with `%p` the number is a pid."""

ATTEMPT = r"(?:^|/)attempt_(?P<number>\d{1,4})/"
"""torchrun begins a folder for each restart of the group."""
