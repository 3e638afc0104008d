"""`gdbext diagnose` and `gdbext stacks`: live ranks, core files, saved snapshots or pasted text in, an answer out."""

from __future__ import annotations

import argparse
import gc
import importlib
import time
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

from gdbext.capture.without_stop.counters import Census
from gdbext.cli.chosen_processes import chosen, chosen_job, split_inputs
from gdbext.cli.inputs import standard_input
from gdbext.cli.terminal import Progress
from gdbext.collect.ctrl_c_while_loading import interrupts_wait
from gdbext.collect.live_ranks import Limits, Look
from gdbext.commands.user_files import write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import OK, NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.text.ranges import counted

if TYPE_CHECKING:
    from gdbext.model.verdict import Diagnosis


def run(options: argparse.Namespace) -> int:
    """Take the snapshot that the arguments ask for, judge it, print it; returns the exit status."""
    progress = Progress(options.quiet, one_line=True)
    started = time.monotonic()
    gc.set_threshold(100_000)  # a look makes many objects and no cycles: to look for some took 5 % of its time
    pids, files = split_inputs(options.inputs)
    if options.frames < 1:
        raise UsageError("--frames must be positive")
    if options.spinning_after <= 0:
        raise UsageError("--spinning-after must be positive")
    if options.jobs < 0:
        raise UsageError("--jobs must not be negative", "0 lets gdbext decide")
    if files and (pids or chosen(options)):
        raise UsageError("files and processes cannot be diagnosed together", "give one kind of input")
    into = getattr(options, "bundle", None)
    if into:
        _load("diagnosis_bundle").check_new(into)
    if options.dry_run:
        _load("hosts").dry_run(options)
        return OK
    origin: object = None
    diagnosis: object = None
    piped = not (files or pids or options.hosts or chosen(options)) and standard_input.is_given(
        options.command, progress
    )
    options.inputs = ["-"] if piped else options.inputs
    if piped or files or options.sysroot or options.exe:
        try:
            snapshot, origin = _load("inputs.given_files").snapshot_of(["-"] if piped else files, options, progress)
        except NothingFound as error:
            raise standard_input.not_found(error, options.command) if piped else error from None
    elif options.hosts:
        snapshot = _load("hosts").look(options, progress)
    else:
        snapshot, diagnosis = _from_processes(pids, options, progress)
    if options.look_only:
        write_private(options.save, dump_snapshot(snapshot) + "\n", options.force)
        return OK
    show = _load("judge_and_show")
    status: int = show.conclude(diagnosis or show.judged(snapshot, options), options, progress, started, origin)
    return status


def _load(name: str) -> ModuleType:
    """What a look begins without."""
    with interrupts_wait():
        return importlib.import_module(f"gdbext.cli.{name}")


def _from_processes(
    pids: Sequence[int], options: argparse.Namespace, progress: Progress
) -> Tuple[JobSnapshot, Optional[Diagnosis]]:
    """What the looks at them read, and the answer, where it took one to see that no further look is needed."""
    if (options.samples is not None and options.samples < 1) or options.interval <= 0:
        raise UsageError("--samples and --interval must be positive")
    if options.max_pause <= 0 or options.deadline <= 0:
        raise UsageError("--max-pause and --deadline must be positive")
    if options.no_stop and options.together:
        raise UsageError("--together and --no-stop cannot be combined", "--no-stop stops no process")
    proc = ProcFS()
    job = chosen_job(proc, options, pids)
    if options.not_ranks:
        job = replace(job, ranks=(), left_out=(*job.left_out, *job.ranks))
    roles = "".join(f", {role}" for role in dict.fromkeys(one.role for one in job.serving))
    progress.say(f"{job.engine or 'job'}: {counted(len(job.ranks), 'rank')}{roles} ({job.key})")
    confirm = 0.0 if options.once else Limits.confirm
    limits = Limits(
        max_pause=options.max_pause,
        frames=options.frames,
        deadline=options.deadline,
        together=options.together,
        gdb=options.gdb,
        confirm=confirm,
        witnesses=options.command == "diagnose" and not options.no_witnesses,
        no_stop=options.no_stop,
        jobs=options.jobs,
        outlines=options.command == "diagnose",
    )
    looks: List[JobSnapshot] = []
    census: Optional[Census] = None

    def meanwhile() -> object:
        return None if options.look_only else _load("judge_and_show").ready(options)

    while True:
        one = Look(job, limits, progress, proc, census, meanwhile)
        now = one.take()
        census = one.census
        if looks and options.samples is None and not all(process.alive for process in now.processes):
            return replace(looks[-1], earlier=tuple(looks[:-1])), None  # one has ended: what was read before stands
        looks.append(now)
        snapshot = replace(looks[-1], earlier=tuple(looks[:-1]))
        pause, why, diagnosis = _next_sample(snapshot, options)
        if not why:
            return snapshot, diagnosis
        progress.say(f"sample {len(looks)} {why}, next in {pause:.3g} s")
        time.sleep(pause)


def _next_sample(snapshot: JobSnapshot, options: argparse.Namespace) -> Tuple[float, str, Optional[Diagnosis]]:
    """After how long to look again, why ("" where that was the last time), and the answer so far, where it was needed.

    Unless told how often, gdbext looks again while time alone can tell whether anything hangs, for as long as an
    endless loop takes to be called one."""
    taken = len(snapshot.earlier) + 1
    if options.samples is not None:
        return options.interval, f"of {options.samples} taken" if taken < options.samples else "", None
    if options.look_only or options.once or options.command != "diagnose":
        return 0.0, "", None
    show = _load("judge_and_show")
    diagnosis: Diagnosis = show.judged(snapshot, options)
    left: Optional[float] = show.seconds_to_wait(diagnosis, options.spinning_after)
    if left is None:
        return 0.0, "", diagnosis
    return min(left, options.interval * 2 ** (taken - 1)), "does not show it yet", diagnosis
