"""Groups findings about the files of a declared tree: one for each cause in an environment."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.builtin_rules import TREE_RULES
from jobgen.model.finding import Finding, Related, pluralize

_NAMED = 3
"""How many other files a finding names."""


def group_tree_faults(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with the first about each cause, which counts the others, and those that it stands for.

    The evidence of a finding about a declared tree names the cause, the tree, the environment and the file.
    """
    shown: list[Finding] = []
    others: list[Finding] = []
    groups: dict[tuple[str, ...], list[Finding]] = {}
    places: dict[tuple[str, ...], int] = {}
    for finding in findings:
        evidence = finding.evidence or ()
        if finding.rule not in TREE_RULES or len(evidence) < 4:
            shown.append(finding)
            continue
        key = (finding.rule, finding.severity.value, *evidence[:3])
        groups.setdefault(key, []).append(finding)
        if key in places:
            others.append(finding)
        else:
            places[key] = len(shown)
            shown.append(finding)
    for key, index in places.items():
        group = groups[key]
        if len(group) > 1:
            shown[index] = _join(group)
    return shown, others


def _join(group: list[Finding]) -> Finding:
    first, *rest = group
    _, folder, env, *_ = first.values
    within = f"{folder}/{env}" if env else folder
    # All are at the line that declares the tree, or each is at its own file.
    related = tuple(Related(other.location, "the same") for other in rest[:_NAMED] if other.location != first.location)
    message = (
        f"{first.without_advice}, and so it is with {pluralize(len(rest), 'other file')} in `{within}`; {first.advice}"
    )
    return first._replace(message=message, related=(*first.related, *related))
