"""Problems that a stage finds, findings with their location, and the fixes for them."""

from __future__ import annotations

import builtins
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from jobgen.model.data import Data, Location


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Identity(NamedTuple):
    """What the API server tells objects apart by."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


class Related(NamedTuple):
    """Another place that a finding speaks of."""

    location: Location
    message: str


Op: TypeAlias = Literal["set", "quote", "rename", "remove", "add", "comment"]


class FixStep(NamedTuple):
    """What would mend a fault: a leaf set or put in quotes, a key renamed or taken out, an entry put behind a key.

    `key` is the name of the entry that is put in, or of the one that is taken out where the node is its value.
    """

    op: Op
    node: Data
    value: Data = None
    key: str = ""


class TextEdit(NamedTuple):
    """A change at its place: the scalar to set, the key to rename or to take out, or the key to put an entry behind.

    Or a comment, whose new text is the value; without any, it goes. `was` is what must stand at the place: what was
    made of something else is not changed there.
    """

    op: Op
    location: Location
    value: Data = None
    key: str = ""
    was: Data = None


class Fix(NamedTuple):
    """Changes that mend a fault together; `safe` if they cannot change what was meant."""

    edits: tuple[TextEdit, ...]
    safe: bool


class Problem(NamedTuple):
    """What a stage found wrong, and the node that is to blame; its place is looked up later."""

    rule: str
    message: str
    node: Data = None
    related: tuple[tuple[Data, str], ...] = ()
    category: str = "spec"
    severity: Severity = Severity.ERROR
    fix_steps: tuple[FixStep, ...] = ()
    safe: bool = True


class Finding(NamedTuple):
    """A problem put in its place; two that say the same of it are one, however they would be mended."""

    rule: str
    category: str
    severity: Severity
    message: str
    location: Location
    object: Identity | None = None
    env: str = ""
    pointer: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None

    def __eq__(self, other: builtins.object) -> bool:
        return isinstance(other, Finding) and self[:-1] == tuple(other)[:-1]

    def __ne__(self, other: builtins.object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])

    @property
    def fixable(self) -> bool:
        """Whether `--fix` or `--fix-unsafe` can mend it."""
        return self.fix is not None


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun: `1 GPU`, `2 GPUs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
