"""Find objects of Strimzi whose label names no cluster of their file, or of their build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.nodes import as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.place import find_at

_LABEL = "strimzi.io/cluster"
_OWNERS = {
    "KafkaConnector": "KafkaConnect",
    **dict.fromkeys(("KafkaNodePool", "KafkaRebalance", "KafkaTopic", "KafkaUser"), "Kafka"),
}
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{", "<")


def find_lost_members(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each object, by its number, whose cluster is not among the objects, where another cluster is."""
    kinds = [as_text(obj.get("kind")) for obj in objects]
    for number, kind in enumerate(kinds):
        owner = _OWNERS.get(kind, "")
        if owner not in kinds or not as_text(objects[number].get("apiVersion")).startswith("kafka.strimzi.io/"):
            continue
        name = as_text(get_path(objects[number], "metadata", "labels", _LABEL))
        owners = (obj for obj, other in zip(objects, kinds, strict=True) if other == owner)
        known = sorted(as_text(get_path(obj, "metadata", "name")) for obj in owners)
        if name and name not in known and not any(sign in each for sign in _UNFILLED for each in (name, *known)):
            message = f"these files have a {owner}, but not `{name}`, so the operator ignores the {kind}"
            advice = f"; write the name of the {owner}, such as `{known[0]}`"
            place = find_at(objects[number], "metadata", "labels", _LABEL)
            problem = Problem("unknown-reference", message + advice, place, category="cluster")
            yield number, problem._replace(severity=Severity.WARNING)
