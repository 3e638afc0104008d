"""Arguments of several nouns."""

from gdbext.commands.argument_types import number
from gdbext.commands.declaration import SHELL, Argument
from gdbext.knowledge.spinning import SPINNING_AFTER

COMMON = (
    Argument("--json", "print one JSON document, for errors too", flag=True),
    Argument("--output", "write the answer to FILE instead", "FILE", completes="file"),
    Argument("--force", "overwrite existing files", flag=True),
)
"""The form of an answer, and where it goes."""

_WHICH = "which processes (default: every rank of the one job on this host)"
SELECTING = (
    Argument("--name", "processes whose title matches REGEX", "REGEX", group=_WHICH),
    Argument("--pgid", "processes of process group N", "N", number, group=_WHICH),
    Argument("--parent", "all processes below PID", "PID", number, completes="pid", group=_WHICH),
    Argument("--engine", "jobs of this engine: vllm, sglang, rtp-llm, ...", "NAME", completes="engine", group=_WHICH),
    Argument("--asked-as", "", where=SHELL),  # the command of gdb that this is the work of
)
PIDS = Argument(
    "pids",
    "pid of any rank; selects its whole job, or the process and what it has started",
    "PID",
    number,
    nargs="*",
    completes="pid",
    shell_name="inputs",
)
SELECTORS = (PIDS, *SELECTING)
"""The selectors of a job. With none of them: the one job on this host."""

_CORES = "core files (gdbext finds their program and libraries by build-id)"
CORE_FILES = (
    Argument(
        "--sysroot",
        "root folder with the files of the machine on which the cores (or a sanitizer's reports) were written",
        "DIR",
        completes="file",
        group=_CORES,
    ),
    Argument("--exe", "the program that wrote the cores", "FILE", completes="file", group=_CORES),
)

DETAIL = (
    Argument("--verbose", "print all details: evidence and its gaps, stacks, everything to do", flag=True, short="-v"),
    Argument("--brief", "print only the answer: the last lines, without the table", flag=True),
)
FORMATS = ("markdown", "github", "slack", "speedscope", "collapsed", "dot", "perfetto", "firefox")
FORMAT = Argument(
    "--format",
    "print the answer in another format, without secrets: for a ticket (markdown, github), a chat (slack), flame "
    "graphs (speedscope, collapsed), Graphviz (dot), or samples on a timeline (perfetto, firefox)",
    "NAME",
    choices=FORMATS,
)
PAGE = (
    Argument("--html", "also write one HTML page of the answer; - is standard output", "FILE", completes="file"),
    Argument("--open", "open the page in a browser", flag=True, where=SHELL),
)
QUIET = Argument("--quiet", "no progress on stderr", flag=True, where=SHELL, short="-q")
_MANY_HOSTS_HELP = "several hosts at the same time (docs/hosts.md)"
HOSTS = (
    Argument(
        "--hosts",
        "node[01-64], @group, a file, slurm:JOBID, k8s:NAMESPACE/SELECTOR, ras (the hosts that NCCL names)",
        "HOSTS",
        where=SHELL,
        group=_MANY_HOSTS_HELP,
    ),
    Argument(
        "--via", "command that opens a shell on a host, instead of ssh", "COMMAND", where=SHELL, group=_MANY_HOSTS_HELP
    ),
    Argument("--user", "log in to the hosts as this user", "NAME", where=SHELL, group=_MANY_HOSTS_HELP),
    Argument(
        "--container", "the container of each pod (k8s:)", "NAME", where=SHELL, group=_MANY_HOSTS_HELP, short="-c"
    ),
    Argument(
        "--sudo", "run as root on the hosts, through passwordless sudo", flag=True, where=SHELL, group=_MANY_HOSTS_HELP
    ),
    Argument("--max-hosts", "refuse more than N hosts (64)", "N", int, default=64, where=SHELL, group=_MANY_HOSTS_HELP),
    Argument(
        "--dry-run", "print the command for each host, and run nothing", flag=True, where=SHELL, group=_MANY_HOSTS_HELP
    ),
)
WHICH_GDB = Argument(
    "--gdb",
    "the gdb to use (default: $GDBEXT_GDB, then gdb); none: read running ranks without gdb",
    "PATH",
    where=SHELL,
)
NEEDS_GDB = WHICH_GDB._replace(help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
MAX_PAUSE = Argument("--max-pause", "longest time to stop a rank, in seconds (2)", "S", float, default=2.0, where=SHELL)
SPINNING = Argument(
    "--spinning-after",
    f"report a rank that runs at one place for S seconds while all others wait ({SPINNING_AFTER:g})",
    "S",
    float,
    default=SPINNING_AFTER,
    where=SHELL,
)
