"""llm-check: stop where a check of CUDA fails, say what failed and why."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace
from typing import Any, Callable, List, Optional, Sequence, cast

from gdbext.commands.check_port import CheckOptions, CheckPort, CheckSession
from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.declaration import loaded
from gdbext.commands.session_port import Session, chosen_by_current
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.errors.checks import FAIL_FUNCTIONS, MESSAGES, SWITCHES
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.check_report import CheckKind, CheckKinds, CheckStatus, SwitchResults
from gdbext.model.errors import GdbextError, UsageError

_ANY = "any"


def _port(session: Session) -> CheckPort:
    return cast(CheckSession, session).checks


def on(session: Session, args: Namespace) -> CheckStatus:
    if args.engine is not None and args.engine not in {profile.name for profile in PROFILES}:
        names = ", ".join(profile.name for profile in PROFILES)
        raise UsageError(f"no engine {args.engine}", f"one of {names}")
    chosen = _ranks(session, args.ranks) if args.ranks else None
    pids = None if chosen is None else [rank.process.pid for rank in chosen]
    log = os.path.abspath(os.path.expanduser(args.log)) if args.log else None
    action = args.action or ("log" if log else "stop")
    return _port(session).on(CheckOptions(action, log, args.engine, pids))


def off(session: Session, args: Namespace) -> CheckStatus:
    return _port(session).off()


def status(session: Session, args: Namespace) -> CheckStatus:
    return _port(session).status()


def report(session: Session, args: Namespace) -> object:
    """Of the selected process, with what a sanitizer's reports say of kernels; without a failure of them alone."""
    current = chosen_by_current(session.ranks())
    if current is None and not args.reports:
        raise UsageError("no process and no core file is selected", "llm-attach-all, or gdb PROGRAM CORE")
    more: Sequence[str] = _kernel_reports("report_sentences")(args.reports) if args.reports else ()
    try:
        found = None if current is None else _port(session).report(current)
    except GdbextError:
        if not args.reports:
            raise
        found = None
    if found is None:
        return loaded("gdbext.analysis.verdict.judge:judge")(_kernel_reports("job_of")(args.reports))
    return replace(found, failure=replace(found.failure, details=(*found.failure.details, *more)))


def _kernel_reports(name: str) -> Callable[[Sequence[str]], Any]:
    """Loaded when it is asked for: few have such a file."""
    found: Callable[[Sequence[str]], Any] = loaded(f"gdbext.commands.kernel_reports:{name}")
    return found


def list_(_: Session, args: Namespace) -> CheckKinds:
    """Every check that is known, most specific engine first."""
    kinds: List[CheckKind] = [
        CheckKind(row.engine or _ANY, row.check, "its throw, told by the message", row.source) for row in MESSAGES
    ]
    kinds += [
        CheckKind(row.engine, row.function, "the function is called only after a failure", row.source)
        for row in FAIL_FUNCTIONS
    ]
    kinds += [CheckKind(row.engine, row.function, f"llm-check enable ({row.variable})", row.source) for row in SWITCHES]
    return CheckKinds(tuple(kinds))


def enable(session: Session, args: Namespace) -> SwitchResults:
    return _port(session).switch(_ranks(session, args.ranks), True)


def disable(session: Session, args: Namespace) -> SwitchResults:
    return _port(session).switch(_ranks(session, args.ranks), False)


def _ranks(session: Session, text: Optional[str]) -> Sequence[AttachedRank]:
    return pick_all(session.ranks(), text or "all")
