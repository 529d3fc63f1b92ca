"""The steps of expressions: those that a text tells, those that are counted, and those that are left.

An object has a budget of steps, and a run has one for all objects that take more than usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from jobgen.check.cel.values import RUN_USED_UP, USED_UP
from jobgen.model import budget
from jobgen.model.budget import RUN, OpenExcess
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import FREE_STEPS, MAX_OBJECT_STEPS
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.check.cel.tree import Node

# What a loop over data may take besides the steps that are counted, which only the limit of one object knows.
_LOOP_STEPS, _OTHER_STEPS = 1000, 50
# The most that counts of loops over data that are crossed: few are over long lists, and a policy may have 200 params.
_CROSSED_STEPS = 8_000
_KNOWN_NAMES = ("object", "params", "variables", "self")
_LOOP = lazy_pattern(r"\.\s*(?:all|exists\w*|filter|map|sortBy|transform\w*)\s*\(")
# The engine evaluates so many nodes of a tree in the time of a step in Python.
_NODES_PER_STEP = 16
# The steps of loops that the engine takes at most.
_ENGINE_LOOPS = 10_000


class Steps(NamedTuple):
    """The steps of an expression that do not depend on data."""

    least: int
    """The steps that it takes on any data: those of loops over constants."""
    more: int
    """The steps that it may take besides: many, if the items of a loop are combined with those of another."""


def estimate_steps(text: str, root: Node, *, is_interpreted: bool) -> Steps:
    """The steps of an expression with this tree."""
    if not _LOOP.search(text):
        return Steps(0, _OTHER_STEPS)
    # Imported late: the shipped expressions are stored with their steps.
    from jobgen.check.cel.cost import count_crossed_nodes, estimate_unknown

    crossed = count_crossed_nodes(root) * _ENGINE_LOOPS // _NODES_PER_STEP
    # The interpreter counts all of its steps.
    least = 0 if is_interpreted else int(estimate_unknown(root, _KNOWN_NAMES)) // _NODES_PER_STEP
    return Steps(least, min(max(crossed, _LOOP_STEPS), _CROSSED_STEPS))


class Shares(NamedTuple):
    """How expressions that are evaluated together share the steps that are counted.

    Nothing says which of them takes the steps in Python: those do that loop, and call functions.
    """

    parts: tuple[tuple[str, int, int], ...]
    """The text of each expression, its weight, and its least steps."""
    weight: int
    """The sum of all weights."""
    more: int
    """The steps that they may take besides, together."""


def make_shares(text: str, steps: Steps, *, calls_functions: bool) -> Shares:
    """The shares of an expression that is evaluated alone."""
    weight = (1 + steps.least) * (100 if calls_functions else 1)
    return Shares(((text, weight, steps.least),), weight, steps.more)


def join_shares(joined: Sequence[Shares]) -> Shares:
    """The shares of expressions that are evaluated together."""
    parts = tuple(part for shares in joined for part in shares.parts)
    return Shares(parts, sum(shares.weight for shares in joined), sum(shares.more for shares in joined))


class EvaluationBudget:
    """The steps that the expressions for one object may still take, and those that each has taken."""

    __slots__ = ("_excess", "_weight", "free", "is_reported", "owners", "rest", "used")

    def __init__(self, owners: dict[str, Callable[[], Iterable[str]]] | None = None, weight: int = 1) -> None:
        self.owners = owners
        """The names of policies, each with a function for its expressions; None for rules, which have no names."""
        self._weight = weight
        """How much a step counts for the run."""
        self.reset()

    def reset(self) -> None:
        """Restore all steps, for the next object."""
        self.rest = MAX_OBJECT_STEPS
        self.free = FREE_STEPS // self._weight
        self.used: dict[str, int] = {}
        """The steps that were counted, of each expression."""
        self.is_reported = False
        self._excess: OpenExcess | None = None

    def find_failure(self) -> str:
        """Why nothing more is evaluated; empty if there are steps left."""
        if self.rest < 0:
            return USED_UP
        if self._excess and RUN.used > budget.MAX_RUN_STEPS:
            self._excess.is_whole = False
            return RUN_USED_UP
        return ""

    def spend(self, shares: Shares, counted: int) -> None:
        """Note the steps that were counted while some expressions were evaluated, and those that are not counted."""
        used = self.used
        for text, weight, least in shares.parts:
            steps = -(-counted * weight // shares.weight) + least
            used[text] = used[text] + steps if text in used else steps
            self.rest -= steps
            self.free -= steps
            if self.free < 0:
                self._excess = self._excess or RUN.file.begin_excess(self.name_costliest())
                self._excess.steps += steps * self._weight
                RUN.used += steps * self._weight
        self.rest -= shares.more

    def name_costliest(self) -> str:
        """The policy or rule whose expressions took the most steps."""
        if self.owners is None:
            return f"rule `{' '.join(max(self.used, key=self.used.__getitem__).split())}`"
        used = {name: sum(self.used.get(text, 0) for text in {*texts()}) for name, texts in self.owners.items()}
        return f"policy `{max(used, key=used.__getitem__)}`"
