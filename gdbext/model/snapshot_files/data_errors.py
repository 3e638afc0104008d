"""What is wrong with data from outside, and where."""

from __future__ import annotations

_LONGEST = 200  # characters of a path: a file can hold itself fifty times


class Unfit(ValueError):
    """Data that does not fit. `path` leads to it: `processes[3].threads[0].id`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.path = what, ""

    def within(self, step: str) -> Unfit:
        """The same, as seen from one level further out."""
        self.path = step + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self

    def __str__(self) -> str:
        path = self.path
        if len(path) > _LONGEST:
            path = f"{path[: _LONGEST // 2]}...{path[-_LONGEST // 2 :]}"
        return f"{path} {self.what}".lstrip()
