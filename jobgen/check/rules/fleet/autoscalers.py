"""Autoscalers and disruption budgets against the objects whose pods they are about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.finding import pluralize
from jobgen.model.sentence import Sentence
from jobgen.spec.overlay import Cluster

_HPA, _KEDA = "HorizontalPodAutoscaler", "ScaledObject"
_KEDA_OWNS = "scaledobject.keda.sh/transfer-hpa-ownership"
_KEDA_IGNORES = "validations.keda.sh/hpa-ownership"


def collect_targets(manifest: Manifest) -> Iterator[Fact]:
    """Yield an autoscaler with the object that it scales; one that gives its target up does not count."""
    if "scaleTargetRef" not in manifest.spec or manifest.group not in ("autoscaling", "keda.sh"):
        return
    target = as_mapping(manifest.spec.get("scaleTargetRef"))
    name, kind = as_text(target.get("name")), as_text(target.get("kind")) or "Deployment"
    annotations = manifest.annotations
    is_given_up = as_text(annotations.get(_KEDA_OWNS)) == "true" or as_text(annotations.get(_KEDA_IGNORES)) == "false"
    if name and not is_given_up:
        group = as_text(target.get("apiVersion")).rpartition("/")[0] or "apps"
        place = (manifest.namespace, group, kind, name)
        yield Fact((manifest.kind_name, manifest.name, place), ("spec", "scaleTargetRef", "name"))


@rule("fleet", WARNING, kinds=(_HPA, _KEDA), collect=collect_targets)
def conflicting_autoscalers(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two autoscalers that set the replicas of one object.

    Each of two HorizontalPodAutoscalers undoes what the other one did, so the replicas go up and down. KEDA creates a
    HorizontalPodAutoscaler for a ScaledObject, and its webhook refuses a second autoscaler of the same object: `the
    workload is already managed by the hpa`.

    Keep one of them, with all metrics or triggers.

    When to turn it off: while you move from one autoscaler to the other, the old one can be kept with `minReplicas`
    equal to `maxReplicas`; accept it with an end date.
    """
    del cluster
    first: dict[Any, Fact] = {}
    for fact in facts:
        kind, name, target = fact.value
        other = first.setdefault(target, fact)
        if other is fact or other.value[:2] == (kind, name):
            continue
        refuses = "KEDA refuses that" if _KEDA in (kind, other.value[0]) else "each undoes what the other one does"
        message = Sentence(
            "`{}` is also scaled by the {} `{}`, and {}", target[3], other.value[0], other.value[1], refuses
        )
        yield FactViolation(fact, Sentence("{}; keep one of them", message), ((other, "the other autoscaler"),))


_BUDGET = "PodDisruptionBudget"
_REPLICATED = ("Deployment", "StatefulSet")


def collect_budgets(manifest: Manifest) -> Iterator[Fact]:
    """Yield a budget with what it selects and spares, or a workload with its labels and replicas."""
    spec = manifest.spec
    if manifest.group == "apps" and manifest.kind_name in _REPLICATED:
        # Most of them are workloads, which cost little here.
        replicas = spec.get("replicas")
        labels = _list_labels(get_path(spec, "template", "metadata", "labels"))
        count = 1 if replicas is None else as_integer(replicas)
        yield Fact(("", manifest.namespace, labels, manifest.name, count), ("metadata", "name"))
    elif manifest.kind_name == _BUDGET:
        selector = as_mapping(spec.get("selector"))
        wanted = () if selector.get("matchExpressions") else _list_labels(selector.get("matchLabels"))
        field = "minAvailable" if "minAvailable" in spec else "maxUnavailable"
        yield Fact((_BUDGET, manifest.namespace, wanted, field, spec.get(field)), ("spec", field))
    elif isinstance(spec.get("scaleTargetRef"), dict):
        name = as_text(get_path(spec, "scaleTargetRef", "name"))
        yield Fact((_HPA, manifest.namespace, (), name, 0), ("metadata", "name"))


def _list_labels(node: Plain) -> tuple[str, ...]:
    return tuple([f"{key}={value}" for key, value in node.items()]) if isinstance(node, dict) else ()


@rule("fleet", WARNING, kinds=(_BUDGET, *_REPLICATED, _HPA, _KEDA), collect=collect_budgets)
def blocked_eviction(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A PodDisruptionBudget that lets no pod be evicted.

    `kubectl drain`, the upgrade of a node and an autoscaler that removes a node evict pods, and wait for the budget.
    With `maxUnavailable: 0`, `minAvailable: 100%`, or as many pods as `minAvailable`, they wait until the pods are
    deleted by hand, and the node with its GPUs stays. Where an autoscaler sets the replicas, their number is not known.

    Write `maxUnavailable: 1`, or run more pods than `minAvailable`.

    When to turn it off: a single pod that must not be moved while it trains can have such a budget, if a team deletes
    it by hand before maintenance: suppress it on the field and name that team.
    """
    del cluster
    scaled = {(fact.value[1], fact.value[3]) for fact in facts if fact.value[0] == _HPA}
    workloads = [fact for fact in facts if not fact.value[0]]
    for fact in facts:
        kind, namespace, wanted, field, amount = fact.value
        if kind != _BUDGET:
            continue
        if (field, str(amount)) in (("maxUnavailable", "0"), ("maxUnavailable", "0%"), ("minAvailable", "100%")):
            message = Sentence("`{}: {}` lets no pod be evicted, so a node with one is never drained", field, amount)
            yield FactViolation(fact, Sentence("{}; write `maxUnavailable: 1`", message), evidence=(field, str(amount)))
            continue
        if field != "minAvailable" or type(amount) is not int or amount < 1 or not wanted:
            continue
        selected = [each for each in workloads if each.value[1] == namespace and {*wanted} <= {*each.value[2]}]
        counts = [each.value[4] for each in selected]
        if not selected or None in counts or any((namespace, each.value[3]) in scaled for each in selected):
            continue
        if 0 < sum(counts) <= amount:
            message = Sentence("`minAvailable: {}` of {} lets none be evicted", amount, pluralize(sum(counts), "pod"))
            advice = "write `maxUnavailable: 1`, or run more pods"
            related = ((selected[0], "the pods"),)
            yield FactViolation(fact, Sentence("{}, so a node with one is never drained; {}", message, advice), related)
