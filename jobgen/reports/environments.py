"""Gives findings that environments have for one cause the same words, so that reports show them as one.

The environment decides about some names in a message: a namespace, or the quota that its queues use. Amounts that
differ need different answers, so these findings stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.finding import Finding, join_sentences

_MOST_NOTES = 6
"""How many related locations are shown, of which each environment may have some."""
OF_CLUSTERS = frozenset(
    """cohort-cycle exceeds-limit-range exceeds-quota flavor-without-nodes foreign-volume gang-beyond-queue
    inadmissible-job injected-proxy larger-than-nodes misspelled-claim pod-security-violation
    priority-differs-from-class runtime-mismatch stuck-after-admission stuck-rollout team-budget-exceeded
    uncounted-claim unknown-cluster-queue unknown-cohort unknown-queue unknown-reference unknown-runtime
    unreachable-quota""".split()
)
"""Rules that compare a job with objects of its cluster, which every environment may name in its own way."""


def join_environments(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; those of one cause that differ in names of their environments name all of these."""
    groups: dict[object, list[int]] = {}
    for number, finding in enumerate(findings):
        if finding.env:
            groups.setdefault(_find_cause(finding), []).append(number)
    left = list(findings)
    for numbers in groups.values():
        joined = _join([findings[number] for number in numbers]) if len(numbers) > 1 else ()
        for number, finding in zip(numbers, joined, strict=False):
            left[number] = finding
    return left


def _find_cause(finding: Finding) -> tuple[object, ...]:
    """Return what a finding has in common with those of other environments, which may set the namespace."""
    return finding.severity, finding.location, finding.identity._replace(env="", namespace="", values=())


def _join(several: Sequence[Finding]) -> Sequence[Finding]:
    """Return findings with the same words; none if nothing shows that they have one cause."""
    messages = [each.message for each in several]
    if len(dict.fromkeys((each.fault, each.related) for each in several)) == 1:
        return ()
    if len({each.env for each in several}) < len(several):
        return ()
    if several[0].rule in OF_CLUSTERS:
        message = join_sentences(messages)
    else:
        namespaces = {each.object.namespace for each in several if each.object}
        message = join_sentences(messages, namespaces) if len(set(messages)) > 1 else ""
    related = tuple(dict.fromkeys(note for each in several for note in each.related))
    return [each._replace(message=message, related=related[:_MOST_NOTES]) for each in several] if message else ()
