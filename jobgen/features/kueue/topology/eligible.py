"""Which nodes may take pods of a template: taints, node selector and node affinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.features.kueue.match import is_blocking, is_tolerated, matches_expression
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.topology.exclusions import Exclusions
from jobgen.features.kueue.topology.nodes import Node
from jobgen.features.kueue.topology.tree import Domain, TopologyTree
from jobgen.model.named_tuple import NamedTuple


class Eligible(NamedTuple):
    """Leaves that may take pods, their scores by preferred affinity, and why the others may not."""

    leaves: Sequence[Domain]
    by_index: Mapping[int, Domain]
    """The same leaves by their position."""
    scores: Sequence[int]
    exclusions: Exclusions
    key: str = ""
    """Stands for what was asked."""


def find_eligible(
    tree: TopologyTree, spec: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]], *, with_scores: bool
) -> Eligible:
    """Find the leaves that may take pods. Only leaves that are hosts are checked."""
    every = list(tree.leaves.values())
    exclusions = Exclusions(len(every))
    if not tree.has_hostnames:
        return Eligible(every, _index(every), (), exclusions)
    affinity = as_mapping(as_mapping(spec.get("affinity")).get("nodeAffinity"))
    tolerated = [*map(as_mapping, as_list(spec.get("tolerations"))), *tolerations]
    selector = as_mapping(spec.get("nodeSelector"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else _list_terms(as_mapping(required).get("nodeSelectorTerms"))
    leaves = []
    for leaf in every:
        reason = _find_reason(tree.nodes[leaf.index], tolerated, selector, terms)
        if reason:
            exclusions.note(reason)
        else:
            leaves.append(leaf)
    preferred = _list_terms(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")) if with_scores else []
    scores = [_sum_weights(tree.nodes[leaf.index], preferred) for leaf in leaves] if preferred else []
    return Eligible(leaves, _index(leaves), scores, exclusions)


def _index(leaves: Sequence[Domain]) -> dict[int, Domain]:
    return {leaf.index: leaf for leaf in leaves}


def _find_reason(
    node: Node,
    tolerations: Sequence[Mapping[str, Any]],
    selector: Mapping[str, Any],
    terms: Sequence[Mapping[str, Any]] | None,
) -> str:
    """Return why a node may not take a pod; empty if it may."""
    for taint in node.taints:
        if is_blocking(taint) and not is_tolerated(taint, tolerations):
            return f'taint "{_format_taint(taint)}"'
    if any(node.labels.get(str(key)) != value for key, value in selector.items()):
        return "nodeSelector"
    if terms is not None and not any(_matches_term(node, term) for term in terms):
        return "affinity"
    return ""


def _format_taint(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def _list_terms(raw: Any) -> list[Mapping[str, Any]]:
    return [as_mapping(each) for each in as_list(raw)]


def _matches_term(node: Node, term: Mapping[str, Any]) -> bool:
    """Return whether a node matches all expressions of a term; a term without any matches nothing."""
    expressions, fields = _list_terms(term.get("matchExpressions")), _list_terms(term.get("matchFields"))
    return (
        bool(expressions or fields)
        and all(matches_expression(node.labels, each) for each in expressions)
        and all(matches_expression({"metadata.name": node.name}, each) for each in fields)
    )


def _sum_weights(node: Node, terms: Sequence[Mapping[str, Any]]) -> int:
    weights = [(term.get("weight"), as_mapping(term.get("preference"))) for term in terms]
    return sum(weight for weight, term in weights if isinstance(weight, int) and _matches_term(node, term))
