"""What changes do to an environment: the changes, what is suggested, and what they affect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jobgen.compare.changes import QueueChanges
from jobgen.features.kueue.quota import show_amount, show_number
from jobgen.model.finding import pluralize


class AppliedChange(NamedTuple):
    """A change, and what it does to the objects of an environment."""

    change: str
    what: str
    """The field and the object that it changes, in words."""
    before: str
    after: str
    note: str = ""
    """What to know about its effect."""
    resource: str = ""
    """The resource whose quota it changes."""


class SuggestedQuota(NamedTuple):
    """A change of quota."""

    queue: str
    flavor: str
    resource: str
    field: str
    before: int
    after: int
    needed_by: str
    """A workload that is not admitted with one unit less."""

    @property
    def change(self) -> str:
        """The change as `--what-if` takes it."""
        field = "" if self.field == "nominalQuota" else f".{self.field}"
        amount = show_number(self.resource, self.after - self.before)
        return f"cq/{self.queue}.{self.flavor}.{self.resource}{field}+={amount}"


class Suggestion(NamedTuple):
    """The changes of quota that admit jobs, and the jobs that no quota admits."""

    quotas: tuple[SuggestedQuota, ...]
    impossible: tuple[tuple[str, str], ...]
    """The workloads that no quota admits, and why."""
    untried: int = 0
    """The number of workloads for which the search was stopped."""


class Comparison(NamedTuple):
    """What changes of `--what-if` and `--suggest` do to an environment."""

    applied: tuple[AppliedChange, ...]
    changes: QueueChanges
    unchanged: int
    """The number of workloads that fare as before."""
    suggestion: Suggestion | None = None


_MAX_LINES = 50


def list_changes(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yield titles, and lines about the changes and about what is suggested."""
    suggestion = comparison.suggestion
    needed = {each.change: each.needed_by for each in suggestion.quotas} if suggestion else {}
    lines: dict[str, list[str]] = {"what if": [], "suggested": [], "no quota admits": []}
    for each in comparison.applied:
        moved = f"{each.before} → {each.after}" if each.before else each.after
        note = f"; {each.note}" if each.note else ""
        if each.change in needed:
            less = show_amount(each.resource, 1)
            note = f"; with `{less}` less, `{needed[each.change]}` is not admitted"
        lines["suggested" if each.change in needed else "what if"].append(f"{each.change}: {each.what}: {moved}{note}")
    if suggestion is not None:
        if not suggestion.quotas:
            lines["suggested"].append("no change of quota")
        lines["no quota admits"] += (f"{key}: {reason}" for key, reason in suggestion.impossible)
        if suggestion.untried:
            lines["suggested"].append(f"the search took too long for {pluralize(suggestion.untried, 'workload')}")
    for title, several in lines.items():
        if several:
            more = [f"… and {len(several) - _MAX_LINES} more"] if len(several) > _MAX_LINES else []
            yield title, several[:_MAX_LINES] + more
