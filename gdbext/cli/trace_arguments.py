"""The command line of `gdbext trace`."""

from __future__ import annotations

import argparse
from typing import Callable

from gdbext.traces.summary import BY

Output = Callable[[argparse.ArgumentParser], None]


def add_trace(parser: argparse.ArgumentParser, output: Output, epilog: str) -> None:
    """Its commands and their options."""
    commands = parser.add_subparsers(dest="trace", metavar="COMMAND", required=True)

    def add(name: str, summary: str, inputs: str = "folders and files that profilers wrote") -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=summary, description=summary, epilog=epilog)
        one.add_argument("inputs", nargs="*", metavar="DIR|FILE", help=inputs)
        one.add_argument("--jobs", type=int, default=0, metavar="N", help="files read at a time (cores, at most 4)")
        output(one)
        return one

    one = add("merge", "Write the traces of all ranks into one file, on one clock.")
    one.add_argument("-o", dest="merged", metavar="FILE", help="the merged trace, a new file (merged.trace.json.gz)")
    one.add_argument("--perfetto", action="store_true", help="write Perfetto's own format")
    one.add_argument("--window", metavar="A-B", help="only what lies between these seconds of the profile")
    one.add_argument("--steps", metavar="LIST", help="only these steps (ProfilerStep#N): 3-5,8")
    one.add_argument("--ranks", metavar="LIST", help="only these ranks: 0-3,7")
    one.add_argument("--threads", default="", metavar="WHICH", help="gpu, cpu, or a pattern of thread names")
    one.add_argument("--kernels", default="", metavar="REGEX", help="of the devices only slices whose name matches")
    one.add_argument("--require-aligned", action="store_true", help="write nothing unless all clocks can be aligned")
    two = add("diagnose", "Say which rank comes late to the collectives, how often, and what it did before.")
    two.add_argument("--csv", action="store_true", help="the collectives that cost most, as CSV")
    two.add_argument("--picture", metavar="FILE", help="draw the skew of each collective and rank into an SVG file")
    three = add("summary", "Count and time each kernel and operator, by rank.")
    three.add_argument("--by", choices=BY, default="category", help="what the rows stand under (category)")
    three.add_argument("--steps", metavar="LIST", help="only these steps (ProfilerStep#N): 3-5,8")
    four = add("diff", "Compare two runs: kernels that are new, gone, slower or faster.", "two folders or files")
    for table in (three, four):
        table.add_argument("--most", type=int, default=40, metavar="N", help="rows that are shown (40)")
        table.add_argument("--csv", action="store_true", help="the rows as CSV")
