"""A diagnosis in one of the formats of others: which function writes which."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Union

from gdbext.model.formatted import Formatted
from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.render.formats import collapsed, dot, firefox, perfetto_looks, slack, speedscope, ticket

Writer = Callable[[Diagnosis, Optional[Origin]], Union[List[str], bytes]]
"""Lines, or the bytes of a format that is no text (`model.formatted.BINARY`)."""

WRITERS: Mapping[str, Writer] = {
    "markdown": ticket.markdown,
    "github": ticket.github,
    "slack": slack.message,
    "speedscope": speedscope.profile,
    "collapsed": collapsed.stacks,
    "dot": dot.graph,
    "perfetto": perfetto_looks.trace,
    "firefox": firefox.profile,
}


def _written(found: Formatted, _style: Any) -> List[str]:
    """How a terminal looks does not matter: others read it."""
    lines = WRITERS[found.format](found.diagnosis, found.origin)
    assert isinstance(lines, list)
    return lines


def binary_document(found: Formatted) -> bytes:
    """The bytes of a format that is no text."""
    data = WRITERS[found.format](found.diagnosis, found.origin)
    assert isinstance(data, bytes)
    return data


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Formatted: _written}
