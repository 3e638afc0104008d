"""Profiles of ranks: merged, judged, counted, compared."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET

_MERGE, _TABLES = "merge", "diagnose, summary, diff"

COMMANDS = (
    Command(
        "Merge the profiles of ranks, find the late rank, count kernels, compare runs",
        gdbext="trace",
        statuses="0 done (diagnose: no rank is late), 1 a rank is late (diagnose), 3 a file was not read, or the "
        "traces do not decide, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.trace",
        arguments=(
            Argument(
                "trace",
                "diagnose: find the late rank; merge: all ranks in one file; summary: time by kernel; diff: two runs",
                "merge|diagnose|summary|diff",
            ),
            Argument("inputs", "folders and files that profilers wrote", "DIR|FILE", nargs="*", completes="file"),
            Argument("--jobs", "files to read in parallel (default: by cores, at most 4)", "N", int, default=0),
            Argument("-o", "the merged trace, a new file", "FILE", shell_name="merged", group=_MERGE),
            Argument("--perfetto", "write Perfetto's own format", flag=True, group=_MERGE),
            Argument("--window", "only events between these seconds of the profile", "A-B", group=_MERGE),
            Argument("--ranks", "only these ranks: 0-3,7", "LIST", group=_MERGE),
            Argument(
                "--threads", "gpu, cpu, or a regular expression for thread names", "WHICH", default="", group=_MERGE
            ),
            Argument("--kernels", "on GPUs, only kernels whose name matches REGEX", "REGEX", default="", group=_MERGE),
            Argument("--require-aligned", "fail unless all clocks can be aligned", flag=True, group=_MERGE),
            Argument("--steps", "only these steps (ProfilerStep#N): 3-5,8", "LIST", group="merge, summary"),
            Argument("--picture", "draw the skew of each collective and rank (SVG)", "FILE", group="diagnose"),
            Argument(
                "--by",
                "rows by category (default), stream, stage or step",
                "WHAT",
                completes="category|stream|stage|step",
                group="summary",
            ),
            Argument("--most", "number of rows to print (40)", "N", int, group="summary, diff"),
            Argument("--csv", "print the rows as CSV", flag=True, group=_TABLES),
            QUIET,
        ),
    ),
)
