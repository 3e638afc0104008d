"""What `scripts/demo` runs: start the demo engine, let it hang, and have gdbext say why.

Exit status 0 when the verdict is the right one, 1 when it is not.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys

from gdbext.analysis.verdict.judge import judge
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.inferiors.demo import DemoFailed, DemoJob
from tests.inferiors.demo_build import BUILD
from tests.inferiors.scenarios import BY_NAME, SCENARIOS


def say(text: str) -> None:
    print(f"\n· {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.splitlines()[0])
    parser.add_argument("--hang", choices=sorted(BY_NAME), default="pinned-alloc", metavar="NAME", help="see --list")
    parser.add_argument("--ranks", type=int, default=4, metavar="N")
    parser.add_argument("--shell", action="store_true", help="leave you in gdb with every rank attached")
    parser.add_argument("--list", action="store_true", help="the hangs that can be shown")
    return parser.parse_args()


def diagnose(job: DemoJob) -> bool:
    """Run the command a user would run; whether the answer is the truth that the scenario knows."""
    pids = [str(pid) for _, pid in sorted(job.pids.items())]
    saved = BUILD / f"hang-{job.scenario.name}.json"  # it stays: the last line of the answer names it
    saved.unlink(missing_ok=True)
    say(f"gdbext diagnose {' '.join(pids)}")
    command = [sys.executable, "-m", "gdbext", "diagnose", *pids, "--save", str(saved)]
    status = subprocess.run(command).returncode
    say(f"exit status {status}")
    if not saved.exists():
        return False
    diagnosis = judge(load_snapshot(saved.read_text()))
    verdict, scenario = diagnosis.verdict, job.scenario
    ranks = {process.index: process.rank for process in diagnosis.snapshot.processes}
    blamed = {ranks[index] for index in verdict.culprits} | set(verdict.absent)
    right = verdict.cause in (scenario.cause, *scenario.also_causes)
    right = right and (blamed == set(scenario.culprits(job.culprit)) or verdict.cause in scenario.also_causes)
    say("as expected" if right else f"not as expected: the cause is {scenario.cause}")
    if not all(job.alive_progress(pid) for pid in job.pids.values()):
        say("not as expected: a rank does not keep running")
        return False
    say(f"every rank keeps running; the demo now ends them. To look closer: gdbext diagnose -v {saved}")
    return right


def shell(job: DemoJob) -> None:
    """gdb with everything attached, for the user to look around; the job ends with it."""
    pids = [str(pid) for _, pid in sorted(job.pids.items())]
    say("try: llm-ranks, llm-nccl-diagnose, llm-rank 1, bt, llm-rank apply all bt 3; quit releases the ranks")
    # A Ctrl-C is for gdb alone. A handler, for what is ignored would be ignored by gdb as well.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        subprocess.run([sys.executable, "-m", "gdbext", "attach", *pids])
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> int:
    options = arguments()
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:28}{scenario.cause}")
        return 0
    say(f"starting {options.ranks} ranks of the demo engine; hang: {options.hang}")
    try:
        with DemoJob(options.hang, ranks=options.ranks, wait="yield") as job:
            if options.shell:
                shell(job)
                return 0
            return 0 if diagnose(job) else 1
    except (DemoFailed, OSError, RuntimeError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
