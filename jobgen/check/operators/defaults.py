"""What the webhooks of operators fill in before the API server validates an object: fields that its schema requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobgen.check.admission.fields import is_empty
from jobgen.k8s.nodes import as_text, get_path
from jobgen.model.data import Node


def fill_in_defaults(obj: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return an object with the required fields that the webhook of its operator fills in."""
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    fill_in = _DEFAULTS.get((group, as_text(obj.get("kind"))))
    return fill_in(obj) if fill_in else obj


def _fill_in_jobset(obj: Mapping[str, Node]) -> Mapping[str, Node]:
    """Name the rules of a failure policy."""
    path = ("spec", "failurePolicy", "rules")
    rules = get_path(obj, *path)
    if not isinstance(rules, list) or not any(isinstance(rule, dict) and is_empty(rule.get("name")) for rule in rules):
        return obj
    named = [
        {**rule, "name": f"failurePolicyRule{index}"}
        if isinstance(rule, dict) and rule and is_empty(rule.get("name"))
        else rule
        for index, rule in enumerate(rules)
    ]
    return _replace(obj, path, named)


def _fill_in_lws(obj: Mapping[str, Node]) -> Mapping[str, Node]:
    """Set the policy for subdomains."""
    path = ("spec", "networkConfig")
    config = get_path(obj, *path)
    if not isinstance(config, dict) or not is_empty(config.get("subdomainPolicy")):
        return obj
    return _replace(obj, path, {**config, "subdomainPolicy": "Shared"})


def _replace(node: Mapping[str, Node], path: tuple[str, ...], value: Node) -> Mapping[str, Node]:
    """Return a copy of a mapping with another value at a path; the keys keep their locations."""
    first, *rest = path

    def change(key: str, old: Node) -> Node:
        if key != first:
            return old
        return _replace(old, tuple(rest), value) if rest and isinstance(old, dict) else value

    return {key: change(key, old) for key, old in node.items()}


_DEFAULTS: Mapping[tuple[str, str], Callable[[Mapping[str, Node]], Mapping[str, Node]]] = {
    ("jobset.x-k8s.io", "JobSet"): _fill_in_jobset,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _fill_in_lws,
}
