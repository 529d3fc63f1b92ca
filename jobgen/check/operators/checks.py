"""What the checks of operators share: a check with the versions that it applies to, and frequent kinds of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from jobgen.check.admission.fields import is_empty, join_names
from jobgen.check.admission.metadata import validate_object_metadata
from jobgen.check.admission.names import generate_name
from jobgen.check.rules import ERROR, Violation
from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import parse_release
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived, DerivedList, Place, Places, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, suggest_value
from jobgen.spec.kinds import VersionRange, parse_version

REJECTED = "rejected-by-operator"
NEVER_STARTS = "never-starts"
CHILD_REJECTED = "rejected-child"
GATE_OFF = "feature-gate-off"
ADMITS_NOTHING = "admits-nothing"

MAX_INT32 = 2**31 - 1
Violations: TypeAlias = Iterator[Violation]
FindViolations: TypeAlias = Callable[[Manifest], Iterable[Violation]]


class Check(NamedTuple):
    """A check of one kind: the rule that reports it, and the versions of the operator that make it."""

    rule: str
    find: FindViolations
    since: str = ""
    until: str = ""

    def applies_to(self, version: str) -> bool:
        """Return True if a version of the operator makes this check; without one, the newest is meant."""
        if not version:
            return not self.until
        return VersionRange(self.since, self.until).contains(version)


Checks: TypeAlias = Mapping[str, tuple[Check, ...]]
"""The checks of a module, by kind."""

_Part = TypeVar("_Part")
PartCheck: TypeAlias = tuple[str, Callable[[_Part], Iterable[Violation]], str, str]
"""A check of a part of objects: the rule, the check, the first version with it, and the first version without it."""


def list_checks_at(
    path: tuple[str, ...], checks: Iterable[PartCheck[_Part]], read: Callable[[Mapping[str, Plain], Manifest], _Part]
) -> tuple[Check, ...]:
    """Return checks of the mapping at a path of objects, which `read` makes a part."""

    def check_part(check: Callable[[_Part], Iterable[Violation]]) -> FindViolations:
        def find(manifest: Manifest) -> Violations:
            found = get_path(manifest.object, *path)
            if isinstance(found, dict):
                yield from check(read(found, manifest))

        return find

    return tuple(Check(rule, check_part(check), since, until) for rule, check, since, until in checks)


def is_since(manifest: Manifest, operator: str, since: str) -> bool:
    """Return True if the declared version of an operator is `since` or later; without one, the newest is meant."""
    declared = str(manifest.cluster.operators.get(operator, ""))
    return not declared or is_version_since(declared, since)


def is_version_since(text: str, since: str) -> bool:
    """Return True if a version is `since` or later."""
    return parse_version(text) >= parse_version(since)


def full_name(manifest: Manifest) -> str:
    """Return the name of an object, or one that the API server may generate for it."""
    prefix = as_text(manifest.metadata.get("generateName"))
    return manifest.name or (prefix and generate_name(prefix))


def name_place(manifest: Manifest) -> At:
    """Return the place of what names an object."""
    return At(manifest.metadata, "name" if as_text(manifest.metadata.get("name")) else "generateName")


def given_name(manifest: Manifest) -> str:
    """Return the name or the start of a name that an object has."""
    return as_text(manifest.metadata.get("name")) or as_text(manifest.metadata.get("generateName"))


def field_place(owner: Mapping[str, Plain], name: str) -> At | None:
    """Return the place to report for a field: its value if that is a scalar, else its key."""
    return At(owner, name, is_key=isinstance(owner[name], (dict, list))) if name in owner else None


def spec_place(manifest: Manifest, name: str) -> At:
    """Return the place to report for a field that the spec needs: its key, or without it that of the spec."""
    return (
        find_at(manifest.spec, name, is_key=True)
        or find_at(manifest.object, "spec", is_key=True)
        or At(manifest.object, "kind")
    )


def is_gate_on(manifest: Manifest, gate: str) -> bool:
    """Return True if the environment declares that a feature gate is on; Kueue has `featureGates` of its own, too."""
    cluster = manifest.cluster
    return gate in (cluster.feature_gates or ()) or as_mapping(cluster.kueue.get("featureGates")).get(gate) is True


def require_gate(manifest: Manifest, gate: str, what: str, place: Place) -> Violations:
    """Yield a violation if a feature gate is not declared to be on: an error if the environment declares gates."""
    if is_gate_on(manifest, gate):
        return
    if manifest.cluster.feature_gates is None:
        message = Sentence(
            "{} requires the feature gate `{}`, which is off by default; if it is on, declare it in", what, gate
        )
        yield Violation(place, Sentence("{} `cluster.featureGates`", message))
    else:
        message = Sentence(
            "{} requires the feature gate `{}`, which `cluster.featureGates` does not list; remove it", what, gate
        )
        yield Violation(place, Sentence("{}, or turn the gate on", message), severity=ERROR)


def check_gate(gate: str, *path: str, value: str = "") -> FindViolations:
    """Return a check that a feature gate is on if the field at a path has a value, or without one, if it is set."""

    def find(manifest: Manifest) -> Violations:
        holder = as_mapping(get_path(manifest.object, *path[:-1]))
        node = holder.get(path[-1])
        if value and as_text(node) == value:
            yield from require_gate(manifest, gate, f"`{value}`", At(holder, path[-1]))
        elif not value and node is not None:
            yield from require_gate(manifest, gate, f"`{path[-1]}`", At(holder, path[-1], is_key=True))

    return find


Bounds: TypeAlias = Mapping[str, tuple[int, int | None]]
"""The lowest and the highest value of numbers, by the path of their field."""


def check_bounds(bounds: Bounds) -> FindViolations:
    """Return a check of numbers at paths of keys."""
    paths = [(path.split("."), *limits) for path, limits in bounds.items()]

    def find(manifest: Manifest) -> Violations:
        for (*steps, name), low, high in paths:
            holder = get_path(manifest.object, *steps)
            if isinstance(holder, dict) and name in holder:
                yield from out_of_bounds(holder, name, low, high)

    return find


def out_of_bounds(holder: Mapping[str, Plain], name: str, low: int, high: int | None = None) -> Violations:
    """Yield a violation if a number in a mapping is out of bounds."""
    found = as_integer(holder.get(name))
    if found is not None and (found < low or (high is not None and found > high)):
        yield Violation(At(holder, name), describe_bounds(name, found, low, high))


def describe_bounds(name: str, found: int, low: int, high: int | None) -> str:
    """Say which numbers a field can have instead of one that is out of bounds."""
    return f"`{name}` must be {f'at least {low}' if found < low else f'at most {high}'}, got `{found}`"


_NO_WORDS: Mapping[str, str] = MappingProxyType({})


def not_one_of(
    holder: Any,
    key: Any,
    known: list[str],
    *,
    name: str = "",
    allow_empty: bool = True,
    meant: Mapping[str, str] = _NO_WORDS,
) -> Violations:
    """Yield a violation if a text in a mapping or list is not one of those that the operator knows.

    `name` is its field, if that is not its key, and `meant` are words for some of the texts.
    """
    found = holder.get(key) if isinstance(holder, dict) else holder[key]
    if not isinstance(found, str) or found in known or (allow_empty and not found):
        return
    wanted = [meant[found]] if found in meant else known
    hint = f"; did you mean `{meant[found]}`?" if found in meant else did_you_mean(found, known)
    place = At(holder, key)
    message = Sentence("`{}` is `{}`, but must be {}{}", name or key, found, join_names(known, "or"), hint)
    fix_steps, safe = suggest_value(place, wanted)
    yield Violation(place, message, fix_steps=fix_steps, safe=safe)


# Check what the API server validates later: the objects that operators create, and their schedules.

# The names of children are checked by kind, with their suffixes.
_NAME = "job"
# What operators copy from the metadata of a template.
_COPIED = ("labels", "annotations")


def check_job(
    manifest: Manifest, metadata: Mapping[str, Plain], spec: Mapping[str, Plain], parent: Place, what: str = "its Job"
) -> Violations:
    """Yield why the API server rejects a Job that an operator creates; `parent` is the place of the whole Job."""
    copied = {key: metadata[key] for key in metadata if key in _COPIED}
    job: dict[str, Plain] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": Derived({**copied, "name": _NAME}, metadata),
        "spec": spec,
    }
    release = parse_release(manifest.cluster.kubernetes)
    for problem in (*validate_object_metadata(job["metadata"]), *validate_object(job, release)):
        place = find_written(manifest, problem.node, parent)
        message = Sentence("the API server rejects {}: {}", what, problem.sentence)
        yield Violation(place, message, fix_steps=problem.fix_steps, safe=problem.safe, evidence=problem.values)


def find_written(manifest: Manifest, place: Place, parent: Place) -> Place:
    """Return a place in an object that an operator creates, or that of its parent if the operator added what is there.

    What is created shares its mappings with the object, or is derived from them.
    """
    is_placed = isinstance(place, (At, dict, list))
    return place if not is_placed or Places(manifest.object).find(place) else parent


def check_schedule(manifest: Manifest) -> Violations:
    """Yield what is wrong with `spec.schedule`; the schema requires it."""
    # Imported late: few kinds have a schedule.
    from jobgen.check.validation.jobs import find_schedule_error

    node = manifest.spec.get("schedule")
    if isinstance(node, str) and (error := find_schedule_error(as_text(node))):
        yield Violation(At(manifest.spec, "schedule"), Sentence("`schedule` is `{}`{}", as_text(node), error))


def check_time_zone(manifest: Manifest) -> Violations:
    """Yield what is wrong with `spec.timeZone`."""
    from jobgen.model.time_zones import is_time_zone, suggest_time_zone

    node = manifest.spec.get("timeZone")
    if isinstance(node, str) and not is_time_zone(node):
        yield Violation(
            At(manifest.spec, "timeZone"),
            Sentence("`{}` is not a time zone{}", node, suggest_time_zone(node)),
        )


# What the webhooks of operators fill in before the API server validates an object: fields that its schema requires.


def fill_in_defaults(obj: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Return an object with the required fields that the webhook of its operator fills in."""
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    fill_in = _DEFAULTS.get((group, as_text(obj.get("kind"))))
    return fill_in(obj) if fill_in else obj


def _fill_in_jobset(obj: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Name the rules of a failure policy."""
    path = ("spec", "failurePolicy", "rules")
    rules = get_path(obj, *path)
    if not isinstance(rules, list) or not any(isinstance(rule, dict) and is_empty(rule.get("name")) for rule in rules):
        return obj
    named = [
        Derived({**rule, "name": f"failurePolicyRule{index}"}, rule)
        if isinstance(rule, dict) and rule and is_empty(rule.get("name"))
        else rule
        for index, rule in enumerate(rules)
    ]
    return as_mapping(_replace(obj, path, DerivedList(named, rules)))


def _fill_in_lws(obj: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Set the policy for subdomains."""
    path = ("spec", "networkConfig")
    config = get_path(obj, *path)
    if not isinstance(config, dict) or not is_empty(config.get("subdomainPolicy")):
        return obj
    return as_mapping(_replace(obj, path, Derived({**config, "subdomainPolicy": "Shared"}, config)))


def _replace(node: Plain, path: tuple[str, ...], value: Plain) -> Plain:
    """Return a copy of a mapping with another value at a path; the keys keep their locations and their places."""
    if not path:
        return value
    owner = as_mapping(node)
    return Derived({**owner, path[0]: _replace(owner[path[0]], path[1:], value)}, owner)


_DEFAULTS: Mapping[tuple[str, str], Callable[[Mapping[str, Plain]], Mapping[str, Plain]]] = {
    ("jobset.x-k8s.io", "JobSet"): _fill_in_jobset,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _fill_in_lws,
}
