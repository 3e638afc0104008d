"""One HTML file of a template: it loads nothing, runs its own script alone, and escapes whatever it is given."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Mapping, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gdbext import __version__

_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("page.css", "stacks.css")


def page_file(template: str, scripts: Sequence[str], context: Mapping[str, object]) -> str:
    """The whole file. `context`: texts that are fit for the page; the template escapes them."""
    environment = Environment(
        loader=FileSystemLoader(str(_TEMPLATES)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _joined(environment, _STYLES), _joined(environment, scripts)
    text: str = environment.get_template(template).render(
        {**context, "version": __version__, "policy": _policy(style, script)},
        style=Markup(style),  # noqa: S704 - files of our own
        script=Markup(script),  # noqa: S704
    )
    return text


def _joined(environment: Environment, names: Sequence[str]) -> str:
    assert environment.loader is not None
    return "".join(environment.loader.get_source(environment, name)[0].rstrip() + "\n" for name in names)


def _policy(style: str, script: str) -> str:
    """What a browser lets the page do: its own style and script, by their hashes, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
