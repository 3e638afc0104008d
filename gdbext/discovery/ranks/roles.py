"""What one process is: a rank, something beside the ranks, or nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Dict, Mapping, Optional, Tuple

from gdbext.discovery.proc.process_table import Entry
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.argument_words import groups_of
from gdbext.discovery.ranks.rank_variables import Claim, claims_of
from gdbext.knowledge.engines.all_profiles import GENERIC, PROFILES
from gdbext.knowledge.launch.launchers import ACCELERATOR_FILES, COLLECTIVE_LIBRARIES, EVIDENCE_LIBRARIES, NOT_RANKS
from gdbext.knowledge.row_kinds import EngineProfile, TitleRule
from gdbext.model.codes import Code
from gdbext.model.job import RANK
from gdbext.model.missing import Maybe, Missing
from gdbext.model.text.patterns import regex

_PYTHON = regex(r"^(?:python|pypy)[\d.]*$")
_EVIDENCE = regex("|".join(EVIDENCE_LIBRARIES))
_COLLECTIVE = regex("|".join(COLLECTIVE_LIBRARIES))
_ACCELERATOR = regex(ACCELERATOR_FILES)
_LIBRARIES = tuple((regex("|".join(profile.libraries)), profile) for profile in PROFILES if profile.libraries)
_NOT_RANK_RULES = tuple((regex(rule.pattern), rule) for rule in NOT_RANKS)
_ENGINES = tuple((regex(rule.pattern), rule, profile) for profile in PROFILES for rule in profile.titles)


ReadEnviron = Callable[[int], Maybe[Dict[str, str]]]
"""The environment of a process as it is now, from its memory."""


class Facts:
    """What /proc says of one process, each part read when it is first asked for."""

    def __init__(self, proc: ProcFS, entry: Entry) -> None:
        self._proc = proc
        self.entry = entry
        self.renumbered = False  # its variables have changed since it was started

    @cached_property
    def environ(self) -> Maybe[Dict[str, str]]:
        return self._proc.environ(self.entry.pid)

    def use_current_variables(self, read: ReadEnviron) -> None:
        """Workers number themselves: take the variables of now, unless a launcher has given the process its own."""
        if self.denied or any(claim.marked for claim in self.claims):
            return
        before, present = self.claims, read(self.entry.pid)
        if not isinstance(present, Missing):
            self.environ = present
            self.claims = claims_of(present)
            self.renumbered = self.claims != before

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment; empty where it cannot be had."""
        return self.environ if isinstance(self.environ, dict) else {}

    @property
    def denied(self) -> bool:
        """We may not look into the process."""
        return isinstance(self.environ, Missing) and self.environ.code is Code.DENIED

    @cached_property
    def claims(self) -> Tuple[Claim, ...]:
        return claims_of(self.variables)

    @cached_property
    def files(self) -> Tuple[str, ...]:
        """Mapped files; empty where they cannot be had."""
        return _or_empty(self._proc.mapped_files(self.entry.pid))

    @cached_property
    def open_files(self) -> Tuple[str, ...]:
        return _or_empty(self._proc.open_files(self.entry.pid))

    @cached_property
    def exe(self) -> Maybe[str]:
        """Path of the program."""
        return self._proc.exe(self.entry.pid)

    @cached_property
    def python(self) -> bool:
        program = self.exe or (self.entry.arguments or ("",))[0]
        return bool(_PYTHON.match(str(program).rsplit("/", 1)[-1]))

    @cached_property
    def evidence(self) -> bool:
        """It maps a library of torch, CUDA, NCCL, MPI, ...: it can take part in collectives."""
        return any(_EVIDENCE.search(path) for path in self.files)

    @cached_property
    def accelerator(self) -> bool:
        """It holds a device file of an accelerator open."""
        return any(_ACCELERATOR.match(path) for path in self.open_files)

    @cached_property
    def collective(self) -> bool:
        """It maps a library for collectives between accelerators."""
        return any(_COLLECTIVE.search(path) for path in self.files)

    @cached_property
    def engine(self) -> Optional[EngineProfile]:
        """The engine whose library is mapped, the most specific one; else the one that left variables."""
        for pattern, profile in _LIBRARIES:
            if any(pattern.search(path) for path in self.files):
                return profile
        marked = (profile for profile in PROFILES if any(name in self.variables for name in profile.environment))
        return next(marked, None)


@dataclass(frozen=True)
class Member:
    """A process that has a place in some job, or that must not be taken for a rank."""

    facts: Facts
    role: str
    profile: Optional[EngineProfile] = None
    rule: Optional[TitleRule] = None  # of the engine, when the title told
    groups: Mapping[str, int] = field(default_factory=dict)  # numbers in the title
    claim: Optional[Claim] = None
    child_of: Optional[int] = None  # pid of the rank that this process belongs to without being one
    family: Optional[str] = None  # workers that one program has started, where nothing else holds them together
    mate: Optional[int] = None  # pid of a worker of the same program that says which job this is

    @property
    def pid(self) -> int:
        return self.facts.entry.pid

    @property
    def titled(self) -> bool:
        return self.rule is not None

    @property
    def numbered(self) -> bool:
        """Its title is of a kind that carries numbers, even if this one has none because all sizes are one."""
        return self.rule is not None and carries_numbers(self.rule)

    @property
    def engine(self) -> Optional[str]:
        return self.profile.name if self.profile else None


def carries_numbers(rule: TitleRule) -> bool:
    """The pattern has groups: titles of this kind name the rank or its parallel groups."""
    return regex(rule.pattern).groups > 0


def numbers_its_titles(profile: EngineProfile) -> bool:
    """The engine names its ranks by titles, so that other numbers are probably somebody else's."""
    return any(rule.role == RANK and carries_numbers(rule) for rule in profile.titles)


def by_title(facts: Facts) -> Optional[Member]:
    """What the title alone says."""
    title = facts.entry.title
    for pattern, rule in _NOT_RANK_RULES:
        if pattern.search(title):
            return Member(facts=facts, role=rule.role)
    for pattern, rule, profile in _ENGINES:
        found = pattern.search(title)
        if found:
            profile = _more_specific(facts, profile) if rule.role == RANK else profile
            groups = groups_of(found)
            return Member(
                facts=facts,
                role=rule.role,
                profile=profile,
                rule=rule,
                groups=groups,
                claim=_claim_beside_title(facts, profile, rule),
            )
    return None


def by_variables(facts: Facts) -> Optional[Member]:
    """What the environment says, believed only for a process that can take part in collectives."""
    claim = next(iter(facts.claims), None)
    if claim is None or not (facts.python or facts.evidence):
        return None
    return Member(facts=facts, role=claim.role, profile=_engine_of(facts, claim), claim=claim)


def below_launcher(facts: Facts) -> Optional[Member]:
    """A process whose own title hides its variables, but that a launcher has started."""
    if facts.variables or not (facts.python or facts.evidence):
        return None
    return Member(facts=facts, role=RANK, profile=facts.engine)


def by_device(facts: Facts) -> Optional[Member]:
    """The weakest evidence: it works on an accelerator with a library for collectives, or an engine's."""
    profile = facts.engine if facts.files else None
    specific = profile is not None and profile.name not in GENERIC
    if specific and profile is not None and profile.threads_are_ranks:
        return Member(facts=facts, role=RANK, profile=profile)
    if (specific or facts.collective) and facts.accelerator:
        return Member(facts=facts, role=RANK, profile=profile)
    return None


def of_family(facts: Facts, family: Optional[str] = None, mate: Optional[int] = None) -> Member:
    """A worker that only the others of its program make a rank."""
    return Member(facts=facts, role=RANK, profile=facts.engine if facts.evidence else None, family=family, mate=mate)


def chosen(facts: Facts) -> Member:
    """A process that the user has named: a rank by the user's word."""
    claim = next(iter(facts.claims), None)
    return Member(facts=facts, role=RANK, profile=_engine_of(facts, claim), claim=claim)


def _claim_beside_title(facts: Facts, profile: EngineProfile, rule: TitleRule) -> Optional[Claim]:
    """A title that carries numbers is believed before variables, which pods and batch scripts hand down to everybody.

    Only the variables of the engine itself then count.
    """
    if not carries_numbers(rule):
        return next(iter(facts.claims), None)
    return next(iter(claims_of(facts.variables, profile.variables)), None)


def _more_specific(facts: Facts, profile: EngineProfile) -> EngineProfile:
    """nccl-tests and servers of mpi4py may run on behalf of an engine: its libraries tell."""
    return facts.engine or profile if profile.name in GENERIC else profile


def _engine_of(facts: Facts, claim: Optional[Claim]) -> Optional[EngineProfile]:
    own = (profile for profile in PROFILES if claim is not None and claim.row in profile.variables)
    return next(own, None) or facts.engine


def _or_empty(paths: Maybe[Tuple[str, ...]]) -> Tuple[str, ...]:
    return () if isinstance(paths, Missing) else paths
