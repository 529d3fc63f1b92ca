"""What `jobgen queue` reports: the decisions of one or more environments, and how amounts and names are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from jobgen.features.kueue.amounts import show_amount
from jobgen.features.kueue.decision.answers import DECISIONS, Answer, Decision
from jobgen.features.kueue.workload.workloads import PodSetAdmission
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple

ARRIVAL_ORDER = "jobs arrive by priority, then by namespace and queue, then by name"
NO_FINAL_STATE = "workloads evict each other in turn, so there is no final state; this is one of the states"
STOPPED = "the simulation was stopped because it takes too long; jobs that it did not reach are listed as waiting"
NOT_SIMULATED = "not simulated: time, autoscaling, admission checks, MultiKueue"
"""What a decision leaves out; docs/kueue.md says the same."""


_MAX_DOMAINS = 4


class EnvironmentReport(NamedTuple):
    """The decision about one environment."""

    environment: str
    version: str
    """The version of Kueue."""
    is_fair: bool
    running: str
    """Which jobs run from the start: `none`, `all`, or their names."""
    decision: Decision

    def count_decisions(self) -> Mapping[str, int]:
        """Return how many workloads have each decision, in the order of decisions."""
        counts = Counter(answer.decision for answer in self.decision.answers)
        return {decision: counts[decision] for decision in DECISIONS if counts[decision]}

    def summarize(self) -> str:
        """Return the counts in one line."""
        counts = ", ".join(f"{count} {decision}" for decision, count in self.count_decisions().items())
        return f"{pluralize(len(self.decision.answers), 'workload')}: {counts}" if counts else "no workloads"

    def list_notes(self) -> Iterator[str]:
        """Yield what the decision assumes and leaves out."""
        sharing = "with fair sharing" if self.is_fair else "without fair sharing"
        yield f"Kueue {self.version}, {sharing}; {ARRIVAL_ORDER}; assumed to run from the start: {self.running}"
        if not self.decision.settles:
            yield NO_FINAL_STATE
        if not self.decision.is_complete:
            yield STOPPED
        yield from self.decision.assumptions
        yield NOT_SIMULATED


class PodSetRow(NamedTuple):
    """A pod set as text."""

    name: str
    pods: str
    """How many pods there are; of how many, if it was admitted with fewer."""
    requests: str
    """What one pod is charged."""
    flavors: str


def list_pod_sets(answer: Answer) -> Iterator[PodSetRow]:
    """Yield the pod sets of a workload; with the flavors that it was admitted with."""
    workload = answer.workload
    admitted = {each.name: each for each in workload.admission} if workload else {}
    for each in workload.pod_sets if workload else ():
        found = admitted.get(each.name)
        count = str(each.count) if found is None or found.count == each.count else f"{found.count} of {each.count}"
        requests = ", ".join(f"{name} {show_amount(name, amount)}" for name, amount in sorted(each.requests.items()))
        flavors = ", ".join(dict.fromkeys(found.flavors.values())) if found else ""
        yield PodSetRow(each.name, count, requests or "no requests", flavors + (_show_domains(found) if found else ""))


def _show_domains(admitted: PodSetAdmission) -> str:
    """Return where the pods are placed; empty if they are placed by Kubernetes alone."""
    if not admitted.domains:
        return ""
    shown = [f"{count} in {'/'.join(values)}" for values, count in admitted.domains[:_MAX_DOMAINS]]
    more = f" and {len(admitted.domains) - _MAX_DOMAINS} more" if len(admitted.domains) > _MAX_DOMAINS else ""
    return f" ({', '.join(shown)}{more})"


def explain(answer: Answer) -> str:
    """Return why a workload has its decision, and what to change if it is never admitted."""
    if answer.obstacle is not None and answer.obstacle.change:
        return f"{answer.reason}; {answer.obstacle.change}"
    evicted = f"`{answer.evicted_by}` evicts it; " if answer.evicted_by else ""
    return f"{evicted}{answer.reason}"
