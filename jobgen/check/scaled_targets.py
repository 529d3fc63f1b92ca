"""Find autoscalers whose target is misspelled, in one file or one build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.meant import find_meant
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

KINDS = frozenset((("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")))
RULE = "unknown-reference"
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{{", "<")


def find_lost_targets(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each target, by the number of its autoscaler, that the objects do not have, if one of them is meant.

    It is one with a similar name, or the only one of its kind if nothing else scales that.
    """
    named: dict[tuple[str, str], list[str]] = {}
    for obj in objects:
        namespace, name = (as_text(get_path(obj, "metadata", field)) for field in ("namespace", "name"))
        named.setdefault((as_text(obj.get("kind")), namespace), []).append(name)
    targets = {number: _read_target(obj) for number, obj in enumerate(objects) if _name_kind(obj) in KINDS}
    for number, (kind, namespace, name) in targets.items():
        known = named.get((kind, namespace), [])
        if not name or name in known or any(sign in name for sign in _UNFILLED):
            continue
        others = {other for at, (_, _, other) in targets.items() if at != number}
        free = [each for each in known if each not in others]
        meant = find_meant(name, known) or (free[0] if len(known) == len(free) == 1 else "")
        if meant:
            holder = as_mapping(get_path(objects[number], "spec", "scaleTargetRef"))
            message = Sentence(
                "none of these objects is a {} `{}`, so nothing is scaled; did you mean `{}`?", kind, name, meant
            )
            # An object of this name may be in the cluster, so that this is a guess.
            steps = (FixStep("set", holder.get("name"), meant),)
            place = At(holder, "name")
            problem = Problem(RULE, message, place, category="fleet", severity=Severity.WARNING, fix_steps=steps)
            yield number, problem._replace(safe=False)


def _name_kind(obj: Mapping[str, Plain]) -> tuple[str, str]:
    return as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))


def _read_target(obj: Mapping[str, Plain]) -> tuple[str, str, str]:
    """Return the kind, namespace and name of what an autoscaler scales."""
    target = as_mapping(get_path(obj, "spec", "scaleTargetRef"))
    namespace = as_text(get_path(obj, "metadata", "namespace"))
    return as_text(target.get("kind")) or "Deployment", namespace, as_text(target.get("name"))
