"""What Kueue decides about jobs, as `jobgen queue` does: sent from the background process to the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from jobgen.features.kueue.decision.answers import ADMITTED, DECISIONS, NEVER, UNMANAGED, WAITS, Answer
from jobgen.features.kueue.queues.report import NO_FINAL_STATE, EnvironmentReport, explain
from jobgen.model.finding import Identity
from jobgen.model.named_tuple import NamedTuple

ObjectKey = tuple[str, str, str]
"""The kind, namespace and name of the object of a job."""

_WORDS = {ADMITTED: "fits", NEVER: "never admitted"}
"""Words for a decision where that of `jobgen queue` says too little by itself."""
_MAX_REASON = 60


class JobDecision(NamedTuple):
    """What becomes of a job."""

    decision: str
    """As `jobgen queue` names it."""
    short: str
    """Why, in a few words; empty for a job that is admitted."""
    reason: str
    """Why, and what to change if it is never admitted."""

    @property
    def word(self) -> str:
        """The decision in a text for an editor."""
        return _WORDS.get(self.decision, self.decision)


Decisions = Mapping[str, Mapping[ObjectKey, JobDecision]]
"""By environment and object."""
NO_DECISIONS: Decisions = {}


class DecisionsAnswer(NamedTuple):
    """The decisions about a workspace. They replace all earlier ones."""

    number: int = -1
    """The newest request with a workspace that they hold for; -1 if they are obsolete."""
    decisions: Decisions = NO_DECISIONS
    error: str = ""
    """Why there are none: something failed."""


def collect_decisions(report: EnvironmentReport) -> dict[ObjectKey, JobDecision]:
    """Return the decision about each job that Kueue manages; of several workloads of a job, the worst.

    A simulation that was stopped says of jobs that it did not reach that they wait, so it decides nothing.
    """
    if not report.decision.is_complete:
        return {}
    note = "" if report.decision.settles else f"; {NO_FINAL_STATE}"
    found: dict[ObjectKey, JobDecision] = {}
    for answer in report.decision.answers:
        key = answer.job.kind, answer.job.namespace, answer.job.name
        known = found.get(key)
        is_worse = known is None or DECISIONS.index(answer.decision) > DECISIONS.index(known.decision)
        if answer.decision != UNMANAGED and is_worse:
            found[key] = JobDecision(answer.decision, _shorten(answer), explain(answer) + note)
    return found


def find_decision(decisions: Decisions, environment: str, objects: Iterable[Identity]) -> JobDecision | None:
    """Return the decision about the first of some objects that has one."""
    known = decisions.get(environment, {})
    keys = ((each.kind, each.namespace or "default", each.name) for each in objects)
    return next((known[key] for key in keys if key in known), None)


def describe_decisions(found: Iterable[JobDecision]) -> str:
    """Return a short text about a job, or about all jobs of a sweep; empty without decisions."""
    several = list(found)
    words = Counter(each.word for each in sorted(several, key=lambda each: DECISIONS.index(each.decision)))
    if len(words) > 1:
        return ", ".join(f"{word}: {count}" for word, count in words.items())
    shorts = {each.short for each in several}
    short = shorts.pop() if len(shorts) == 1 else ""
    return "".join(words) + (f": {short}" if short else "")


def _shorten(answer: Answer) -> str:
    """Return why a job is not admitted, in a few words."""
    if answer.decision not in (WAITS, NEVER):
        return ""
    reason = answer.reason.partition(", and ")[0].partition(";")[0].replace("`", "").removeprefix("it ")
    return reason if len(reason) <= _MAX_REASON else reason[: _MAX_REASON - 1].rstrip() + "…"
