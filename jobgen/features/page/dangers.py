"""What a reviewer must not overlook: deleted, suspended and restarted runs, rejections, quota, and production."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jobgen.diff.changes import ChangeSet
from jobgen.diff.effects import Effect
from jobgen.diff.impact import Impact
from jobgen.diff.queue_changes import PREEMPTED, UNKNOWN, WorkloadChange
from jobgen.features.kueue.decision.answers import NEVER, WAITS
from jobgen.features.page.deadlines import find_deadline
from jobgen.features.page.encode import NONE
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple

LONG_RUN = 24 * 3600
"""Seconds from which a deadline allows a long run; a run without a deadline is also long."""

_PRODUCTION = frozenset(("prod", "production", "prd", "live"))
_BEFORE_PRODUCTION = frozenset(("non", "not", "no", "pre"))
_WORDS = re.compile(r"[^a-z]+")
_QUOTA_RULES = frozenset(("exceeds-quota", "gpu-budget-exceeded", "queue-quota-exceeded", "sweep-too-large"))


class Danger(NamedTuple):
    """Something that a reviewer must not overlook."""

    code: str
    """`rejected`, `deletes-running-job`, `suspends-running-job`, `restarts-long-run`, `exceeds-quota` or
    `touches-production`."""
    message: str
    """What is said about the object of the change, or a whole sentence if it is about several."""
    change: int
    """The number of the change; -1 if it is about several."""


def find_dangers(changes: ChangeSet, new: Iterable[Finding] = ()) -> Iterator[Danger]:
    """Yield what is dangerous about the changes and their new findings."""
    for number, one in enumerate(changes.impacts):
        found = _find_danger(changes, one)
        if found:
            yield Danger(*found, number)
    yield from _find_quota_dangers(changes, new)
    yield from _find_production(changes.impacts)


def _find_danger(changes: ChangeSet, one: Impact) -> tuple[str, str] | None:
    """Return the code and the text of what is dangerous about one change."""
    if one.outcome.effect is Effect.REJECTED:
        return "rejected", f"is rejected: {one.outcome.reason}"
    if not one.stops or one.old is None:
        return None
    if one.action == "removed":
        return "deletes-running-job", "is deleted and may be running"
    if one.outcome.effect is Effect.STOPS_RUNNING:
        return "suspends-running-job", f"may be running: {one.outcome.reason}"
    deadline = find_deadline(changes.old.manifest(one.old))
    if 0 < deadline < LONG_RUN:
        return None
    return "restarts-long-run", f"may run for {_format_time(deadline)}" if deadline else "has no deadline"


def _format_time(seconds: int) -> str:
    hours = round(seconds / 3600)
    return f"{hours} hours" if hours < 72 else f"{round(hours / 24)} days"


def _find_quota_dangers(changes: ChangeSet, new: Iterable[Finding]) -> Iterator[Danger]:
    """Yield the workloads that no longer fit, and new findings about quotas and budgets of other objects."""
    names = ((one.current.env, one.current.identity) for one in changes.impacts)
    numbers = {(env, named.kind, _name_workload(named)): number for number, (env, named) in enumerate(names)}
    known: set[tuple[str, str]] = set()
    for environment in changes.queues:
        env = environment.environment
        for each in environment.workloads:
            if each.after in (NEVER, WAITS, PREEMPTED) and each.before != each.after:
                known.add((env, each.workload))
                change = numbers.get((env, each.kind, each.workload), NONE)
                subject = f"`{each.workload}`{_name_place(env)} " if change == NONE else ""
                yield Danger("exceeds-quota", f"{subject}{_describe_decision(each)}", change)
    for finding in new:
        workload = _name_workload(finding.object) if finding.object else ""
        if finding.rule in _QUOTA_RULES and (finding.env, workload) not in known:
            yield Danger("exceeds-quota", f"{finding.message}{_name_place(finding.env)}", NONE)


def _name_workload(identity: Identity) -> str:
    return f"{identity.namespace}/{identity.name}"


def _describe_decision(one: WorkloadChange) -> str:
    """Say what becomes of a workload, and why."""
    after = "is never admitted" if one.after == NEVER else f"is {one.after}" if one.after == PREEMPTED else one.after
    if not one.before:
        return f"is new and {after.removeprefix('is ')}: {one.reason}"
    was = "" if one.before == UNKNOWN else f"was `{one.before}` and "
    return f"{was}now {after}: {one.reason}"


def _find_production(impacts: Iterable[Impact]) -> Iterator[Danger]:
    """Yield the environments and namespaces of production that change, with the number of their objects."""
    counts: dict[str, int] = {}
    for one in impacts:
        env, namespace = one.current.env, one.current.identity.namespace
        if is_production(env):
            place = f"environment `{env}`"
        elif is_production(namespace):
            place = f"namespace `{namespace}`{_name_place(env)}"
        else:
            continue
        counts[place] = counts.get(place, 0) + 1
    for place, count in sorted(counts.items()):
        objects = "1 object changes" if count == 1 else f"{count} objects change"
        yield Danger("touches-production", f"{place}: {objects}", NONE)


def is_production(name: str) -> bool:
    """Whether the name of an environment or a namespace says that it is production; `pre-prod` is not."""
    words = _WORDS.split(name.lower())
    pairs = zip(("", *words), words, strict=False)
    return any(word in _PRODUCTION and before not in _BEFORE_PRODUCTION for before, word in pairs)


def _name_place(env: str) -> str:
    return f" in `{env}`" if env else ""
