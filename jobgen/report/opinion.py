"""What other tools say about the objects of a lint: how much each of them checked."""

from __future__ import annotations

from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple


class Opinion(NamedTuple):
    """How much another tool checked."""

    tool: str
    objects: int = 0
    without_schema: int = 0
    missing: str = ""
    """Why it did not take part."""

    def __add__(self, other: Opinion) -> Opinion:  # type: ignore[override]
        return self._replace(
            objects=self.objects + other.objects, without_schema=self.without_schema + other.without_schema
        )

    def __str__(self) -> str:
        if self.missing:
            return f"second opinion: {self.tool} checked nothing: {self.missing}"
        rest = f"; {self.without_schema} had no schema" if self.without_schema else ""
        return f"second opinion: {self.tool} checked {pluralize(self.objects, 'object')}{rest}"
