"""llm-tensor p|info|stats|hash|save|diff|list: what is in the tensors of a stopped or dead process."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Callable, List, Optional, Sequence, Tuple

import gdbext
from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.arithmetic.elements import Tolerance
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.analysis.tensors.comparing.over_ranks import RankDigest, agreement, digested
from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.analysis.tensors.tensor_files import SavedTensor
from gdbext.analysis.tensors.tensor_files import save as save_file
from gdbext.analysis.tensors.whole_tensor import statistics
from gdbext.commands.session_port import Session
from gdbext.commands.split_command_line import unquoted
from gdbext.commands.tensor_arguments import expression_and_index, split_index
from gdbext.commands.tensor_request import Asked, current_number, inferior_of, number_of, over_ranks
from gdbext.commands.user_files import new_file
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import TensorAgreement, TensorDiff, TensorInfo, TensorMapInfo

_FILES = re.compile(r"(?P<path>.+\.(?:npy|safetensors|pth?))(?::(?P<name>.+))?")
"""A file, and which of its tensors."""


def calculator() -> Calculator:
    """Large data are counted where numpy is: in this Python, beside gdbext, or in the shell's Python."""
    venv_python = os.path.join(
        os.path.dirname(os.path.dirname(os.path.abspath(gdbext.__file__))), ".venv", "bin", "python"
    )
    return Calculator(pythons=(venv_python, "python3"))


def print_values(session: Session, args: Namespace) -> object:
    asked = Asked(session, args)
    expression, index = expression_and_index(asked.words)

    def body() -> object:
        found, part = asked.find(expression, index)
        if isinstance(found, TensorMapInfo):
            if part:
                raise UsageError(f"{expression} holds {len(found.entries)} tensors; an index needs one of them")
            return found
        return read_values(found, asked.port.read_of(found), part) if _has_values(found) else found

    return over_ranks(asked, expression, body)


def _has_values(info: TensorInfo) -> bool:
    """Whether there is anything to print but what the tensor is, and why its values are not there."""
    if info.unreadable or isinstance(info.dtype, Missing) or isinstance(info.shape, Missing):
        return False
    return 0 in info.shape or not isinstance(info.address, Missing)


def info(session: Session, args: Namespace) -> object:
    asked = Asked(session, args)
    expression, index = expression_and_index(asked.words)

    def body() -> object:
        found, part = asked.find(expression, index)
        if part:
            hint = f"llm-tensor p {found.name}{part}"
            raise UsageError(f"llm-tensor info takes a whole tensor; {part} is an index of {found.name}", hint)
        return found

    return over_ranks(asked, expression, body)


def stats(session: Session, args: Namespace) -> object:
    return _of_all_values(session, args, statistics, "counted")


def hash_(session: Session, args: Namespace) -> object:
    return _of_all_values(session, args, digest, "hashed")


def _of_all_values(session: Session, args: Namespace, measure: Callable[..., object], done: str) -> object:
    asked = Asked(session, args)
    expression, index = expression_and_index(asked.words)

    def body() -> object:
        tensor, part = asked.one(expression, index)
        return measure(tensor, asked.port.read_of(tensor), part, calculator(), asked.progress(done))

    return over_ranks(asked, expression, body)


def save(session: Session, args: Namespace) -> object:
    asked = Asked(session, args)
    if len(asked.words) < 2:
        raise UsageError("an expression and a file are needed", "llm-tensor save EXPR [INDEX] FILE.npy")
    expression, index = expression_and_index(asked.words[:-1])
    path = os.path.expanduser(unquoted(asked.words[-1]))
    ranks = asked.chosen_ranks()
    if ranks is not None and len(ranks) > 1 and "{rank}" not in path:
        raise UsageError(f"{len(ranks)} ranks cannot share the file {path}", "write {rank} into its name")

    def body() -> object:
        tensor, part = asked.one(expression, index)
        name = path.replace("{rank}", str(current_number(asked)))
        create = partial(new_file, force=args.force)
        return save_file(tensor, asked.port.read_of(tensor), name, create, part, asked.progress("saved"))

    return over_ranks(asked, expression, body)


def diff(session: Session, args: Namespace) -> object:
    asked = Asked(session, args)
    ranks = asked.chosen_ranks()
    if ranks is not None:
        return _agreement(asked, ranks)
    words, index = asked.words, ""
    if len(words) > 2 and words[-1].startswith("["):
        words, index = words[:-1], words[-1]
    if len(words) != 2:
        hint = "put expressions with spaces in parentheses; one expression needs --all-ranks or --ranks"
        raise UsageError(f"two tensors are needed, {len(words)} given", hint)
    tolerance = _tolerance(args)
    with ExitStack() as files:
        left = _source(asked, words[0], None, files)
        return _difference(asked, left, _source(asked, words[1], _name(left.info.dtype), files), index, tolerance)


def _source(asked: Asked, word: str, like: Optional[str], files: ExitStack) -> Source:
    """A tensor in a file, or one of the program: the part of it that an index without a space before it selects."""
    named = _FILES.fullmatch(unquoted(word))
    if named is not None:
        saved = files.enter_context(SavedTensor(os.path.expanduser(named["path"]), like, named["name"]))
        return Source(saved.info, saved.read)
    tensor, part = asked.one(*split_index(word))
    return Source(replace(tensor, name=tensor.name + part), asked.port.read_of(tensor), part)


def _difference(asked: Asked, left: Source, right: Source, index: str, tolerance: Tolerance) -> TensorDiff:
    return difference(left, right, index, tolerance, calculator(), asked.progress("compared"))


def _name(dtype: object) -> Optional[str]:
    return dtype if isinstance(dtype, str) else None


def _tolerance(args: Namespace) -> Tolerance:
    try:
        return Tolerance(relative=float(args.rtol or 0), absolute=float(args.atol or 0))
    except ValueError:
        raise UsageError("--rtol and --atol are numbers", "--rtol 1e-3") from None


def _agreement(asked: Asked, ranks: Sequence[AttachedRank]) -> TensorAgreement:
    """Ranks grouped by the digest of their values; how each group differs from the largest."""
    tolerance = _tolerance(asked.args)
    expression, index = expression_and_index(asked.words)

    def body() -> Maybe[RankDigest]:
        tensor, part = asked.one(expression, index)
        source = Source(tensor, asked.port.read_of(tensor))
        return digested(source, part, calculator(), asked.progress("hashed"))

    found: List[Tuple[int, Maybe[RankDigest]]] = []
    for rank in ranks:
        try:
            found.append((number_of(rank), asked.port.on_rank(inferior_of(rank), body)))
        except GdbextError as error:
            found.append((number_of(rank), Missing(str(error))))
    return agreement(expression, found, tolerance, calculator(), asked.progress("compared"))


def list_(session: Session, args: Namespace) -> object:
    asked = Asked(session, args)
    if asked.words:
        raise UsageError(f"llm-tensor list takes no expression: {' '.join(asked.words)}", "`frame N` selects the frame")
    return over_ranks(asked, "list", lambda: asked.port.in_frame(bool(args.python)))
