"""How much of an answer the arguments ask for, and what to type to see more of it."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import List

from gdbext.model.command_typed import BRIEF, FULL, USUAL, Typed

_STACKS = {"diagnose": "gdbext stacks", "llm-nccl-diagnose": "llm-stacks"}
_SELECTING = ("name", "pgid", "parent", "engine", "sysroot", "exe", "hosts", "via", "user", "container")


def in_shell(options: Namespace) -> Typed:
    """`gdbext diagnose 4711`. What was saved need not be looked at again."""
    saved = getattr(options, "save", None)
    inputs = [str(one) for one in getattr(options, "inputs", [])]
    if saved is None and inputs == ["-"]:
        return Typed(_detail(options), f"... | gdbext {options.command}")
    about = shlex.quote(saved) if saved else " ".join([*_selected(options), *map(shlex.quote, inputs)])
    return Typed(_detail(options), f"gdbext {options.command}", _STACKS.get(options.command, ""), about, _page(options))


def in_gdb(name: str, args: Namespace) -> Typed:
    """`llm-nccl-diagnose`."""
    pids = [str(pid) for pid in getattr(args, "pids", [])]
    return Typed(_detail(args), name, _STACKS.get(name, ""), " ".join([*_selected(args), *pids]), _page(args))


def _selected(args: Namespace) -> List[str]:
    words = [f"--{name}={shlex.quote(str(value))}" for name in _SELECTING if (value := getattr(args, name, None))]
    return words + [flag for flag in ("--no-stop", "--sudo") if getattr(args, flag[2:].replace("-", "_"), False)]


def _page(args: Namespace) -> str:
    return "--html FILE" if getattr(args, "html", "") is None else ""


def _detail(args: Namespace) -> str:
    return FULL if getattr(args, "verbose", False) else BRIEF if getattr(args, "brief", False) else USUAL
