"""The Python files of the product, for the laws about them: each is read and parsed once."""

import ast
import functools
import gc
from pathlib import Path
from typing import NamedTuple

import gdbext

ROOT = Path(gdbext.__file__).parent


class Source(NamedTuple):
    text: str
    tree: ast.Module


@functools.lru_cache(maxsize=None)
def sources():
    """By path below gdbext/, as "render/style.py"."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py"))}
    assert len(texts) > 800
    found = {name: Source(text, ast.parse(text)) for name, text in texts.items()}
    gc.freeze()  # millions of nodes that stay: no collection has to look at them again
    return found
