"""Selectors that select the pods of another object."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.spec.overlay import Cluster

_BUDGET = "PodDisruptionBudget"


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield what an object selects, if it selects by labels alone, and the labels of its pods."""
    key = (manifest.group, manifest.kind_name)
    if key not in (("batch", "Job"), ("policy", _BUDGET)):
        return
    selector = as_mapping(manifest.spec.get("selector"))
    is_manual = value_of(manifest.spec.get("manualSelector")) is True or manifest.kind_name == _BUDGET
    wanted = _list_labels(selector.get("matchLabels")) if is_manual and not selector.get("matchExpressions") else ()
    labels = _list_labels(get_path(manifest.spec, "template", "metadata", "labels"))
    if wanted or labels:
        path = ("spec", "selector") if wanted else ("metadata", "name")
        yield Fact((manifest.kind_name, manifest.namespace, manifest.name, wanted, labels), path)


def _list_labels(node: object) -> tuple[tuple[str, str], ...]:
    labels = node if isinstance(node, dict) else {}
    return tuple(sorted((str(key), as_text(value)) for key, value in labels.items()))


@rule("fleet", WARNING, collect=collect)
def overlapping_selectors(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A Job with a manual selector that also selects the pods of another Job, or two budgets for the same pods.

    A Job counts and deletes the pods that it selects. If another Job created them, the Job that has finished
    deletes the pods of the other one, or takes their success for its own. A pod with more than one PodDisruptionBudget
    cannot be evicted, so its node cannot be drained.

    Remove `manualSelector` and `selector`: Kubernetes then selects by a label that only this Job has.
    """
    del cluster
    budgets: dict[tuple[str, object], Fact] = {}
    jobs: dict[tuple[str, tuple[str, str]], list[Fact]] = {}
    for fact in facts:
        kind, namespace, _, wanted, _ = fact.value
        if kind != _BUDGET:
            for label in fact.value[4]:
                jobs.setdefault((namespace, label), []).append(fact)
        elif (other := budgets.setdefault((namespace, wanted), fact)) is not fact and other.value[2] != fact.value[2]:
            message = (
                f"`{other.value[2]}` has the same selector, and pods with two PodDisruptionBudgets cannot be evicted"
            )
            yield FactViolation(fact, f"{message}; remove one of them", ((other, "the other budget"),))
    for fact in (each for each in facts if each.value[0] != _BUDGET and each.value[3]):
        _, namespace, name, wanted, _ = fact.value
        several = min((jobs.get((namespace, label), []) for label in wanted), key=len)
        others = (each for each in several if each.value[2] != name)
        taken = next((each for each in others if set(wanted) <= set(each.value[4])), None)
        if taken is not None:
            message = f"the selector also selects the pods of Job `{taken.value[2]}`, so one Job can count or delete"
            advice = "remove `manualSelector` and `selector`"
            yield FactViolation(fact, f"{message} the pods of the other; {advice}", ((taken, "the other Job"),))
