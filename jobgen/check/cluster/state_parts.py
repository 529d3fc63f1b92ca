"""What features know of a cluster, beside what the core does: each part of its state has a scope of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from jobgen.model.features import find_parts
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.model.data import Node
    from jobgen.spec.overlay import Cluster


class PartState(Protocol):
    """What is known of one cluster: the second argument of rules of the scope of a part."""

    def list_exported(self) -> Sequence[Mapping[str, Node]]:
        """Return the objects of the exported state that these rules check."""


class StatePart(NamedTuple):
    """A part of the state of clusters."""

    scope: str
    """The scope of the rules that receive it."""
    kinds: frozenset[str]
    """A cluster has this part if an object of one of these kinds is known."""
    list_kinds: Callable[[], frozenset[str]]
    """Return the kinds of objects that it needs as a whole."""
    build: Callable[[Cluster, Sequence[Mapping[str, Node]], Sequence[Mapping[str, Node]]], PartState]
    """Build it from exported objects, and objects of the repository, which replace them."""
    uncertain: frozenset[str] = frozenset()
    """Rules whose findings are warnings if only the objects of one file are known."""


def list_state_parts() -> list[StatePart]:
    """Return the parts that the features of this installation add."""
    return find_parts("cluster.state")
