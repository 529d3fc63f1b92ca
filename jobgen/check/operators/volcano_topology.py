"""What the webhook of Volcano rejects: PodGroups and HyperNodes, and what they share with Jobs."""

from __future__ import annotations

from jobgen.check.admission.fields import is_empty, is_set, iter_mappings
from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.suggest import find_key

OPERATOR = "volcano"


def check_tiers(topology: Node) -> Violations:
    """Yield a violation if a network topology names its highest tier twice."""
    found = as_mapping(topology)
    if is_set(found.get("highestTierAllowed")) and as_text(found.get("highestTierName")):
        message = "`highestTierAllowed` and `highestTierName` are mutually exclusive; remove one of them"
        yield Violation(find_key(found, "highestTierName"), message)


def _check_topologies(manifest: Manifest) -> Violations:
    for path in (("networkTopology",), ("subGroupPolicy", "*", "networkTopology")):
        for topology in find_nodes(manifest.spec, path):
            yield from check_tiers(topology)


def _check_members(manifest: Manifest) -> Violations:
    """Check the members of a HyperNode as the schema of later versions does."""
    if is_empty(manifest.spec.get("members")):
        yield _report_no_members(manifest)
    for member in iter_mappings(manifest.spec.get("members")):
        selector = as_mapping(member.get("selector"))
        names = [name for name in ("exactMatch", "regexMatch", "labelMatch") if is_set(selector.get(name))]
        if len(names) != 1:
            node: Node = find_key(selector, names[1]) if names else find_key(member, "selector") or member
            yield Violation(node, "`selector` requires one of `exactMatch`, `regexMatch` and `labelMatch`; set one")


def _check_absent_members(manifest: Manifest) -> Violations:
    if not is_set(manifest.spec.get("members")):
        yield _report_no_members(manifest)


def _report_no_members(manifest: Manifest) -> Violation:
    node = find_key(manifest.spec, "members") or find_key(manifest.object, "spec") or manifest.object.get("kind")
    return Violation(node, "a HyperNode requires `members`; add one")


def _check_patterns(manifest: Manifest) -> Violations:
    for member in iter_mappings(manifest.spec.get("members")):
        node = get_path(member, "selector", "regexMatch", "pattern")
        reason = _find_pattern_error(as_text(node))
        if reason:
            yield Violation(node, f"`{as_text(node)}` is not a regular expression: {reason}; write a valid one")


def _find_pattern_error(pattern: str) -> str:
    # Imported late, because few repositories have HyperNodes.
    from jobgen.check.cel import available
    from jobgen.check.cel.patterns import fault

    return fault(pattern) if pattern and not available() else ""


CHECKS: Checks = {
    "PodGroup": (Check(REJECTED, _check_topologies, since="1.14"),),
    "HyperNode": (
        Check(REJECTED, _check_patterns),
        Check(REJECTED, _check_absent_members, since="1.14"),
        Check(REJECTED, _check_members, until="1.14"),
    ),
}
