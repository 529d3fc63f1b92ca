"""What changes do to an environment: the changes, what is suggested, and what they affect."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.compare.changes import QueueChanges
from jobgen.features.kueue.quota import show_amount, show_number
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple


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
    kind: str = "ClusterQueue"
    """That of the owner of the quota, `ClusterQueue` or `Cohort`."""
    cluster: str = ""
    """The worker cluster of MultiKueue that has it; empty for the cluster itself."""

    @property
    def change(self) -> str:
        """The change as `--what-if` takes it."""
        field = "" if self.field == "nominalQuota" else f".{self.field}"
        amount = show_number(self.resource, self.after - self.before)
        where, kind = f"cluster/{self.cluster}/" if self.cluster else "", "cohort" if self.kind == "Cohort" else "cq"
        return f"{where}{kind}/{self.queue}.{self.flavor}.{self.resource}{field}+={amount}"


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


def list_changes(comparison: Comparison) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield titles, each with the changes or workloads below it, and what is said about each."""
    suggestion = comparison.suggestion
    needed = {each.change: each.needed_by for each in suggestion.quotas} if suggestion else {}
    asked: list[tuple[str, str]] = []
    suggested: list[tuple[str, str]] = []
    for each in comparison.applied:
        note = f"; {each.note}" if each.note else ""
        if each.change in needed:
            less = show_amount(each.resource, 1)
            note = f"; with `{less}` less, `{needed[each.change]}` is not admitted"
        text = f"{each.what}: {f'{each.before} → ' if each.before else ''}{each.after}{note}"
        (suggested if each.change in needed else asked).append((each.change, text))
    if suggestion is not None and suggestion.untried:
        suggested.append(("not tried", f"{pluralize(suggestion.untried, 'workload')}: the search takes too long"))
    elif suggestion is not None and not suggested:
        admitted = "the jobs are admitted" if comparison.unchanged or comparison.applied else "there are no workloads"
        suggested.append(("no change", "no quota admits more" if suggestion.impossible else admitted))
    impossible = list(suggestion.impossible) if suggestion else []
    found = {"what if": asked, "suggested": suggested, "no quota admits": impossible}
    yield from ((title, rows) for title, rows in found.items() if rows)
