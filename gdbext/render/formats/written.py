"""A diagnosis in one of the formats of others: which function writes which."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional

from gdbext.model.formatted import Formatted
from gdbext.model.origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.render.formats import collapsed, dot, slack, speedscope, ticket

Writer = Callable[[Diagnosis, Optional[Origin]], List[str]]

WRITERS: Mapping[str, Writer] = {
    "markdown": ticket.markdown,
    "github": ticket.github,
    "slack": slack.message,
    "speedscope": speedscope.profile,
    "collapsed": collapsed.stacks,
    "dot": dot.graph,
}


def _written(found: Formatted, _style: Any) -> List[str]:
    """How a terminal looks does not matter: others read it."""
    return WRITERS[found.format](found.diagnosis, found.origin)


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Formatted: _written}
