"""llm-tensor p|info|stats|hash|save|diff|list: what is in the tensors of a stopped or dead process."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Dict, List, Optional, Sequence, Tuple

import gdbext
from gdbext.analysis.tensors.calculator import Calculator
from gdbext.analysis.tensors.comparing import Tolerance
from gdbext.analysis.tensors.difference import Source, difference
from gdbext.analysis.tensors.digest import digest
from gdbext.analysis.tensors.files import SavedTensor
from gdbext.analysis.tensors.files import save as save_file
from gdbext.analysis.tensors.statistics import statistics
from gdbext.analysis.tensors.values import read_values
from gdbext.commands.declaration import Argument, Body, Command
from gdbext.commands.session import Session
from gdbext.commands.tensor_asked import Asked, current_number, inferior_of, number_of, over_ranks
from gdbext.commands.tensor_words import description_of, expression_and_index
from gdbext.model.attached import AttachedRank
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import (
    HashGroup,
    RankProblem,
    TensorAgreement,
    TensorDiff,
    TensorHash,
    TensorInfo,
    TensorMapInfo,
)

_FILES = (".npy", ".safetensors")

GPU_CORE = Argument("--gpu-core", "values on the GPU out of this GPU core (.nvcudmp)", "FILE", completes="file")
RANKS = (
    Argument("--ranks", "on these ranks, like 0-3,7", "RANKS", completes="rank"),
    Argument("--all-ranks", "on all attached ranks", flag=True),
)
RAW = (
    Argument("--dtype", "element type at an address: fp16, bf16, int4, fp8_e4m3fn, ...", "TYPE"),
    Argument("--shape", "its shape, like 2,3", "N,N"),
    Argument("--strides", "its strides in elements, when it is not contiguous", "N,N"),
    Argument("--where", "cpu, pinned, gpu or managed, when the map of the process does not say", "PLACE"),
    GPU_CORE,
    Argument(
        "--as", "what lies at an address: torch (a TensorImpl), pyobject, ggml, ggml_cgraph, or a type's name", "TYPE"
    ),
)
EXPRESSION = Argument("expression", "an expression of the program, or an address with --dtype and --shape", "EXPR")
WITH_INDEX = Argument("expression", "an expression, and after a space an index like [0, :, -3:]", "EXPR [INDEX]")


def calculator() -> Calculator:
    """Large data are counted where numpy is: in this Python, beside gdbext, or in the shell's Python."""
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(gdbext.__file__))), ".venv", "bin", "python")
    return Calculator(pythons=(beside, "python3"))


def print_values(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["p"])
    expression, index = expression_and_index(asked.words)

    def body() -> object:
        found = asked.port.evaluate(expression, description_of(args))
        if isinstance(found, TensorMapInfo):
            if index:
                raise UsageError(f"{expression} holds {len(found.entries)} tensors; an index needs one of them")
            return found
        return read_values(found, asked.port.read_of(found), index) if _has_values(found) else found

    return over_ranks(asked, expression, body)


def _has_values(info: TensorInfo) -> bool:
    """Whether there is anything to print but what the tensor is, and why its values are not there."""
    if info.unreadable or isinstance(info.dtype, Missing) or isinstance(info.shape, Missing):
        return False
    return 0 in info.shape or not isinstance(info.address, Missing)


def info(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["info"])
    expression = expression_and_index(asked.words)[0]
    return over_ranks(asked, expression, lambda: asked.port.evaluate(expression, description_of(args)))


def stats(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["stats"])
    expression, index = expression_and_index(asked.words)

    def body() -> object:
        tensor = asked.one(expression)
        return statistics(tensor, asked.port.read_of(tensor), index, calculator(), asked.progress("counted"))

    return over_ranks(asked, expression, body)


def hash_(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["hash"])
    expression, index = expression_and_index(asked.words)
    return over_ranks(asked, expression, lambda: _digest(asked, expression, index)[0])


def _digest(asked: Asked, expression: str, index: str) -> Tuple[TensorHash, Source]:
    tensor = asked.one(expression)
    read = asked.port.read_of(tensor)
    found = digest(tensor, read, index, calculator(), asked.progress("hashed"))
    return found, Source(tensor, read)


def save(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["save"])
    if len(asked.words) < 2:
        raise UsageError("an expression and a file are needed", "llm-tensor save EXPR [INDEX] FILE.npy")
    expression, index = expression_and_index(asked.words[:-1])
    path = os.path.expanduser(asked.words[-1].strip("\"'"))
    ranks = asked.chosen_ranks()
    if ranks is not None and len(ranks) > 1 and "{rank}" not in path:
        raise UsageError(f"{len(ranks)} ranks cannot share the file {path}", "write {rank} into its name")

    def body() -> object:
        tensor = asked.one(expression)
        name = path.replace("{rank}", str(current_number(asked)))
        return save_file(tensor, asked.port.read_of(tensor), name, index, args.force, asked.progress("saved"))

    return over_ranks(asked, expression, body)


def diff(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["diff"])
    ranks = asked.chosen_ranks()
    if ranks is not None:
        return _agreement(asked, ranks)
    words, index = asked.words, ""
    if len(words) > 2 and words[-1].startswith("["):
        words, index = words[:-1], words[-1]
    if len(words) != 2:
        hint = "put expressions with spaces in parentheses; one expression needs --all-ranks or --ranks"
        raise UsageError(f"two tensors are needed, {len(words)} given", hint)
    left = asked.one(words[0])
    tolerance = _tolerance(args)
    source = Source(left, asked.port.read_of(left))
    if words[1].strip("\"'").endswith(_FILES):
        with SavedTensor(os.path.expanduser(words[1].strip("\"'")), _name(left.dtype)) as saved:
            return _difference(asked, source, Source(saved.info, saved.read), index, tolerance)
    right = asked.one(words[1])
    return _difference(asked, source, Source(right, asked.port.read_of(right)), index, tolerance)


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
    expression, index = expression_and_index(asked.words)
    groups: Dict[str, List[int]] = {}
    sources: Dict[str, Source] = {}
    unread: List[RankProblem] = []
    for rank in ranks:
        try:
            found, source = asked.port.on_rank(inferior_of(rank), lambda: _digest(asked, expression, index))
        except GdbextError as error:
            unread.append(RankProblem(number_of(rank), str(error)))
            continue
        if found.digest is None:
            unread.append(RankProblem(number_of(rank), found.problem or "not all elements can be read"))
            continue
        groups.setdefault(found.digest, []).append(number_of(rank))
        sources.setdefault(found.digest, source)
    ordered = sorted(groups, key=lambda one: (-len(groups[one]), groups[one]))
    tolerance = _tolerance(asked.args)

    def differs(one: str) -> Optional[TensorDiff]:
        return None if one == ordered[0] else _difference(asked, sources[ordered[0]], sources[one], index, tolerance)

    described = [HashGroup(tuple(groups[one]), one, sources[one].info, differs(one)) for one in ordered]
    return TensorAgreement(expression, tuple(described), index, tuple(unread))


def list_(session: Session, args: Namespace) -> object:
    asked = Asked(session, args, _OPTIONS["list"])
    if asked.words:
        raise UsageError(f"llm-tensor list takes no expression: {' '.join(asked.words)}", "`frame N` selects the frame")
    return over_ranks(asked, "list", lambda: asked.port.in_frame(bool(args.python)))


def choose(session: Session, args: Namespace) -> object:
    names = ", ".join(command.name.split()[-1] for command in COMMANDS[1:])
    raise UsageError("llm-tensor what?", f"one of {names}; `help llm-tensor` tells more")


_OPTIONS: Dict[str, Tuple[Argument, ...]] = {
    "p": RAW + RANKS,
    "info": RAW + RANKS,
    "stats": RAW + RANKS,
    "hash": RAW + RANKS,
    "save": (*RAW, *RANKS, Argument("--force", "overwrite a file that exists", flag=True)),
    "diff": (
        *RAW,
        *RANKS,
        Argument("--rtol", "relative difference that counts as equal", "X"),
        Argument("--atol", "absolute difference that counts as equal", "X"),
    ),
    "list": (*RANKS, Argument("--python", "the tensors of the Python frames of the thread", flag=True)),
}


def _command(
    name: str, summary: str, body: Body, tail: Optional[Argument], description: str = "", examples: Tuple[str, ...] = ()
) -> Command:
    return Command(
        f"llm-tensor {name}", summary, body, "data", _OPTIONS[name], tail, description, examples, repeats=name == "p"
    )


COMMANDS = (
    Command(
        "llm-tensor",
        "Show and compare tensors of the program",
        choose,
        "data",
        description=(
            "Tensors of torch, FasterTransformer, RTP-LLM, TurboMind, TensorRT-LLM, ggml and MindSpore, and raw memory."
        ),
        prefix=True,
    ),
    _command(
        "p",
        "Print a tensor, or a part of it, as numpy does",
        print_values,
        WITH_INDEX,
        "Large tensors are shown by their edges; an index looks at any part, and only that part is read. "
        "Nothing is called in the program. Options may stand behind the expression.",
        (
            "llm-tensor p input_tensors",
            'llm-tensor p input_tensors["hidden_states"] [0, -3:, :8]',
            'llm-tensor p cgraph["blk.0.attn_q.weight"] [0, :8]',
            "llm-tensor p $rdi --as torch",
            "llm-tensor p 0x7f3210000000 --dtype bf16 --shape 4,128",
        ),
    ),
    _command("info", "Say what a tensor is, without its values", info, EXPRESSION),
    _command("stats", "Count NaN, infinities and zeros; least, greatest, mean, histogram", stats, WITH_INDEX),
    _command(
        "hash",
        "Digest of dtype, shape and values, equal where tensors are equal",
        hash_,
        WITH_INDEX,
        examples=("llm-tensor hash weight --all-ranks",),
    ),
    _command(
        "save",
        "Write a tensor to a .npy or .safetensors file",
        save,
        Argument("expression", "an expression, perhaps an index, and the file", "EXPR [INDEX] FILE", completes="file"),
        "With several ranks {rank} in the name stands for the number.",
        ("llm-tensor save hidden hidden.npy", "llm-tensor save hidden [0] /tmp/hidden-{rank}.npy --all-ranks"),
    ),
    _command(
        "diff",
        "Compare two tensors, a tensor with a file, or one tensor over ranks",
        diff,
        Argument("expression", "two expressions, or one and a file, or one with --all-ranks", "A B [INDEX]"),
        examples=("llm-tensor diff expected actual --rtol 1e-3", "llm-tensor diff weight --all-ranks"),
    ),
    _command(
        "list",
        "List the tensors of the selected frame",
        list_,
        Argument("expression", "the options may stand here too", "OPTIONS", nargs="?"),
        "Arguments, locals and the members of `this`, with those inside of maps, vectors and structs.",
    ),
)
